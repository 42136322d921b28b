//! Deleting a sandbox, at once or after some days in which it can be restored.
//!
//! It leaves its name by one rename into the root's trash, and is deleted there: nobody meets half
//! a sandbox, and what a crash leaves is rubbish that the next discard takes along. One that can be
//! restored is renamed to another directory instead, whole, and goes to the trash when its time is over
//! or `gc` is asked to. The source is never opened.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sandbox_model::{BackendKind, SandboxName};

use crate::backend::backend;
use crate::lock::{self, Lock, Sharing, Use};
use crate::meta::{self, Meta};
use crate::progress::{Phase, Progress};
use crate::root::{Root, RootError, random};
use crate::sandbox::{Sandbox, SandboxError};
use crate::tree::{Dir, Replace};

/// Where discarded sandboxes wait for their deletion, in the root.
pub(crate) const TRASH: &str = ".trash";

/// Where discarded sandboxes wait to be restored or to expire, in the root.
pub(crate) const DISCARDED: &str = ".discarded";

/// A discarded sandbox that can be restored.
#[derive(Debug, Clone)]
pub struct Discarded {
    /// Its record.
    pub meta: Meta,
    /// When it was discarded.
    pub at: SystemTime,
    /// Where it is kept.
    pub path: PathBuf,
}

impl Discarded {
    /// Was it discarded at least `retention` ago?
    pub fn is_expired(&self, retention: Duration) -> bool {
        let age = SystemTime::now().duration_since(self.at);
        age.unwrap_or_default() >= retention
    }

    /// Disk space that it uses, in bytes.
    pub fn disk_use(&self) -> io::Result<u64> {
        crate::sandbox::disk_use(&self.path)
    }
}

/// Discards the sandbox so that [`restore`] brings it back. Those discarded longer than `retention` ago
/// are deleted. Refuses while anything runs in it.
pub fn set_aside(
    sandbox: Sandbox,
    retention: Duration,
    progress: &mut dyn Progress,
) -> Result<(), SandboxError> {
    // It also marks the time: the lock's file is written.
    let lock = sandbox.lock_exclusive()?;
    let failed = |source| SandboxError::Io {
        operation: "discard",
        path: sandbox.dir.clone(),
        source,
    };
    let name = sandbox.name().as_str();
    move_to(&sandbox.root, name.as_bytes(), name, DISCARDED).map_err(failed)?;
    drop(lock);
    progress.begin(Phase::Deleting, None);
    let expired = delete_expired(&sandbox.root, retention);
    progress.finish();
    // The sandbox is discarded, whatever became of older ones: gc names what it cannot delete.
    let _ = expired;
    Ok(())
}

/// Discarded sandboxes that can be restored, the latest first.
pub fn discarded(root: &Root) -> Result<Vec<Discarded>, RootError> {
    let path = root.path().join(DISCARDED);
    let failed = |source| RootError::Io {
        operation: "list",
        path: path.clone(),
        source,
    };
    let entries = match Dir::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        dir => dir.and_then(|dir| dir.entries()).map_err(failed)?,
    };
    let mut found: Vec<Discarded> = entries
        .into_iter()
        .filter_map(|entry| {
            let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&entry.name[..]);
            let path = path.join(name);
            // What is being restored or deleted meanwhile is no longer there.
            let meta = Meta::read(&path).ok()?;
            let at = std::fs::metadata(path.join(lock::FILE))
                .ok()?
                .modified()
                .ok()?;
            Some(Discarded { meta, at, path })
        })
        .collect();
    found.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

/// Brings the sandbox of this name that was discarded last back, as `wanted` where that is another
/// name.
pub fn restore(
    root: &Root,
    name: &SandboxName,
    wanted: &SandboxName,
) -> Result<Sandbox, RootError> {
    let found = discarded(root)?
        .into_iter()
        .find(|discarded| discarded.meta.name == *name);
    let Some(mut found) = found else {
        return Err(RootError::NotDiscarded(name.clone()));
    };
    let failed = |source| RootError::Io {
        operation: "restore",
        path: found.path.clone(),
        source,
    };
    // Keeps its deletion away. One that is under way has moved it already.
    let _lock = Lock::take(&found.path, Sharing::Exclusive, Use::Marked).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound => RootError::NotDiscarded(name.clone()),
            _ => failed(error),
        }
    })?;
    let top = root.dir()?;
    if top
        .stat(wanted.as_str().as_bytes())
        .map_err(failed)?
        .is_some()
    {
        return Err(RootError::Exists(wanted.clone()));
    }
    if wanted != name {
        found.meta.name = wanted.clone();
        let mut text =
            serde_json::to_vec_pretty(&found.meta).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        Dir::open(&found.path)
            .and_then(|dir| meta::replace_file(&dir, meta::FILE, &text))
            .map_err(failed)?;
    }
    let hidden = found.path.strip_prefix(root.path()).unwrap_or(&found.path);
    root.show(&top, &hidden.to_string_lossy(), wanted)?;
    let _ = top.remove_dir(DISCARDED.as_bytes());
    root.sandbox(wanted.as_str())
}

/// Deletes what was discarded longer than `retention` ago.
fn delete_expired(root: &Root, retention: Duration) -> io::Result<()> {
    for old in discarded(root).map_err(io::Error::other)? {
        if old.is_expired(retention) {
            delete_discarded(root, &old.path)?;
        }
    }
    Ok(())
}

/// Deletes one discarded sandbox; `false` if it is being restored, or gone.
pub(crate) fn delete_discarded(root: &Root, path: &Path) -> io::Result<bool> {
    let _lock = match Lock::take(path, Sharing::Exclusive, Use::Unmarked) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
            ) =>
        {
            return Ok(false);
        }
        lock => lock?,
    };
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(false);
    };
    move_to(root, format!("{DISCARDED}/{name}").as_bytes(), name, TRASH)?;
    let _ = Dir::open(root.path())?.remove_dir(DISCARDED.as_bytes());
    empty_trash(root)?;
    Ok(true)
}

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
    move_to(root, name.as_bytes(), name, TRASH)?;
    empty_trash(root)
}

/// Moves `from` of the root to the root's directory `to`, under a new name that begins with `name`.
fn move_to(root: &Root, from: &[u8], name: &str, to: &str) -> io::Result<()> {
    let dir = Dir::open(root.path())?;
    let moved = format!("{name}-{:x}", random());
    loop {
        let place = match dir.make_dir(to.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                dir.open_dir(to.as_bytes())
            }
            made => made,
        };
        // The place itself goes when it is empty: another discard may just have removed it.
        match place.and_then(|place| dir.rename(from, &place, moved.as_bytes(), Replace::No)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && dir.stat(from)?.is_some() => {}
            moved => return moved,
        }
    }
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

    const WEEK: Duration = Duration::from_secs(7 * 86_400);

    fn name(text: &str) -> SandboxName {
        text.parse().unwrap()
    }

    #[test]
    fn a_discarded_sandbox_is_restored_with_its_changes() {
        for kind in [BackendKind::Overlay, BackendKind::Copy] {
            let (_dir, sandbox) = sandbox(kind);
            let root = sandbox.root.clone();
            fs::write(sandbox.layer_dir().join("work"), "of an hour").unwrap();
            set_aside(sandbox, WEEK, &mut Silent).unwrap();
            assert_eq!(root.names().unwrap(), []);
            let found = discarded(&root).unwrap();
            assert_eq!(found.len(), 1);
            assert!(!found[0].is_expired(WEEK) && found[0].disk_use().unwrap() > 0);
            let restored = restore(&root, &name("doomed"), &name("doomed")).unwrap();
            let text = fs::read_to_string(restored.layer_dir().join("work")).unwrap();
            assert_eq!(text, "of an hour");
            restored.lock_exclusive().unwrap();
            assert!(discarded(&root).unwrap().is_empty());
            assert!(!root.path().join(DISCARDED).exists());
        }
    }

    #[test]
    fn a_name_taken_meanwhile_is_not_overwritten_by_a_restore() {
        let (dir, sandbox) = sandbox(BackendKind::Overlay);
        let root = sandbox.root.clone();
        fs::write(sandbox.layer_dir().join("work"), "first").unwrap();
        set_aside(sandbox, WEEK, &mut Silent).unwrap();
        let request = CreateRequest {
            name: Some(name("doomed")),
            source: dir.path().join("project"),
            backend: BackendChoice::Only(BackendKind::Overlay),
            settings: Settings::default(),
        };
        root.create(&request, &mut Silent).unwrap();
        let error = restore(&root, &name("doomed"), &name("doomed")).unwrap_err();
        assert!(matches!(error, RootError::Exists(_)), "{error}");
        let restored = restore(&root, &name("doomed"), &name("again")).unwrap();
        assert_eq!(restored.name(), &name("again"));
        assert!(restored.layer_dir().join("work").exists());
        assert!(
            !root
                .sandbox("doomed")
                .unwrap()
                .layer_dir()
                .join("work")
                .exists()
        );
        let error = restore(&root, &name("doomed"), &name("more")).unwrap_err();
        assert!(matches!(error, RootError::NotDiscarded(_)), "{error}");
    }

    #[test]
    fn a_discarded_sandbox_expires() {
        let (_dir, sandbox) = sandbox(BackendKind::Overlay);
        let root = sandbox.root.clone();
        set_aside(sandbox, WEEK, &mut Silent).unwrap();
        delete_expired(&root, WEEK).unwrap();
        assert_eq!(discarded(&root).unwrap().len(), 1);
        delete_expired(&root, Duration::ZERO).unwrap();
        assert!(discarded(&root).unwrap().is_empty());
        assert!(!root.path().join(DISCARDED).exists() && !root.path().join(TRASH).exists());
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
