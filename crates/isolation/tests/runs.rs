//! Several runs of one sandbox, pausing, stopping, and what a killed launcher leaves.
#![allow(clippy::unwrap_used)]

mod place;

use std::time::Duration;

use place::{Place, Who, await_until, everyone, only};
use sandbox_isolation::{LaunchError, Status};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_model::{ByteSize, Network};

/// Ends when the file `go` appears in the workspace.
const UNTIL_GO: &str = "while [ ! -e go ]; do sleep 0.01; done";

#[test]
fn two_runs_share_one_overlay_and_each_has_its_own_processes() {
    everyone(|place| {
        let first = place.start(&format!("stat -c %d . > one; echo $$ > pid; {UNTIL_GO}"));
        place.await_file("one");
        // The other run's sleep is nowhere to be seen.
        let script = "stat -c %d . > two; pgrep sleep && exit 1; echo > go";
        assert_eq!(place.run(script).status, Status::Exited(0));
        assert_eq!(first.wait().unwrap().status, Status::Exited(0));
        assert_eq!(place.written("one"), place.written("two"), "one superblock");
        assert_eq!(place.runs().live().unwrap(), []);
    });
}

#[test]
fn a_run_that_joined_survives_the_one_it_joined() {
    everyone(|place| {
        let first = place.start("echo > ready; sleep 1000");
        place.await_file("ready");
        let second = place.start(&format!("echo > joined; {UNTIL_GO}; exit 4"));
        place.await_file("joined");
        drop(first);
        assert_eq!(place.runs().live().unwrap().len(), 1);
        assert_eq!(
            place.run("[ -e joined ] && echo > go").status,
            Status::Exited(0)
        );
        assert_eq!(second.wait().unwrap().status, Status::Exited(4));
    });
}

#[test]
fn other_walls_cannot_be_had_beside_a_live_run() {
    everyone(|place| {
        let first = place.start("sleep 1000");
        let mut policy = place.policy("true");
        policy.settings.network = Network::Isolated {
            ports: vec![],
            hosts: vec![],
            publish: vec![],
        };
        let error = place.launch(&policy).unwrap_err();
        assert!(
            matches!(&error, LaunchError::Joined { what } if what == "network"),
            "{error:?}"
        );
        drop(first);
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
    });
}

#[test]
fn ten_launches_at_once_all_run() {
    everyone(|place| {
        let launchers: Vec<_> = (0..10)
            .map(|number| {
                let body = || {
                    let ended = place.run(&format!("echo > done-{number}"));
                    i32::from(ended.status != Status::Exited(0))
                };
                clone(Namespaces::empty(), Parent::Caller, (), body)
                    .unwrap()
                    .0
            })
            .collect();
        for launcher in launchers {
            assert_eq!(launcher.wait().unwrap().exit_status(), Some(0));
        }
        for number in 0..10 {
            assert!(place.written(&format!("done-{number}")).is_some());
        }
    });
}

#[test]
fn killing_the_launcher_kills_everything_it_started() {
    everyone(|place| {
        let launcher = || {
            let script = "setsid sleep 1000 & (trap '' TERM HUP INT; sleep 1000) & echo > up; wait";
            let _ = place.start(script).wait();
            0
        };
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), launcher).unwrap();
        place.await_file("up");
        let inside = || place.runs().processes().unwrap();
        await_until("the run's record", || inside().len() >= 3);
        let inside = inside();
        child.kill();
        child.wait().unwrap();
        let gone = |pid: i32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
        await_until("the processes to end", || {
            inside.iter().all(|process| gone(process.pid))
        });
        await_until("the init to end", || {
            place.runs().live().unwrap().is_empty()
        });
        assert_eq!(place.run("true").status, Status::Exited(0));
    });
}

#[test]
fn paused_processes_stand_still_and_go_on_when_resumed() {
    everyone(|place| {
        let run = place.start("i=0; while [ ! -e go ]; do i=$((i+1)); echo $i > count; done");
        place.await_file("count");
        for _ in 0..10 {
            assert!(place.runs().freeze().unwrap() >= 1);
            let states = place.runs().processes().unwrap();
            assert!(
                states.iter().all(|process| process.state == 'T'),
                "{states:?}"
            );
            let before = place.written("count");
            assert_eq!(place.written("count"), before);
            place.runs().thaw().unwrap();
            await_until("the count to go on", || place.written("count") != before);
        }
        place.run("echo > go");
        assert_eq!(run.wait().unwrap().status, Status::Exited(0));
    });
}

#[test]
fn stopping_ends_even_those_that_will_not() {
    everyone(|place| {
        let run = place.start("trap '' TERM; echo > up; while :; do sleep 0.1; done");
        place.await_file("up");
        assert!(place.runs().stop(Duration::from_millis(100)).unwrap() >= 1);
        assert_eq!(run.wait().unwrap().status, Status::Signalled(9));
        let run = place.start("echo > up2; sleep 1000");
        place.await_file("up2");
        place.runs().freeze().unwrap();
        place.runs().stop(Duration::from_secs(5)).unwrap();
        assert_ne!(run.wait().unwrap().status, Status::Exited(0));
    });
}

#[test]
fn a_fork_bomb_meets_the_limit_of_processes() {
    everyone(|place| {
        let mut policy = place.policy(
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 100 & done 2>err
             jobs -p | wc -l > started; exit 0",
        );
        policy.settings.limits.pids = Some(10);
        let _ = place.launch(&policy).unwrap().wait().unwrap();
        let started = place
            .written("started")
            .map(|text| text.trim().parse::<u32>().unwrap());
        assert!(started.is_none_or(|started| started < 10), "{started:?}");
        assert!(place.written("err").is_some_and(|text| !text.is_empty()));
    });
}

#[test]
fn the_limit_of_memory_kills_and_is_told_or_is_refused() {
    only(Who::Root, |place| {
        let mut policy = place.policy("head -c 200M /dev/zero | tail > /dev/null");
        policy.settings.limits.memory = Some(ByteSize(32 << 20));
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert!(ended.out_of_memory, "{ended:?}");
    });
    only(Who::Ordinary, |place| {
        let mut policy = place.policy("true");
        policy.settings.limits.memory = Some(ByteSize(32 << 20));
        let error = place.launch(&policy).unwrap_err();
        assert!(
            matches!(
                error,
                LaunchError::Limit {
                    limit: "--memory",
                    ..
                }
            ),
            "{error:?}"
        );
    });
}

#[test]
fn a_disk_filler_is_stopped_and_told_its_size() {
    everyone(|place| {
        for script in [
            "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null",
            "for i in $(seq 400); do head -c 1M /dev/zero > part-$i; done",
        ] {
            let mut policy = place.policy(script);
            policy.settings.limits.size = Some(ByteSize(8 << 20));
            let ended = place.launch(&policy).unwrap().wait().unwrap();
            assert!(
                ended.over_size.is_some_and(|used| used > 8 << 20),
                "{script}: {ended:?}"
            );
            clear(place);
        }
    });
}

fn clear(place: &Place) {
    for entry in std::fs::read_dir(place.state.join("upper")).unwrap() {
        let _ = std::fs::remove_file(entry.unwrap().path());
    }
}

#[test]
fn control_groups_are_gone_after_the_run() {
    only(Who::Root, |place| {
        let mut policy = place.policy("cat /proc/self/cgroup");
        policy.settings.limits.pids = Some(50);
        policy.settings.limits.cpu_millis = Some(500);
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
        let name = format!("sandbox-run-{}", std::process::id());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        for mount in mounts.lines().filter(|line| line.contains(" - cgroup")) {
            let point = mount.split(' ').nth(4).unwrap();
            assert!(!std::path::Path::new(point).join(&name).exists(), "{point}");
        }
    });
}
