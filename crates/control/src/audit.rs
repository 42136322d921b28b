//! Writing down who changed what.

use jiff::Timestamp;
use sandbox_model::AuditRecord;
use sandbox_store::records::{Page, PageRequest};
use serde_json::Value;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;

impl Control {
    /// What was changed and by whom, newest first.
    pub async fn audit_records(
        &self,
        page: &PageRequest,
    ) -> Result<Page<AuditRecord>, ControlError> {
        Ok(self.shared.records.audit(page).await?)
    }

    /// Writes a change down. The change stands even where this fails; then the log has it.
    pub(crate) async fn audit(&self, caller: &Caller, action: &str, object: &str, detail: Value) {
        let record = audit_record(caller, action, object, detail);
        if let Err(error) = self.shared.records.append_audit(&record).await {
            tracing::error!(action, object, %error, "cannot write the audit record of {action} on {object}");
        }
    }
}

/// A change, for whoever writes it down together with what was changed.
pub(crate) fn audit_record(
    caller: &Caller,
    action: &str,
    object: &str,
    detail: Value,
) -> AuditRecord {
    AuditRecord {
        at: Timestamp::now(),
        key_id: caller.key_id.clone(),
        action: action.to_owned(),
        object: object.to_owned(),
        detail: detail.to_string(),
        request_id: caller.request_id.clone(),
    }
}
