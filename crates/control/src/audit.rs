//! Writing down who changed what.

use jiff::Timestamp;
use sandbox_model::AuditRecord;
use serde_json::Value;

use crate::caller::Caller;
use crate::control::Control;

impl Control {
    /// Writes a change down. The change stands even where this fails; then the log has it.
    pub(crate) async fn audit(&self, caller: &Caller, action: &str, object: &str, detail: Value) {
        let record = AuditRecord {
            at: Timestamp::now(),
            key_id: caller.key_id.clone(),
            action: action.to_owned(),
            object: object.to_owned(),
            detail: detail.to_string(),
            request_id: caller.request_id.clone(),
        };
        if let Err(error) = self.shared.records.append_audit(&record).await {
            tracing::error!(action, object, %error, "cannot write the audit record of {action} on {object}");
        }
    }
}
