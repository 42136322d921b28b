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
use sandbox_control::{ControlError, Finished, NewExecution, Output, Submitted};
use sandbox_executor::Stream as Stdio;
use sandbox_model::execution::Artifact;
use sandbox_model::{Execution, ExecutionId, ExecutionStatus, Language, SessionId};
use sandbox_store::records::{ExecutionFilter, ExecutionSummary};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use crate::api::words::{
    ArtifactTypeView, ExecutionPath, ExecutionStatusView, IdempotencyHeader, ResultStatusView,
    SessionPath, SubmittedView,
};
use crate::authentication::{Operator, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::idempotency::{self, Found};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// Code to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteRequest {
    /// The code: 100 KB at most. Python and JavaScript may define `handler(event)`, async or not; what it returns
    /// is the result's `return_value`. Shell is run by `bash -c`, with the event in `EVENT_JSON` and on standard
    /// input.
    #[schema(
        min_length = 1,
        example = "def handler(event):\n    return event['a'] + event['b']\n"
    )]
    code: String,
    /// What it is written in.
    language: LanguageView,
    /// How long it may take, in seconds. Then it is killed, with everything that it started.
    #[schema(minimum = 1, maximum = 3600, default = 30)]
    timeout: Option<u32>,
    /// What it is given, as any JSON: 1 MB at most; an empty object where it is not given. Also taken as
    /// `event_data`.
    #[serde(default = "nothing", alias = "event_data")]
    #[schema(value_type = Value)]
    event: Value,
    /// Whether it is run again when it crashes (not when it fails), three times at most, after 1, 2 and 4
    /// seconds, each time as an execution of its own. Code has side effects, so this is asked for.
    #[serde(default)]
    #[schema(default = false)]
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
    #[param(default = false)]
    wait: bool,
}

/// An execution that was accepted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecuteResponse {
    /// Its identifier.
    #[schema(
        pattern = "^exec_[0-9]{8}_[a-z0-9]{8}$",
        example = "exec_20261116_8f3kq2zd"
    )]
    execution_id: String,
    /// That it was accepted; from here on its status is `pending`, `running`, and so on.
    #[schema(value_type = SubmittedView)]
    status: String,
    /// When.
    #[schema(format = DateTime)]
    submitted_at: String,
}

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
    /// What its handler returned, as any JSON; null where there is no handler.
    #[schema(value_type = Value, required)]
    return_value: Option<Box<RawValue>>,
    /// What it used.
    metrics: MetricsView,
    /// The files it made.
    artifacts: Vec<ArtifactView>,
    /// Why it did not complete.
    #[schema(required)]
    error: Option<String>,
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
    /// The most memory at once.
    peak_memory_mb: f64,
    /// From disks.
    io_read_bytes: u64,
    /// To disks.
    io_write_bytes: u64,
}

/// A file that an execution made: new in the workspace, and no part of its path starting with a dot.
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

/// A page of executions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionList {
    /// Newest first.
    executions: Vec<StatusView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Which executions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only those in this state.
    #[param(value_type = Option<ExecutionStatusView>, inline)]
    status: Option<String>,
}

/// Runs code in a session.
///
/// Answers at once; or, with `wait`, when it is over. With `Accept: text/event-stream` the answer is a stream: what the
/// code prints, as it prints it, then the result. Who goes away before that ends nothing: the execution goes on.
#[utoipa::path(post, path = "/sessions/{session_id}/execute", tag = "executions", operation_id = "execute",
    security(("api_key" = ["operate"])), params(SessionPath, ExecuteQuery, IdempotencyHeader),
    request_body(content = ExecuteRequest, example = json!({
        "language": "python",
        "code": "def handler(event):\n    print('adding')\n    return event['a'] + event['b']\n",
        "event": { "a": 1, "b": 2 },
    })),
    responses(
        (status = 200, description = "What was submitted; with `wait`, what became of it; or the stream of both",
            content((Answer = "application/json"), (ExecutionStream = "text/event-stream"))),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView,
            description = "The session is not running, or the Idempotency-Key was used for another request"),
        (status = 503, body = ErrorView, description = "The server is ending, or a part does not answer")))]
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
        caller,
        action: &action,
        key: idempotency::key(&headers)?,
        digest: &digest,
        status: StatusCode::OK,
    };
    let (control, wait) = (&app.control, query.wait);
    let execute = |caller| async move {
        let submitted = control
            .submit(&caller, &id, value.read(), Output::Kept)
            .await?;
        if !wait {
            return Ok(Answer::submitted(&submitted.execution));
        }
        match submitted.finished().await {
            Some(finished) => Ok(Answer::Result(Box::new(ResultView::of(&finished)))),
            None => Err(ApiError::internal()),
        }
    };
    idempotency::once(&app, request, |id| promised(&app, id, wait), execute).await
}

/// What became of an execution that was promised.
async fn promised(app: &App, id: String, wait: bool) -> Result<Found<Answer>, ApiError> {
    let Ok(id) = id.parse() else {
        return Ok(Found::Nothing);
    };
    let execution = match app.control.execution(&id).await {
        Ok(execution) => execution,
        Err(ControlError::NotFound { .. }) => return Ok(Found::Nothing),
        Err(error) => return Err(error.into()),
    };
    match (wait, execution.status.is_over()) {
        (false, _) => Ok(Found::Done(Answer::submitted(&execution))),
        (true, false) => Ok(Found::Underway),
        (true, true) => {
            let finished = app.control.finished(&id).await?;
            Ok(Found::Done(Answer::Result(Box::new(ResultView::of(
                &finished,
            )))))
        }
    }
}

/// What executing is answered with: at once, or with `wait` when it is over.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ExecuteAnswer)]
enum Answer {
    Submitted(ExecuteResponse),
    Result(Box<ResultView>),
}

impl Answer {
    fn submitted(execution: &Execution) -> Answer {
        Answer::Submitted(ExecuteResponse {
            execution_id: execution.id.to_string(),
            status: "submitted".to_owned(),
            submitted_at: execution.created_at.to_string(),
        })
    }
}

/// What an execution prints, as it prints it, and what becomes of it, as server-sent events:
///
/// | event | data |
/// | --- | --- |
/// | `submitted` | `{"execution_id": "exec_…"}`, once, first |
/// | `stdout`, `stderr` | `{"base64": "…"}`: some bytes, which need not be UTF-8 by themselves |
/// | `result` | an ExecutionResult, once, last |
/// | `error` | `{}`, instead of `result`, where what became of it could not be kept |
///
/// A comment is sent now and then, so that nobody on the way takes silence for an end.
#[derive(ToSchema)]
#[schema(
    example = "event: submitted\ndata: {\"execution_id\":\"exec_20261116_8f3kq2zd\"}\n\nevent: stdout\ndata: {\"base64\":\"aGVsbG8K\"}\n\n"
)]
#[allow(dead_code, reason = "describes what is written event by event")]
struct ExecutionStream(String);

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

/// Gets an execution, with its code.
///
/// What it printed and returned is its result.
#[utoipa::path(get, path = "/executions/{execution_id}", tag = "executions", operation_id = "get_execution",
    security(("api_key" = ["read"])), params(ExecutionPath),
    responses((status = 200, body = ExecutionView, description = "The execution, over or not"),
        (status = 404, body = ErrorView)))]
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

/// Tells where an execution is in its life.
///
/// The same as the execution itself, without code and event: for asking again and again.
#[utoipa::path(get, path = "/executions/{execution_id}/status", tag = "executions",
    operation_id = "get_execution_status", security(("api_key" = ["read"])), params(ExecutionPath),
    responses((status = 200, body = StatusView, description = "Where it is"), (status = 404, body = ErrorView)))]
pub(crate) async fn status(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<ExecutionId>,
) -> Result<Json<StatusView>, ApiError> {
    let execution = app.control.execution(&id).await?;
    Ok(Json(StatusView::of(summary(execution))))
}

/// Gets what became of an execution.
///
/// What it printed, returned and used, and the files it made.
#[utoipa::path(get, path = "/executions/{execution_id}/result", tag = "executions",
    operation_id = "get_execution_result", security(("api_key" = ["read"])), params(ExecutionPath),
    responses((status = 200, body = ResultView, description = "What became of it"), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is not over")))]
pub(crate) async fn result(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<ExecutionId>,
) -> Result<Json<ResultView>, ApiError> {
    Ok(Json(ResultView::of(&app.control.finished(&id).await?)))
}

/// Lists a session's executions, newest first.
///
/// Those of a session that has ended, too.
#[utoipa::path(get, path = "/sessions/{session_id}/executions", tag = "executions", operation_id = "list_executions",
    security(("api_key" = ["read"])), params(SessionPath, ListQuery, Paging),
    responses((status = 200, body = ExecutionList, description = "A page of them"), (status = 400, body = ErrorView),
        (status = 404, body = ErrorView)))]
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

/// Cancels an execution.
///
/// It is over when the answer comes, with everything that it started.
#[utoipa::path(post, path = "/executions/{execution_id}/cancel", tag = "executions",
    operation_id = "cancel_execution", security(("api_key" = ["operate"])), params(ExecutionPath),
    responses((status = 200, body = StatusView, description = "It is over"), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It was over already")))]
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
