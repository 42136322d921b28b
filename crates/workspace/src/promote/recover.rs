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

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The transaction.
    pub id: String,
    /// Which way it went.
    pub outcome: Recovery,
    /// Paths that somebody changed meanwhile; they were left as found.
    pub left: Vec<RelPath>,
    /// Where what belonged to those paths is kept.
    pub kept: Option<PathBuf>,
}

/// Which way a recovery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The commit mark was not on disk: the source is as before.
    RolledBack,
    /// The commit mark was on disk: the source has everything.
    Finished,
}

/// Repairs `source` after an interrupted promote or undo. With nothing to repair it costs one failed
/// `open`; while another process is at work on the source, or on the sandbox, it does nothing.
pub fn recover(root: &Root, source: &Path) -> Result<Option<Recovered>, PromoteError> {
    if let Err(error) = std::fs::File::open(Area::pending_path(root, source))
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    let Some(area) = Area::find(root, source)? else {
        return Ok(None);
    };
    let tree = Tree::open(source).map_err(|_| PromoteError::SourceGone {
        path: source.to_owned(),
    })?;
    let _lock = match area.lock(&tree) {
        Err(PromoteError::SourceBusy { .. }) => return Ok(None),
        lock => lock?,
    };
    match repair(root, &area, &tree, None) {
        Err(PromoteError::Sandbox(SandboxError::Busy { .. })) => Ok(None),
        repaired => repaired,
    }
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
    let Some(pending) = area.pending().map_err(cannot)? else {
        return Ok(None);
    };
    let found = source
        .root_dir()
        .and_then(|root| root.stat_self())
        .map_err(cannot)?;
    if Inode::of(&found) != pending.root {
        return Err(PromoteError::SourceGone {
            path: source.path().to_owned(),
        });
    }
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
            settle(sandbox, &journal.settle, Since::Crash)
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
