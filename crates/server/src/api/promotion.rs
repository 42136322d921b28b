//! Applying what a session changed to the directory it started from.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use sandbox_model::{RelPath, SessionId};
use sandbox_runtime::{Extent, Promote, Promotion, Resolve};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::words::SessionPath;
use crate::authentication::Operator;
use crate::body::Body;
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// The most paths that can be named.
const MOST_PATHS: usize = 10_000;

/// What of a session's changes is to be applied.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PromoteRequest {
    /// Only what is at or below these paths of the workspace; everything where there are none.
    #[serde(default)]
    paths: Vec<String>,
    /// How it goes on where the directory was changed meanwhile, too; it is refused where this is not said.
    resolve: Option<ResolveView>,
    /// Only tell what would be done.
    #[serde(default)]
    dry_run: bool,
}

/// What counts where both sides changed.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Resolve)]
pub(crate) enum ResolveView {
    /// The session's side.
    Ours,
    /// The directory's side.
    Theirs,
    /// Both, where they fit together.
    Merge,
    /// Neither: it stays as it is on both.
    Skip,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Promotion)]
pub(crate) struct PromotionView {
    /// It was done: all of it.
    applied: bool,
    /// What was to be done, path by path, as `sandbox promote --json` tells it.
    #[schema(value_type = Object)]
    plan: serde_json::Value,
}

/// Applies what a session changed to the directory that its workspace is a copy of.
///
/// All of it or nothing, and never over what was changed there meanwhile unless `resolve` says so. Only where the
/// operator allows it. The session's processes are ended for it, and are back with its next use.
#[utoipa::path(post, path = "/sessions/{session_id}/promote", tag = "sessions", operation_id = "promote_session",
    security(("api_key" = ["operate"])),
    params(SessionPath), request_body = PromoteRequest,
    responses((status = 200, body = PromotionView, description = "It was done, or would be"),
        (status = 400, body = ErrorView, description = "A path is not one in the workspace"),
        (status = 403, body = ErrorView, description = "The operator does not allow it"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView,
            description = "Something runs in it, it started from nothing, or both sides changed")))]
pub(crate) async fn promote(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    Body { value, .. }: Body<PromoteRequest>,
) -> Result<Json<PromotionView>, ApiError> {
    let Promotion { plan, applied } = app
        .control
        .promote_session(&caller, &id, value.read()?)
        .await?;
    Ok(Json(PromotionView { applied, plan }))
}

impl PromoteRequest {
    fn read(self) -> Result<Promote, ApiError> {
        if self.paths.len() > MOST_PATHS {
            let detail = format!("paths: has more than {MOST_PATHS} entries");
            return Err(ApiError::invalid(
                detail,
                "name a directory that has them all",
            ));
        }
        let path = |text: &String| {
            RelPath::from_path(Path::new(text)).map_err(|error| {
                ApiError::invalid(
                    format!("paths: {error}"),
                    "use paths relative to /workspace, without '..'",
                )
            })
        };
        Ok(Promote {
            paths: self.paths.iter().map(path).collect::<Result<_, _>>()?,
            resolve: self.resolve.map(Resolve::from),
            extent: match self.dry_run {
                true => Extent::Plan,
                false => Extent::Apply,
            },
        })
    }
}

impl From<ResolveView> for Resolve {
    fn from(resolve: ResolveView) -> Resolve {
        match resolve {
            ResolveView::Ours => Resolve::Ours,
            ResolveView::Theirs => Resolve::Theirs,
            ResolveView::Merge => Resolve::Merge,
            ResolveView::Skip => Resolve::Skip,
        }
    }
}
