//! The record every operation leaves.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::SandboxName;

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// When it began.
    pub at: Timestamp,
    /// What was done.
    pub operation: Operation,
    /// On which sandbox.
    pub sandbox: SandboxName,
    /// The source's path, escaped.
    pub source: String,
    /// Who did it.
    pub user: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The rest: the command run, the label, the number of paths.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// The operations that leave a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the command of the same name")]
pub enum Operation {
    Create,
    Run,
    Enter,
    Try,
    Promote,
    Undo,
    Redo,
    Discard,
    Restore,
    Sync,
    Fork,
    Snapshot,
    Rollback,
    Pause,
    Resume,
    Recover,
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Outcome {
    /// As asked.
    Done,
    /// A command ran and ended with this status.
    Exited {
        /// The exit status, or 128 plus the signal.
        status: i32,
    },
    /// Declined at the prompt.
    Declined,
    /// It failed, with nothing changed.
    Failed {
        /// The error, in one line.
        error: String,
    },
}
