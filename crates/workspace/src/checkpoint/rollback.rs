//! Bringing a checkpoint back.
//!
//! ```text
//! .rollback-new/   being prepared: a crash leaves rubbish, and the sandbox as it was
//! .rollback/new/   announced: the parts on their way in, one rename each
//! .rollback/old/   the parts on their way out
//! ```

use std::io;
use std::path::Path;

use super::{CheckpointError, HOME, Label, copy_home, copy_parts, failed, find, has_home};
use crate::backend::BackendError;
use crate::discard::delete;
use crate::progress::Progress;
use crate::sandbox::Sandbox;
use crate::tree::{Dir, Replace};

const PREPARED: &str = ".rollback-new";
/// Its presence says that a rollback has to be finished.
pub(crate) const ANNOUNCED: &str = ".rollback";
const NEW: &str = "new";
const OLD: &str = "old";

/// What a rollback brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolledBack {
    /// The workspace and the home.
    Everything,
    /// The workspace alone: the snapshot was made when snapshots did not hold the home.
    WorkspaceOnly,
}

/// Makes the workspace and the home what they were at `label`. What changed since is lost; the
/// checkpoint stays.
pub fn rollback(
    sandbox: &Sandbox,
    label: &Label,
    progress: &mut dyn Progress,
) -> Result<RolledBack, CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    let from = find(sandbox, label)?;
    let home = has_home(&from).map_err(failed(sandbox, "read"))?;
    swap(sandbox, |new| {
        copy_parts(sandbox, &from, new, progress)?;
        match home {
            true => copy_home(&from, new, progress),
            false => Ok(()),
        }
    })?;
    Ok(match home {
        true => RolledBack::Everything,
        false => RolledBack::WorkspaceOnly,
    })
}

/// Makes the home alone what it was at `label`.
pub fn rollback_home(
    sandbox: &Sandbox,
    label: &Label,
    progress: &mut dyn Progress,
) -> Result<(), CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    let from = find(sandbox, label)?;
    if !has_home(&from).map_err(failed(sandbox, "read"))? {
        return Err(CheckpointError::NoHome {
            name: sandbox.name().clone(),
            label: label.clone(),
        });
    }
    swap(sandbox, |new| copy_home(&from, new, progress))
}

/// Empties the home, as it is in a new sandbox.
pub fn reset_home(sandbox: &Sandbox) -> Result<(), CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    swap(sandbox, |new| {
        let made = Dir::open(new).and_then(|new| new.make_dir(HOME.as_bytes()));
        made.map(drop).map_err(BackendError::io("write to", new))
    })
}

/// Puts the parts that `prepare` makes in a new directory in place of the sandbox's own. The caller
/// holds its exclusive lock.
fn swap(
    sandbox: &Sandbox,
    prepare: impl FnOnce(&Path) -> Result<(), BackendError>,
) -> Result<(), CheckpointError> {
    let failed = failed(sandbox, "roll back");
    let dir = Dir::open(&sandbox.dir).map_err(&failed)?;
    dir.remove_all(PREPARED.as_bytes()).map_err(&failed)?;
    let prepared = (|| {
        let beside = dir.make_dir(PREPARED.as_bytes()).map_err(&failed)?;
        beside.make_dir(NEW.as_bytes()).map_err(&failed)?;
        beside.make_dir(OLD.as_bytes()).map_err(&failed)?;
        prepare(&sandbox.dir.join(PREPARED).join(NEW)).map_err(|source| CheckpointError::Copy {
            name: sandbox.name().clone(),
            source,
        })?;
        dir.rename(PREPARED.as_bytes(), &dir, ANNOUNCED.as_bytes(), Replace::No)
            .map_err(&failed)
    })();
    if prepared.is_err() {
        let _ = dir.remove_all(PREPARED.as_bytes());
    }
    prepared?;
    finish(&sandbox.dir).map_err(failed)
}

/// Finishes the rollback announced in the sandbox's directory. May be repeated.
pub(crate) fn finish(path: &Path) -> io::Result<()> {
    let dir = Dir::open(path)?;
    let beside = match dir.open_dir(ANNOUNCED.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        beside => beside?,
    };
    let (new, old) = (
        beside.open_dir(NEW.as_bytes())?,
        beside.open_dir(OLD.as_bytes())?,
    );
    for part in new.entries()? {
        // Gone already when the crash came between the two renames.
        if dir.stat(&part.name)?.is_some() && old.stat(&part.name)?.is_none() {
            dir.rename(&part.name, &old, &part.name, Replace::No)?;
        }
        new.rename(&part.name, &dir, &part.name, Replace::Yes)?;
    }
    // All parts are in: what follows is only rubbish, in the place where a crash leaves rubbish.
    dir.remove_all(PREPARED.as_bytes())?;
    dir.rename(ANNOUNCED.as_bytes(), &dir, PREPARED.as_bytes(), Replace::No)?;
    delete(&dir, path, PREPARED.as_bytes())
}
