//! A keeper without namespaces, and what is started by it.
#![allow(clippy::unwrap_used)]

mod place;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use place::{Place, Who, await_until, only};
use rustix::pipe::PipeFlags;
use sandbox_isolation::keeper::{Inner, Keeper, Kept, Progress, keep_bare, shows};
use sandbox_isolation::{LaunchError, Order, Policy, Status};
use sandbox_model::WorkspaceMount;

fn policy(place: &Place) -> Policy {
    Policy {
        workspace: WorkspaceMount::Bind {
            dir: place.source.clone(),
        },
        home: None,
        ..place.policy("")
    }
}

fn keep(place: &Place, body: impl FnOnce(Keeper) -> i32) -> Result<Kept, LaunchError> {
    let scratch = place.state.join("scratch");
    let _ = std::fs::create_dir(&scratch);
    let body = |keeper, _| body(keeper);
    keep_bare(&policy(place), &place.runs(), &scratch, Vec::new(), body)
}

/// Keeps, as an ordinary user, and does `body` there.
fn kept(body: impl Fn(&Place, &Keeper)) {
    only(Who::Ordinary, |place| {
        let body =
            |keeper| i32::from(catch_unwind(AssertUnwindSafe(|| body(place, &keeper))).is_err());
        let kept = keep(place, body).unwrap();
        assert_eq!(kept.wait().unwrap(), Status::Exited(0));
    });
}

/// One that runs, and what it prints.
fn start(place: &Place, keeper: &Keeper, script: &str) -> (Inner, File) {
    let null = OwnedFd::from(File::open("/dev/null").unwrap());
    let (output, to_output) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    let order = Order {
        command: ["bash", "-c", script].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: place.source.clone(),
        extra: None,
    };
    let streams = [&null, &to_output, &to_output].map(AsFd::as_fd);
    let ready = keeper.prepare().unwrap();
    (ready.start(&order, &streams).unwrap(), output.into())
}

fn run(place: &Place, keeper: &Keeper, script: &str) -> (Status, String) {
    let (inner, mut output) = start(place, keeper, script);
    match keeper.progress(&inner).unwrap() {
        Progress::Started { .. } => {}
        other => panic!("{other:?}"),
    }
    let mut printed = String::new();
    output.read_to_string(&mut printed).unwrap();
    match keeper.progress(&inner).unwrap() {
        Progress::Ended(status, _) => (status, printed.trim_end().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Is there a process with these words?
fn is_there(words: &str) -> bool {
    let line = words.replace(' ', "\0") + "\0";
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    { lines }.any(|found| found == line.as_bytes())
}

#[test]
fn executions_share_the_workspace_and_not_their_temporary_files() {
    kept(|place, keeper| {
        let script = "echo kept > kept; echo x > $TMPDIR/x; ls $TMPDIR";
        assert_eq!(
            run(place, keeper, script),
            (Status::Exited(0), "x".to_owned())
        );
        let (status, printed) = run(place, keeper, "cat kept; ls -A $TMPDIR");
        assert_eq!((status, printed.as_str()), (Status::Exited(0), "kept"));
        await_until("temporary files to be removed", || {
            std::fs::read_dir(place.state.join("scratch"))
                .unwrap()
                .count()
                == 0
        });
    });
}

#[test]
fn what_a_command_leaves_ends_with_it() {
    kept(|place, keeper| {
        let script =
            "(setsid sleep 7001 &); (setsid bash -c 'trap \"\" TERM; sleep 7001' &); echo done";
        assert_eq!(run(place, keeper, script).1, "done");
        assert!(!is_there("sleep 7001"));
    });
}

#[test]
fn one_that_is_ended_ends_with_everything_that_it_started() {
    kept(|place, keeper| {
        let script = "(setsid sleep 7002 &); echo > begun; sleep 7002";
        let (inner, _output) = start(place, keeper, script);
        await_until("it to begin", || place.source.join("begun").exists());
        inner.end().unwrap();
        assert!(!is_there("sleep 7002"));
    });
}

#[test]
fn everything_ends_with_the_keeper() {
    only(Who::Ordinary, |place| {
        let kept = keep(place, |keeper| {
            let script = "(setsid sleep 7003 &); echo > begun; sleep 7003";
            let (inner, _output) = start(place, &keeper, script);
            loop {
                let _ = keeper.progress(&inner);
            }
        });
        await_until("it to begin", || place.source.join("begun").exists());
        drop(kept.unwrap());
        await_until("all to end", || !is_there("sleep 7003"));
    });
}

#[test]
fn an_init_that_is_killed_leaves_nothing() {
    kept(|place, keeper| {
        let script = "(setsid sleep 7004 &); echo $PPID > begun; sleep 7004";
        let (inner, _output) = start(place, keeper, script);
        let init = || {
            std::fs::read_to_string(place.source.join("begun"))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        await_until("it to begin", || init().is_some());
        let init = rustix::process::Pid::from_raw(init().unwrap()).unwrap();
        rustix::process::kill_process(init, rustix::process::Signal::KILL).unwrap();
        drop(inner);
        await_until("all to end", || !is_there("sleep 7004"));
        assert_eq!(run(place, keeper, "echo again").1, "again");
    });
}

#[test]
fn what_it_cannot_hold_it_refuses() {
    only(Who::Root, |place| {
        let error = keep(place, |_| 0).unwrap_err();
        assert!(error.to_string().contains("would be root"), "{error}");
    });
    only(Who::Ordinary, |place| {
        let overlay = Policy {
            home: None,
            ..place.policy("")
        };
        let error = keep_bare(&overlay, &place.runs(), &place.state, Vec::new(), |_, _| 0);
        assert!(error.unwrap_err().to_string().contains("overlay"));
    });
}

#[test]
fn it_is_known_what_can_be_read() {
    for path in ["/usr/lib/x", "/etc", "/proc/1/environ"] {
        assert!(shows(path.as_ref()), "{path}");
    }
    for path in ["/var/lib/x", "/root", "/srv/x", "/usrx", "/"] {
        assert!(!shows(path.as_ref()), "{path}");
    }
}
