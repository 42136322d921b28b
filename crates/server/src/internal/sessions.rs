//! What a container says of itself.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use sandbox_control::Ready;
use sandbox_model::SessionId;
use serde::Deserialize;

use super::{heard, refused, unauthorized};
use crate::body::Body;
use crate::error::ApiError;
use crate::query::Id;
use crate::state::App;

/// A container came up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyReport {
    container_id: String,
    executor_url: String,
    ready_at: Timestamp,
}

/// A container ended.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitedReport {
    exit_code: i32,
    #[allow(dead_code, reason = "the control plane goes by its own clock")]
    exited_at: Timestamp,
    exit_reason: ExitReason,
}

/// Why a container ended.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExitReason {
    Normal,
    Sigterm,
    Sigkill,
    OomKilled,
    Error,
}

impl ExitReason {
    fn as_str(self) -> &'static str {
        match self {
            ExitReason::Normal => "normal",
            ExitReason::Sigterm => "sigterm",
            ExitReason::Sigkill => "sigkill",
            ExitReason::OomKilled => "oom_killed",
            ExitReason::Error => "error",
        }
    }
}

/// The longest name or address that is taken.
const LONGEST: usize = 512;

pub(crate) async fn ready(
    State(app): State<App>,
    Id(id): Id<SessionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<ReadyReport>,
) -> Result<Response, ApiError> {
    if !app.tokens.fit(&headers, &id) {
        return Err(unauthorized());
    }
    if value.container_id.len() > LONGEST || value.executor_url.len() > LONGEST {
        return Err(ApiError::invalid(
            "container_id or executor_url: is too long",
            "send less",
        ));
    }
    let ready = Ready {
        container_id: value.container_id,
        executor_url: value.executor_url,
        ready_at: value.ready_at,
    };
    let news = app.control.container_ready(&id, &ready).await;
    news.map(heard).map_err(refused)
}

pub(crate) async fn exited(
    State(app): State<App>,
    Id(id): Id<SessionId>,
    headers: HeaderMap,
    Body { value, .. }: Body<ExitedReport>,
) -> Result<Response, ApiError> {
    if !app.tokens.fit(&headers, &id) {
        return Err(unauthorized());
    }
    let reason = value.exit_reason.as_str();
    let news = app
        .control
        .container_exited(&id, value.exit_code, reason)
        .await;
    news.map(heard).map_err(refused)
}
