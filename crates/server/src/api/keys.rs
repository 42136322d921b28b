//! API keys.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandbox_model::{ApiKey, KeyId, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::authentication::Admin;
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKeyRequest {
    /// What people call it.
    #[schema(min_length = 1, max_length = 128, example = "ci")]
    name: String,
    /// What it allows.
    scope: ScopeView,
}

/// What a key allows: `read`, to look; `operate`, also to make, use and end sessions; `admin`, everything:
/// templates, nodes, other keys.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Scope)]
pub(crate) enum ScopeView {
    Read,
    Operate,
    Admin,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct KeyView {
    /// Its identifier, which is no secret.
    #[schema(pattern = "^key_[a-z0-9]{16}$", example = "key_7wq2m0f8z4k1xj6t")]
    key_id: String,
    /// What people call it.
    #[schema(example = "ci")]
    name: String,
    /// What it allows.
    #[schema(value_type = ScopeView)]
    scope: String,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// Since when it opens nothing.
    #[schema(format = DateTime, required)]
    revoked_at: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeKey {
    #[serde(flatten)]
    key: KeyView,
    /// The key itself. It is not kept, and never shown again.
    #[schema(pattern = "^sbx_[0-9a-f]{64}$")]
    secret: String,
}

/// A page of keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// Newest first.
    keys: Vec<KeyView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Makes a key.
///
/// Its secret is in the answer, and nowhere else.
#[utoipa::path(post, path = "/api-keys", tag = "api-keys", operation_id = "create_key",
    security(("api_key" = ["admin"])), 
    request_body(content = CreateKeyRequest, example = json!({ "name": "ci", "scope": "operate" })),
    responses((status = 201, body = MadeKey, description = "The key, with its secret"),
        (status = 400, body = ErrorView)))]
pub(crate) async fn create(
    State(app): State<App>,
    Admin(caller): Admin,
    Body { value, .. }: Body<CreateKeyRequest>,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    let scope = match value.scope {
        ScopeView::Read => Scope::Read,
        ScopeView::Operate => Scope::Operate,
        ScopeView::Admin => Scope::Admin,
    };
    let made = app.control.create_key(&caller, &value.name, scope).await?;
    let answer = MadeKey {
        key: KeyView::of(made.key),
        secret: made.secret,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Lists keys, newest first.
///
/// Revoked ones, too. The key that the server was started with, or made for itself, is not among them.
#[utoipa::path(get, path = "/api-keys", tag = "api-keys", operation_id = "list_keys",
    security(("api_key" = ["admin"])), params(Paging),
    responses((status = 200, body = KeyList, description = "A page of them, without their secrets"),
        (status = 400, body = ErrorView, description = "The page is not one")))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Admin,
    Query(paging): Query<Paging>,
) -> Result<Json<KeyList>, ApiError> {
    let page = app.control.keys(&paging.request()?).await?;
    Ok(Json(KeyList {
        total: page.total,
        next_cursor: paging::next(&page),
        keys: page.items.into_iter().map(KeyView::of).collect(),
    }))
}

/// Revokes a key.
///
/// It opens nothing from now on; on other servers of the same database, within five seconds.
#[utoipa::path(delete, path = "/api-keys/{key_id}", tag = "api-keys", operation_id = "revoke_key",
    security(("api_key" = ["admin"])),
    params(("key_id" = String, Path, pattern = "^key_[a-z0-9]{16}$",
        description = "The key's identifier", example = "key_7wq2m0f8z4k1xj6t")),
    responses((status = 204, description = "It opens nothing"), (status = 404, body = ErrorView)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    Admin(caller): Admin,
    Id(id): Id<KeyId>,
) -> Result<StatusCode, ApiError> {
    app.control.revoke_key(&caller, &id).await?;
    app.keys.forget();
    Ok(StatusCode::NO_CONTENT)
}

impl KeyView {
    fn of(key: ApiKey) -> KeyView {
        KeyView {
            key_id: key.id.to_string(),
            name: key.name,
            scope: key.scope.to_string(),
            created_at: key.created_at.to_string(),
            revoked_at: key.revoked_at.map(|time| time.to_string()),
        }
    }
}
