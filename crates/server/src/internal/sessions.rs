//! What a container says of itself.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use sandbox_control::{Caller, Exit, Ready};
use sandbox_model::{RequestId, SessionId};
use serde::Deserialize;

use super::speaker::Speaker;
use super::{heard, refused};
use crate::body::Body;
use crate::error::ApiError;
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
    Speaker(id): Speaker<SessionId>,
    Body { value, .. }: Body<ReadyReport>,
) -> Result<Response, ApiError> {
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
    Speaker(id): Speaker<SessionId>,
    Extension(request_id): Extension<RequestId>,
    Body { value, .. }: Body<ExitedReport>,
) -> Result<Response, ApiError> {
    let reason = value.exit_reason.as_str();
    // No key opens these doors.
    let caller = Caller {
        request_id: Some(request_id),
        ..Caller::nobody()
    };
    let exit = Exit {
        exit_code: value.exit_code,
        exited_at: value.exited_at,
        reason,
    };
    let exited = app.control.container_exited(&caller, &id, &exit);
    exited.await.map(heard).map_err(refused)
}
