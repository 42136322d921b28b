//! What hosts sessions, and which walls a session has there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::session::StatusError;

/// What hosts sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeKind {
    /// This machine's kernel.
    Local,
    /// Docker.
    Docker,
    /// Kubernetes.
    Kubernetes,
}

impl RuntimeKind {
    /// Every one.
    pub const ALL: [RuntimeKind; 3] = [
        RuntimeKind::Local,
        RuntimeKind::Docker,
        RuntimeKind::Kubernetes,
    ];

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            RuntimeKind::Local => "local",
            RuntimeKind::Docker => "docker",
            RuntimeKind::Kubernetes => "kubernetes",
        }
    }
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for RuntimeKind {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = RuntimeKind::ALL;
        known
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(RuntimeKind::as_str).join(", "),
            })
    }
}

/// Which limits of a session the host really enforces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is the resource of the same name")]
pub struct LimitsEnforced {
    pub cpu: bool,
    pub memory: bool,
    pub disk: bool,
    pub max_processes: bool,
}

impl LimitsEnforced {
    /// The first that must be enforced, as `required` says, and is not: what it limits.
    pub fn lacks(&self, required: &LimitsEnforced) -> Option<&'static str> {
        let limits = [
            ("cpu", self.cpu, required.cpu),
            ("memory", self.memory, required.memory),
            ("disk", self.disk, required.disk),
            ("max_processes", self.max_processes, required.max_processes),
        ];
        let lacking = limits.iter().find(|(_, is, must)| *must && !is);
        lacking.map(|(name, ..)| *name)
    }
}

/// Which walls a session has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    /// Between it and other sessions.
    pub between_sessions: String,
    /// Between its executor and the code it runs.
    pub executor: String,
    /// Between one execution and the next.
    pub between_executions: String,
    /// What each execution has of the network.
    pub network: String,
}
