//! On whose behalf something is done.

use sandbox_model::{KeyId, RequestId};

/// Whoever asks, as the audit records know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// With which key; none when nobody asked.
    pub key_id: Option<KeyId>,
    /// In which request; none when nobody asked.
    pub request_id: Option<RequestId>,
}

impl Caller {
    /// The control plane, of its own accord.
    pub fn nobody() -> Caller {
        Caller::default()
    }
}
