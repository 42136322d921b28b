//! The change set of a workspace.

use sandbox_model::{ChangeSet, RelPath, Timestamp};

use crate::progress::Progress;
use crate::view::{View, ViewError};

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct ChangeOptions {
    /// Only at or below these; empty for everywhere.
    pub paths: Vec<RelPath>,
    /// Only what was modified at or after this.
    pub since: Option<Timestamp>,
    /// Pair deletions with creations of like content.
    pub renames: Renames,
}

/// Whether renames are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Renames {
    /// They are.
    #[default]
    Detect,
    /// Every rename is a deletion and a creation, as promote applies it.
    Split,
}

/// The change set. O(changes) on overlay and btrfs.
pub fn change_set(
    view: &View<'_>,
    options: &ChangeOptions,
    progress: &mut dyn Progress,
) -> Result<ChangeSet, ViewError> {
    todo!("{options:?} {:p} {:p}", view, progress)
}
