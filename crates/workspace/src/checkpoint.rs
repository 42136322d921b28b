//! Fork, snapshot and rollback.
//!
//! All three copy what the workspace changed, with the record of what it started from, and the home
//! layer. A rollback prepares everything beside, announces itself by one rename, and then moves
//! part by part; whoever comes after a crash finds the announcement and finishes. Before it,
//! nothing has changed.

mod label;
mod rollback;

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{Class, Failure, RelPath, SandboxName};
use thiserror::Error;

pub use label::{Label, LabelError};
pub(crate) use rollback::{ANNOUNCED, finish as finish_rollback};
pub use rollback::{RolledBack, reset_home, rollback, rollback_home};

use crate::backend::{BackendError, backend};
use crate::discard::delete;
use crate::meta::replace_file;
use crate::progress::Progress;
use crate::root::{RootError, Start, random};
use crate::sandbox::{Sandbox, SandboxError};
use crate::transfer::{self, TransferError};
use crate::tree::{Dir, Replace, Tree};

/// Where checkpoints are kept, in the sandbox's directory.
const SNAPSHOTS: &str = "snapshots";
/// The record of bases, part of every copy.
const BASES: &str = "bases";
/// The home layer, part of every copy. Snapshots of versions before that have none.
const HOME: &str = "home";
/// The scratch of the home's overlays, which starts empty.
const HOME_SCRATCH: &str = "work";
/// When a checkpoint was made, in its directory.
const CREATED: &str = "created";

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is called.
    pub label: Label,
    /// When it was made.
    pub created: jiff::Timestamp,
    /// Disk space it uses, in bytes.
    pub size: u64,
    /// Does it hold the home? Those of earlier versions do not.
    pub home: bool,
}

/// Why a copy of a workspace could not be made or brought back. The sandbox is as it was.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The sandbox cannot be used now.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The fork cannot be made.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The changes cannot be copied.
    #[error("cannot copy the changes of sandbox '{name}'")]
    Copy {
        /// Whose.
        name: SandboxName,
        /// Why.
        #[source]
        source: BackendError,
    },
    /// The label is taken.
    #[error("sandbox '{name}' has a snapshot '{label}' already")]
    Exists {
        /// Whose.
        name: SandboxName,
        /// The label.
        label: Label,
    },
    /// No such snapshot.
    #[error("sandbox '{name}' has no snapshot '{label}'")]
    NotFound {
        /// Whose.
        name: SandboxName,
        /// As asked.
        label: Label,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// The snapshot was made when snapshots did not hold the home.
    #[error("snapshot '{label}' of sandbox '{name}' does not hold its home")]
    NoHome {
        /// Whose.
        name: SandboxName,
        /// Which.
        label: Label,
    },
    /// A file operation failed.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Failure for CheckpointError {
    fn class(&self) -> Class {
        match self {
            CheckpointError::Sandbox(error) => error.class(),
            CheckpointError::Root(error) => error.class(),
            CheckpointError::Copy { source, .. } => source.class(),
            CheckpointError::Exists { .. }
            | CheckpointError::NotFound { .. }
            | CheckpointError::NoHome { .. } => Class::General,
            CheckpointError::Io { source, .. } => Class::of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            CheckpointError::Sandbox(error) => error.hint(),
            CheckpointError::Root(error) => error.hint(),
            CheckpointError::Copy { source, .. } => source.hint(),
            CheckpointError::Exists { .. } => Some("choose another label".to_owned()),
            CheckpointError::NotFound {
                nearest: Some(nearest),
                ..
            } => Some(format!("did you mean '{nearest}'?")),
            CheckpointError::NotFound { name, .. } => Some(format!(
                "`sandbox snapshot {name} --list` shows what there is"
            )),
            CheckpointError::NoHome { name, .. } => Some(format!(
                "it was made by an earlier version; `sandbox rollback {name} --home` empties the home"
            )),
            CheckpointError::Io { .. } => None,
        }
    }
}

/// Makes the sandbox `new` with the same source and settings and its own copy of the changes and
/// of the home layer. Nothing may run in the original meanwhile.
pub fn fork(
    sandbox: &Sandbox,
    new: &SandboxName,
    progress: &mut dyn Progress,
) -> Result<Sandbox, CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    copy(sandbox, new, progress)
}

/// As [`fork`], for a caller who holds everything still that runs in the original.
pub fn fork_still(
    sandbox: &Sandbox,
    new: &SandboxName,
    progress: &mut dyn Progress,
) -> Result<Sandbox, CheckpointError> {
    let _lock = sandbox.lock_shared()?;
    copy(sandbox, new, progress)
}

fn copy(
    sandbox: &Sandbox,
    new: &SandboxName,
    progress: &mut dyn Progress,
) -> Result<Sandbox, CheckpointError> {
    let made = sandbox.root.build(Some(new), Start::Empty, |name, dir| {
        backend(sandbox.meta.backend).share_base(&sandbox.dir, dir)?;
        copy_parts(sandbox, &sandbox.dir, dir, progress)?;
        copy_home(&sandbox.dir, dir, progress)?;
        let mut meta = sandbox.meta.clone();
        meta.name = name.clone();
        meta.created = jiff::Timestamp::now();
        meta.forked_from = Some(sandbox.name().clone());
        Ok(meta)
    });
    Ok(made?)
}

/// Keeps a copy of the workspace's changes and of the home layer under `label`, or under the next
/// free number.
pub fn snapshot(
    sandbox: &Sandbox,
    label: Option<&Label>,
    progress: &mut dyn Progress,
) -> Result<Label, CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    let failed = failed(sandbox, "write to");
    let dir = Dir::open(&sandbox.dir).map_err(&failed)?;
    let shelf = open_or_make(&dir, SNAPSHOTS).map_err(&failed)?;
    let label = match label {
        Some(label) => label.clone(),
        None => next_number(&shelf).map_err(&failed)?,
    };
    if shelf
        .stat(label.as_str().as_bytes())
        .map_err(&failed)?
        .is_some()
    {
        return Err(CheckpointError::Exists {
            name: sandbox.name().clone(),
            label,
        });
    }
    let hidden = format!(".new-{:x}", random());
    let path = sandbox.dir.join(SNAPSHOTS).join(&hidden);
    let made = (|| {
        let new = shelf.make_dir(hidden.as_bytes()).map_err(&failed)?;
        copy_parts(sandbox, &sandbox.dir, &path, progress)
            .and_then(|()| copy_home(&sandbox.dir, &path, progress))
            .map_err(|source| CheckpointError::Copy {
                name: sandbox.name().clone(),
                source,
            })?;
        let now = format!("{}\n", jiff::Timestamp::now());
        replace_file(&new, CREATED, now.as_bytes()).map_err(&failed)?;
        shelf
            .rename(
                hidden.as_bytes(),
                &shelf,
                label.as_str().as_bytes(),
                Replace::No,
            )
            .map_err(&failed)
    })();
    if made.is_err() {
        // The first error is the one to tell; the next snapshot takes the rest along.
        let _ = shelf.remove_all(hidden.as_bytes());
    }
    made.map(|()| label)
}

/// The sandbox's checkpoints, oldest first.
pub fn snapshots(sandbox: &Sandbox) -> Result<Vec<Snapshot>, CheckpointError> {
    let failed = failed(sandbox, "read");
    let shelf = sandbox.dir.join(SNAPSHOTS);
    let mut found = Vec::new();
    for label in labels(&shelf).map_err(&failed)? {
        let path = shelf.join(label.as_str());
        let created = std::fs::read_to_string(path.join(CREATED)).map_err(&failed)?;
        let created = created
            .trim()
            .parse()
            .map_err(io::Error::other)
            .map_err(&failed)?;
        let size = crate::sandbox::disk_use(&path).map_err(&failed)?;
        found.push(Snapshot {
            label,
            created,
            size,
            home: has_home(&path).map_err(&failed)?,
        });
    }
    found.sort_by_key(|snapshot| snapshot.created);
    Ok(found)
}

/// Deletes a checkpoint.
pub fn delete_snapshot(sandbox: &Sandbox, label: &Label) -> Result<(), CheckpointError> {
    let _lock = sandbox.lock_exclusive()?;
    let path = find(sandbox, label)?;
    let failed = failed(sandbox, "delete a snapshot of");
    let shelf = Dir::open(&sandbox.dir.join(SNAPSHOTS)).map_err(&failed)?;
    let doomed = format!(".old-{:x}", random());
    shelf
        .rename(
            label.as_str().as_bytes(),
            &shelf,
            doomed.as_bytes(),
            Replace::No,
        )
        .map_err(&failed)?;
    let above = path.parent().unwrap_or(&path);
    delete(&shelf, above, doomed.as_bytes()).map_err(&failed)
}

/// The directory of a checkpoint; an error names the nearest label.
pub fn find(sandbox: &Sandbox, label: &Label) -> Result<PathBuf, CheckpointError> {
    let shelf = sandbox.dir.join(SNAPSHOTS);
    let path = shelf.join(label.as_str());
    if path.join(CREATED).exists() {
        return Ok(path);
    }
    let known = labels(&shelf).map_err(failed(sandbox, "read"))?;
    let nearest = SandboxName::nearest(label.as_str(), known.iter().map(Label::as_str));
    Err(CheckpointError::NotFound {
        name: sandbox.name().clone(),
        label: label.clone(),
        nearest: nearest.map(str::to_owned),
    })
}

fn labels(shelf: &Path) -> io::Result<Vec<Label>> {
    let dir = match Dir::open(shelf) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        dir => dir?,
    };
    let names = dir.entries()?.into_iter().map(|entry| entry.name);
    Ok(names
        .filter_map(|name| String::from_utf8(name).ok()?.parse().ok())
        .collect())
}

fn next_number(shelf: &Dir) -> io::Result<Label> {
    let names = shelf.entries()?.into_iter().map(|entry| entry.name);
    let numbers = names.filter_map(|name| String::from_utf8(name).ok()?.parse::<u32>().ok());
    Ok(Label::number(numbers.max().unwrap_or(0) + 1))
}

/// Copies what belongs to the workspace's state: the backend's parts and the bases.
fn copy_parts(
    sandbox: &Sandbox,
    from: &Path,
    to: &Path,
    progress: &mut dyn Progress,
) -> Result<(), BackendError> {
    backend(sandbox.meta.backend).duplicate(&sandbox.meta, from, to, progress)?;
    copy_directory(from, to, BASES, &[], progress)
}

/// Copies the home layer, but for the scratch of its overlays. It was written inside: nothing in it
/// is followed.
fn copy_home(from: &Path, to: &Path, progress: &mut dyn Progress) -> Result<(), BackendError> {
    let scratch = RelPath::root().join(HOME_SCRATCH.as_bytes());
    copy_directory(from, to, HOME, &[scratch], progress)
}

/// Does the checkpoint in `path` hold the home?
fn has_home(path: &Path) -> io::Result<bool> {
    Ok(Dir::open(path)?.stat(HOME.as_bytes())?.is_some())
}

/// Copies the directory `name` without `skip`; an empty one is made where there is none.
fn copy_directory(
    from: &Path,
    to: &Path,
    name: &str,
    skip: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<(), BackendError> {
    let made = Dir::open(to).and_then(|dir| dir.make_dir(name.as_bytes()));
    made.map_err(BackendError::io("write to", to))?;
    let original = match Tree::open_in(from, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        original => original.map_err(BackendError::io("read", from))?,
    };
    let copy = Tree::open(&to.join(name)).map_err(BackendError::io("write to", to))?;
    let copied: Result<_, TransferError> = transfer::copy_tree(&original, &copy, skip, progress);
    copied?;
    Ok(())
}

fn open_or_make(dir: &Dir, name: &str) -> io::Result<Dir> {
    match dir.make_dir(name.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => dir.open_dir(name.as_bytes()),
        made => made,
    }
}

/// For `map_err`: names the operation and the sandbox's directory.
fn failed(
    sandbox: &Sandbox,
    operation: &'static str,
) -> impl Fn(io::Error) -> CheckpointError + Clone + use<> {
    let path = sandbox.dir.clone();
    move |source| CheckpointError::Io {
        operation,
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests;
