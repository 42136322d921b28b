//! What a session is to be like, as a runtime is told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sandbox_model::Limits;
use sandbox_model::execution::Language;
use sandbox_model::id::SessionId;
use sandbox_model::resources::Resources;
use sandbox_model::runtime::LimitsEnforced;
use sandbox_model::session::SessionNetwork;
use sandbox_model::size::ByteSize;
use serde::{Deserialize, Serialize};

/// A session to be hosted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Which one.
    pub session_id: SessionId,
    /// What its workspace starts from. One that it had before is used again, whatever this says.
    pub workspace: Workspace,
    /// What it has for a system.
    pub image: Image,
    /// What its code finds in its environment.
    pub env_vars: BTreeMap<String, String>,
    /// What it may use, all of its executions together.
    pub resources: Resources,
    /// Which of that it was promised to be held to: it is raised with that enforced, or not at all.
    #[serde(default)]
    pub promised: LimitsEnforced,
    /// What of the network its code may reach.
    pub network: SessionNetwork,
    /// Whose interpreter is to wait for the first code, if one is.
    #[serde(default)]
    pub warm: Option<Language>,
    /// Whose code is likely to come at once: its interpreter waits for that, but not for long.
    #[serde(default)]
    pub expected: Option<Language>,
}

impl SessionSpec {
    /// Its resources as the engine's limits.
    pub(crate) fn limits(&self) -> Limits {
        let Resources {
            cpu,
            memory,
            disk,
            max_processes,
        } = self.resources;
        Limits {
            memory: Some(ByteSize(memory.0)),
            cpu_millis: Some(cpu.0),
            pids: Some(max_processes),
            size: Some(ByteSize(disk.0)),
        }
    }
}

/// What a session has for a system: its programs and libraries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// The host's.
    Host,
    /// What is in this directory, an unpacked root.
    Directory(PathBuf),
}

/// What a workspace starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workspace {
    /// Nothing.
    Empty,
    /// A copy of this directory.
    Source(PathBuf),
}
