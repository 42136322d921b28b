//! What a session is to be like, as a runtime is told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sandbox_model::id::SessionId;
use serde::{Deserialize, Serialize};

/// A session to be hosted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// Which one.
    pub session_id: SessionId,
    /// What its workspace starts from. One that it had before is used again, whatever this says.
    pub workspace: Workspace,
    /// What its code finds in its environment.
    pub env_vars: BTreeMap<String, String>,
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
