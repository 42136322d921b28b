//! Which of the sandbox's changes meet a change of the source, and what the user decided.

use std::collections::BTreeMap;

use sandbox_model::{Entry, RelPath};
use serde::Serialize;

/// A path that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Which.
    pub path: RelPath,
    /// What the source did.
    pub kind: ConflictKind,
    /// What the sandbox has there; `None` for nothing.
    pub ours: Option<Entry>,
    /// What the source has there; `None` for nothing.
    pub theirs: Option<Entry>,
    /// A three-way merge is possible without overlap, so `merge` would settle it.
    pub mergeable: bool,
}

/// What happened in the source since the sandbox first saw a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    /// Its contents or metadata changed.
    Changed,
    /// It is gone.
    Deleted,
    /// It became another kind of entry.
    Type,
    /// It stands there, though it did not before: both sides created it, differently.
    BothCreated,
    /// A directory above it is another one now.
    DirectoryMoved,
    /// The sandbox removed the directory; the source put this into it.
    NewBelow,
    /// It changed while the sandbox first saw it, so what the sandbox started from is not known.
    Uncertain,
    /// A merge was asked for, but the edits overlap or are not text.
    CannotMerge,
}

impl ConflictKind {
    /// In words, as a phrase about the source.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConflictKind::Changed => "changed in the source",
            ConflictKind::Deleted => "deleted in the source",
            ConflictKind::Type => "became another kind of entry in the source",
            ConflictKind::BothCreated => "created in both, differently",
            ConflictKind::DirectoryMoved => "its directory was moved or replaced in the source",
            ConflictKind::NewBelow => "new in the source, in a directory the sandbox removed",
            ConflictKind::Uncertain => "changed in the source while the sandbox ran",
            ConflictKind::CannotMerge => "the edits overlap",
        }
    }
}

/// How one conflict is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The sandbox wins; what the source has becomes the pre-image.
    Ours,
    /// The source wins; the path leaves the sandbox's change set.
    Theirs,
    /// Both edits, if they fit together; a conflict again if they do not.
    Merge,
    /// Neither: the path stays in the sandbox's change set. Also settles a path that is no conflict.
    Skip,
}

/// What the user decided, path by path.
#[derive(Debug, Clone, Default)]
pub struct Resolutions {
    /// For a path and everything below it; the longest match counts.
    pub paths: BTreeMap<RelPath, Resolution>,
    /// For every conflict not named. Never [`Resolution::Skip`]s a path that is no conflict.
    pub others: Option<Resolution>,
}

impl Resolutions {
    /// What was decided for `path` by name.
    pub fn named(&self, path: &RelPath) -> Option<Resolution> {
        let mut at = Some(path.clone());
        while let Some(here) = at {
            if let Some(resolution) = self.paths.get(&here) {
                return Some(*resolution);
            }
            at = here.parent();
        }
        None
    }

    /// What was decided for the conflict at `path`.
    pub fn conflict(&self, path: &RelPath) -> Option<Resolution> {
        self.named(path).or(self.others)
    }
}
