//! The machines that sessions run on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::runtime::RuntimeKind;
use crate::session::StatusError;

/// How a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// It answers.
    Online,
    /// It did not answer several times: no new sessions there.
    Unhealthy,
    /// Somebody asked that it take no new sessions.
    Draining,
    /// It said that it leaves.
    Offline,
}

impl NodeStatus {
    /// Every status.
    pub const ALL: [NodeStatus; 4] = [
        NodeStatus::Online,
        NodeStatus::Unhealthy,
        NodeStatus::Draining,
        NodeStatus::Offline,
    ];

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Online => "online",
            NodeStatus::Unhealthy => "unhealthy",
            NodeStatus::Draining => "draining",
            NodeStatus::Offline => "offline",
        }
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for NodeStatus {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = NodeStatus::ALL;
        known
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(NodeStatus::as_str).join(", "),
            })
    }
}

/// What a node has, or has given away. Unlike what a session asks for, it may be nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Processors, in thousandths.
    pub cpu_thousandths: u64,
    /// Memory.
    pub memory_bytes: u64,
    /// Disk.
    pub disk_bytes: u64,
}

/// A node, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its identifier.
    pub id: NodeId,
    /// What its network calls it.
    pub hostname: String,
    /// What hosts sessions there.
    pub runtime: RuntimeKind,
    /// Where it is spoken to.
    pub api_endpoint: String,
    /// How it is.
    pub status: NodeStatus,
    /// What it has.
    pub total: Capacity,
    /// What of that sessions have.
    pub allocated: Capacity,
    /// Images that need not be pulled there.
    pub cached_images: BTreeSet<String>,
    /// What it is chosen by.
    pub labels: BTreeMap<String, String>,
    /// When it last answered.
    pub last_heartbeat_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_as_it_is_written() {
        for status in NodeStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!("lost".parse::<NodeStatus>().is_err());
    }
}
