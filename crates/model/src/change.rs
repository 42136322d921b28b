//! Change sets: what differs between a workspace and its source.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::path::RelPath;

/// Every change of a workspace, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeSet {
    /// The changes, sorted by [`Change::path`].
    pub changes: Vec<Change>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where it is now (for a deletion, where it was).
    pub path: RelPath,
    /// What happened.
    #[serde(flatten)]
    pub kind: ChangeKind,
    /// What stood there before; for a rename, at the old path.
    pub before: Option<Entry>,
    /// What stands there now.
    pub after: Option<Entry>,
    /// Extended attributes differ too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub xattrs_changed: bool,
    /// What a person should look at twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
}

impl Change {
    /// What makes `after` of `before`, which stood at the same path. A file or link counts as modified.
    pub fn between(path: RelPath, before: Option<Entry>, after: Option<Entry>) -> Change {
        let kind = match (&before, &after) {
            (None, _) => ChangeKind::Created,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(before), Some(after)) if before.kind != after.kind => ChangeKind::Type,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        Change {
            path,
            kind,
            before,
            after,
            xattrs_changed: false,
            flags: Vec::new(),
        }
    }
}

/// What happened to a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its contents changed (its mode may have, too).
    Modified,
    /// It is gone.
    Deleted,
    /// It moved, and may have been edited on the way.
    Renamed {
        /// The old path.
        from: RelPath,
        /// How much of the contents is the same, in percent.
        similarity: u8,
    },
    /// Only its permissions, owner or extended attributes changed.
    Mode,
    /// A symlink points elsewhere.
    Symlink,
    /// It became another kind of entry.
    Type,
}

impl ChangeKind {
    /// The letter of `--files`, as git's `--name-status` has it.
    pub const fn letter(&self) -> char {
        match self {
            ChangeKind::Created => 'A',
            ChangeKind::Modified | ChangeKind::Symlink => 'M',
            ChangeKind::Deleted => 'D',
            ChangeKind::Renamed { .. } => 'R',
            ChangeKind::Mode => 'P',
            ChangeKind::Type => 'T',
        }
    }
}

/// Why a change deserves a second look before it is promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// It steers git on the host: `.git/config`, hooks, the state of a rebase, a repository that is new,
    /// deleted or broken. Never applied by `--yes` alone.
    GitControl,
    /// Something on the host runs or obeys it, unasked or by a daily command: `.envrc`, editor tasks,
    /// instructions of agents, build and test scripts, CI files.
    RunsOnHost,
    /// A new executable, or a file that became one.
    Executable,
    /// Its set-user-id, set-group-id bit or file capability will be stripped.
    Privilege,
    /// It cannot be promoted: a device, a socket, an owner or ACL that is not ours to give.
    Unpromotable,
    /// A symlink that points out of the workspace.
    OutwardSymlink,
}

impl ChangeSet {
    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Only the changes at or below one of `paths`; all of them when `paths` is empty. A rename is
    /// kept when either end is selected.
    pub fn select(mut self, paths: &[RelPath]) -> Self {
        if !paths.is_empty() {
            self.changes.retain(|change| {
                paths.iter().any(|wanted| {
                    change.path.starts_with(wanted)
                        || matches!(&change.kind, ChangeKind::Renamed { from, .. } if from.starts_with(wanted))
                })
            });
        }
        self
    }
}
