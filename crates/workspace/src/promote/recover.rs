//! Finishing or taking back what an interrupted promote or undo left.

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::RelPath;
use serde::Serialize;

use super::area::{Area, Pending};
use super::conduct::{RolledBack, finish, roll_back, sweep};
use super::error::PromoteError;
use super::ground::is_not_there;
use super::journal::{Committed, Inode, Journal};
use super::settle::{Since, excuse_renames, settle};
use super::transaction::Transaction;
use crate::root::{Root, RootError};
use crate::sandbox::{Sandbox, SandboxError};
use crate::tree::{Dir, Tree};
use crate::undo::give_back::give_back;

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The transaction.
    pub id: String,
    /// Which way it went.
    pub outcome: Recovery,
    /// Paths that were edited meanwhile; they were left as found. A directory that an undo or a redo
    /// had put there is named too: it was left with all that is in it.
    pub left: Vec<RelPath>,
    /// Where what stood at those paths before is kept, each at its own path below it. For a transaction
    /// that was not repaired: where it is.
    pub kept: Option<PathBuf>,
}

/// One source that needed a recovery.
#[derive(Debug)]
pub struct RecoveredSource {
    /// Which.
    pub source: PathBuf,
    /// What was done, or why nothing could be.
    pub result: Result<Recovered, PromoteError>,
}

/// Which way a recovery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The commit mark was not on disk: the source is as before.
    RolledBack,
    /// The commit mark was on disk: the source has everything.
    Finished,
    /// Another directory stands at the source's path, so there is nothing to repair there. What the
    /// transaction holds is in `kept`, until it is cleaned as garbage or the first directory is back.
    SetAside,
    /// Nothing stands at the source's path. Nothing was done; it is repaired when it is back.
    SourceMissing,
}

/// Repairs `source` after an interrupted promote or undo. With nothing to repair it costs one failed
/// `open`; while another process is at work on the source, or on the sandbox, it does nothing.
pub fn recover(root: &Root, source: &Path) -> Result<Option<Recovered>, PromoteError> {
    if let Err(error) = std::fs::File::open(Area::pending_path(root, source))
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    match Area::find(root, source)? {
        Some(area) => recover_in(root, &area, source),
        None => Ok(None),
    }
}

/// As [`recover`]; also takes up again what was set aside, if the directory it began in is back.
pub fn recover_thoroughly(root: &Root, source: &Path) -> Result<Option<Recovered>, PromoteError> {
    match Area::find(root, source)? {
        Some(area) => recover_in(root, &area, source),
        None => Ok(None),
    }
}

/// Repairs every source that promotes of `root` were interrupted in. Returns each with what was done;
/// one that cannot be repaired does not keep the others from it.
pub fn recover_all(root: &Root) -> Result<Vec<RecoveredSource>, PromoteError> {
    let cannot = |source| PromoteError::Io {
        operation: "look through",
        path: root.path().join(".undo"),
        source,
    };
    let mut all = Vec::new();
    for area in Area::all(root).map_err(cannot)? {
        let nothing =
            || -> io::Result<bool> { Ok(!area.has_pending()? && area.set_asides()?.is_empty()) };
        if nothing().map_err(cannot)? {
            continue;
        }
        let Some(source) = area.source().map_err(cannot)? else {
            continue;
        };
        if let Some(result) = recover_in(root, &area, &source).transpose() {
            all.push(RecoveredSource { source, result });
        }
    }
    Ok(all)
}

fn recover_in(root: &Root, area: &Area, source: &Path) -> Result<Option<Recovered>, PromoteError> {
    let tree = match Tree::open(source) {
        Err(error) if crate::layer::vanished(&error) => return missing(area),
        tree => tree.map_err(|error| PromoteError::Io {
            operation: "open",
            path: source.to_owned(),
            source: error,
        })?,
    };
    let _lock = match area.lock(&tree) {
        Err(PromoteError::SourceBusy { .. }) => return Ok(None),
        lock => lock?,
    };
    match repair(root, area, &tree, None) {
        Err(PromoteError::Sandbox(SandboxError::Busy { .. })) => Ok(None),
        repaired => repaired,
    }
}

fn missing(area: &Area) -> Result<Option<Recovered>, PromoteError> {
    let pending = area.pending().map_err(|source| PromoteError::Io {
        operation: "read",
        path: area.path.clone(),
        source,
    })?;
    Ok(pending.map(|pending| Recovered {
        kept: Some(area.path.join(&pending.id)),
        id: pending.id,
        outcome: Recovery::SourceMissing,
        left: Vec::new(),
    }))
}

/// The same, with the source locked, and `held` locked too if it is given.
pub(crate) fn repair(
    root: &Root,
    area: &Area,
    source: &Tree,
    held: Option<&Sandbox>,
) -> Result<Option<Recovered>, PromoteError> {
    let cannot = |source| PromoteError::Io {
        operation: "read",
        path: area.path.clone(),
        source,
    };
    let found = source
        .root_dir()
        .and_then(|root| root.stat_self())
        .map_err(cannot)?;
    let found = Inode::of(&found);
    let pending = match area.pending().map_err(cannot)? {
        Some(pending) => Some(pending),
        None => area.resume(&found).map_err(cannot)?,
    };
    let Some(pending) = pending else {
        return Ok(None);
    };
    if found != pending.root {
        let aside = area.set_aside(&pending).map_err(cannot)?;
        return Ok(Some(Recovered {
            id: pending.id,
            outcome: Recovery::SetAside,
            left: Vec::new(),
            kept: Some(aside),
        }));
    }
    area.complete_resume(&pending).map_err(cannot)?;
    let Some((dir, journal)) = journal_of(area, &pending)? else {
        sweep(area, source, &pending)?;
        return Ok(Some(rolled_back(
            &pending,
            RolledBack {
                left: Vec::new(),
                kept: None,
            },
        )));
    };
    if let Some(committed) = Committed::read(&dir).map_err(cannot)? {
        with_sandbox(root, &journal, held, |sandbox| {
            settle(sandbox, &journal.settle, Since::Crash)?;
            give_back(area, sandbox, &journal).map(drop)
        })?;
        finish(area, source, &pending, &committed)?;
        let outcome = Recovery::Finished;
        return Ok(Some(Recovered {
            id: pending.id,
            outcome,
            left: Vec::new(),
            kept: None,
        }));
    }
    let back = match area.stage(source, &pending.id, &pending.stage) {
        Ok(stage) => {
            let transaction = Transaction {
                source,
                stage: &stage,
                journal: &journal,
            };
            with_sandbox(root, &journal, held, |_| Ok(()))?;
            let back = roll_back(area, source, &pending, &transaction)?;
            with_sandbox(root, &journal, held, |sandbox| {
                excuse_renames(sandbox, &journal)
            })?;
            back
        }
        // Everything was put back already, and the stage removed.
        Err(error) if is_not_there(&error) => {
            sweep(area, source, &pending)?;
            RolledBack {
                left: Vec::new(),
                kept: None,
            }
        }
        Err(error) => return Err(cannot(error)),
    };
    Ok(Some(rolled_back(&pending, back)))
}

fn rolled_back(pending: &Pending, back: RolledBack) -> Recovered {
    Recovered {
        id: pending.id.clone(),
        outcome: Recovery::RolledBack,
        left: back.left,
        kept: back.kept,
    }
}

/// The journal, if it was completed. Without one the source was not touched.
fn journal_of(area: &Area, pending: &Pending) -> Result<Option<(Dir, Journal)>, PromoteError> {
    let unreadable = |error: io::Error| PromoteError::Journal {
        path: area.path.join(&pending.id),
        reason: error.to_string(),
    };
    let dir = match area.transaction(&pending.id) {
        Err(error) if is_not_there(&error) => return Ok(None),
        dir => dir.map_err(unreadable)?,
    };
    Ok(Journal::read(&dir)
        .map_err(unreadable)?
        .map(|journal| (dir, journal)))
}

/// Does `work` on the journal's sandbox, locked; on nothing if it is no more.
fn with_sandbox(
    root: &Root,
    journal: &Journal,
    held: Option<&Sandbox>,
    work: impl FnOnce(&Sandbox) -> Result<(), PromoteError>,
) -> Result<(), PromoteError> {
    let is_it = |sandbox: &Sandbox| {
        *sandbox.name() == journal.sandbox.name && sandbox.meta.created == journal.sandbox.created
    };
    if let Some(sandbox) = held.filter(|sandbox| is_it(sandbox)) {
        return work(sandbox);
    }
    let sandbox = match root.sandbox(journal.sandbox.name.as_str()) {
        Err(RootError::NotFound { .. }) => return Ok(()),
        Err(error) => {
            return Err(PromoteError::Io {
                operation: "open",
                path: root.path().join(journal.sandbox.name.as_str()),
                source: io::Error::other(error),
            });
        }
        Ok(sandbox) => sandbox,
    };
    if !is_it(&sandbox) {
        return Ok(());
    }
    let _lock = match sandbox.lock_exclusive() {
        Err(SandboxError::Gone { .. }) => return Ok(()),
        lock => lock?,
    };
    work(&sandbox)
}
