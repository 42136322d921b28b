//! What could be cleaned.
//!
//! Finding and cleaning are apart, so that what is shown is what is cleaned. Unpromoted work is
//! never garbage: a stale sandbox is reported with what it holds, and cleaned only when that is
//! nothing.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sandbox_model::SandboxName;

use crate::changes::{ChangeOptions, change_set};
use crate::discard::{self, TRASH};
use crate::progress::{Progress, Silent};
use crate::promote::area::Area;
use crate::promote::retention;
use crate::root::{Root, RootError};
use crate::sandbox::disk_use;
use crate::tree::Dir;
use crate::view::View;

/// Something that could be cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Garbage {
    /// What it is.
    pub kind: GarbageKind,
    /// Where it is.
    pub path: PathBuf,
    /// Disk space it uses, in bytes.
    pub size: u64,
}

/// What can be garbage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GarbageKind {
    /// Discarded, but not wholly deleted.
    Discarded,
    /// A discarded sandbox that can be restored.
    Restorable {
        /// Which.
        name: SandboxName,
        /// How long ago it was discarded.
        age: Duration,
        /// It is kept for longer than it should be.
        expired: bool,
    },
    /// The remains of a create that was interrupted.
    Interrupted,
    /// Pre-images of a promote that is longer ago than they are kept.
    Expired,
    /// A promote that was interrupted and can no longer be taken back or finished: its source is gone, or
    /// another directory stands there. Holds what the promote replaced.
    SetAside,
    /// Pre-images for a source that no longer exists and that no sandbox is of.
    Orphaned,
    /// A sandbox that nobody used for long.
    Stale {
        /// Which.
        name: SandboxName,
        /// Since when.
        unused: Duration,
        /// What it holds.
        holds: Holds,
    },
}

/// What a stale sandbox holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Nothing that is not in the source.
    Nothing,
    /// This many changes that were not promoted.
    Changes(usize),
    /// It cannot be told: its source is gone, or it is in use or damaged.
    Unknown,
}

impl Garbage {
    /// May it be cleaned without losing work?
    pub fn is_safe(&self) -> bool {
        match &self.kind {
            GarbageKind::Discarded
            | GarbageKind::Interrupted
            | GarbageKind::Expired
            | GarbageKind::SetAside
            | GarbageKind::Orphaned => true,
            GarbageKind::Restorable { expired, .. } => *expired,
            GarbageKind::Stale { holds, .. } => *holds == Holds::Nothing,
        }
    }
}

/// Looks for garbage. Sandboxes unused for longer than `stale` are reported too, and discarded ones,
/// which expire after `retention`.
pub fn find(root: &Root, stale: Duration, retention: Duration) -> Result<Vec<Garbage>, RootError> {
    let failed = |source| RootError::Io {
        operation: "look through",
        path: root.path().to_owned(),
        source,
    };
    let dir = root.dir()?;
    let mut found = Vec::new();
    let mut add = |kind, path: PathBuf| {
        // What vanishes while one looks at it needs no cleaning.
        if let Ok(size) = disk_use(&path) {
            found.push(Garbage { kind, path, size });
        }
    };
    if let Ok(trash) = dir.open_dir(TRASH.as_bytes()) {
        for entry in trash.entries().map_err(failed)? {
            add(
                GarbageKind::Discarded,
                root.path().join(TRASH).join(name_of(&entry.name)),
            );
        }
    }
    for found in discard::discarded(root)? {
        let kind = GarbageKind::Restorable {
            expired: found.is_expired(retention),
            age: found.at.elapsed().unwrap_or_default(),
            name: found.meta.name,
        };
        add(kind, found.path);
    }
    for leftover in root.leftovers(&dir)? {
        let path = root.path().join(name_of(&leftover.name));
        add(GarbageKind::Interrupted, path);
    }
    let (mut expired, mut set_aside) = (Vec::new(), Vec::new());
    for area in Area::all(root).map_err(failed)? {
        if is_orphaned(root, &area).map_err(failed)? {
            add(GarbageKind::Orphaned, area.path);
            continue;
        }
        expired.extend(expired_in(&area).map_err(failed)?);
        let names = set_aside_in(&area).map_err(failed)?.into_iter();
        set_aside.extend(names.map(|name| area.path.join(name)));
    }
    for path in expired {
        add(GarbageKind::Expired, path);
    }
    for path in set_aside {
        add(GarbageKind::SetAside, path);
    }
    for name in root.names()? {
        if let Some((unused, holds)) = staleness(root, &name, stale) {
            let path = root.path().join(name.as_str());
            add(
                GarbageKind::Stale {
                    name,
                    unused,
                    holds,
                },
                path,
            );
        }
    }
    Ok(found)
}

/// Cleans one finding. What is not safe to clean, or has come to use meanwhile, is left alone:
/// `false`.
pub fn clean(
    root: &Root,
    garbage: &Garbage,
    progress: &mut dyn Progress,
) -> Result<bool, RootError> {
    let failed = |source| RootError::Io {
        operation: "clean",
        path: garbage.path.clone(),
        source,
    };
    match &garbage.kind {
        GarbageKind::Discarded => discard::empty_trash(root).map_err(failed)?,
        GarbageKind::Restorable { expired, .. } => {
            return match expired {
                true => discard::delete_discarded(root, &garbage.path).map_err(failed),
                false => Ok(false),
            };
        }
        GarbageKind::Interrupted => root.sweep()?,
        GarbageKind::Expired => return clean_expired(root, &garbage.path).map_err(failed),
        GarbageKind::SetAside => return clean_set_aside(root, &garbage.path).map_err(failed),
        GarbageKind::Orphaned => return clean_orphaned(root, &garbage.path).map_err(failed),
        GarbageKind::Stale { name, .. } => {
            let still = staleness(root, name, Duration::ZERO);
            if !garbage.is_safe() || still.is_none_or(|(_, holds)| holds != Holds::Nothing) {
                return Ok(false);
            }
            let sandbox = root.sandbox(name.as_str())?;
            return match discard::discard(sandbox, progress) {
                Ok(()) => Ok(true),
                Err(crate::sandbox::SandboxError::Io { source, .. }) => Err(failed(source)),
                // Somebody came to use it.
                Err(_) => Ok(false),
            };
        }
    }
    Ok(true)
}

/// Deletes the transaction at `path` if it is still expired when nobody is at work there.
fn clean_expired(root: &Root, path: &Path) -> io::Result<bool> {
    let Some((area, id)) = in_area(root, path)? else {
        return Ok(false);
    };
    let Some(_lock) = area.lock_kept()? else {
        return Ok(false);
    };
    let is_expired = expired_in(&area)?.iter().any(|found| found == path);
    if is_expired {
        area.delete(&id)?;
    }
    Ok(is_expired)
}

/// Deletes everything kept for a source, if it still belongs to nothing when nobody is at work
/// there.
fn clean_orphaned(root: &Root, path: &Path) -> io::Result<bool> {
    let Some(area) = Area::all(root)?.into_iter().find(|area| area.path == path) else {
        return Ok(false);
    };
    let Some(_lock) = area.lock_kept()? else {
        return Ok(false);
    };
    if !is_orphaned(root, &area)? {
        return Ok(false);
    }
    for id in area.ids()?.into_iter().rev() {
        area.delete(&id)?;
    }
    let name = path.file_name().unwrap_or_default();
    let above = Dir::open(&root.path().join(".undo"))?;
    above.remove_all(name.as_encoded_bytes())?;
    Ok(true)
}

/// Transactions in `area` that were interrupted and whose source is no more, by their name there: put
/// aside already, or waiting for a source that is missing.
fn set_aside_in(area: &Area) -> io::Result<Vec<String>> {
    let mut names = area.set_asides()?;
    if let Some(pending) = area.pending()?
        && area.source()?.is_some_and(|source| is_gone(&source))
    {
        names.push(pending.id);
    }
    Ok(names)
}

/// Deletes the transaction at `path` if its source is still no more when nobody is at work there.
fn clean_set_aside(root: &Root, path: &Path) -> io::Result<bool> {
    let Some((area, name)) = in_area(root, path)? else {
        return Ok(false);
    };
    let Some(_lock) = area.lock_kept()? else {
        return Ok(false);
    };
    // A recovery may have finished it until now; then it is no garbage under the same name.
    if !set_aside_in(&area)?.contains(&name) {
        return Ok(false);
    }
    let name = match area.pending()? {
        Some(pending) if pending.id == name => {
            let aside = area.set_aside(&pending)?;
            aside
                .file_name()
                .map_or(name, |name| name.to_string_lossy().into_owned())
        }
        _ => name,
    };
    area.dir.remove_all(name.as_bytes())?;
    Ok(true)
}

/// The area that the transaction at `path` is in, and its name there.
fn in_area(root: &Root, path: &Path) -> io::Result<Option<(Area, String)>> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(above), Some(name)) = (path.parent(), name) else {
        return Ok(None);
    };
    let area = Area::all(root)?.into_iter().find(|area| area.path == above);
    Ok(area.map(|area| (area, name.to_owned())))
}

/// Is there certainly no directory at `source`? One that cannot be reached at the moment (no permission,
/// a network filesystem that does not answer) is not gone.
fn is_gone(source: &Path) -> bool {
    match std::fs::symlink_metadata(source) {
        Err(error) => matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
        Ok(found) => !found.is_dir() && !found.is_symlink(),
    }
}

/// Does what is kept in `area` belong to nothing? Its source is gone, no sandbox is of that source,
/// which might then be about to come back, and no transaction waits to be finished.
fn is_orphaned(root: &Root, area: &Area) -> io::Result<bool> {
    let Some(source) = area.source()? else {
        return Ok(false);
    };
    if !is_gone(&source) || area.pending()?.is_some() {
        return Ok(false);
    }
    let names = root.names().map_err(io::Error::other)?;
    let is_its = |name: &SandboxName| match root.sandbox(name.as_str()) {
        Ok(sandbox) => sandbox.source() == source,
        // Of a sandbox that cannot be read one does not know.
        Err(_) => true,
    };
    Ok(!names.iter().any(is_its))
}

/// For how long the sandbox was unused, if that is longer than `limit`, and what it holds.
fn staleness(root: &Root, name: &SandboxName, limit: Duration) -> Option<(Duration, Holds)> {
    let sandbox = root.sandbox(name.as_str()).ok()?;
    let used = sandbox.last_used().ok()?;
    let unused = SystemTime::now().duration_since(used).unwrap_or_default();
    if unused < limit {
        return None;
    }
    // Shared with readers; a run holds it too, but then the time says that it is in use.
    let Ok(_lock) = sandbox.lock_glance() else {
        return Some((unused, Holds::Unknown));
    };
    let changes = View::open(&sandbox)
        .and_then(|view| change_set(&view, &ChangeOptions::default(), &mut Silent));
    let holds = match changes {
        Ok(changes) if changes.is_empty() => Holds::Nothing,
        Ok(changes) => Holds::Changes(changes.changes.len()),
        Err(_) => Holds::Unknown,
    };
    Some((unused, holds))
}

/// What is kept in `area` for longer than it should be.
fn expired_in(area: &Area) -> io::Result<Vec<PathBuf>> {
    let ids = retention::expired(area)?;
    Ok(ids.into_iter().map(|id| area.path.join(id)).collect())
}

fn name_of(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sandbox_model::{BackendChoice, BackendKind, Settings};

    use super::*;
    use crate::root::CreateRequest;

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        let root = Root::open(&dir.path().join("root")).unwrap();
        for name in ["clean", "dirty"] {
            let request = CreateRequest {
                name: Some(name.parse().unwrap()),
                source: dir.path().join("project"),
                backend: BackendChoice::Only(BackendKind::Overlay),
                settings: Settings::default(),
            };
            root.create(&request, &mut Silent).unwrap();
        }
        fs::write(root.path().join("dirty/upper/new"), "work").unwrap();
        (dir, root)
    }

    #[test]
    fn remains_are_found_and_cleaned() {
        let (_dir, root) = root();
        fs::create_dir_all(root.path().join(".trash/gone-1/upper")).unwrap();
        fs::create_dir_all(root.path().join(".new-1")).unwrap();
        fs::write(root.path().join(".new-1/lock"), "").unwrap();
        let found = find(&root, Duration::from_secs(3600), Duration::MAX).unwrap();
        let kinds: Vec<_> = found.iter().map(|garbage| garbage.kind.clone()).collect();
        assert_eq!(kinds, [GarbageKind::Discarded, GarbageKind::Interrupted]);
        for garbage in &found {
            assert!(clean(&root, garbage, &mut Silent).unwrap());
            assert!(!garbage.path.exists());
        }
        assert_eq!(
            find(&root, Duration::from_secs(3600), Duration::MAX).unwrap(),
            []
        );
    }

    #[test]
    fn what_is_kept_for_a_gone_source_is_cleaned() {
        let (dir, root) = root();
        let gone = dir.path().join("gone");
        for source in [&gone, &dir.path().join("project")] {
            let area = Area::make(&root, source).unwrap();
            fs::create_dir_all(area.path.join("20260101-000000-000000000/stage")).unwrap();
        }
        let area = Area::path(&root, &gone);
        // Older versions left none.
        fs::remove_file(area.join("source")).unwrap();
        let orphaned = |garbage: &Garbage| garbage.kind == GarbageKind::Orphaned;
        let long = Duration::from_secs(3600);
        let found = find(&root, long, Duration::MAX).unwrap();
        let found: Vec<_> = found.into_iter().filter(orphaned).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, area);
        fs::create_dir(&gone).unwrap();
        assert!(
            !clean(&root, &found[0], &mut Silent).unwrap(),
            "it came back"
        );
        fs::remove_dir(&gone).unwrap();
        fs::write(area.join("pending"), "{").unwrap();
        assert!(clean(&root, &found[0], &mut Silent).is_err(), "unfinished");
        fs::remove_file(area.join("pending")).unwrap();
        assert!(clean(&root, &found[0], &mut Silent).unwrap());
        assert!(!area.exists());
        assert!(
            !find(&root, long, Duration::MAX)
                .unwrap()
                .iter()
                .any(orphaned)
        );
    }

    #[test]
    fn unpromoted_work_is_reported_and_never_cleaned() {
        let (_dir, root) = root();
        let found = find(&root, Duration::ZERO, Duration::MAX).unwrap();
        assert_eq!(found.len(), 2);
        for garbage in &found {
            let cleaned = clean(&root, garbage, &mut Silent).unwrap();
            assert_eq!(cleaned, garbage.path.ends_with("clean"));
        }
        assert_eq!(
            fs::read(root.path().join("dirty/upper/new")).unwrap(),
            b"work"
        );
        assert!(!root.path().join("clean").exists());
    }
}
