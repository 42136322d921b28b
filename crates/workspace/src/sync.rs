//! Bringing the source's changes into a sandbox, three-way.
//!
//! Only what the sandbox does not show by itself: on an overlay, the files it changed; on btrfs and
//! copy, everything that moved in the source since. An edit of the sandbox is never overwritten:
//! where both sides edited, texts are merged if the edits fit together, else it is a conflict that
//! is reported and left as it is.

mod apply;
mod planner;

use sandbox_model::{Class, EntryKind, Failure, Fingerprint, RelPath};
use serde::Serialize;
use thiserror::Error;

use crate::promote::{Conflict, PromoteError};

pub use apply::apply;
pub use planner::plan;

/// What a sync will do.
#[derive(Debug, Clone, Serialize)]
pub struct SyncPlan {
    /// What comes into the sandbox.
    pub steps: Vec<SyncStep>,
    /// What both sides changed and no merge settles; left alone.
    pub conflicts: Vec<Conflict>,
}

/// One path of a sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SyncStep {
    /// Which.
    pub path: RelPath,
    /// What becomes of it in the sandbox.
    pub action: SyncAction,
    /// Both sides when the plan was made, sandbox first.
    #[serde(skip)]
    sides: [Option<Fingerprint>; 2],
    /// The merge of both edits, and its mode.
    #[serde(skip)]
    merged: Option<(Vec<u8>, u32)>,
}

impl SyncStep {
    /// Is it about a directory's own attributes? What is in it has steps of its own.
    fn is_attributes(&self) -> bool {
        self.action == SyncAction::Update && self.sides.iter().all(is_directory)
    }
}

fn is_directory(found: &Option<Fingerprint>) -> bool {
    found.is_some_and(|found| found.entry.kind == EntryKind::Directory)
}

/// What a sync does to one path of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncAction {
    /// The sandbox did not change it: it becomes as in the source.
    Update,
    /// The source has a new path.
    Create,
    /// The source deleted it, the sandbox did not change it.
    Delete,
    /// Both edits, merged.
    Merge,
    /// Both sides have the same; it leaves the change set.
    Same,
}

/// What a sync did.
#[derive(Debug, Clone, Serialize)]
pub struct Synced {
    /// What came into the sandbox.
    pub steps: Vec<SyncStep>,
    /// What did not.
    pub conflicts: Vec<Conflict>,
}

/// Why a sync did not happen.
#[derive(Debug, Error)]
pub enum SyncError {
    /// As a promote's errors.
    #[error(transparent)]
    Promote(#[from] PromoteError),
}

impl Failure for SyncError {
    fn class(&self) -> Class {
        match self {
            SyncError::Promote(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SyncError::Promote(error) => error.hint(),
        }
    }
}
