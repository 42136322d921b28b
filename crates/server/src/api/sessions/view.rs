//! A session, as it is shown.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sandbox_model::secrecy::is_redacted;
use sandbox_model::{Session, SessionMode};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Mode, NetworkView};
use crate::api::resources::ResourcesView;
use crate::api::words::{RuntimeTypeView, SessionStatusView};

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionView {
    /// Its identifier.
    #[schema(pattern = "^sess_[a-z0-9]{16}$", example = "sess_4k2jx9q0w7m3n5pd")]
    session_id: String,
    /// What it was made from.
    #[schema(example = "python-basic")]
    template_id: String,
    /// Where it is in its life.
    #[schema(value_type = SessionStatusView)]
    status: String,
    /// How long it and its workspace live.
    mode: Mode,
    /// Whose it is.
    #[schema(required)]
    agent_id: Option<String>,
    /// What hosts it.
    #[schema(value_type = RuntimeTypeView)]
    runtime_type: String,
    /// Which node does.
    runtime_node: String,
    /// What it is called there; null on the local runtime, which has no containers.
    #[schema(required)]
    container_id: Option<String>,
    /// Its pod, on Kubernetes.
    #[schema(required)]
    pod_name: Option<String>,
    /// Where its files are among the objects.
    #[schema(example = "workspace/sess_4k2jx9q0w7m3n5pd")]
    workspace_path: String,
    /// Where its executor listens; null on the local runtime, whose executors listen nowhere.
    #[schema(required)]
    executor_url: Option<String>,
    /// What it may use.
    resources: ResourcesView,
    /// Which of its resources the host really limits.
    limits_enforced: LimitsView,
    /// Which walls it really has.
    isolation: WallsView,
    /// What its code finds in its environment. Values that are secrets, or whose names look secret, are not shown.
    env_vars: BTreeMap<String, String>,
    /// What of the network it may reach.
    network: NetworkView,
    /// When it was asked for.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it first ran.
    #[schema(format = DateTime, required)]
    started_at: Option<String>,
    /// When anything of it last changed.
    #[schema(format = DateTime)]
    updated_at: String,
    /// When it was last used.
    #[schema(format = DateTime)]
    last_activity_at: String,
    /// When it ends, if it is not renewed.
    #[schema(format = DateTime)]
    expires_at: String,
    /// When it ended.
    #[schema(format = DateTime, required)]
    terminated_at: Option<String>,
    /// How long it lives from its creation or last renewal, in seconds.
    #[schema(example = 300)]
    timeout: u32,
    /// How long it has been running, or was.
    uptime_seconds: f64,
    /// Why it failed, where it did.
    #[schema(required)]
    error: Option<String>,
}

/// Which limits are enforced. One that is not was a template's default: what is asked for by name and cannot be
/// enforced is refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LimitsEnforced)]
pub(crate) struct LimitsView {
    /// Processors.
    cpu: bool,
    /// Memory.
    memory: bool,
    /// Disk.
    disk: bool,
    /// Processes and threads at once.
    max_processes: bool,
}

/// Which walls a session has.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Isolation)]
pub(crate) struct WallsView {
    /// Between it and other sessions.
    #[schema(example = "namespaces")]
    between_sessions: String,
    /// Between its executor and the code it runs.
    #[schema(example = "PID namespace and mounts")]
    executor: String,
    /// Between one execution and the next.
    #[schema(example = "fresh namespaces")]
    between_executions: String,
    /// What each execution has of the network.
    #[schema(example = "none")]
    network: String,
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

/// Values that are secrets, or whose names look secret, are not shown.
fn redacted(variables: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = |(name, value): (String, String)| match is_redacted(&name, &value) {
        true => (name, "[redacted]".to_owned()),
        false => (name, value),
    };
    variables.into_iter().map(shown).collect()
}
