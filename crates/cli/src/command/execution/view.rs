//! An execution, as the API tells it and people read it.

use jiff::Timestamp;
use sandbox_model::ExecutionStatus;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ages;
use crate::report::plain;

/// Where an execution is in its life.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) execution_id: String,
    session_id: String,
    pub(super) status: String,
    pub(super) language: String,
    timeout: u32,
    retry: bool,
    pub(super) retry_count: u32,
    parent_execution_id: Option<String>,
    pub(super) created_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    crashed_at: Option<Timestamp>,
    timeout_at: Option<Timestamp>,
    last_heartbeat_at: Option<Timestamp>,
    progress: Option<Box<RawValue>>,
    error: Option<String>,
}

/// What is run.
#[derive(Debug, Deserialize)]
pub(super) struct Program {
    code: String,
    event: Box<RawValue>,
}

impl Status {
    /// Has it ended, for good?
    pub(super) fn is_over(&self) -> bool {
        let status = self.status.parse::<ExecutionStatus>();
        status.is_ok_and(ExecutionStatus::is_over)
    }

    /// When it ended, however it did.
    pub(super) fn ended_at(&self) -> Option<Timestamp> {
        self.completed_at.or(self.timeout_at).or(self.crashed_at)
    }

    /// Labels with their lines.
    pub(super) fn fields(&self) -> Vec<(&'static str, Vec<String>)> {
        let now = Timestamp::now();
        let past = |at: Timestamp| format!("{} ({})", ages::local(at), ages::ago(at, now));
        let moment = |at: Option<Timestamp>| at.map(past).into_iter().collect();
        let some = |text: &Option<String>| text.iter().map(|text| plain(text)).collect();
        let retry = match self.retry {
            true => "yes",
            false => "no",
        };
        vec![
            ("Execution", vec![plain(&self.execution_id)]),
            ("Session", vec![plain(&self.session_id)]),
            ("Status", vec![plain(&self.status)]),
            ("Error", some(&self.error)),
            ("Language", vec![plain(&self.language)]),
            ("Timeout", vec![format!("{} s", self.timeout)]),
            ("Retry", vec![retry.to_owned()]),
            ("Attempt", vec![self.retry_count.to_string()]),
            ("After", some(&self.parent_execution_id)),
            ("Created", vec![past(self.created_at)]),
            ("Started", moment(self.started_at)),
            ("Heartbeat", moment(self.last_heartbeat_at)),
            (
                "Progress",
                self.progress
                    .iter()
                    .map(|progress| plain(progress.get()))
                    .collect(),
            ),
            ("Ended", moment(self.ended_at())),
        ]
    }
}

impl Program {
    /// Labels with their lines.
    pub(super) fn fields(&self) -> Vec<(&'static str, Vec<String>)> {
        vec![
            ("Event", vec![plain(self.event.get())]),
            ("Code", self.code.lines().map(plain).collect()),
        ]
    }
}
