//! What a promote will do, decided before anything is touched.
//!
//! The plan is frozen: `--dry-run` prints it and [`super::apply`] performs exactly it, or fails
//! because a side has moved since.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sandbox_model::{Entry, EntryKind, Fingerprint, Flag, RelPath, SandboxName};
use serde::Serialize;

use super::conflict::Conflict;
use super::journal::Below;

pub use super::planner::plan;

/// What to promote.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only at or below these; empty for everything.
    pub paths: Vec<RelPath>,
    /// Files of which these bytes are promoted instead of what the sandbox has (some hunks of an
    /// edit). Such a file stays in the change set with the rest. Must be selected by `paths`.
    pub contents: BTreeMap<RelPath, Vec<u8>>,
    /// What becomes of changes flagged [`Flag::GitControl`].
    pub git_control: GitControl,
}

/// Whether files that steer git on the host are promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GitControl {
    /// They are listed as left out.
    #[default]
    LeaveOut,
    /// They are promoted like the rest: the user said so in so many words.
    Apply,
}

/// A frozen promote.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// From which sandbox.
    pub sandbox: SandboxName,
    /// To which source.
    pub source: PathBuf,
    /// What will be done, parents before what is below them.
    pub steps: Vec<Step>,
    /// What both sides changed and no resolution settles. [`super::apply`] refuses while there are any.
    pub conflicts: Vec<Conflict>,
    /// What cannot be promoted. [`super::apply`] refuses while there are any; skip them by a
    /// [`super::Resolution`].
    pub refused: Vec<Refusal>,
    /// What is selected but not promoted; it stays in the change set.
    pub left_out: Vec<LeftOut>,
    /// Whether what steers git by the time of the apply may be promoted.
    #[serde(skip)]
    pub(crate) git_control: GitControl,
    /// Every directory of the source on the way to a step, as it was.
    #[serde(skip)]
    pub(crate) parents: BTreeMap<RelPath, Fingerprint>,
}

/// One path of a plan.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Which.
    pub path: RelPath,
    /// What is done to the source there.
    pub action: Action,
    /// What stands there now.
    pub before: Option<Entry>,
    /// What will stand there.
    pub after: Option<Entry>,
    /// What a person should look at twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// What it had in the sandbox and will not have in the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stripped: Vec<Privilege>,
    /// The file replaced has other names in the source; they keep the old contents.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub splits_hard_link: bool,
    /// What both sides were when the plan was made.
    #[serde(skip)]
    pub(crate) frozen: Frozen,
}

/// Both sides of a step, and where its contents come from.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    /// In the sandbox.
    pub ours: Option<Fingerprint>,
    /// In the source.
    pub theirs: Option<Fingerprint>,
    /// What goes with a directory of the source that is removed or replaced.
    pub below: Vec<Below>,
    pub content: Content,
    pub afterwards: Afterwards,
}

/// Where a step's contents come from.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Workspace,
    Bytes(Vec<u8>),
}

/// What the sandbox makes of a promoted path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// It leaves the change set: the source has what the sandbox has.
    Absorb,
    /// It leaves the change set, and the sandbox takes what the source has, below it too.
    TakeSource,
    /// The same of a directory's mode, owner and extended attributes; what is in it has steps of its
    /// own, or stays.
    TakeAttributes,
    /// It stays in the change set, with the rest of the edit.
    Keep,
}

impl Step {
    /// Does it move a directory with all that is in it, into the source or out of it?
    pub(crate) fn moves_a_directory(&self) -> bool {
        let is_directory =
            |entry: Option<Entry>| entry.is_some_and(|entry| entry.kind == EntryKind::Directory);
        match self.action {
            Action::MakeDirectory | Action::DeleteDirectory => true,
            Action::Replace => is_directory(self.before) || is_directory(self.after),
            _ => false,
        }
    }
}

/// What is done to one path of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A new file, symlink or FIFO.
    Create,
    /// A new directory.
    MakeDirectory,
    /// What stands there is replaced, its kind included.
    Replace,
    /// It is replaced by a merge of both sides' edits.
    Merge,
    /// It is removed.
    Delete,
    /// The directory is removed, with what is listed below it.
    DeleteDirectory,
    /// Permissions, owner and extended attributes change, the contents do not.
    Attributes,
    /// The source already has it; it only leaves the change set.
    AlreadyThere,
    /// The source keeps its own; the sandbox's change is dropped.
    KeepSource,
}

impl Action {
    /// Does the source change by it?
    pub const fn touches_the_source(self) -> bool {
        !matches!(self, Action::AlreadyThere | Action::KeepSource)
    }
}

/// What a promote takes away from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// The set-user-id bit.
    SetUserId,
    /// The set-group-id bit of a file.
    SetGroupId,
    /// File capabilities.
    Capabilities,
}

/// A change that cannot be promoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Which.
    pub path: RelPath,
    /// Why, in words.
    pub reason: String,
}

/// A selected change that is not promoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Which.
    pub path: RelPath,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why a change is not promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// It steers git on the host, and that was not allowed.
    GitControl,
    /// A resolution says skip.
    Skipped,
    /// A socket: it means nothing without its process.
    Socket,
    /// Something in the directory is left out, so it cannot be removed.
    NotEmpty,
}
