//! Sessions.

use sandbox_model::{Cpu, Quantity, Resources, Session};
use sea_orm::entity::prelude::*;

use crate::records::Stored;
use crate::records::count::{Counted, Key};
use crate::records::error::StoreError;
use crate::records::value::{
    Reading, json, maybe_micros, maybe_short, maybe_text, micros, number, text,
};

pub const KIND: &str = "session";

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub version: i64,
    pub template_id: String,
    pub live_template_id: Option<String>,
    pub status: String,
    pub is_over: bool,
    pub mode: String,
    pub agent_id: Option<String>,
    pub runtime: String,
    pub node_id: String,
    pub cpu_thousandths: i64,
    pub memory_bytes: i64,
    pub disk_bytes: i64,
    pub max_processes: i64,
    pub timeout_seconds: i64,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub updated_at: i64,
    pub last_activity_at: i64,
    pub expires_at: i64,
    pub terminated_at: Option<i64>,
    pub container_id: Option<String>,
    pub executor_url: Option<String>,
    pub workspace_path: String,
    pub limits_enforced: String,
    pub walls: String,
    pub env_vars: String,
    pub network: String,
    pub error: Option<String>,
    pub workspace_removed_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub unclean_since: Option<i64>,
    pub image: Option<String>,
    pub files_due_since: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The numbers that a session is part of.
pub fn counts(session: &Session) -> Vec<Key> {
    let (id, template) = (session.id.as_str(), session.template_id.as_str());
    let status = session.status.as_str();
    let mut keys = vec![Key::of(id, Counted::Sessions, "", template, status)];
    if let Some(agent) = &session.agent_id {
        keys.push(Key::of(id, Counted::AgentSessions, agent, template, status));
    }
    if !session.status.is_over() {
        let node = session.node_id.as_str();
        keys.push(Key::of(id, Counted::LiveSessions, node, "", status));
    }
    keys
}

impl Model {
    pub fn of(session: &Session, version: i64) -> Result<Model, StoreError> {
        let is_over = session.status.is_over();
        let template_id = session.template_id.to_string();
        let end = session.terminated_at.unwrap_or(session.updated_at);
        let ended_at = is_over.then(|| micros(end));
        let has_workspace = session.workspace_removed_at.is_none();
        let unclean_since = ended_at.filter(|_| has_workspace);
        Ok(Model {
            id: session.id.to_string(),
            version,
            live_template_id: (!is_over).then(|| template_id.clone()),
            template_id,
            status: session.status.to_string(),
            is_over,
            mode: session.mode.as_str().to_owned(),
            agent_id: maybe_short("agent_id", &session.agent_id)?,
            runtime: session.runtime.to_string(),
            node_id: session.node_id.to_string(),
            cpu_thousandths: i64::from(session.resources.cpu.0),
            memory_bytes: number("resources.memory", session.resources.memory.0)?,
            disk_bytes: number("resources.disk", session.resources.disk.0)?,
            max_processes: i64::from(session.resources.max_processes),
            timeout_seconds: i64::from(session.timeout_seconds),
            created_at: micros(session.created_at),
            started_at: maybe_micros(session.started_at),
            updated_at: micros(session.updated_at),
            last_activity_at: micros(session.last_activity_at),
            expires_at: micros(session.expires_at),
            terminated_at: maybe_micros(session.terminated_at),
            container_id: maybe_text("container_id", &session.container_id)?,
            executor_url: maybe_text("executor_url", &session.executor_url)?,
            workspace_path: text("workspace_path", &session.workspace_path)?,
            limits_enforced: json("limits_enforced", &session.limits_enforced)?,
            walls: json("walls", &session.walls)?,
            env_vars: json("env_vars", &session.env_vars)?,
            network: json("network", &session.network)?,
            error: maybe_text("error", &session.error)?,
            workspace_removed_at: maybe_micros(session.workspace_removed_at),
            ended_at,
            unclean_since,
            image: maybe_text("image", &session.image)?,
            // At the end. What is read of one that is over differs by nothing, so this is not written again when
            // they are no longer due.
            files_due_since: unclean_since,
        })
    }

    pub fn read(self) -> Result<Stored<Session>, StoreError> {
        let reading = Reading {
            kind: KIND,
            id: &self.id,
        };
        let value = Session {
            id: reading.parse("id", &self.id)?,
            template_id: reading.parse("template_id", &self.template_id)?,
            status: reading.parse("status", &self.status)?,
            mode: reading.parse("mode", &self.mode)?,
            runtime: reading.parse("runtime", &self.runtime)?,
            node_id: reading.parse("node_id", &self.node_id)?,
            resources: Resources {
                cpu: Cpu(reading.number("cpu", self.cpu_thousandths)?),
                memory: Quantity(reading.number("memory", self.memory_bytes)?),
                disk: Quantity(reading.number("disk", self.disk_bytes)?),
                max_processes: reading.number("max_processes", self.max_processes)?,
            },
            limits_enforced: reading.json("limits_enforced", &self.limits_enforced)?,
            walls: reading.json("walls", &self.walls)?,
            env_vars: reading.json("env_vars", &self.env_vars)?,
            network: reading.json("network", &self.network)?,
            timeout_seconds: reading.number("timeout_seconds", self.timeout_seconds)?,
            created_at: reading.time("created_at", self.created_at)?,
            started_at: reading.maybe_time("started_at", self.started_at)?,
            updated_at: reading.time("updated_at", self.updated_at)?,
            last_activity_at: reading.time("last_activity_at", self.last_activity_at)?,
            expires_at: reading.time("expires_at", self.expires_at)?,
            terminated_at: reading.maybe_time("terminated_at", self.terminated_at)?,
            workspace_removed_at: reading
                .maybe_time("workspace_removed_at", self.workspace_removed_at)?,
            agent_id: self.agent_id,
            container_id: self.container_id,
            executor_url: self.executor_url,
            workspace_path: self.workspace_path,
            error: self.error,
            image: self.image,
        };
        Ok(Stored {
            value,
            version: self.version,
        })
    }
}
