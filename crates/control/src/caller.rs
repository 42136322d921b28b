//! On whose behalf something is done.

use jiff::Timestamp;
use sandbox_model::{KeyId, RequestId};

/// Whoever asks, as the audit records know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// With which key; none when nobody asked.
    pub key_id: Option<KeyId>,
    /// In which request; none when nobody asked.
    pub request_id: Option<RequestId>,
    /// As what the records know that request, where it may be sent again.
    pub repeatable: Option<Repeatable>,
}

/// A request that is done once however often it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeatable {
    /// Whose it is, and what it does.
    pub scope: String,
    /// What its sender calls it.
    pub key: String,
    /// Since when it is being done.
    pub begun_at: Timestamp,
}

impl Caller {
    /// The control plane, of its own accord.
    pub fn nobody() -> Caller {
        Caller::default()
    }
}
