//! What an executor says of the code it runs.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use sandbox_control::{News, random};
use sandbox_executor::{Ending, Outcome};
use sandbox_model::execution::{Artifact, ArtifactKind, FailureCause, Metrics};
use sandbox_model::report::{
    MOST_ERROR_BYTES, MOST_PRINTED_BYTES, MOST_PROGRESS_BYTES, MOST_RESULT_BYTES,
    MOST_RETURNED_BYTES,
};
use sandbox_model::{ArtifactId, ExecutionId, ExecutionResult};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::speaker::Speaker;
use super::{heard, refused};
use crate::body::Body;
use crate::error::ApiError;
use crate::state::App;

/// Where an execution is in its life.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusReport {
    status: Status,
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Running,
    Timeout,
    Crashed,
}

/// An execution goes on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heartbeat {
    progress: Option<Box<RawValue>>,
}

/// Files that an execution made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Artifacts {
    artifacts: Vec<Reported>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    path: String,
    size: u64,
    #[serde(alias = "content_type")]
    mime_type: String,
    sha256: String,
    #[serde(default = "an_artifact")]
    artifact_type: String,
}

fn an_artifact() -> String {
    "artifact".to_owned()
}

/// What became of an execution.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultReport {
    status: ResultStatus,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    stdout_truncated: bool,
    #[serde(default)]
    stderr_truncated: bool,
    /// There are more files than are told of.
    #[serde(default)]
    artifacts_truncated: bool,
    exit_code: i32,
    execution_time: f64,
    return_value: Option<Box<RawValue>>,
    #[serde(default)]
    metrics: Metrics,
    error: Option<String>,
    /// What it failed for that its session has too little of.
    cause: Option<FailureCause>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultStatus {
    Success,
    Failed,
    Timeout,
    Crashed,
    Cancelled,
}

pub(crate) async fn status(
    State(app): State<App>,
    Speaker(id): Speaker<ExecutionId>,
    Body { value, .. }: Body<StatusReport>,
) -> Result<Response, ApiError> {
    check_length("error", value.error.as_deref(), MOST_ERROR_BYTES)?;
    let ending = match value.status {
        Status::Running => {
            let news = app.control.execution_started(&id).await;
            return news.map(heard).map_err(refused);
        }
        Status::Timeout => Ending::TimedOut,
        Status::Crashed => Ending::Crashed,
    };
    let news = app.control.execution_ended(&id, ending, value.error).await;
    news.map(heard).map_err(refused)
}

pub(crate) async fn heartbeat(
    State(app): State<App>,
    Speaker(id): Speaker<ExecutionId>,
    Body { value, .. }: Body<Heartbeat>,
) -> Result<Response, ApiError> {
    let progress = value.progress.as_deref().map(RawValue::get);
    check_length("progress", progress, MOST_PROGRESS_BYTES)?;
    let beat = app.control.execution_heartbeat(&id, progress);
    beat.await.map_err(refused)?;
    Ok(heard(News::Again))
}

pub(crate) async fn artifacts(
    State(app): State<App>,
    Speaker(id): Speaker<ExecutionId>,
    Body { value, .. }: Body<Artifacts>,
) -> Result<Response, ApiError> {
    let found: Result<Vec<_>, ApiError> = value
        .artifacts
        .into_iter()
        .map(|found| found.read(&id))
        .collect();
    let news = app.control.execution_artifacts(&id, &found?).await;
    news.map(heard).map_err(refused)
}

pub(crate) async fn result(
    State(app): State<App>,
    Speaker(id): Speaker<ExecutionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<ResultReport, MOST_RESULT_BYTES>,
) -> Result<Response, ApiError> {
    let key = headers
        .get("idempotency-key")
        .and_then(|value| value.to_str().ok());
    if key != Some(&format!("{id}_result")) {
        let detail = format!("Idempotency-Key: is not {id}_result");
        return Err(ApiError::invalid(
            detail,
            "send it, so that a report may come twice",
        ));
    }
    let outcome = value.read(id)?;
    let news = app.control.execution_result(&outcome).await;
    news.map(heard).map_err(refused)
}

/// What is longer than it may be is not cut: what is left of JSON would be none.
fn check_length(field: &str, text: Option<&str>, most: usize) -> Result<(), ApiError> {
    match text {
        Some(text) if text.len() > most => Err(ApiError::invalid(
            format!("{field}: is larger than {most} bytes"),
            "send less",
        )),
        _ => Ok(()),
    }
}

impl Reported {
    fn read(self, execution: &ExecutionId) -> Result<Artifact, ApiError> {
        let is_digest =
            self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            return Err(ApiError::invalid(
                "sha256: is not 64 hexadecimal digits",
                "send the SHA-256",
            ));
        }
        let kind: ArtifactKind = self.artifact_type.parse().map_err(|error| {
            ApiError::invalid(format!("artifact_type: {error}"), "use one of them")
        })?;
        Ok(Artifact {
            id: ArtifactId::random(random::numbers()),
            execution_id: execution.clone(),
            kind,
            name: self.path.rsplit('/').next().unwrap_or_default().to_owned(),
            path: self.path,
            size_bytes: self.size,
            mime_type: self.mime_type,
            sha256: self.sha256,
            created_at: jiff::Timestamp::now(),
        })
    }
}

impl ResultReport {
    fn read(self, execution_id: ExecutionId) -> Result<Outcome, ApiError> {
        if self.stdout.len().max(self.stderr.len()) > MOST_PRINTED_BYTES {
            let detail = format!("stdout or stderr: is larger than {MOST_PRINTED_BYTES} bytes");
            return Err(ApiError::invalid(
                detail,
                "send the first of it, and say that there is more",
            ));
        }
        let returned = self.return_value.as_deref().map(RawValue::get);
        check_length("return_value", returned, MOST_RETURNED_BYTES)?;
        check_length("error", self.error.as_deref(), MOST_ERROR_BYTES)?;
        for (field, number) in [
            ("execution_time", self.execution_time),
            ("metrics.duration_ms", self.metrics.duration_ms),
            ("metrics.cpu_time_ms", self.metrics.cpu_time_ms),
            ("metrics.peak_memory_mb", self.metrics.peak_memory_mb),
        ] {
            if number < 0.0 {
                let detail = format!("{field}: is less than nothing");
                return Err(ApiError::invalid(detail, "send what was measured"));
            }
        }
        if matches!(self.status, ResultStatus::Success) != (self.exit_code == 0) {
            let detail = "status: does not fit exit_code";
            return Err(ApiError::invalid(
                detail,
                "success is an exit status of 0, and nothing else is",
            ));
        }
        Ok(Outcome {
            execution_id,
            ending: match self.status {
                ResultStatus::Success | ResultStatus::Failed => Ending::Finished,
                ResultStatus::Timeout => Ending::TimedOut,
                ResultStatus::Crashed => Ending::Crashed,
                ResultStatus::Cancelled => Ending::Cancelled,
            },
            result: ExecutionResult {
                stdout: self.stdout,
                stderr: self.stderr,
                stdout_truncated: self.stdout_truncated,
                stderr_truncated: self.stderr_truncated,
                exit_code: self.exit_code,
                execution_time: self.execution_time,
                return_value: self.return_value.map(|value| value.get().to_owned()),
                metrics: self.metrics,
                artifacts_truncated: self.artifacts_truncated,
                cause: self.cause,
            },
            error: self.error,
            artifacts: Vec::new(),
        })
    }
}
