//! What is asked of a promote of a session's workspace, and what became of it.

use sandbox_model::RelPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is to be applied to the directory that a workspace is a copy of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promote {
    /// Only what is at or below these; everything where there are none.
    pub paths: Vec<RelPath>,
    /// How it goes on where both sides changed; not at all where this is none.
    pub resolve: Option<Resolve>,
    /// How far to go.
    pub extent: Extent,
}

/// How a conflict is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolve {
    /// The session's side wins.
    Ours,
    /// The source's side wins.
    Theirs,
    /// Both, where they fit together.
    Merge,
    /// Neither: the path stays as it is on both sides.
    Skip,
}

/// How far a promote goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// It is only planned.
    #[default]
    Plan,
    /// It is done.
    Apply,
}

/// What became of a promote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    /// What was to be done, path by path, as `sandbox promote --json` tells it.
    pub plan: Value,
    /// It was done.
    pub applied: bool,
}
