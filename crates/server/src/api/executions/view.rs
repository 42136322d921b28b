//! An execution, its status and its result, as they are shown.

use jiff::Timestamp;
use sandbox_control::Finished;
use sandbox_model::execution::{Artifact, FailureCause};
use sandbox_model::{Execution, ExecutionStatus};
use sandbox_store::records::ExecutionSummary;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::LanguageView;
use crate::api::words::{ArtifactTypeView, ExecutionStatusView, ResultCodeView, ResultStatusView};

/// Where an execution is in its life.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionSummary)]
pub(crate) struct StatusView {
    /// Its identifier.
    #[schema(
        pattern = "^exec_[0-9]{8}_[a-z0-9]{8}$",
        example = "exec_20261116_8f3kq2zd"
    )]
    execution_id: String,
    /// Where it runs.
    session_id: String,
    /// Where it is in its life.
    #[schema(value_type = ExecutionStatusView)]
    status: String,
    /// What its code is written in.
    language: LanguageView,
    /// How long it may take, in seconds.
    timeout: u32,
    /// Whether it is run again when it crashes.
    retry: bool,
    /// Which attempt this is; 0 is the first.
    retry_count: u32,
    /// The attempt before it.
    #[schema(required)]
    parent_execution_id: Option<String>,
    /// When it was submitted.
    #[schema(format = DateTime)]
    created_at: String,
    /// When its process started.
    #[schema(format = DateTime, required)]
    started_at: Option<String>,
    /// When it ended by itself, or was cancelled.
    #[schema(format = DateTime, required)]
    completed_at: Option<String>,
    /// When it was found lost.
    #[schema(format = DateTime, required)]
    crashed_at: Option<String>,
    /// When it was killed for taking too long.
    #[schema(format = DateTime, required)]
    timeout_at: Option<String>,
    /// When its executor was last heard of.
    #[schema(format = DateTime, required)]
    last_heartbeat_at: Option<String>,
    /// What it last said of its progress, as any JSON.
    #[schema(value_type = Value, required)]
    progress: Option<Box<RawValue>>,
    /// Why it did not complete.
    #[schema(required)]
    error: Option<String>,
}

/// An execution, with what is run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Execution)]
pub(crate) struct ExecutionView {
    #[serde(flatten)]
    status: StatusView,
    /// The code.
    code: String,
    /// What it was given, as any JSON.
    #[schema(value_type = Value)]
    event: Box<RawValue>,
    /// What became of it, as `/result` gives it; null until it is over.
    #[schema(required)]
    result: Option<ResultView>,
}

/// What became of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionResult)]
pub(crate) struct ResultView {
    /// Its identifier.
    #[schema(
        pattern = "^exec_[0-9]{8}_[a-z0-9]{8}$",
        example = "exec_20261116_8f3kq2zd"
    )]
    execution_id: String,
    /// Where it ran.
    session_id: String,
    /// How it ended.
    #[schema(value_type = ResultStatusView)]
    status: String,
    /// What it printed: the first megabyte.
    stdout: String,
    /// What it printed as errors: the first megabyte.
    stderr: String,
    /// There was more on standard output.
    stdout_truncated: bool,
    /// There was more on standard error.
    stderr_truncated: bool,
    /// Its exit status; −1 when it was killed.
    exit_code: i32,
    /// How long it took, in seconds.
    execution_time: f64,
    /// What its handler returned, as any JSON: 1 MiB at most; null where there is no handler.
    #[schema(value_type = Value, required)]
    return_value: Option<Box<RawValue>>,
    /// What it used.
    metrics: MetricsView,
    /// The files it made: 1000 of them, and 1 GiB in all, at most.
    artifacts: Vec<ArtifactView>,
    /// There may be more files. They are in the workspace all the same.
    artifacts_truncated: bool,
    /// Why it did not complete.
    #[schema(required)]
    error: Option<String>,
    /// The same for programs, where the code itself is why, or what its session has too little of; null otherwise.
    #[schema(value_type = Option<ResultCodeView>, required)]
    error_code: Option<&'static str>,
    /// When its process started.
    #[schema(format = DateTime, required)]
    started_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime, required)]
    completed_at: Option<String>,
}

/// What an execution used, measured on its processes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Metrics)]
pub(crate) struct MetricsView {
    /// From start to end.
    duration_ms: f64,
    /// Of processors.
    cpu_time_ms: f64,
    /// The most memory that one of its processes had at once.
    peak_memory_mb: f64,
    /// From disks.
    io_read_bytes: u64,
    /// To disks.
    io_write_bytes: u64,
}

/// A file that an execution made: new in the workspace, and no part of its path starting with a dot or being
/// `__pycache__`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Artifact)]
pub(crate) struct ArtifactView {
    /// Its identifier.
    #[schema(pattern = "^art_[a-z0-9]{16}$", example = "art_2b9xk41m7tq0zc5f")]
    artifact_id: String,
    /// What it is.
    #[schema(value_type = ArtifactTypeView)]
    artifact_type: String,
    /// Its last name.
    #[schema(example = "sales.svg")]
    name: String,
    /// Where it is in the workspace.
    #[schema(example = "plots/sales.svg")]
    path: String,
    /// How long it is, in bytes.
    size: u64,
    /// What it holds, by its name.
    #[schema(example = "image/svg+xml")]
    mime_type: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
    /// When it was reported.
    #[schema(format = DateTime)]
    created_at: String,
}

impl ExecutionView {
    pub(super) fn of(execution: Execution, result: Option<ResultView>) -> ExecutionView {
        ExecutionView {
            result,
            code: execution.code.clone(),
            event: raw(&execution.event).unwrap_or_default(),
            status: StatusView::of(summary(execution)),
        }
    }
}

impl StatusView {
    pub(super) fn of(execution: ExecutionSummary) -> StatusView {
        StatusView {
            execution_id: execution.id.to_string(),
            session_id: execution.session_id.to_string(),
            status: execution.status.to_string(),
            language: execution.language.into(),
            timeout: execution.timeout_seconds,
            retry: execution.retry,
            retry_count: execution.retry_count,
            parent_execution_id: execution.parent_execution_id.map(|id| id.to_string()),
            created_at: execution.created_at.to_string(),
            started_at: written(execution.started_at),
            completed_at: written(execution.completed_at),
            crashed_at: written(execution.crashed_at),
            timeout_at: written(execution.timeout_at),
            last_heartbeat_at: written(execution.last_heartbeat_at),
            progress: execution.progress.as_deref().and_then(raw),
            error: execution.error,
        }
    }
}

impl ResultView {
    pub(super) fn of(finished: &Finished) -> ResultView {
        let Finished {
            execution,
            result,
            artifacts,
        } = finished;
        let metrics = &result.metrics;
        ResultView {
            execution_id: execution.id.to_string(),
            session_id: execution.session_id.to_string(),
            status: match execution.status {
                ExecutionStatus::Completed => "success".to_owned(),
                status => status.to_string(),
            },
            stdout: result.stdout.clone(),
            stderr: result.stderr.clone(),
            stdout_truncated: result.stdout_truncated,
            stderr_truncated: result.stderr_truncated,
            exit_code: result.exit_code,
            execution_time: result.execution_time,
            return_value: result.return_value.as_deref().and_then(raw),
            metrics: MetricsView {
                duration_ms: metrics.duration_ms,
                cpu_time_ms: metrics.cpu_time_ms,
                peak_memory_mb: metrics.peak_memory_mb,
                io_read_bytes: metrics.io_read_bytes,
                io_write_bytes: metrics.io_write_bytes,
            },
            artifacts: artifacts.iter().map(ArtifactView::of).collect(),
            artifacts_truncated: result.artifacts_truncated,
            error: execution.error.clone(),
            error_code: match (execution.status, result.cause) {
                (ExecutionStatus::Timeout, _) => Some("Sandbox.ExecTimeout"),
                (ExecutionStatus::Failed, Some(FailureCause::DiskFull)) => Some("Sandbox.DiskFull"),
                (ExecutionStatus::Failed, Some(FailureCause::ProcessLimit)) => {
                    Some("Sandbox.ProcessLimit")
                }
                (ExecutionStatus::Failed, None) => Some("Sandbox.ExecException"),
                _ => None,
            },
            started_at: written(execution.started_at),
            completed_at: written(
                execution
                    .completed_at
                    .or(execution.timeout_at)
                    .or(execution.crashed_at),
            ),
        }
    }
}

impl ArtifactView {
    fn of(artifact: &Artifact) -> ArtifactView {
        ArtifactView {
            artifact_id: artifact.id.to_string(),
            artifact_type: artifact.kind.as_str().to_owned(),
            name: artifact.name.clone(),
            path: artifact.path.clone(),
            size: artifact.size_bytes,
            mime_type: artifact.mime_type.clone(),
            sha256: artifact.sha256.clone(),
            created_at: artifact.created_at.to_string(),
        }
    }
}

/// JSON text as it is.
fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

fn written(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

pub(super) fn summary(execution: Execution) -> ExecutionSummary {
    ExecutionSummary {
        id: execution.id,
        session_id: execution.session_id,
        status: execution.status,
        language: execution.language,
        timeout_seconds: execution.timeout_seconds,
        retry: execution.retry,
        retry_count: execution.retry_count,
        parent_execution_id: execution.parent_execution_id,
        created_at: execution.created_at,
        started_at: execution.started_at,
        completed_at: execution.completed_at,
        crashed_at: execution.crashed_at,
        timeout_at: execution.timeout_at,
        last_heartbeat_at: execution.last_heartbeat_at,
        progress: execution.progress,
        error: execution.error,
    }
}
