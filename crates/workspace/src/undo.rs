//! Taking a promote back.
//!
//! Pre-images belong to the source, not to the sandbox: they are kept below `ROOT/.undo`, survive a
//! discard, and go when there are more than [`KEEP_COUNT`] or they are older than [`KEEP_DAYS`].
//! An undo is a transaction of its own, through the same journal as the promote, and is kept like
//! one: undoing it applies the promote again.

mod inverse;
mod succession;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{Class, Failure, RelPath, SandboxName};
use serde::Serialize;
use thiserror::Error;

use crate::progress::Progress;
use crate::promote::PromoteError;
use crate::promote::area::Area;
use crate::promote::conduct::Conduct;
use crate::promote::journal::{Committed, Journal, Kind, Place};
use crate::promote::{recover, retention};
use crate::root::Root;
use crate::tree::Tree;

use succession::Succession;

/// How many promotes of one source are kept, with their undos.
pub const KEEP_COUNT: usize = 20;
/// How long they are kept.
pub const KEEP_DAYS: i64 = 30;

/// One transaction that can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UndoRecord {
    /// Its name.
    pub id: String,
    /// What it was.
    pub kind: UndoKind,
    /// When it was committed.
    pub at: jiff::Timestamp,
    /// From which sandbox.
    pub sandbox: SandboxName,
    /// What it touched, sorted.
    pub paths: Vec<RelPath>,
    /// A later undo took all of it back.
    pub undone: bool,
}

/// What a transaction was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoKind {
    /// A promote.
    Promote,
    /// An undo of the transaction named.
    Undo(String),
}

/// Which transaction to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The newest promote that is not undone.
    Latest,
    /// This one.
    Id(String),
}

/// What an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Names the undo itself.
    pub id: String,
    /// What it took back.
    pub of: String,
    /// Paths that are as they were before.
    pub restored: Vec<RelPath>,
    /// Paths left alone, because what was promoted no longer stands there.
    pub left: Vec<RelPath>,
}

/// Why an undo did not happen. The source is as it was.
#[derive(Debug, Error)]
pub enum UndoError {
    /// Nothing was promoted to this source, or it is too long ago.
    #[error("there is nothing to undo in {path}")]
    Nothing {
        /// The source.
        path: PathBuf,
    },
    /// No such transaction.
    #[error("no promote '{id}' of {path} is kept")]
    NotFound {
        /// As asked.
        id: String,
        /// The source.
        path: PathBuf,
    },
    /// None of the selected paths is as the promote left it.
    #[error("nothing of promote '{id}' still stands as it was promoted")]
    Changed {
        /// Which.
        id: String,
    },
    /// The transaction failed.
    #[error(transparent)]
    Promote(#[from] PromoteError),
}

impl Failure for UndoError {
    fn class(&self) -> Class {
        match self {
            UndoError::Nothing { .. } | UndoError::NotFound { .. } => Class::General,
            UndoError::Changed { .. } => Class::Conflict,
            UndoError::Promote(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            UndoError::Promote(error) => error.hint(),
            UndoError::Changed { .. } => {
                Some("the files were edited since; their pre-images are still kept".into())
            }
            _ => None,
        }
    }
}

/// A committed transaction.
struct Kept {
    journal: Journal,
    committed: Committed,
}

/// What can be undone in `source`, newest first.
pub fn list(root: &Root, source: &Path) -> Result<Vec<UndoRecord>, UndoError> {
    let Some(area) = Area::find(root, &canonical(source))? else {
        return Ok(Vec::new());
    };
    let kept = kept(&area)?;
    let records = kept.iter().rev().map(|transaction| {
        let journal = &transaction.journal;
        UndoRecord {
            id: journal.id.clone(),
            kind: match &journal.kind {
                Kind::Promote => UndoKind::Promote,
                Kind::Undo(of) => UndoKind::Undo(of.clone()),
            },
            at: journal.at,
            sandbox: journal.sandbox.name.clone(),
            paths: journal.paths(),
            undone: is_undone(&kept, journal),
        }
    });
    Ok(records.collect())
}

/// Takes a promote back: everything of it, or only at or below `paths`. Each path goes back exactly
/// (contents, mode, times, extended attributes; on one filesystem the very inode), if what was
/// promoted still stands there; the others are left and named.
pub fn undo(
    root: &Root,
    source: &Path,
    which: &Which,
    paths: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<Undone, UndoError> {
    let path = canonical(source);
    let nothing = || UndoError::Nothing { path: path.clone() };
    let area = Area::find(root, &path)?.ok_or_else(nothing)?;
    let tree = Tree::open(&path).map_err(|_| PromoteError::SourceGone { path: path.clone() })?;
    let _lock = area.lock(&tree)?;
    recover::repair(root, &area, &tree, None)?;

    let kept = kept(&area)?;
    let target = match which {
        Which::Latest => kept
            .iter()
            .rev()
            .find(|t| t.journal.kind == Kind::Promote && !is_undone(&kept, &t.journal))
            .ok_or_else(nothing)?,
        Which::Id(id) => {
            kept.iter()
                .find(|t| t.journal.id == *id)
                .ok_or_else(|| UndoError::NotFound {
                    id: id.clone(),
                    path: path.clone(),
                })?
        }
    };
    let target = Kept {
        journal: Succession::of(&kept).read(&target.journal),
        committed: target.committed.clone(),
    };
    let undone = take_back(&area, &tree, &target, paths, progress)?;
    retention::prune(&area)?;
    Ok(undone)
}

fn take_back(
    area: &Area,
    source: &Tree,
    target: &Kept,
    paths: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<Undone, UndoError> {
    let of = &target.journal;
    let share = match &of.stage {
        Place::Own => Some(of.id.as_str()),
        Place::Shared(head) => Some(head.as_str()),
        Place::Inside => None,
    };
    let inverse = inverse::invert(area, source, of, &target.committed, paths)
        .map_err(|error| cannot_read(area, error))?;
    if inverse.operations.is_empty() && inverse.attributes.is_empty() {
        return Err(UndoError::Changed { id: of.id.clone() });
    }
    let conduct = Conduct::begin(area, source, share, false)?;
    let mut journal = match inverse.journal(&conduct, of) {
        Ok(journal) => journal,
        Err(error) => {
            conduct.abandon()?;
            return Err(error.into());
        }
    };
    let committed = conduct.perform(&mut journal, progress)?;
    conduct.finish(&committed)?;
    Ok(Undone {
        restored: journal.paths(),
        id: journal.id,
        of: of.id.clone(),
        left: inverse.left,
    })
}

fn canonical(source: &Path) -> PathBuf {
    std::fs::canonicalize(source).unwrap_or_else(|_| source.to_owned())
}

fn cannot_read(area: &Area, source: io::Error) -> PromoteError {
    PromoteError::Io {
        operation: "read",
        path: area.path.clone(),
        source,
    }
}

/// Every committed transaction, oldest first.
fn kept(area: &Area) -> Result<Vec<Kept>, PromoteError> {
    let read = || -> io::Result<Vec<Kept>> {
        let pending = area.pending()?.map(|pending| pending.id);
        let mut kept = Vec::new();
        for id in area
            .ids()?
            .into_iter()
            .filter(|id| Some(id) != pending.as_ref())
        {
            let dir = area.transaction(&id)?;
            if let (Ok(Some(journal)), Ok(Some(committed))) =
                (Journal::read(&dir), Committed::read(&dir))
            {
                kept.push(Kept { journal, committed });
            }
        }
        Ok(kept)
    };
    read().map_err(|error| cannot_read(area, error))
}

/// Did later undos, themselves not undone, take back everything of `journal`?
fn is_undone(kept: &[Kept], journal: &Journal) -> bool {
    let roots = |journal: &Journal| -> BTreeSet<RelPath> {
        let operations = journal
            .operations
            .iter()
            .map(|operation| operation.path.clone());
        operations
            .chain(journal.attributes.iter().map(|change| change.path.clone()))
            .collect()
    };
    let mut standing = roots(journal);
    for undo in kept.iter().map(|kept| &kept.journal) {
        if undo.kind == Kind::Undo(journal.id.clone()) && !is_undone(kept, undo) {
            for path in roots(undo) {
                standing.remove(&path);
            }
        }
    }
    standing.is_empty()
}
