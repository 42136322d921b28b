//! Sessions of a server that is root: each has a user of its own.
#![allow(clippy::unwrap_used)]

mod server;

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::process::Signal;
use sandbox_model::id::SessionId;
use sandbox_runtime::{Local, SessionSpec, Workspace};
use server::{Ends, id, nursery, printed, send, serve_each, served_by_each, spec, tester, users};

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
        serve_each(&state, &async |state: &Path, local: Local, _: Ends| {
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
    served_by_each(&async |state: &Path, local: Local, _: Ends| {
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
    served_by_each(&async |state: &Path, local: Local, _: Ends| {
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
    served_by_each(&async |state: &Path, local: Local, _: Ends| {
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
