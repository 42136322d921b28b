//! Sessions of a server that is root: each has a user of its own.
#![allow(clippy::unwrap_used)]

mod server;

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::Signal;
use sandbox_model::id::SessionId;
use sandbox_model::session::SessionNetwork;
use sandbox_runtime::{Local, SessionSpec, UserRange, Users, Workspace};
use server::{Ends, id, live, nursery, printed, process, send, serve, served, spec, tester, users};

/// Whom a workspace belongs to.
fn owner(state: &Path, id: &SessionId) -> u32 {
    let directory = state.join("sandboxes").join(id.as_str());
    let found = directory.metadata().unwrap();
    assert_eq!(found.permissions().mode() & 0o077, 0);
    found.uid()
}

/// Whom everything belongs to that is below a directory.
fn owners(directory: &Path, found: &mut BTreeSet<u32>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        found.insert(meta.uid());
        if meta.is_dir() {
            owners(&entry.path(), found);
        }
    }
}

#[test]
fn each_session_has_a_user_of_its_own_and_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = directory.path().join("state");
    let range = users().each.unwrap();
    let life = |body: &dyn Fn(u32, u32)| {
        serve(&state, &async |state: &Path, local: Local, _: Ends| {
            let one = local.raise(spec('a')).await.unwrap().line;
            let other = local.raise(spec('b')).await.unwrap().line;
            let code = "mkdir -p d; echo >> d/file; chmod 600 d/file; ln -sf d/file link; id -u";
            assert_eq!(printed(&one, code).await, "1000");
            printed(&other, "echo well > well").await;
            let (a, b) = (owner(state, &id('a')), owner(state, &id('b')));
            assert!(a != b && range.contains(a) && range.contains(b));
            assert!(a != range.first && b != range.first);
            let mut all = BTreeSet::new();
            owners(&state.join("sandboxes").join(id('a').as_str()), &mut all);
            assert_eq!(all, BTreeSet::from([a]));
            body(a, b);
        })
    };
    // In a process of its own, so it is told by a file.
    let told = directory.path().join("told");
    let first = life(&|a, b| std::fs::write(&told, format!("{a} {b}")).unwrap());
    let before = std::fs::read_to_string(&told).unwrap();
    let second = life(&|a, b| assert_eq!(format!("{a} {b}"), before));
    assert_eq!((first, second), (Some(0), Some(0)));
}

#[test]
fn copies_and_what_replaces_a_session_have_other_users() {
    served(async |state: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let code = "mkdir shut; echo deep > shut/file; chmod 000 shut/file shut; echo kept > kept";
        printed(&line, code).await;
        local.fork(&id('a'), &id('b')).await.unwrap();
        local.end(&id('a')).await.unwrap();
        local.fork(&id('a'), &id('c')).await.unwrap();
        let all = ['a', 'b', 'c'].map(|letter| owner(state, &id(letter)));
        assert_eq!(BTreeSet::from(all).len(), 3);
        for (letter, own) in ['a', 'b', 'c'].into_iter().zip(all) {
            let line = local.raise(spec(letter)).await.unwrap().line;
            let code = "chmod 700 shut; chmod 600 shut/file; cat kept shut/file; echo more >> kept";
            assert_eq!(printed(&line, code).await, "kept\ndeep");
            let mut found = BTreeSet::new();
            owners(
                &state.join("sandboxes").join(id(letter).as_str()),
                &mut found,
            );
            assert_eq!(found, BTreeSet::from([own]), "{letter}");
            let changes = local.changes(&id(letter)).await.unwrap().read().unwrap();
            assert_eq!(changes.total, 3, "{changes:?}");
            local.discard(&id(letter)).await.unwrap();
            assert!(!state.join("sandboxes").join(id(letter).as_str()).exists());
        }
    });
}

#[test]
fn a_copy_of_a_directory_belongs_to_the_user_that_was_told() {
    served(async |state: &Path, local: Local, _: Ends| {
        let source = state.parent().unwrap().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), "original\n").unwrap();
        let (user, group) = (tester().user, tester().group);
        for path in [&source, &source.join("file")] {
            std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
        }
        let with = SessionSpec {
            workspace: Workspace::Source(source.clone()),
            ..spec('a')
        };
        let line = local.raise(with).await.unwrap().line;
        printed(&line, "echo more >> file").await;
        assert_eq!(owner(state, &id('a')), user);
        // What that user may not read is not read for it.
        let closed = state.parent().unwrap().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
        let with = SessionSpec {
            workspace: Workspace::Source(closed),
            ..spec('b')
        };
        local.raise(with).await.unwrap_err();
    });
}

#[test]
fn a_supervisor_that_was_started_again_knows_whose_sessions_are() {
    served(async |state: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        printed(&line, "echo kept > kept").await;
        let before = owner(state, &id('a'));
        send(nursery(), Signal::KILL);
        line.cut().await;
        let begin = std::time::Instant::now();
        let line = loop {
            if let Ok(raised) = local.raise(spec('a')).await {
                break raised.line;
            }
            assert!(begin.elapsed() < std::time::Duration::from_secs(20));
            tokio::task::yield_now().await;
        };
        assert_eq!(printed(&line, "cat kept").await, "kept");
        assert_eq!(owner(state, &id('a')), before);
        local.raise(spec('b')).await.unwrap();
        assert_ne!(owner(state, &id('b')), before);
    });
}

#[test]
fn all_sessions_have_one_user_where_no_range_is_given() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = directory.path().join("state");
    let status = process(|| {
        live(
            &state,
            Some(Users::from(tester())),
            &async |state, local, _| {
                for letter in ['a', 'b'] {
                    let line = local.raise(spec(letter)).await.unwrap().line;
                    printed(&line, "echo well > well").await;
                    assert_eq!(owner(state, &id(letter)), tester().user);
                }
                local.fork(&id('a'), &id('c')).await.unwrap();
                assert_eq!(owner(state, &id('c')), tester().user);
                for letter in ['a', 'b', 'c'] {
                    local.discard(&id(letter)).await.unwrap();
                }
            },
        );
    });
    assert_eq!(status, Some(0));
}

#[test]
fn sessions_of_different_users_are_discarded_beside_each_other() {
    served(async |state: &Path, local: Local, _: Ends| {
        let source = state.parent().unwrap().join("source");
        std::fs::create_dir(&source).unwrap();
        let from_source = |letter| SessionSpec {
            workspace: Workspace::Source(source.clone()),
            ..spec(letter)
        };
        let trash = state.join("sandboxes/.trash");
        // What a discard that was killed leaves: once of a session's own user, once of the shared one.
        for (letter, with, user) in [
            ('a', spec('a'), tester().user),
            ('b', from_source('b'), users().each.unwrap().first + 7),
        ] {
            std::fs::create_dir_all(trash.join("left/deep")).unwrap();
            for path in [&trash, &trash.join("left"), &trash.join("left/deep")] {
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
                std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
            }
            let line = local.raise(with).await.unwrap().line;
            printed(&line, "mkdir -m 000 shut; echo well > well").await;
            local.discard(&id(letter)).await.unwrap();
            let left: Vec<_> = std::fs::read_dir(state.join("sandboxes"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .filter(|name| name != ".probe")
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
    });
}

#[test]
fn a_range_that_is_used_up_serves_again_when_sessions_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = directory.path().join("state");
    let range = UserRange {
        first: users().each.unwrap().first,
        count: 6,
    };
    let small = Users {
        user: range.shared(),
        each: Some(range),
    };
    let status = process(|| {
        live(&state, Some(small), &async |state, local, _| {
            for letter in ['a', 'b', 'c'] {
                local.raise(spec(letter)).await.unwrap();
            }
            local.fork(&id('a'), &id('d')).await.unwrap();
            let all = ['a', 'b', 'c', 'd'].map(|letter| owner(state, &id(letter)));
            assert_eq!(BTreeSet::from(all).len(), 4);
            assert!(!all.contains(&range.first) && !all.contains(&range.shared().user));
            let refused = local.raise(spec('e')).await.unwrap_err().to_string();
            assert!(refused.contains("every user"), "{refused}");
            local.discard(&id('a')).await.unwrap();
            local.raise(spec('e')).await.unwrap();
            assert_eq!(owner(state, &id('e')), all[0]);
        });
    });
    assert_eq!(status, Some(0));
}

#[test]
fn a_workspace_of_a_stranger_is_not_used_and_can_be_discarded() {
    served(async |state: &Path, local: Local, _: Ends| {
        local.raise(spec('a')).await.unwrap();
        local.end(&id('a')).await.unwrap();
        let directory = state.join("sandboxes").join(id('a').as_str());
        std::os::unix::fs::chown(&directory, Some(1), Some(1)).unwrap();
        let refused = local.raise(spec('a')).await.unwrap_err().to_string();
        assert!(refused.contains("belongs to user 1"), "{refused}");
        local.changes(&id('a')).await.unwrap_err();
        local.discard(&id('a')).await.unwrap();
        assert!(!directory.exists());
    });
}

/// The capabilities that a process may use; none of one that has ended.
fn permitted(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let permitted = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    permitted.map_or(0, |text| u64::from_str_radix(text.trim(), 16).unwrap())
}

#[test]
fn what_the_supervisor_starts_has_no_power_to_become_another_user() {
    const SETUID: u64 = 1 << 7;
    const CHOWN: u64 = 1;
    served(async |_: &Path, local: Local, _: Ends| {
        let with = SessionSpec {
            network: SessionNetwork {
                enabled: true,
                allow: vec!["example.com".to_owned()],
            },
            ..spec('a')
        };
        let _raised = local.raise(with).await.unwrap();
        // The accountant and the proxy; the session's first process has its powers in its own namespace.
        let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/user")).unwrap();
        let (supervisor, host) = (nursery(), namespace(std::process::id()));
        assert_ne!(permitted(supervisor) & SETUID, 0);
        let found = server::children(supervisor);
        let on_the_host: Vec<_> = found
            .iter()
            .filter(|pid| namespace(**pid) == host)
            .collect();
        assert_eq!(on_the_host.len(), 2, "{found:?}");
        for pid in on_the_host {
            let permitted = permitted(*pid);
            assert_eq!(permitted & (SETUID | CHOWN), 0, "{pid}: {permitted:x}");
        }
    });
}
