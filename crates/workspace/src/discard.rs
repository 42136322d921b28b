//! Deleting a sandbox.
//!
//! It leaves its name by one rename into the root's trash, and is deleted there: nobody meets half
//! a sandbox, and what a crash leaves is rubbish that the next discard takes along. The source is
//! never opened.

use std::io;
use std::path::Path;

use sandbox_model::BackendKind;

use crate::backend::backend;
use crate::progress::{Phase, Progress};
use crate::root::{Root, random};
use crate::sandbox::{Sandbox, SandboxError};
use crate::tree::{Dir, Replace};

/// Where discarded sandboxes wait for their deletion, in the root.
pub(crate) const TRASH: &str = ".trash";

/// Deletes the sandbox and everything in it. Refuses while anything runs in it.
pub fn discard(sandbox: Sandbox, progress: &mut dyn Progress) -> Result<(), SandboxError> {
    let _lock = sandbox.lock_exclusive()?;
    progress.begin(Phase::Deleting, None);
    let deleted = remove(&sandbox.root, sandbox.name().as_str());
    progress.finish();
    deleted.map_err(|source| SandboxError::Io {
        operation: "delete",
        path: sandbox.dir,
        source,
    })
}

/// Moves `name` of the root to the trash and empties it, and what others left there.
fn remove(root: &Root, name: &str) -> io::Result<()> {
    let dir = Dir::open(root.path())?;
    let doomed = format!("{name}-{:x}", random());
    loop {
        let trash = match dir.make_dir(TRASH.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                dir.open_dir(TRASH.as_bytes())
            }
            made => made,
        };
        // The trash itself goes when it is empty: another discard may just have removed it.
        match trash
            .and_then(|trash| dir.rename(name.as_bytes(), &trash, doomed.as_bytes(), Replace::No))
        {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && dir.stat(name.as_bytes())?.is_some() => {}
            moved => break moved?,
        }
    }
    empty_trash(root)
}

/// Deletes what is in the trash.
pub(crate) fn empty_trash(root: &Root) -> io::Result<()> {
    let dir = Dir::open(root.path())?;
    let trash = match dir.open_dir(TRASH.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        trash => trash?,
    };
    for entry in trash.entries()? {
        delete_together(&trash, &root.path().join(TRASH), &entry.name)?;
    }
    match dir.remove_dir(TRASH.as_bytes()) {
        // Another discard is at work in it, or removed it first.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        removed => removed,
    }
}

/// Deletes `name` of the trash while others may be deleting it, too: what one has removed, the other
/// does not find, and goes on.
fn delete_together(trash: &Dir, path: &Path, name: &[u8]) -> io::Result<()> {
    loop {
        match delete(trash, path, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if trash.stat(name)?.is_none() {
                    return Ok(());
                }
            }
            deleted => return deleted,
        }
    }
}

/// Deletes the sandbox's directory `name` of `dir`, which is at `path`, whatever state it is in.
pub(crate) fn delete(dir: &Dir, path: &Path, name: &[u8]) -> io::Result<()> {
    let doomed = path.join(std::ffi::OsStr::new(&*String::from_utf8_lossy(name)));
    for kind in BackendKind::ALL {
        // What it cannot undo, the removal below fails on and names.
        let _ = backend(kind).prepare_delete(&doomed);
    }
    dir.remove_all(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use sandbox_model::{BackendChoice, Class, Failure, Settings};

    use super::*;
    use crate::progress::Silent;
    use crate::root::CreateRequest;

    fn sandbox(kind: BackendKind) -> (tempfile::TempDir, Sandbox) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("project/sub")).unwrap();
        fs::write(dir.path().join("project/sub/file"), "precious").unwrap();
        let root = Root::open(&dir.path().join("root")).unwrap();
        let request = CreateRequest {
            name: Some("doomed".parse().unwrap()),
            source: dir.path().join("project"),
            backend: BackendChoice::Only(kind),
            settings: Settings::default(),
        };
        let sandbox = root.create(&request, &mut Silent).unwrap();
        (dir, sandbox)
    }

    #[test]
    fn discard_leaves_the_source_untouched_and_nothing_else() {
        for kind in [BackendKind::Overlay, BackendKind::Copy] {
            let (dir, sandbox) = sandbox(kind);
            let root = sandbox.root.clone();
            let layer = sandbox.layer_dir();
            // What a cruel command leaves: a way out, and a directory that forbids its removal.
            std::os::unix::fs::symlink(dir.path().join("project"), layer.join("way out")).unwrap();
            fs::create_dir_all(layer.join("shut/in")).unwrap();
            fs::set_permissions(layer.join("shut"), fs::Permissions::from_mode(0o000)).unwrap();
            discard(sandbox, &mut Silent).unwrap();
            let text = fs::read_to_string(dir.path().join("project/sub/file")).unwrap();
            assert_eq!(text, "precious");
            assert_eq!(root.names().unwrap(), []);
            let left: Vec<_> = fs::read_dir(root.path())
                .unwrap()
                .flatten()
                .map(|entry| entry.file_name())
                .filter(|name| name != ".probe")
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    #[test]
    fn a_sandbox_in_use_is_not_discarded() {
        let (_dir, sandbox) = sandbox(BackendKind::Overlay);
        let root = sandbox.root.clone();
        let held = root.sandbox("doomed").unwrap().lock_shared().unwrap();
        let error = discard(sandbox, &mut Silent).unwrap_err();
        assert_eq!(error.class(), Class::Busy);
        drop(held);
        discard(root.sandbox("doomed").unwrap(), &mut Silent).unwrap();
    }

    #[test]
    fn what_a_killed_discard_left_goes_with_the_next() {
        let (_dir, sandbox) = sandbox(BackendKind::Overlay);
        let root = sandbox.root.clone();
        fs::create_dir_all(root.path().join(".trash/old-1/upper")).unwrap();
        discard(sandbox, &mut Silent).unwrap();
        assert!(!root.path().join(".trash").exists());
    }

    #[test]
    fn whoever_locks_a_sandbox_that_was_discarded_is_told() {
        let (_dir, sandbox) = sandbox(BackendKind::Overlay);
        let late = sandbox.root.sandbox("doomed").unwrap();
        discard(sandbox, &mut Silent).unwrap();
        let error = late.lock_shared().unwrap_err();
        assert!(matches!(error, SandboxError::Gone { .. }), "{error}");
        assert!(!late.dir.exists());
    }
}
