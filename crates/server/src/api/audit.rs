//! Who changed what.

use axum::Json;
use axum::extract::State;
use sandbox_model::AuditRecord;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::authentication::Admin;
use crate::error::{ApiError, ErrorView};
use crate::paging::{self, Paging};
use crate::query::Query;
use crate::state::App;

/// A change that somebody made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditRecord)]
pub(crate) struct AuditView {
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// With which key; none when the server did it by itself.
    key_id: Option<String>,
    /// What was done, such as `session.create`.
    #[schema(example = "session.create")]
    action: String,
    /// To what, such as a session's identifier.
    object: String,
    /// What else there is to say.
    #[schema(value_type = Object)]
    detail: Option<Box<RawValue>>,
    /// In which request; none when the server did it by itself.
    request_id: Option<String>,
}

/// A page of the audit.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// Newest first.
    records: Vec<AuditView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with.
    next_cursor: Option<String>,
}

/// Lists what was changed and by whom, newest first.
///
/// Every change leaves a record: those that somebody asked for, and those that the server made by itself.
#[utoipa::path(get, path = "/audit", tag = "audit", operation_id = "list_audit_records",
    security(("api_key" = ["admin"])), params(Paging),
    responses((status = 200, body = AuditList, description = "A page of them"),
        (status = 400, body = ErrorView, description = "The page is not one")))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Admin,
    Query(paging): Query<Paging>,
) -> Result<Json<AuditList>, ApiError> {
    let page = app.control.audit_records(&paging.request()?).await?;
    Ok(Json(AuditList {
        total: page.total,
        next_cursor: paging::next(&page),
        records: page.items.into_iter().map(AuditView::of).collect(),
    }))
}

impl AuditView {
    fn of(record: AuditRecord) -> AuditView {
        AuditView {
            at: record.at.to_string(),
            key_id: record.key_id.map(|id| id.to_string()),
            action: record.action,
            object: record.object,
            detail: RawValue::from_string(record.detail).ok(),
            request_id: record.request_id.map(|id| id.to_string()),
        }
    }
}
