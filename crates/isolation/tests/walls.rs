//! What a command sees and may do.
#![allow(clippy::unwrap_used)]

mod place;

use place::{Who, everyone, only};
use sandbox_isolation::{LaunchError, Status};

const ENOENT: i32 = 2;
const EACCES: i32 = 13;

#[test]
fn exit_status_and_signals_pass_through() {
    everyone(|place| {
        assert_eq!(place.run("exit 0").status, Status::Exited(0));
        assert_eq!(place.run("exit 7").status, Status::Exited(7));
        assert_eq!(place.run("kill -9 $$").status, Status::Signalled(9));
        assert_eq!(place.run("kill -15 $$").status, Status::Signalled(15));
    });
}

#[test]
fn a_command_that_cannot_be_executed_is_told_apart() {
    everyone(|place| {
        for (name, errno) in [
            ("no-such-command", ENOENT),
            ("/etc", EACCES),
            ("./file", EACCES),
        ] {
            let mut policy = place.policy("");
            policy.command = vec![name.into()];
            match place.launch(&policy) {
                Err(LaunchError::Exec { source, .. }) => {
                    assert_eq!(source.raw_os_error(), Some(errno), "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(place.runs().live().unwrap(), []);
    });
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    everyone(|place| {
        let run = place.start("trap 'exit 3' USR1; echo > ready; while :; do sleep 0.01; done");
        place.await_file("ready");
        run.signal(rustix::process::Signal::USR1.as_raw()).unwrap();
        assert_eq!(run.wait().unwrap().status, Status::Exited(3));
    });
}

#[test]
fn what_is_written_stays_in_the_layer() {
    everyone(|place| {
        let ended = place.run("echo changed > file; mkdir made; rm -f nothing; pwd > where");
        assert_eq!(ended.status, Status::Exited(0));
        assert_eq!(
            std::fs::read_to_string(place.source.join("file")).unwrap(),
            "original"
        );
        assert_eq!(place.written("file").as_deref(), Some("changed\n"));
        let here = format!("{}\n", place.source.display());
        assert_eq!(place.written("where"), Some(here));
    });
}

#[test]
fn the_host_is_read_only_and_its_private_places_are_fresh() {
    everyone(|place| {
        let script = "
            touch /etc/x 2>/dev/null && exit 11
            touch /x 2>/dev/null && exit 12
            mkdir /var/x 2>/dev/null && exit 13
            [ -z \"$(ls -A /run)\" ] || exit 14
            [ -e \"$STATE\" ] && exit 15
            [ \"$(ls -A /tmp)\" = \"$(basename $(dirname \"$STATE\"))\" ] || exit 16
            touch /tmp/t /var/tmp/t /dev/shm/t /run/t \"$HOME/t\" || exit 17
            echo > /dev/null && head -c 1 /dev/zero > /dev/null || exit 18
            touch /dev/x 2>/dev/null && exit 20
            rm -f /dev/null 2>/dev/null && exit 21
            chmod 600 /dev/null 2>/dev/null && exit 22
            cp /bin/true /tmp/true && /tmp/true || exit 23
            [ \"$(ls /dev | wc -w)\" -eq 13 ] || exit 19
            [ \"$(hostname)\" = trial ] || exit 24
            ";
        assert_eq!(place.run(script).status, Status::Exited(0));
    });
}

#[test]
fn the_command_has_no_power() {
    everyone(|place| {
        let script = "
            grep -q 'CapEff:.0000000000000000' /proc/self/status || exit 11
            grep -q 'CapBnd:.0000000000000000' /proc/self/status || exit 12
            grep -q 'NoNewPrivs:.1' /proc/self/status || exit 13
            grep -q 'Seccomp:.2' /proc/self/status || exit 14
            for flag in -U -m -p -n -u -i -C -T; do
                unshare $flag true 2>/dev/null && exit 15
            done
            mount -t tmpfs none /tmp 2>/dev/null && exit 16
            ls /proc/1/root/ 2>/dev/null && exit 17
            cat /proc/1/environ 2>/dev/null && exit 18
            readlink /proc/1/exe && exit 19
            nsenter -t 1 -m true 2>/dev/null && exit 20
            (echo > /proc/sys/kernel/core_pattern) 2>/dev/null && exit 21
            kill -9 1 2>/dev/null
            exit 0
            ";
        assert_eq!(place.run(script).status, Status::Exited(0));
    });
}

#[test]
fn the_launcher_is_not_a_way_to_its_own_file() {
    const ELOOP: i32 = 40;
    everyone(|place| {
        // CVE-2019-5736: until the exec is done, /proc/self/exe is the launcher on the host.
        let links =
            "ln -s /proc/self/exe link; printf '#!/proc/self/exe' > script; chmod +x script";
        assert_eq!(place.run(links).status, Status::Exited(0));
        for name in ["/proc/self/exe", "/proc/2/exe", "./link", "./script"] {
            let mut policy = place.policy("");
            policy.command = vec![name.into(), "--list".into()];
            match place.launch(&policy) {
                Err(LaunchError::Exec { source, .. }) => {
                    assert_eq!(source.raw_os_error(), Some(ELOOP), "{name}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        let script = "[ $(readlink /proc/self/exe) = /usr/bin/readlink ] && ls /proc/self/fd/ >&2";
        assert_eq!(
            place.run(script).status,
            Status::Exited(0),
            "links are followed afterwards"
        );
    });
}

#[test]
fn of_the_home_only_the_allowed_is_seen_and_writes_stay_in_the_sandbox() {
    everyone(|place| {
        for (name, text) in [
            (".ssh/id", "key"),
            (".cargo/registry/a", "crate"),
            (".cargo/credentials.toml", "token"),
            (".local/bin/tool", "tool"),
            (".gitconfig", "[user]"),
            (".netrc", "password"),
        ] {
            let path = place.home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let script = "
            cd $HOME
            [ -e .ssh ] && exit 11
            [ -e .netrc ] && exit 12
            [ -e .cargo/credentials.toml ] && exit 13
            [ \"$(cat .cargo/registry/a)\" = crate ] || exit 14
            [ \"$(cat .local/bin/tool)\" = tool ] || exit 15
            [ \"$(cat .gitconfig)\" = '[user]' ] || exit 16
            echo mine > .cargo/registry/a || exit 17
            echo new > .cargo/new || exit 18
            echo > .gitconfig && exit 19
            ls -a .cargo/../ | grep -q ssh && exit 20
            echo kept > kept
            ";
        assert_eq!(place.run(script).status, Status::Exited(0));
        let crate_file = place.home.join(".cargo/registry/a");
        assert_eq!(std::fs::read_to_string(crate_file).unwrap(), "crate");
        assert!(!place.home.join(".cargo/new").exists());
        assert!(!place.home.join("kept").exists());
        let script = "cat $HOME/kept && grep mine $HOME/.cargo/registry/a";
        assert_eq!(
            place.run(script).status,
            Status::Exited(0),
            "kept for the next run"
        );
    });
}

#[test]
fn hidden_paths_are_empty_and_exposed_ones_are_there() {
    everyone(|place| {
        let beside = place.source.parent().unwrap().join("beside");
        std::fs::create_dir_all(beside.join("inner")).unwrap();
        std::fs::write(beside.join("shown"), "shown").unwrap();
        std::fs::create_dir(place.source.join("secret")).unwrap();
        std::fs::write(place.source.join("secret/key"), "key").unwrap();
        std::fs::write(place.source.join("token"), "token").unwrap();
        let mut policy = place.policy(
            "
            [ \"$(cat \"$BESIDE/shown\")\" = shown ] || exit 11
            echo > \"$BESIDE/shown\" && exit 12
            echo written > \"$BESIDE/inner/file\" || exit 13
            [ -z \"$(ls secret)\" ] || exit 14
            [ -z \"$(cat token)\" ] || exit 15
            touch secret/x 2>/dev/null && exit 16
            exit 0
            ",
        );
        policy.env.push(("BESIDE".into(), beside.clone().into()));
        policy.settings.expose = vec![
            format!("{}", beside.display()).parse().unwrap(),
            format!("{}:rw", beside.join("inner").display())
                .parse()
                .unwrap(),
        ];
        policy.settings.hide = vec![place.source.join("secret"), place.source.join("token")];
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
        let written = std::fs::read_to_string(beside.join("inner/file")).unwrap();
        assert_eq!(written, "written\n");
    });
}

#[test]
fn what_lies_under_the_sandbox_root_cannot_be_exposed() {
    only(Who::Root, |place| {
        let mut policy = place.policy("");
        let path = place.state.join("upper");
        policy.settings.expose = vec![path.display().to_string().parse().unwrap()];
        let error = place.launch(&policy).unwrap_err();
        assert!(
            matches!(error, LaunchError::Path { verb: "expose", .. }),
            "{error:?}"
        );
    });
}

#[test]
fn an_isolated_network_has_loopback_alone() {
    everyone(|place| {
        let mut policy = place.policy(
            "
            [ \"$(tail -n +3 /proc/net/dev | wc -l)\" = 1 ] || exit 11
            grep -q lo: /proc/net/dev || exit 12
            ",
        );
        policy.settings.network = sandbox_model::Network::Isolated {
            ports: vec![],
            hosts: vec![],
            publish: vec![],
        };
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
    });
}

#[test]
fn a_new_terminal_is_the_sandboxes_own() {
    everyone(|place| {
        let mut policy = place.policy("tty > tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && exit 5");
        policy.terminal = sandbox_isolation::Terminal::New;
        let mut run = place.launch(&policy).unwrap();
        let master = run.master.take();
        assert!(master.is_some());
        assert_eq!(run.wait().unwrap().status, Status::Exited(5));
        assert_eq!(place.written("tty").as_deref(), Some("/dev/pts/0\n"));
    });
}
