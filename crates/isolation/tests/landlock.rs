//! The weaker wall: Landlock and the filter alone.
#![allow(clippy::unwrap_used)]

mod place;

use place::{Place, Who, only};
use sandbox_isolation::{LaunchError, Policy, Status};
use sandbox_model::{Exposure, Network, Wall, WorkspaceMount};

fn policy(place: &Place, script: &str) -> Policy {
    let dir = place.state.join("work");
    std::fs::create_dir_all(&dir).unwrap();
    let mut policy = place.policy(script);
    policy.workspace = WorkspaceMount::Bind { dir };
    policy.settings.wall = Wall::Landlock;
    policy
}

#[test]
fn the_copy_can_be_written_and_nothing_else_can() {
    only(Who::Ordinary, |place| {
        std::fs::write(place.home.join("secret"), "secret").unwrap();
        let mut policy = policy(
            place,
            "
            echo > made || exit 11
            echo > \"$SOURCE/file\" && exit 12
            cat \"$REAL/secret\" && exit 13
            echo > \"$HOME/kept\" || exit 14
            unshare -U true && exit 15
            $SCOPED && kill -0 $LAUNCHER && exit 16
            ls /usr/bin > /dev/null || exit 17
            exit 0
            ",
        );
        policy
            .env
            .push(("SOURCE".into(), place.source.clone().into()));
        policy.env.push(("REAL".into(), place.home.clone().into()));
        // Linux 6.12; before it, signals are let through, as SECURITY.md says.
        let scoped = sandbox_linux::landlock::version() >= 6;
        policy
            .env
            .push(("SCOPED".into(), scoped.to_string().into()));
        policy
            .env
            .push(("LAUNCHER".into(), std::process::id().to_string().into()));
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
        assert!(place.state.join("work/made").exists());
        assert!(!place.home.join("kept").exists());
    });
}

#[test]
fn what_needs_namespaces_is_refused_in_words() {
    only(Who::Ordinary, |place| {
        let mut overlay = place.policy("true");
        overlay.settings.wall = Wall::Landlock;
        let mut network = policy(place, "true");
        network.settings.network = Network::Isolated {
            ports: vec![],
            hosts: vec![],
            publish: vec![],
        };
        for policy in [overlay, network] {
            let error = place.launch(&policy).unwrap_err();
            assert!(matches!(error, LaunchError::Wall { .. }), "{error:?}");
        }
    });
}

#[test]
fn root_is_refused() {
    only(Who::Root, |place| {
        let error = place.launch(&policy(place, "true")).unwrap_err();
        assert!(error.to_string().contains("would be root"), "{error}");
    });
}

#[test]
fn what_cannot_be_hidden_is_refused() {
    only(Who::Ordinary, |place| {
        let exposed = place.source.with_file_name("exposed");
        std::fs::create_dir(&exposed).unwrap();
        std::fs::write(exposed.join("hidden"), "").unwrap();
        for path in [
            place.source.join("file"),
            place.state.join("work/file"),
            "/proc/1".into(),
            exposed.join("hidden"),
        ] {
            let mut policy = policy(place, "true");
            policy.settings.hide.push(path.clone());
            policy.settings.expose.push(Exposure {
                path: exposed.clone(),
                writable: true,
            });
            let error = place.launch(&policy).unwrap_err();
            assert!(
                error.to_string().contains("cannot hide"),
                "{path:?}: {error}"
            );
        }
    });
}

#[test]
fn what_is_hidden_or_secret_cannot_be_read() {
    only(Who::Ordinary, |place| {
        for (name, text) in [
            (".cargo/credentials.toml", "secret"),
            (".cargo/config.toml", "plain"),
            (".cache/huggingface/token", "secret"),
            (".cache/huggingface/model", "plain"),
        ] {
            let file = place.home.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let script = "
            cat \"$REAL/.cargo/credentials.toml\" && exit 11
            cat \"$REAL/.cache/huggingface/token\" && exit 12
            cat \"$REAL/.cargo/config.toml\" \"$REAL/.cache/huggingface/model\" || exit 13
            cat /etc/hostname && exit 14
            cat /etc/passwd > /dev/null || exit 15
            ls /dev/pts && exit 16
            head -c 1 /dev/urandom > /dev/null || exit 17
            exit 0
        ";
        let mut policy = policy(place, script);
        policy.env.push(("REAL".into(), place.home.clone().into()));
        policy.settings.hide.push("/etc/hostname".into());
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(0));
    });
}

/// Commands write to the private home, so nothing in it may lead the launcher elsewhere.
#[test]
fn a_link_in_the_private_home_is_not_followed() {
    only(Who::Ordinary, |place| {
        let outside = place.source.with_file_name("outside");
        let script = format!("rmdir ~/tmp; ln -s {}/made ~/tmp", outside.display());
        std::fs::create_dir(&outside).unwrap();
        place
            .launch(&policy(place, &script))
            .unwrap()
            .wait()
            .unwrap();
        assert!(place.launch(&policy(place, "true")).is_err());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    });
}

#[test]
fn what_the_command_leaves_ends_with_it() {
    only(Who::Ordinary, |place| {
        let policy = policy(place, "setsid sleep 1000 & echo $! > pid; exit 3");
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(3));
        let pid = std::fs::read_to_string(place.state.join("work/pid")).unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    });
}
