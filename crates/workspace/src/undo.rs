//! Taking a promote back.
//!
//! Pre-images belong to the source, not to the sandbox: they are kept below `ROOT/.undo`, survive a
//! discard, and go when there are more than [`KEEP_COUNT`] or they are older than [`KEEP_DAYS`].
//! An undo is a transaction of its own, through the same journal as the promote, and is kept like
//! one: undoing it applies the promote again.

use std::path::{Path, PathBuf};

use sandbox_model::{Class, Failure, RelPath, SandboxName};
use serde::Serialize;
use thiserror::Error;

use crate::progress::Progress;
use crate::promote::PromoteError;
use crate::root::Root;

/// How many promotes and undos of one source are kept.
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

/// What can be undone in `source`, newest first.
pub fn list(root: &Root, source: &Path) -> Result<Vec<UndoRecord>, UndoError> {
    todo!("{root:?} {}", source.display())
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
    todo!(
        "{root:?} {} {which:?} {paths:?} {:p}",
        source.display(),
        progress
    )
}
