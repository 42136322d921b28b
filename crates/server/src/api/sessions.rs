//! Sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;
use sandbox_control::{NewSession, PoolChoice, Source};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{Session, SessionId, SessionMode, SessionStatus, TemplateId};
use sandbox_store::records::SessionFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::api::resources::ResourcesView;
use crate::authentication::{Operator, Reader};
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::idempotency;
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// A session to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSessionRequest {
    /// What it is made from.
    #[schema(example = "python-basic")]
    template_id: String,
    /// How long it lives, in seconds.
    #[schema(minimum = 60, maximum = 3600, default = 300)]
    timeout: Option<u32>,
    /// `ephemeral` ends when it is idle or expires; the workspace of a `persistent` one is reattached by the
    /// next session of the same agent.
    #[serde(default)]
    mode: Mode,
    /// Whose it is; a persistent one needs it.
    #[schema(max_length = 128)]
    agent_id: Option<String>,
    /// What it may use, where its template's default is not wanted.
    #[serde(default)]
    resources: ResourcesView,
    /// What its code finds in its environment: 64 variables and 10 KB at most, none named `SANDBOX_…`.
    #[serde(default)]
    env_vars: BTreeMap<String, String>,
    /// What of the network it may reach.
    #[serde(default)]
    network: NetworkView,
    /// What its workspace starts from.
    source: Option<SourceView>,
    /// Whether it is to come from the warm pool.
    #[serde(default)]
    pool: PoolView,
}

/// Whether a session is to come from the warm pool.
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

/// How long a session and its workspace live.
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
    /// If so, which hosts and ports; every one where there is none.
    #[schema(example = json!(["pypi.org:443"]))]
    allow: Vec<String>,
}

/// What a workspace starts from: one of the two.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceView {
    /// A copy of this directory, below a root that the server's configuration names.
    directory: Option<String>,
    /// These files: their content by their path.
    files: Option<BTreeMap<String, String>>,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    #[schema(pattern = "^sess_[a-z0-9]{16}$")]
    session_id: String,
    template_id: String,
    /// creating, running, paused, completed, failed, timeout or terminated.
    status: String,
    mode: Mode,
    agent_id: Option<String>,
    /// What hosts it: local, docker or kubernetes.
    runtime_type: String,
    /// Which node does.
    runtime_node: String,
    container_id: Option<String>,
    pod_name: Option<String>,
    /// Where its files are among the objects.
    workspace_path: String,
    executor_url: Option<String>,
    resources: ResourcesView,
    /// Which of its resources the host really limits.
    limits_enforced: LimitsView,
    /// Which walls it really has.
    isolation: WallsView,
    /// Values whose names look secret are not shown.
    env_vars: BTreeMap<String, String>,
    network: NetworkView,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    started_at: Option<String>,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(format = DateTime)]
    last_activity_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    terminated_at: Option<String>,
    /// How long it lives from its creation or last renewal, in seconds.
    timeout: u32,
    /// How long it has been running, or was.
    uptime_seconds: f64,
    /// Why it failed, where it did.
    error: Option<String>,
}

/// Which limits are enforced.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitsEnforced)]
pub(crate) struct LimitsView {
    cpu: bool,
    memory: bool,
    disk: bool,
    max_processes: bool,
}

/// Which walls a session has.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Isolation)]
pub(crate) struct WallsView {
    /// Between it and other sessions.
    between_sessions: String,
    /// Between its executor and the code it runs.
    executor: String,
    /// Between one execution and the next.
    between_executions: String,
    /// What each execution has of the network.
    network: String,
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// Newest first.
    sessions: Vec<SessionView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with.
    next_cursor: Option<String>,
}

/// Which sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only those in this state.
    status: Option<String>,
    /// Only those made from this template.
    template_id: Option<String>,
    /// Only this agent's.
    agent_id: Option<String>,
}

/// Something was done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
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

/// What a workspace has that it did not start with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Changes)]
pub(crate) struct ChangesView {
    /// Path by path, as `sandbox diff --json` tells them.
    #[schema(value_type = Vec<Object>)]
    changes: Vec<serde_json::Value>,
    /// How many there are, listed or not.
    total: u64,
    /// The same as a patch in git's format.
    diff: String,
    /// What such a patch cannot carry, a line each.
    not_in_diff: String,
    /// There is more than is told here.
    truncated: bool,
}

/// Makes a session.
///
/// It is running when the answer comes. With an `Idempotency-Key`, the same request sent again is answered as it was
/// the first time.
#[utoipa::path(post, path = "/sessions", tag = "sessions",
    params(("Idempotency-Key" = Option<String>, Header, description = "What makes this request safe to send again")),
    responses(
        (status = 201, body = SessionView),
        (status = 400, body = ErrorView), (status = 401, body = ErrorView), (status = 403, body = ErrorView),
        (status = 404, body = ErrorView), (status = 409, body = ErrorView), (status = 429, body = ErrorView),
        (status = 503, body = ErrorView)))]
pub(crate) async fn create(
    State(app): State<App>,
    Operator(caller): Operator,
    headers: HeaderMap,
    Body { value, digest }: Body<CreateSessionRequest>,
) -> Result<Response, ApiError> {
    let new = value.read()?;
    let request = idempotency::Request {
        caller: &caller,
        action: "session.create",
        key: idempotency::key(&headers)?,
        digest: &digest,
    };
    let create = async {
        let session = app.control.create_session(&caller, new).await?;
        Ok(SessionView::of(session))
    };
    idempotency::once(&app, request, StatusCode::CREATED, create).await
}

/// A session.
#[utoipa::path(get, path = "/sessions/{session_id}", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, body = SessionView), (status = 401, body = ErrorView), (status = 404, body = ErrorView)))]
pub(crate) async fn get(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    Ok(Json(SessionView::of(app.control.session(&id).await?)))
}

/// Sessions, newest first.
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(ListQuery, Paging),
    responses((status = 200, body = SessionList), (status = 400, body = ErrorView), (status = 401, body = ErrorView)))]
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
/// Its files stay downloadable for a day. Ending one that has ended is no error.
#[utoipa::path(delete, path = "/sessions/{session_id}", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, body = Message), (status = 401, body = ErrorView), (status = 404, body = ErrorView)))]
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
#[utoipa::path(post, path = "/sessions/{session_id}/renew", tag = "sessions",
    params(("session_id" = String, Path)), request_body = RenewRequest,
    responses((status = 200, body = SessionView), (status = 400, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView)))]
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

/// Stops everything in a session where it is. It still expires.
#[utoipa::path(post, path = "/sessions/{session_id}/pause", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, body = SessionView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(crate) async fn pause(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    let paused = app.control.pause_session(&caller, &id).await?;
    Ok(Json(SessionView::of(paused)))
}

/// Lets a session that was paused go on.
#[utoipa::path(post, path = "/sessions/{session_id}/resume", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, body = SessionView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(crate) async fn resume(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<Json<SessionView>, ApiError> {
    let resumed = app.control.resume_session(&caller, &id).await?;
    Ok(Json(SessionView::of(resumed)))
}

/// Makes a session like this one, whose workspace starts as a copy of its.
#[utoipa::path(post, path = "/sessions/{session_id}/fork", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 201, body = SessionView), (status = 404, body = ErrorView), (status = 409, body = ErrorView),
        (status = 503, body = ErrorView)))]
pub(crate) async fn fork(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
) -> Result<(StatusCode, Json<SessionView>), ApiError> {
    let forked = app.control.fork_session(&caller, &id).await?;
    Ok((StatusCode::CREATED, Json(SessionView::of(forked))))
}

/// What a session's workspace has that it did not start with.
#[utoipa::path(get, path = "/sessions/{session_id}/changes", tag = "sessions",
    params(("session_id" = String, Path)),
    responses((status = 200, body = ChangesView), (status = 404, body = ErrorView), (status = 409, body = ErrorView)))]
pub(crate) async fn changes(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
) -> Result<Json<ChangesView>, ApiError> {
    let changes = app.control.session_changes(&id).await?;
    let listed = changes.changes.iter().map(serde_json::to_value);
    Ok(Json(ChangesView {
        changes: listed
            .collect::<Result<_, _>>()
            .map_err(|_| ApiError::internal())?,
        total: changes.total,
        diff: changes.diff,
        not_in_diff: changes.beside,
        truncated: changes.truncated,
    }))
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

impl SessionView {
    pub(crate) fn of(session: Session) -> SessionView {
        SessionView {
            uptime_seconds: uptime(&session),
            session_id: session.id.to_string(),
            template_id: session.template_id.to_string(),
            status: session.status.to_string(),
            mode: match session.mode {
                SessionMode::Ephemeral => Mode::Ephemeral,
                SessionMode::Persistent => Mode::Persistent,
            },
            agent_id: session.agent_id,
            runtime_type: session.runtime.to_string(),
            runtime_node: session.node_id.to_string(),
            container_id: session.container_id,
            pod_name: None,
            workspace_path: session.workspace_path,
            executor_url: session.executor_url,
            resources: session.resources.into(),
            limits_enforced: LimitsView {
                cpu: session.limits_enforced.cpu,
                memory: session.limits_enforced.memory,
                disk: session.limits_enforced.disk,
                max_processes: session.limits_enforced.max_processes,
            },
            isolation: WallsView {
                between_sessions: session.walls.between_sessions,
                executor: session.walls.executor,
                between_executions: session.walls.between_executions,
                network: session.walls.network,
            },
            env_vars: redacted(session.env_vars),
            network: NetworkView {
                enabled: session.network.enabled,
                allow: session.network.allow,
            },
            created_at: session.created_at.to_string(),
            started_at: session.started_at.map(|time| time.to_string()),
            updated_at: session.updated_at.to_string(),
            last_activity_at: session.last_activity_at.to_string(),
            expires_at: session.expires_at.to_string(),
            terminated_at: session.terminated_at.map(|time| time.to_string()),
            timeout: session.timeout_seconds,
            error: session.error,
        }
    }
}

/// How long it has been running, or was.
fn uptime(session: &Session) -> f64 {
    let Some(started) = session.started_at else {
        return 0.0;
    };
    let end = session.terminated_at.unwrap_or_else(Timestamp::now);
    end.duration_since(started).as_secs_f64().max(0.0)
}

/// Values whose names look secret are not shown.
fn redacted(variables: BTreeMap<String, String>) -> BTreeMap<String, String> {
    const SECRET: [&str; 8] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "CREDENTIAL",
        "AUTH",
        "PRIVATE",
        "COOKIE",
    ];
    let looks_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        SECRET.iter().any(|word| name.contains(word))
    };
    let shown = |(name, value): (String, String)| match looks_secret(&name) {
        true => (name, "[redacted]".to_owned()),
        false => (name, value),
    };
    variables.into_iter().map(shown).collect()
}
