//! An execution's life.
//!
//! ```text
//!             Started             Finished(0)
//!   pending ───────────▶ running ─────────────▶ completed
//!      │                    │
//!      │  (also from here)  ├── Finished(n) ──▶ failed
//!      └────────────────────┼── TimedOut ─────▶ timeout
//!                           ├── Crashed ──────▶ crashed
//!                           └── Cancelled ────▶ cancelled
//! ```
//!
//! A report may overtake the one before it, so an execution that nobody has seen running may end all
//! the same. One that has ended stays as it is.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{ArtifactId, ExecutionId, SessionId};
use crate::session::StatusError;

/// Where an execution is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Accepted, and handed to the executor.
    Pending,
    /// Its process runs.
    Running,
    /// It ended well.
    Completed,
    /// It ended with an error of its own.
    Failed,
    /// It took longer than it may, and was killed.
    Timeout,
    /// It was lost: its executor, session or server ended beneath it.
    Crashed,
    /// Somebody ended it.
    Cancelled,
}

/// What can happen to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExecutionEvent {
    /// Its process runs.
    Started,
    /// Its process ended with this status.
    Finished(i32),
    /// It took longer than it may.
    TimedOut,
    /// It was lost.
    Crashed,
    /// Somebody ended it.
    Cancelled,
}

/// An event that cannot happen to an execution in this status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("an execution that is {status} cannot {event}")]
pub struct ExecutionRefusal {
    /// Where the execution is.
    pub status: ExecutionStatus,
    /// What was to happen.
    pub event: ExecutionEvent,
}

impl ExecutionStatus {
    /// Every status.
    pub const ALL: [ExecutionStatus; 7] = [
        ExecutionStatus::Pending,
        ExecutionStatus::Running,
        ExecutionStatus::Completed,
        ExecutionStatus::Failed,
        ExecutionStatus::Timeout,
        ExecutionStatus::Crashed,
        ExecutionStatus::Cancelled,
    ];

    /// The status after `event`.
    pub fn after(self, event: ExecutionEvent) -> Result<ExecutionStatus, ExecutionRefusal> {
        use ExecutionEvent as Event;
        use ExecutionStatus as Status;
        match (self, event) {
            (Status::Pending, Event::Started) => Ok(Status::Running),
            (Status::Pending | Status::Running, Event::Finished(0)) => Ok(Status::Completed),
            (Status::Pending | Status::Running, Event::Finished(_)) => Ok(Status::Failed),
            (Status::Pending | Status::Running, Event::TimedOut) => Ok(Status::Timeout),
            (Status::Pending | Status::Running, Event::Crashed) => Ok(Status::Crashed),
            (Status::Pending | Status::Running, Event::Cancelled) => Ok(Status::Cancelled),
            (status, event) => Err(ExecutionRefusal { status, event }),
        }
    }

    /// Has it ended, for good?
    pub fn is_over(self) -> bool {
        !matches!(self, ExecutionStatus::Pending | ExecutionStatus::Running)
    }

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Pending => "pending",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Timeout => "timeout",
            ExecutionStatus::Crashed => "crashed",
            ExecutionStatus::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for ExecutionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExecutionEvent::Started => "start",
            ExecutionEvent::Finished(_) => "finish",
            ExecutionEvent::TimedOut => "time out",
            ExecutionEvent::Crashed => "crash",
            ExecutionEvent::Cancelled => "be cancelled",
        })
    }
}

impl FromStr for ExecutionStatus {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = ExecutionStatus::ALL;
        known
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(ExecutionStatus::as_str).join(", "),
            })
    }
}

/// What the code is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// `handler(event)`, or a script.
    Python,
    /// The same.
    Javascript,
    /// `bash -c`.
    Shell,
}

impl Language {
    /// Every one.
    pub const ALL: [Language; 3] = [Language::Python, Language::Javascript, Language::Shell];

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Javascript => "javascript",
            Language::Shell => "shell",
        }
    }
}

impl FromStr for Language {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = Language::ALL;
        known
            .into_iter()
            .find(|language| language.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(Language::as_str).join(", "),
            })
    }
}

/// What code failed for that its session has too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// Disk space: the session's limit of it, or all that there is.
    DiskFull,
    /// Processes: as many ran as the session may have.
    ProcessLimit,
}

impl FailureCause {
    /// Every one.
    pub const ALL: [FailureCause; 2] = [FailureCause::DiskFull, FailureCause::ProcessLimit];

    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCause::DiskFull => "disk_full",
            FailureCause::ProcessLimit => "process_limit",
        }
    }
}

impl FromStr for FailureCause {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = FailureCause::ALL;
        known
            .into_iter()
            .find(|cause| cause.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(FailureCause::as_str).join(", "),
            })
    }
}

/// An execution, as it is kept. What it printed and returned is apart: an [`ExecutionResult`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Its identifier.
    pub id: ExecutionId,
    /// Where it runs.
    pub session_id: SessionId,
    /// Where it is in its life.
    pub status: ExecutionStatus,
    /// What is run.
    pub code: String,
    /// What that is written in.
    pub language: Language,
    /// What the code is given, as JSON text.
    pub event: String,
    /// How long it may take, in seconds.
    pub timeout_seconds: u32,
    /// Whether it is run again when it crashes.
    pub retry: bool,
    /// Which attempt this is; 0 is the first.
    pub retry_count: u32,
    /// The attempt before it.
    pub parent_execution_id: Option<ExecutionId>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// When its process started.
    pub started_at: Option<Timestamp>,
    /// When it ended by itself.
    pub completed_at: Option<Timestamp>,
    /// When it was found lost.
    pub crashed_at: Option<Timestamp>,
    /// When it was killed for taking too long.
    pub timeout_at: Option<Timestamp>,
    /// When its executor was last heard of.
    pub last_heartbeat_at: Option<Timestamp>,
    /// What the executor last said of its progress, as JSON text.
    pub progress: Option<String>,
    /// Why it did not complete.
    pub error: Option<String>,
}

/// What an execution printed, returned and used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutionResult {
    /// What it printed: the first megabyte.
    pub stdout: String,
    /// What it printed as errors: the first megabyte.
    pub stderr: String,
    /// There was more on standard output.
    #[serde(default)]
    pub stdout_truncated: bool,
    /// There was more on standard error.
    #[serde(default)]
    pub stderr_truncated: bool,
    /// Its exit status; −1 when it was killed for taking too long.
    pub exit_code: i32,
    /// How long it took, in seconds.
    pub execution_time: f64,
    /// What its handler returned, as JSON text.
    pub return_value: Option<String>,
    /// What it used.
    pub metrics: Metrics,
    /// It may have made more files than its artifacts.
    #[serde(default)]
    pub artifacts_truncated: bool,
    /// What it failed for that its session has too little of, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
}

/// What an execution used, measured on its processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// From start to end.
    pub duration_ms: f64,
    /// Of processors.
    pub cpu_time_ms: f64,
    /// The most memory that one of its processes had at once.
    pub peak_memory_mb: f64,
    /// From disks.
    pub io_read_bytes: u64,
    /// To disks.
    pub io_write_bytes: u64,
}

/// A file that an execution made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its identifier.
    pub id: ArtifactId,
    /// What made it.
    pub execution_id: ExecutionId,
    /// What it is.
    pub kind: ArtifactKind,
    /// Its last name.
    pub name: String,
    /// Where it is in the workspace.
    pub path: String,
    /// How long it is.
    pub size_bytes: u64,
    /// What it holds.
    pub mime_type: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// When it was reported.
    pub created_at: Timestamp,
}

/// What an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// A file.
    Artifact,
    /// A log.
    Log,
    /// What was printed.
    Output,
}

impl ArtifactKind {
    /// Every one.
    pub const ALL: [ArtifactKind; 3] = [
        ArtifactKind::Artifact,
        ArtifactKind::Log,
        ArtifactKind::Output,
    ];

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Artifact => "artifact",
            ArtifactKind::Log => "log",
            ArtifactKind::Output => "output",
        }
    }
}

impl FromStr for ArtifactKind {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = ArtifactKind::ALL;
        known
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(ArtifactKind::as_str).join(", "),
            })
    }
}

/// How long to wait before the attempt after number `attempt`, in seconds: 1, 2, 4. `None` when there
/// is none.
pub fn retry_after_seconds(attempt: u32) -> Option<u32> {
    const MOST: u32 = 3;
    (attempt < MOST).then(|| 2u32.pow(attempt).min(10))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = ExecutionEvent> {
        use ExecutionEvent as Event;
        prop_oneof![
            Just(Event::Started),
            any::<i32>().prop_map(Event::Finished),
            Just(Event::Finished(0)),
            Just(Event::TimedOut),
            Just(Event::Crashed),
            Just(Event::Cancelled),
        ]
    }

    proptest! {
        #[test]
        fn a_walk_starts_at_most_once_and_ends_at_most_once(
            events in prop::collection::vec(any_event(), 0..40),
        ) {
            let mut status = ExecutionStatus::Pending;
            let (mut starts, mut ends) = (0, 0);
            for event in events {
                let was_over = status.is_over();
                match status.after(event) {
                    Ok(next) => {
                        prop_assert!(!was_over);
                        starts += i32::from(next == ExecutionStatus::Running);
                        ends += i32::from(next.is_over());
                        status = next;
                    }
                    Err(refusal) => {
                        prop_assert_eq!(refusal, ExecutionRefusal { status, event });
                        prop_assert!(was_over || event == ExecutionEvent::Started);
                    }
                }
            }
            prop_assert!(starts <= 1 && ends <= 1);
        }
    }

    #[test]
    fn an_exit_status_decides() {
        let running = ExecutionStatus::Running;
        let completed = running.after(ExecutionEvent::Finished(0));
        assert_eq!(completed, Ok(ExecutionStatus::Completed));
        let failed = running.after(ExecutionEvent::Finished(3));
        assert_eq!(failed, Ok(ExecutionStatus::Failed));
    }

    #[test]
    fn a_result_may_overtake_the_report_of_the_start() {
        let pending = ExecutionStatus::Pending;
        let completed = pending.after(ExecutionEvent::Finished(0)).unwrap();
        assert!(completed.after(ExecutionEvent::Started).is_err());
    }

    #[test]
    fn retries_wait_longer_each_time_and_then_stop() {
        let waits: Vec<_> = (0..5).map(retry_after_seconds).collect();
        assert_eq!(waits, [Some(1), Some(2), Some(4), None, None]);
    }

    #[test]
    fn texts_read_as_they_are_written() {
        for status in ExecutionStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        for language in Language::ALL {
            assert_eq!(language.as_str().parse(), Ok(language));
        }
        assert!("ruby".parse::<Language>().is_err());
        for cause in FailureCause::ALL {
            assert_eq!(cause.as_str().parse(), Ok(cause));
        }
    }
}
