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
use crate::query::Id;
use crate::state::App;

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateKeyRequest {
    /// What people call it.
    #[schema(max_length = 128)]
    name: String,
    /// What it allows: each scope allows what the ones before it do.
    scope: ScopeView,
}

/// What a key allows.
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
    key_id: String,
    name: String,
    scope: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeKey {
    #[serde(flatten)]
    key: KeyView,
    /// The key itself. It is not kept, and never shown again.
    secret: String,
}

/// Every key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    keys: Vec<KeyView>,
}

/// Makes a key.
#[utoipa::path(post, path = "/api-keys", tag = "api-keys",
    responses((status = 201, body = MadeKey), (status = 400, body = ErrorView), (status = 403, body = ErrorView)))]
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

/// Every key, newest first, revoked ones too.
#[utoipa::path(get, path = "/api-keys", tag = "api-keys",
    responses((status = 200, body = KeyList), (status = 403, body = ErrorView)))]
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Result<Json<KeyList>, ApiError> {
    let keys = app.control.keys().await?;
    let keys = keys.into_iter().map(KeyView::of).collect();
    Ok(Json(KeyList { keys }))
}

/// Makes a key open nothing from now on.
#[utoipa::path(delete, path = "/api-keys/{key_id}", tag = "api-keys",
    params(("key_id" = String, Path)),
    responses((status = 204), (status = 403, body = ErrorView), (status = 404, body = ErrorView)))]
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
