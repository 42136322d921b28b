//! What a runtime made for a session: a container, a pod, or a tree of processes.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{NodeId, SessionId, TemplateId};
use crate::resources::Resources;
use crate::runtime::RuntimeKind;
use crate::session::StatusError;

/// Where a container is in its life, as its runtime tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerStatus {
    /// Made; nothing runs in it.
    Created,
    /// Its executor runs.
    Running,
    /// Frozen.
    Paused,
    /// Its executor ended.
    Exited,
}

impl ContainerStatus {
    /// Every status.
    pub const ALL: [ContainerStatus; 4] = [
        ContainerStatus::Created,
        ContainerStatus::Running,
        ContainerStatus::Paused,
        ContainerStatus::Exited,
    ];

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            ContainerStatus::Created => "created",
            ContainerStatus::Running => "running",
            ContainerStatus::Paused => "paused",
            ContainerStatus::Exited => "exited",
        }
    }
}

impl fmt::Display for ContainerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ContainerStatus {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = ContainerStatus::ALL;
        known
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(ContainerStatus::as_str).join(", "),
            })
    }
}

/// A container, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// What its runtime calls it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it was made from.
    pub image: String,
    /// Whose it is; one that waits in the pool is nobody's.
    pub session_id: Option<SessionId>,
    /// The template it was made for.
    pub template_id: TemplateId,
    /// Where it is.
    pub node_id: NodeId,
    /// Its address there.
    pub ip_address: Option<IpAddr>,
    /// Where its executor listens.
    pub executor_port: Option<u16>,
    /// What it may use.
    pub resources: Resources,
    /// Where it is in its life.
    pub status: ContainerStatus,
    /// What hosts it.
    pub runtime: RuntimeKind,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its executor started.
    pub started_at: Option<Timestamp>,
    /// When its executor ended.
    pub exited_at: Option<Timestamp>,
    /// How.
    pub exit_code: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_it_is_written() {
        for status in ContainerStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!("dead".parse::<ContainerStatus>().is_err());
    }
}
