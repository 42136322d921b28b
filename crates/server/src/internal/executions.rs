//! What an executor says of the code it runs.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sandbox_control::{News, random};
use sandbox_executor::{Ending, Outcome};
use sandbox_model::execution::{Artifact, ArtifactKind, Metrics};
use sandbox_model::{ArtifactId, ExecutionId, ExecutionResult};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Heard, heard, refused, unauthorized};
use crate::body::Body;
use crate::error::ApiError;
use crate::query::Id;
use crate::state::App;

/// How much of what was printed is taken, as the executor keeps it.
const MOST_PRINTED: usize = 1 << 20;

/// The most files of one report.
const MOST_ARTIFACTS: usize = 1000;

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
    progress: Option<Value>,
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
    exit_code: i32,
    execution_time: f64,
    return_value: Option<Box<RawValue>>,
    #[serde(default)]
    metrics: Metrics,
    error: Option<String>,
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
    Id(id): Id<ExecutionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<StatusReport>,
) -> Result<Response, ApiError> {
    authorize(&app, &id, &headers).await?;
    let ending = match value.status {
        Status::Running => {
            let news = app.control.execution_started(&id).await;
            return news.map(heard).map_err(refused);
        }
        Status::Timeout => Ending::TimedOut,
        Status::Crashed => Ending::Crashed,
    };
    let outcome = Outcome {
        execution_id: id,
        ending,
        result: ExecutionResult {
            exit_code: -1,
            ..ExecutionResult::default()
        },
        error: value.error,
        artifacts: Vec::new(),
        artifacts_truncated: false,
    };
    let news = app.control.execution_result(&outcome).await;
    news.map(heard).map_err(refused)
}

pub(crate) async fn heartbeat(
    State(app): State<App>,
    Id(id): Id<ExecutionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<Heartbeat>,
) -> Result<Response, ApiError> {
    authorize(&app, &id, &headers).await?;
    let beat = app
        .control
        .execution_heartbeat(&id, value.progress.as_ref());
    beat.await.map_err(refused)?;
    Ok(heard(News::Again))
}

pub(crate) async fn artifacts(
    State(app): State<App>,
    Id(id): Id<ExecutionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<Artifacts>,
) -> Result<Response, ApiError> {
    authorize(&app, &id, &headers).await?;
    if value.artifacts.len() > MOST_ARTIFACTS {
        let detail = format!("artifacts: has more than {MOST_ARTIFACTS} entries");
        return Err(ApiError::invalid(detail, "report the first ones"));
    }
    let found: Result<Vec<_>, ApiError> = value
        .artifacts
        .into_iter()
        .map(|found| found.read(&id))
        .collect();
    let kept = app.control.execution_artifacts(&id, &found?).await;
    kept.map_err(refused)?;
    let message = "they were kept";
    Ok((StatusCode::CREATED, axum::Json(Heard { message })).into_response())
}

pub(crate) async fn result(
    State(app): State<App>,
    Id(id): Id<ExecutionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<ResultReport>,
) -> Result<Response, ApiError> {
    authorize(&app, &id, &headers).await?;
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

/// Only the executor of its own session may speak of an execution.
async fn authorize(app: &App, id: &ExecutionId, headers: &HeaderMap) -> Result<(), ApiError> {
    let execution = app.control.execution(id).await.map_err(refused)?;
    match app.tokens.fit(headers, &execution.session_id) {
        true => Ok(()),
        false => Err(unauthorized()),
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
        if self.stdout.len() > MOST_PRINTED || self.stderr.len() > MOST_PRINTED {
            let detail = format!("stdout or stderr: is larger than {MOST_PRINTED} bytes");
            return Err(ApiError::invalid(
                detail,
                "send the first of it, and say that there is more",
            ));
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
            },
            error: self.error,
            artifacts: Vec::new(),
            artifacts_truncated: false,
        })
    }
}
