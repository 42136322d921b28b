//! What is written down: of every change, who made it, and of every session, what happened to it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{KeyId, RequestId, SessionId};

/// A change that somebody made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// With which key; none when the control plane did it by itself.
    pub key_id: Option<KeyId>,
    /// What was done, such as `session.terminate`.
    pub action: String,
    /// To what, such as `sess_…`.
    pub object: String,
    /// What else there is to say, as JSON text.
    pub detail: String,
    /// In which request; none when the control plane did it by itself.
    pub request_id: Option<RequestId>,
}

/// Something that happened to a session, as its watchers read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNotice {
    /// Greater than that of every notice before it.
    pub id: i64,
    /// To which session.
    pub session_id: SessionId,
    /// What happened, such as `status`.
    pub kind: String,
    /// What there is to say of it, as JSON text.
    pub detail: String,
    /// When it was written down.
    pub at: Timestamp,
}
