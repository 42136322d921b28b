//! What is asked of an executor, and what it answers.

use sandbox_model::execution::{ExecutionResult, Language};
use sandbox_model::id::ExecutionId;
use serde::{Deserialize, Serialize};

use crate::artifact::ArtifactFound;
use crate::running::KILLED;

/// One execution to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its identifier.
    pub execution_id: ExecutionId,
    /// What is run.
    pub code: String,
    /// What that is written in.
    pub language: Language,
    /// What the code is given.
    pub event: serde_json::Value,
    /// How long it may take, in seconds.
    pub timeout_seconds: u32,
    /// Is what it prints told as it comes? In its outcome it is told anyway.
    #[serde(default)]
    pub stream: bool,
}

/// What happens to an execution that was begun. Its outcome is the last of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// It printed something: of each stream the next bytes, up to as many as are kept.
    Output {
        /// Where.
        stream: Stream,
        /// What.
        #[serde(with = "crate::bytes")]
        bytes: Vec<u8>,
    },
    /// It goes on. Told every few seconds.
    Heartbeat {
        /// What it last said of its progress, as JSON text.
        progress: Option<String>,
    },
    /// It is over, and this became of it.
    Outcome(Box<Outcome>),
}

/// Where a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself; its exit status tells how.
    Finished,
    /// It took longer than it may.
    TimedOut,
    /// Somebody ended it.
    Cancelled,
    /// It could not be started, or was killed by neither of us.
    Crashed,
}

/// What became of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which one.
    pub execution_id: ExecutionId,
    /// How it ended.
    pub ending: Ending,
    /// What it printed, returned and used.
    pub result: ExecutionResult,
    /// Why it did not finish, where it did not.
    pub error: Option<String>,
    /// Files that are new since it began. The result tells whether there may be more.
    #[serde(default)]
    pub artifacts: Vec<ArtifactFound>,
}

impl Outcome {
    /// What became of one of which nobody knows how it ended.
    pub fn lost(execution_id: ExecutionId, reason: String) -> Outcome {
        Outcome {
            execution_id,
            ending: Ending::Crashed,
            result: ExecutionResult {
                exit_code: KILLED,
                ..ExecutionResult::default()
            },
            error: Some(reason),
            artifacts: Vec::new(),
        }
    }
}
