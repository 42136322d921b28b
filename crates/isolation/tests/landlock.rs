//! The weaker wall: Landlock and the filter alone.
#![allow(clippy::unwrap_used)]

mod place;

use place::{Place, everyone};
use sandbox_isolation::{LaunchError, Policy, Status};
use sandbox_model::{Network, Wall, WorkspaceMount};

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
    everyone(|place| {
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
    everyone(|place| {
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
fn what_the_command_leaves_ends_with_it() {
    everyone(|place| {
        let policy = policy(place, "setsid sleep 1000 & echo $! > pid; exit 3");
        let ended = place.launch(&policy).unwrap().wait().unwrap();
        assert_eq!(ended.status, Status::Exited(3));
        let pid = std::fs::read_to_string(place.state.join("work/pid")).unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
    });
}
