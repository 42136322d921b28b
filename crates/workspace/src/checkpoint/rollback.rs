//! Bringing a checkpoint back.
//!
//! ```text
//! .rollback-new/   being prepared: a crash leaves rubbish, and the sandbox as it was
//! .rollback/new/   announced: the parts on their way in, one rename each
//! .rollback/old/   the parts on their way out
//! ```

use std::io;
use std::path::Path;

use super::{CheckpointError, Label, copy_parts, failed, find};
use crate::discard::delete;
use crate::progress::Progress;
use crate::sandbox::Sandbox;
use crate::tree::{Dir, Replace};

const PREPARED: &str = ".rollback-new";
/// Its presence says that a rollback has to be finished.
pub(crate) const ANNOUNCED: &str = ".rollback";
const NEW: &str = "new";
const OLD: &str = "old";

/// Makes the workspace what it was at `label`. What changed since is lost; the checkpoint stays.
pub fn rollback(
    sandbox: &Sandbox,
    label: &Label,
    progress: &mut dyn Progress,
) -> Result<(), CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    let from = find(sandbox, label)?;
    let failed = failed(sandbox, "roll back");
    let dir = Dir::open(&sandbox.dir).map_err(&failed)?;
    dir.remove_all(PREPARED.as_bytes()).map_err(&failed)?;
    let prepared = (|| {
        let beside = dir.make_dir(PREPARED.as_bytes()).map_err(&failed)?;
        beside.make_dir(NEW.as_bytes()).map_err(&failed)?;
        beside.make_dir(OLD.as_bytes()).map_err(&failed)?;
        copy_parts(
            sandbox,
            &from,
            &sandbox.dir.join(PREPARED).join(NEW),
            progress,
        )
        .map_err(|source| CheckpointError::Copy {
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
