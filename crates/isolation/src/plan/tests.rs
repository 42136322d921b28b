//! Plans as data: what is mounted where, in which order.

use super::*;
use crate::facts::{Exposed, Hidden};
use crate::home::{HomeFacts, IdentityFile};
use crate::policy::{Identity, Terminal};

fn policy(source: &str) -> Policy {
    Policy {
        name: "trial".parse().unwrap(),
        workspace: WorkspaceMount::Overlay {
            lower: source.into(),
            upper: "/root-of-sandboxes/trial/upper".into(),
            work: "/root-of-sandboxes/trial/workdir".into(),
            xattr: OverlayXattr::User,
        },
        source: source.into(),
        cwd: source.into(),
        home: None,
        hide: Vec::new(),
        settings: sandbox_model::Settings::default(),
        env: Vec::new(),
        command: vec!["true".into()],
        terminal: Terminal::Inherit,
        layer: "/root-of-sandboxes/trial/upper".into(),
        root: Root::Host,
        identity: Identity::Own,
    }
}

fn facts() -> Facts {
    Facts {
        slot: "1".to_owned(),
        home: Some(HomeFacts {
            path: "/home/ada".into(),
            root: "/layer/root".into(),
            upper: "/layer/upper".into(),
            work: "/layer/work".into(),
            entries: vec![".cargo".into(), "go".into()],
            identity: vec![IdentityFile {
                name: ".gitconfig".into(),
                source: "/home/ada/.gitconfig".into(),
            }],
            ..HomeFacts::default()
        }),
        hidden: vec![Hidden {
            path: "/root-of-sandboxes".into(),
            kind: MountPoint::Directory,
        }],
        ..Facts::default()
    }
}

fn targets(plan: &Plan) -> Vec<&str> {
    let targets = plan
        .operations
        .iter()
        .map(|operation| operation.target.to_str());
    targets.map(Option::unwrap).collect()
}

#[test]
fn ancestors_come_before_what_lies_in_them() {
    let plan = plan(&policy("/home/ada/app"), &facts());
    assert_eq!(
        targets(&plan),
        [
            "/dev",
            "/proc",
            "/run",
            "/tmp",
            "/root-of-sandboxes",
            "/var/tmp",
            "/home/ada",
            "/home/ada/.gitconfig",
            "/home/ada/app",
        ]
    );
    let last = plan.operations.last().unwrap();
    assert_eq!(
        last.mount,
        Mount::Overlay {
            lower: "/home/ada/app".into(),
            upper: "/root-of-sandboxes/trial/upper".into(),
            work: "/root-of-sandboxes/trial/workdir/1".into(),
            xattr: OverlayXattr::User,
        }
    );
    let writable = ["/dev", "/proc", "/run", "/tmp", "/var/tmp", "/home/ada"];
    assert_eq!(plan.writable, writable.map(PathBuf::from));
}

#[test]
fn a_source_under_tmp_is_mounted_upon_the_fresh_tmp() {
    let plan = plan(&policy("/tmp/app"), &facts());
    let targets = targets(&plan);
    let place = |target| targets.iter().position(|other| *other == target).unwrap();
    assert!(place("/tmp") < place("/tmp/app"));
}

#[test]
fn a_sandbox_of_tmp_or_of_the_home_shows_that_very_directory() {
    let of_tmp = plan(&policy("/tmp"), &facts());
    let at_tmp = of_tmp
        .operations
        .iter()
        .filter(|operation| operation.target == Path::new("/tmp"));
    let mounts: Vec<_> = at_tmp.map(|operation| &operation.mount).collect();
    assert!(matches!(mounts[..], [Mount::Overlay { .. }]), "{mounts:?}");
    for source in ["/home/ada", "/home", "/"] {
        let plan = plan(&policy(source), &facts());
        let home = |operation: &Operation| matches!(operation.mount, Mount::Home { .. });
        assert!(!plan.operations.iter().any(home), "{source}");
    }
}

#[test]
fn a_sandbox_of_an_allowed_directory_is_the_workspace() {
    let plan = plan(&policy("/home/ada/go"), &facts());
    let entries = plan
        .operations
        .iter()
        .find_map(|operation| match &operation.mount {
            Mount::Home { entries, .. } => Some(entries.clone()),
            _ => None,
        });
    assert_eq!(entries.unwrap(), [Path::new(".cargo")]);
}

#[test]
fn the_deepest_path_that_was_named_decides() {
    let mut facts = facts();
    facts.hidden.push(Hidden {
        path: "/srv/data".into(),
        kind: MountPoint::Directory,
    });
    for (path, writable) in [("/srv", true), ("/srv/data/public", false)] {
        facts.exposed.push(Exposed {
            path: path.into(),
            kind: MountPoint::Directory,
            writable,
        });
    }
    let plan = plan(&policy("/home/ada/app"), &facts);
    let targets = targets(&plan);
    let order: Vec<_> = targets
        .iter()
        .filter(|target| target.starts_with("/srv"))
        .collect();
    assert_eq!(order, [&"/srv", &"/srv/data", &"/srv/data/public"]);
    assert!(plan.writable.contains(&PathBuf::from("/srv")));
}

#[test]
fn real_root_finds_the_kernels_switches_read_only() {
    let facts = Facts {
        privileged: true,
        ..facts()
    };
    let plan = plan(&policy("/home/ada/app"), &facts);
    let processes = plan
        .operations
        .iter()
        .find(|operation| operation.target == Path::new("/proc"));
    assert_eq!(processes.unwrap().mount, Mount::Processes(Kernel::ReadOnly));
}

#[test]
fn a_joined_run_mounts_its_processes_alone_and_may_write_as_the_first() {
    let (policy, facts) = (policy("/home/ada/app"), facts());
    let joined = joined(&policy, &facts);
    assert_eq!(targets(&joined), ["/proc"]);
    assert_eq!(joined.writable, plan(&policy, &facts).writable);
}

#[test]
fn a_worktrees_repository_comes_along_where_it_would_be_covered() {
    let with = |repository: &str| {
        let facts = Facts {
            repository: Some(repository.into()),
            ..facts()
        };
        let plan = plan(&policy("/home/ada/app"), &facts);
        plan.operations
            .iter()
            .any(|operation| operation.target == Path::new(repository))
    };
    assert!(with("/home/ada/main/.git"));
    assert!(!with("/srv/main/.git"), "it is visible anyway");
}

#[test]
fn a_host_without_a_directory_gets_no_mount_there() {
    let facts = Facts {
        missing: vec!["/var/tmp".into()],
        separate_var_run: true,
        ..facts()
    };
    let plan = plan(&policy("/home/ada/app"), &facts);
    assert!(!targets(&plan).contains(&"/var/tmp"));
    assert!(targets(&plan).contains(&"/var/run"));
}

#[test]
fn what_is_hidden_in_the_workspace_keeps_its_place() {
    let mut facts = facts();
    for path in [
        "/home/ada/app/a/b/secret",
        "/home/ada/app/a/b/secret/deeper",
        "/srv/x/y",
    ] {
        facts.hidden.push(Hidden {
            path: path.into(),
            kind: MountPoint::Directory,
        });
    }
    let mounts = |workspace: WorkspaceMount| -> Vec<(String, Mount)> {
        let policy = Policy {
            workspace,
            ..policy("/home/ada/app")
        };
        let operations = plan(&policy, &facts).operations.into_iter();
        let named = operations.map(|operation| (operation.target, operation.mount));
        let named = named
            .filter(|(_, mount)| matches!(mount, Mount::Pin | Mount::Hide(_) | Mount::Cover(_)));
        named
            .map(|(target, mount)| (target.display().to_string(), mount))
            .collect()
    };
    let (hide, cover) = (
        Mount::Hide(MountPoint::Directory),
        Mount::Cover(MountPoint::Directory),
    );
    let pinned = [
        ("/root-of-sandboxes", &cover),
        ("/srv/x/y", &cover),
        ("/home/ada/app/a", &Mount::Pin),
        ("/home/ada/app/a/b", &Mount::Pin),
        ("/home/ada/app/a/b/secret", &hide),
        ("/home/ada/app/a/b/secret/deeper", &cover),
    ];
    let own = |(target, mount): &(&str, &Mount)| ((*target).to_owned(), (*mount).clone());
    let expected: Vec<_> = pinned.iter().map(own).collect();
    let copy = WorkspaceMount::Bind {
        dir: "/copy".into(),
    };
    assert_eq!(mounts(copy), expected);
    // An ordinary user's overlay does not rename directories of the source.
    let overlay = policy("/home/ada/app").workspace;
    let expected: Vec<_> = { expected.into_iter() }
        .filter(|(_, mount)| *mount != Mount::Pin)
        .collect();
    assert_eq!(mounts(overlay), expected);
}
