//! Executions.

mod stream;
mod view;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use sandbox_control::{ControlError, NewExecution, Output, Submitted};
use sandbox_model::{Execution, ExecutionId, ExecutionStatus, Language, SessionId};
use sandbox_store::records::ExecutionFilter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::api::words::{
    ExecutionPath, ExecutionStatusView, IdempotencyHeader, SessionPath, SubmittedView,
};
use crate::authentication::{Operator, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::idempotency::{self, Found};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;
use stream::{ExecutionStream, streamed};
use view::{ExecutionView, ResultView, StatusView, summary};

/// Code to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecuteRequest {
    /// The code: 100 KB at most. Python and JavaScript may define `handler(event)`, async or not; what it returns,
    /// 1 MiB of JSON at most, is the result's `return_value`. Shell is run by `bash -c`, with the event on
    /// standard input and, up to 120 KB, in `EVENT_JSON`.
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
    /// What it is given, as any JSON: 1 MB at most, and 100 levels deep; an empty object where it is not given.
    /// Also taken as `event_data`.
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
/// code prints, as it prints it, then the result. Who goes away before that ends nothing: the execution goes on. An
/// `Idempotency-Key` leads to the same execution however its answer is asked for; who asks again for a stream is told at
/// its end, all at once, what is kept of what it printed.
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
    let streams = wants_stream(&headers);
    let output = match streams {
        true => Output::Streamed,
        false => Output::Kept,
    };
    // However it is answered, it is the same execution.
    let action = format!("execute {id}");
    let request = idempotency::Request {
        caller,
        action: &action,
        key: idempotency::key(&headers)?,
        digest: &digest,
    };
    let control = &app.control;
    let submit = |caller| async move {
        let submitted = control.submit(&caller, &id, value.read(), output).await?;
        Ok(submitted)
    };
    let promised = |id| promised(&app, id);
    let submitted = idempotency::made_once(&app, request, promised, submit).await?;
    if streams {
        return Ok(streamed(submitted).into_response());
    }
    let answer = match query.wait {
        true => Answer::over(&app, submitted).await?,
        false => Answer::submitted(&submitted.execution),
    };
    Ok(Json(answer).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    accepts.is_some_and(|kinds| kinds.contains("text/event-stream"))
}

/// The execution that was promised, if it is there.
async fn promised(app: &App, id: String) -> Result<Found<Submitted>, ApiError> {
    let Ok(id) = id.parse() else {
        return Ok(Found::Nothing);
    };
    match app.control.submitted(&id).await {
        Ok(submitted) => Ok(Found::Done(submitted)),
        Err(ControlError::NotFound { .. }) => Ok(Found::Nothing),
        Err(error) => Err(error.into()),
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
    /// When it is over.
    async fn over(app: &App, submitted: Submitted) -> Result<Answer, ApiError> {
        let id = submitted.execution.id.clone();
        let result = match submitted.finished().await {
            Some(finished) => ResultView::of(&finished),
            // Nobody here sees it through, or what became of it could not be kept.
            None => ResultView::of(&app.control.finished(&id).await?),
        };
        Ok(Answer::Result(Box::new(result)))
    }

    fn submitted(execution: &Execution) -> Answer {
        Answer::Submitted(ExecuteResponse {
            execution_id: execution.id.to_string(),
            status: "submitted".to_owned(),
            submitted_at: execution.created_at.to_string(),
        })
    }
}

/// Gets an execution, with its code.
///
/// With its result, once it is over.
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
    let result = match execution.status.is_over() {
        true => Some(ResultView::of(&app.control.finished(&id).await?)),
        false => None,
    };
    Ok(Json(ExecutionView::of(execution, result)))
}

/// Tells where an execution is in its life.
///
/// The same as the execution itself, without code, event and result: for asking again and again.
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
        (status = 409, body = ErrorView, description = "It was over already, or its session is paused")))]
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
