//! Executions.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use base64::prelude::{BASE64_STANDARD, Engine};
use futures_util::{Stream, stream};
use jiff::Timestamp;
use sandbox_control::{Finished, NewExecution, Output, Submitted};
use sandbox_executor::Stream as Stdio;
use sandbox_model::execution::Artifact;
use sandbox_model::{Execution, ExecutionId, ExecutionStatus, Language, SessionId};
use sandbox_store::records::{ExecutionFilter, ExecutionSummary};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use crate::authentication::{Operator, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::idempotency;
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// Code to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteRequest {
    /// The code: 100 KB at most.
    #[schema(example = "def handler(event):\n    return event['a'] + event['b']\n")]
    code: String,
    /// What it is written in.
    language: LanguageView,
    /// How long it may take, in seconds.
    #[schema(minimum = 1, maximum = 3600, default = 30)]
    timeout: Option<u32>,
    /// What it is given, as any JSON: 1 MB at most.
    #[serde(default = "nothing", alias = "event_data")]
    #[schema(value_type = Object)]
    event: Value,
    /// Whether it is run again when it crashes, three times at most.
    #[serde(default)]
    retry: bool,
}

/// What code is written in.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Language)]
pub(crate) enum LanguageView {
    Python,
    Javascript,
    Shell,
}

/// Whether to wait.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecuteQuery {
    /// Answer when it is over, with the result.
    #[serde(default)]
    wait: bool,
}

/// An execution that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecuteResponse {
    #[schema(pattern = "^exec_[0-9]{8}_[a-z0-9]{8}$")]
    execution_id: String,
    /// `submitted`.
    status: String,
    #[schema(format = DateTime)]
    submitted_at: String,
}

/// Where an execution is in its life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusView {
    execution_id: String,
    session_id: String,
    /// pending, running, completed, failed, timeout, crashed or cancelled.
    status: String,
    language: LanguageView,
    timeout: u32,
    retry: bool,
    /// Which attempt this is; 0 is the first.
    retry_count: u32,
    /// The attempt before it.
    parent_execution_id: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    started_at: Option<String>,
    #[schema(format = DateTime)]
    completed_at: Option<String>,
    #[schema(format = DateTime)]
    crashed_at: Option<String>,
    #[schema(format = DateTime)]
    timeout_at: Option<String>,
    #[schema(format = DateTime)]
    last_heartbeat_at: Option<String>,
    /// What it last said of its progress.
    #[schema(value_type = Object)]
    progress: Option<Box<RawValue>>,
    /// Why it did not complete.
    error: Option<String>,
}

/// An execution, with what is run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Execution)]
pub(crate) struct ExecutionView {
    #[serde(flatten)]
    status: StatusView,
    code: String,
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

/// What became of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionResult)]
pub(crate) struct ResultView {
    execution_id: String,
    session_id: String,
    /// success, failed, timeout, crashed or cancelled.
    status: String,
    /// What it printed: the first megabyte.
    stdout: String,
    /// What it printed as errors: the first megabyte.
    stderr: String,
    /// There was more.
    stdout_truncated: bool,
    /// There was more.
    stderr_truncated: bool,
    /// Its exit status; −1 when it was killed.
    exit_code: i32,
    /// How long it took, in seconds.
    execution_time: f64,
    /// What its handler returned.
    #[schema(value_type = Object)]
    return_value: Option<Box<RawValue>>,
    metrics: MetricsView,
    /// The files it made.
    artifacts: Vec<ArtifactView>,
    /// Why it did not complete.
    error: Option<String>,
    #[schema(format = DateTime)]
    started_at: Option<String>,
    #[schema(format = DateTime)]
    completed_at: Option<String>,
}

/// What an execution used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Metrics)]
pub(crate) struct MetricsView {
    duration_ms: f64,
    cpu_time_ms: f64,
    peak_memory_mb: f64,
    io_read_bytes: u64,
    io_write_bytes: u64,
}

/// A file that an execution made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Artifact)]
pub(crate) struct ArtifactView {
    #[schema(pattern = "^art_[a-z0-9]{16}$")]
    artifact_id: String,
    /// artifact, log or output.
    artifact_type: String,
    name: String,
    /// Where it is in the workspace.
    path: String,
    size: u64,
    mime_type: String,
    sha256: String,
    #[schema(format = DateTime)]
    created_at: String,
}

/// A page of executions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionList {
    /// Newest first.
    executions: Vec<StatusView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with.
    next_cursor: Option<String>,
}

/// Which executions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only those in this state.
    status: Option<String>,
}

/// Runs code in a session.
///
/// Answers at once, or with the result when `wait` is true. With `Accept: text/event-stream`, what it prints
/// comes as it is printed, in events called `stdout` and `stderr` with base64 in `data`, then the result, in one
/// called `result`.
#[utoipa::path(post, path = "/sessions/{session_id}/execute", tag = "executions",
    params(("session_id" = String, Path), ExecuteQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "What makes this request safe to send again")),
    responses((status = 200, body = ExecuteResponse, description = "Submitted; or, with `wait`, an ExecutionResult"),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView), (status = 409, body = ErrorView),
        (status = 503, body = ErrorView)))]
pub(crate) async fn execute(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    Query(query): Query<ExecuteQuery>,
    headers: HeaderMap,
    Body { value, digest }: Body<ExecuteRequest>,
) -> Result<Response, ApiError> {
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accepts.is_some_and(|kinds| kinds.contains("text/event-stream")) {
        let submitted = app
            .control
            .submit(&caller, &id, value.read(), Output::Streamed)
            .await?;
        return Ok(streamed(submitted).into_response());
    }
    let action = format!("execute {id} {}", query.wait);
    let request = idempotency::Request {
        caller: &caller,
        action: &action,
        key: idempotency::key(&headers)?,
        digest: &digest,
    };
    let execute = async {
        let submitted = app
            .control
            .submit(&caller, &id, value.read(), Output::Kept)
            .await?;
        if !query.wait {
            let answer = ExecuteResponse {
                execution_id: submitted.execution.id.to_string(),
                status: "submitted".to_owned(),
                submitted_at: submitted.execution.created_at.to_string(),
            };
            return Ok(Answer::Submitted(answer));
        }
        match submitted.finished().await {
            Some(finished) => Ok(Answer::Result(Box::new(ResultView::of(&finished)))),
            None => Err(ApiError::internal()),
        }
    };
    idempotency::once(&app, request, StatusCode::OK, execute).await
}

/// What executing is answered with.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Submitted(ExecuteResponse),
    Result(Box<ResultView>),
}

/// What an execution prints, as it comes, and its result.
fn streamed(submitted: Submitted) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut submitted = submitted;
        let begun = json!({ "execution_id": submitted.execution.id });
        let _ = sender.send(Event::default().event("submitted").data(begun.to_string()));
        let output = submitted.output.take();
        if let Some(mut output) = output {
            while let Some((stream, bytes)) = output.recv().await {
                let name = match stream {
                    Stdio::Stdout => "stdout",
                    Stdio::Stderr => "stderr",
                };
                // Printed bytes need not be UTF-8, and a piece of them may end within a letter.
                let text = json!({ "base64": BASE64_STANDARD.encode(&bytes) });
                let _ = sender.send(Event::default().event(name).data(text.to_string()));
            }
        }
        let ended = match submitted.finished().await {
            Some(finished) => Event::default()
                .event("result")
                .json_data(ResultView::of(&finished)),
            None => Ok(Event::default().event("error").data("{}")),
        };
        // Whoever listened may have gone.
        let _ = ended.map(|event| sender.send(event));
    });
    let events = stream::unfold(events, |mut events| async {
        events.recv().await.map(|event| (Ok(event), events))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// An execution, with its code.
#[utoipa::path(get, path = "/executions/{execution_id}", tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = ExecutionView), (status = 404, body = ErrorView)))]
pub(crate) async fn get(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<ExecutionId>,
) -> Result<Json<ExecutionView>, ApiError> {
    let execution = app.control.execution(&id).await?;
    Ok(Json(ExecutionView {
        code: execution.code.clone(),
        event: raw(&execution.event).unwrap_or_default(),
        status: StatusView::of(summary(execution)),
    }))
}

/// Where an execution is in its life.
#[utoipa::path(get, path = "/executions/{execution_id}/status", tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = StatusView), (status = 404, body = ErrorView)))]
pub(crate) async fn status(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<ExecutionId>,
) -> Result<Json<StatusView>, ApiError> {
    let execution = app.control.execution(&id).await?;
    Ok(Json(StatusView::of(summary(execution))))
}

/// What became of an execution.
#[utoipa::path(get, path = "/executions/{execution_id}/result", tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = ResultView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is not over")))]
pub(crate) async fn result(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<ExecutionId>,
) -> Result<Json<ResultView>, ApiError> {
    Ok(Json(ResultView::of(&app.control.finished(&id).await?)))
}

/// A session's executions, newest first.
#[utoipa::path(get, path = "/sessions/{session_id}/executions", tag = "executions",
    params(("session_id" = String, Path), ListQuery, Paging),
    responses((status = 200, body = ExecutionList), (status = 400, body = ErrorView), (status = 404, body = ErrorView)))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Reader,
    Id(session_id): Id<SessionId>,
    Query(query): Query<ListQuery>,
    Query(paging): Query<Paging>,
) -> Result<Json<ExecutionList>, ApiError> {
    let status =
        match &query.status {
            Some(text) => Some(text.parse::<ExecutionStatus>().map_err(|error| {
                ApiError::invalid(format!("status: {error}"), "use one of them")
            })?),
            None => None,
        };
    let filter = ExecutionFilter { session_id, status };
    let page = app.control.executions(&filter, &paging.request()?).await?;
    Ok(Json(ExecutionList {
        total: page.total,
        next_cursor: paging::next(&page),
        executions: page.items.into_iter().map(StatusView::of).collect(),
    }))
}

/// Ends an execution.
///
/// It is over when the answer comes, with everything that it started.
#[utoipa::path(post, path = "/executions/{execution_id}/cancel", tag = "executions",
    params(("execution_id" = String, Path)),
    responses((status = 200, body = StatusView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is over already")))]
pub(crate) async fn cancel(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<ExecutionId>,
) -> Result<Json<StatusView>, ApiError> {
    let cancelled = app.control.cancel(&caller, &id).await?;
    Ok(Json(StatusView::of(summary(cancelled))))
}

/// What code is given to which nothing is given.
fn nothing() -> Value {
    json!({})
}

impl ExecuteRequest {
    fn read(self) -> NewExecution {
        /// How long an execution may take that does not say, in seconds.
        const USUAL: u32 = 30;
        NewExecution {
            code: self.code,
            language: self.language.into(),
            event: self.event,
            timeout_seconds: self.timeout.unwrap_or(USUAL),
            retry: self.retry,
        }
    }
}

impl From<LanguageView> for Language {
    fn from(language: LanguageView) -> Language {
        match language {
            LanguageView::Python => Language::Python,
            LanguageView::Javascript => Language::Javascript,
            LanguageView::Shell => Language::Shell,
        }
    }
}

impl From<Language> for LanguageView {
    fn from(language: Language) -> LanguageView {
        match language {
            Language::Python => LanguageView::Python,
            Language::Javascript => LanguageView::Javascript,
            Language::Shell => LanguageView::Shell,
        }
    }
}

fn summary(execution: Execution) -> ExecutionSummary {
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

/// JSON text as it is.
fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

fn written(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

impl StatusView {
    fn of(execution: ExecutionSummary) -> StatusView {
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
    fn of(finished: &Finished) -> ResultView {
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
            error: execution.error.clone(),
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
