//! Sessions.

mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sandbox_control::{ControlError, NewSession, PoolChoice, Source, check_agent_id};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{SessionId, SessionMode, SessionStatus, TemplateId};
use sandbox_store::records::SessionFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::resources::ResourcesView;
use crate::api::words::{IdempotencyHeader, SessionPath, SessionStatusView};
use crate::authentication::{Operator, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::idempotency::{self, Found};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

pub(crate) use view::SessionView;

/// A session to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSessionRequest {
    /// What it is made from.
    #[schema(
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        example = "python-basic"
    )]
    template_id: String,
    /// How long it lives, in seconds.
    #[schema(minimum = 60, maximum = 3600, default = 300)]
    timeout: Option<u32>,
    /// `ephemeral` ends when it is idle or expires; the workspace of a `persistent` one is reattached by the
    /// next session of the same agent.
    #[serde(default)]
    mode: Mode,
    /// Whose it is, 128 bytes at most, of which none is a control character; a persistent one needs it.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$",
        example = "agent-7"
    )]
    agent_id: Option<String>,
    /// What it may use, where its template's default is not wanted.
    #[serde(default)]
    resources: ResourcesView,
    /// What its code finds in its environment: 64 variables and 10 KB at most, none named `SANDBOX_…`.
    #[serde(default)]
    #[schema(example = json!({ "STAGE": "test" }))]
    env_vars: BTreeMap<String, String>,
    /// What of the network it may reach.
    #[serde(default)]
    network: NetworkView,
    /// What its workspace starts from; empty where it is not given.
    source: Option<SourceView>,
    /// Whether it is to come from the warm pool.
    #[serde(default)]
    pool: PoolView,
}

/// Whether a session is to come from the warm pool: `prefer`, if there is one that does; `require`, or not at
/// all (503); `never`.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PoolChoice)]
pub(crate) enum PoolView {
    /// If there is one.
    #[default]
    Prefer,
    /// Or not at all.
    Require,
    /// Not even if there is one.
    Never,
}

/// How long a session and its workspace live: an `ephemeral` one ends when it is idle or expires; the workspace
/// of a `persistent` one is reattached by the next session of the same agent.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SessionMode)]
pub(crate) enum Mode {
    #[default]
    Ephemeral,
    Persistent,
}

/// What of the network a session's code may reach.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = SessionNetwork)]
pub(crate) struct NetworkView {
    /// Anything but itself?
    enabled: bool,
    /// If so, which hosts and ports, as `host:port`, 64 at most; every public one where there is none. An
    /// address, or a name of this machine, only where the server's operator named it.
    #[schema(example = json!(["pypi.org:443"]), max_items = 64)]
    allow: Vec<String>,
}

/// What a workspace starts from: one of the two.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Source)]
pub(crate) struct SourceView {
    /// A copy of this directory, below a root that the server's configuration names.
    directory: Option<String>,
    /// These files: their content by their path. 1000 files and 2 MB at most.
    #[schema(example = json!({ "main.py": "print('hello')\n" }))]
    files: Option<BTreeMap<String, String>>,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// Newest first.
    sessions: Vec<SessionView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Which sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only those in this state.
    #[param(value_type = Option<SessionStatusView>, inline)]
    status: Option<String>,
    /// Only those made from this template.
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    template_id: Option<String>,
    /// Only this agent's.
    #[param(
        min_length = 1,
        max_length = 128,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    agent_id: Option<String>,
}

/// Something was done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    /// What was done.
    #[schema(example = "session sess_4k2jx9q0w7m3n5pd was terminated")]
    message: String,
}

/// How long a session is to live from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// In seconds; as before where it is not given.
    #[schema(minimum = 60, maximum = 3600)]
    timeout: Option<u32>,
}

/// Makes a session.
///
/// It is running when the answer comes.
#[utoipa::path(post, path = "/sessions", tag = "sessions", operation_id = "create_session",
    security(("api_key" = ["operate"])), params(IdempotencyHeader), 
    request_body(content = CreateSessionRequest,
        example = json!({ "template_id": "python-basic", "timeout": 600, "env_vars": { "STAGE": "test" } })),
    responses((status = 201, body = SessionView, description = "It is running"),
        (status = 400, body = ErrorView,
            description = "A field is not valid, the template is not active, or a limit cannot be enforced here"),
        (status = 404, body = ErrorView, description = "There is no such template"),
        (status = 409, body = ErrorView,
            description = "The agent has a persistent session, or the Idempotency-Key was used for another request"),
        (status = 503, body = ErrorView, description = "There is no room now, or a part does not answer")))]
pub(crate) async fn create(
    State(app): State<App>,
    Operator(caller): Operator,
    headers: HeaderMap,
    Body { value, digest }: Body<CreateSessionRequest>,
) -> Result<Response, ApiError> {
    let new = value.read()?;
    let request = idempotency::Request {
        caller,
        action: "session.create",
        key: idempotency::key(&headers)?,
        digest: &digest,
    };
    let control = &app.control;
    let create = |caller| async move {
        let session = control.create_session(&caller, new).await?;
        Ok(SessionView::of(session))
    };
    let promised = |id| promised(&app, id);
    idempotency::answered_once(&app, StatusCode::CREATED, request, promised, create).await
}

/// What became of a session that was promised.
async fn promised(app: &App, id: String) -> Result<Found<SessionView>, ApiError> {
    let Ok(id) = id.parse() else {
        return Ok(Found::Nothing);
    };
    match app.control.session(&id).await {
        Ok(session) if session.status == SessionStatus::Creating => Ok(Found::Underway),
        Ok(session) if session.started_at.is_none() => Ok(Found::Failed),
        Ok(session) => Ok(Found::Done(SessionView::of(session))),
        Err(ControlError::NotFound { .. }) => Ok(Found::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Gets a session.
///
/// One that has ended is told of for as long as its record is kept.
#[utoipa::path(get, path = "/sessions/{session_id}", tag = "sessions", operation_id = "get_session",
    security(("api_key" = ["read"])), params(SessionPath),
    responses((status = 200, body = SessionView, description = "The session, ended or not"),
        (status = 404, body = ErrorView)))]
pub(crate) async fn get(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    Ok(Json(SessionView::of(app.control.session(&id).await?)))
}

/// Lists sessions, newest first.
///
/// Ended ones, too, unless `status` says otherwise.
#[utoipa::path(get, path = "/sessions", tag = "sessions", operation_id = "list_sessions",
    security(("api_key" = ["read"])), params(ListQuery, Paging),
    responses((status = 200, body = SessionList, description = "A page of them"), (status = 400, body = ErrorView)))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Reader,
    Query(query): Query<ListQuery>,
    Query(paging): Query<Paging>,
) -> Result<Json<SessionList>, ApiError> {
    let page = app
        .control
        .sessions(&query.filter()?, &paging.request()?)
        .await?;
    Ok(Json(SessionList {
        total: page.total,
        next_cursor: paging::next(&page),
        sessions: page.items.into_iter().map(SessionView::of).collect(),
    }))
}

/// Ends a session, with everything that runs in it.
///
/// Its files stay downloadable for a day, or as long as the server was told to keep them. Ending one that has
/// ended is no error.
#[utoipa::path(delete, path = "/sessions/{session_id}", tag = "sessions", operation_id = "terminate_session",
    security(("api_key" = ["operate"])), params(SessionPath),
    responses((status = 200, body = Message, description = "It has ended, now or before"),
        (status = 404, body = ErrorView)))]
pub(crate) async fn terminate(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<Json<Message>, ApiError> {
    let message = match app.control.terminate_session(&caller, &id).await? {
        true => format!("session {id} was terminated"),
        false => format!("session {id} had ended already"),
    };
    Ok(Json(Message { message }))
}

/// Lets a session live for its time from now on.
///
/// It ends all the same at the age that the server lets no session pass.
#[utoipa::path(post, path = "/sessions/{session_id}/renew", tag = "sessions", operation_id = "renew_session",
    security(("api_key" = ["operate"])), params(SessionPath), 
    request_body(content = RenewRequest, example = json!({ "timeout": 1200 })),
    responses((status = 200, body = SessionView, description = "With its new end"),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It has ended")))]
pub(crate) async fn renew(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    Body { value, .. }: Body<RenewRequest>,
) -> Result<Json<SessionView>, ApiError> {
    let renewed = app
        .control
        .renew_session(&caller, &id, value.timeout)
        .await?;
    Ok(Json(SessionView::of(renewed)))
}

/// Pauses a session.
///
/// Everything in it stops where it is. It still expires; what is asked of it meanwhile is 409.
#[utoipa::path(post, path = "/sessions/{session_id}/pause", tag = "sessions", operation_id = "pause_session",
    security(("api_key" = ["operate"])), params(SessionPath),
    responses((status = 200, body = SessionView, description = "It stands still"), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is not running")))]
pub(crate) async fn pause(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    let paused = app.control.pause_session(&caller, &id).await?;
    Ok(Json(SessionView::of(paused)))
}

/// Resumes a session that was paused.
///
/// Everything in it goes on. A deadline that passed meanwhile is kept now.
#[utoipa::path(post, path = "/sessions/{session_id}/resume", tag = "sessions", operation_id = "resume_session",
    security(("api_key" = ["operate"])), params(SessionPath),
    responses((status = 200, body = SessionView, description = "It goes on"), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "It is not paused")))]
pub(crate) async fn resume(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    let resumed = app.control.resume_session(&caller, &id).await?;
    Ok(Json(SessionView::of(resumed)))
}

/// Forks a session.
///
/// Makes one like it, whose workspace starts as a copy of its. The new one is ephemeral. A session that has
/// ended can be forked while its workspace is kept.
#[utoipa::path(post, path = "/sessions/{session_id}/fork", tag = "sessions", operation_id = "fork_session",
    security(("api_key" = ["operate"])), params(SessionPath),
    responses((status = 201, body = SessionView, description = "The new session, running"),
        (status = 400, body = ErrorView, description = "Its template is not active any more, for example"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "Its workspace was removed, or is being copied"),
        (status = 503, body = ErrorView, description = "There is no room now, or a part does not answer")))]
pub(crate) async fn fork(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<(StatusCode, Json<SessionView>), ApiError> {
    let forked = app.control.fork_session(&caller, &id).await?;
    Ok((StatusCode::CREATED, Json(SessionView::of(forked))))
}

impl CreateSessionRequest {
    fn read(self) -> Result<NewSession, ApiError> {
        /// How long a session lives that does not say, in seconds.
        const USUAL: u32 = 300;
        Ok(NewSession {
            template_id: template_id(&self.template_id)?,
            timeout_seconds: self.timeout.unwrap_or(USUAL),
            mode: match self.mode {
                Mode::Ephemeral => SessionMode::Ephemeral,
                Mode::Persistent => SessionMode::Persistent,
            },
            agent_id: self.agent_id,
            resources: self.resources.asked("resources")?,
            env_vars: self.env_vars,
            network: SessionNetwork {
                enabled: self.network.enabled,
                allow: self.network.allow,
            },
            pool: match self.pool {
                PoolView::Prefer => PoolChoice::Prefer,
                PoolView::Require => PoolChoice::Require,
                PoolView::Never => PoolChoice::Never,
            },
            source: match self.source {
                None => Source::Empty,
                Some(SourceView {
                    directory: Some(path),
                    files: None,
                }) => Source::Directory(PathBuf::from(path)),
                Some(SourceView {
                    directory: None,
                    files: Some(files),
                }) => Source::Files(files),
                Some(_) => {
                    let detail = "source: has not exactly one of directory and files";
                    return Err(ApiError::invalid(detail, "give one of them"));
                }
            },
        })
    }
}

impl ListQuery {
    fn filter(&self) -> Result<SessionFilter, ApiError> {
        let status = match &self.status {
            Some(text) => Some(text.parse::<SessionStatus>().map_err(|error| {
                ApiError::invalid(format!("status: {error}"), "use one of them")
            })?),
            None => None,
        };
        let template_id = self.template_id.as_deref().map(template_id).transpose()?;
        self.agent_id.as_deref().map_or(Ok(()), check_agent_id)?;
        Ok(SessionFilter {
            status,
            template_id,
            agent_id: self.agent_id.clone(),
        })
    }
}

fn template_id(text: &str) -> Result<TemplateId, ApiError> {
    text.parse().map_err(|error| {
        ApiError::invalid(
            format!("template_id: {error}"),
            "list the templates to see those there are",
        )
    })
}
