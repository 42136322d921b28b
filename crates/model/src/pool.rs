//! What waits to become a session.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{NodeId, PoolEntryId, TemplateId};

/// A container that was made ahead of time, and whose executor has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolEntry {
    /// Its identifier.
    pub id: PoolEntryId,
    /// What it was made from.
    pub template_id: TemplateId,
    /// Where it is.
    pub node_id: NodeId,
    /// What it is called there.
    pub container_id: String,
    /// Where its executor listens.
    pub executor_url: String,
    /// Where its files are.
    pub workspace_path: String,
    /// When it was made.
    pub created_at: Timestamp,
}
