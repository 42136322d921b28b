//! What a session's workspace has that it did not start with.

use axum::Json;
use axum::extract::State;
use sandbox_model::SessionId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::words::SessionPath;
use crate::authentication::Reader;
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// What a workspace has that it did not start with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Changes)]
pub(crate) struct ChangesView {
    /// Path by path, as `sandbox diff --json` tells them.
    #[schema(value_type = Vec<ChangeView>)]
    changes: Vec<serde_json::Value>,
    /// How many there are, listed or not.
    total: u64,
    /// The same as a patch in git's format.
    diff: String,
    /// What such a patch cannot carry, a line each.
    not_in_diff: String,
    /// There is more than is told here.
    truncated: bool,
}

/// A path that differs from what the workspace started with.
#[derive(ToSchema)]
#[schema(as = Change)]
#[allow(dead_code, reason = "describes what the engine of workspaces writes")]
pub(crate) struct ChangeView {
    /// Where it is now; of a deletion, where it was.
    #[schema(example = "src/main.py")]
    path: String,
    /// What happened to it.
    kind: ChangeKindView,
    /// Of a rename: the old path.
    #[schema(value_type = String, required = false)]
    from: Option<String>,
    /// Of a rename: how much of the contents is the same, in percent.
    #[schema(value_type = u8, required = false)]
    similarity: Option<u8>,
    /// What stood there before.
    #[schema(required)]
    before: Option<EntryView>,
    /// What stands there now.
    #[schema(required)]
    after: Option<EntryView>,
    /// Extended attributes differ, too.
    #[schema(value_type = bool, required = false)]
    xattrs_changed: Option<bool>,
    /// What a person should look at twice: `git_control`, `runs_on_host`, `executable`, `privilege`,
    /// `unpromotable`, `outward_symlink`.
    #[schema(value_type = Vec<String>, required = false)]
    flags: Option<Vec<String>>,
}

/// What happened to a path.
#[derive(ToSchema)]
#[schema(as = ChangeKind, rename_all = "snake_case")]
#[allow(dead_code, reason = "describes what the engine of workspaces writes")]
enum ChangeKindView {
    Created,
    Modified,
    Deleted,
    Renamed,
    Mode,
    Symlink,
    Type,
}

/// What stands at a path.
#[derive(ToSchema)]
#[schema(as = Entry)]
#[allow(dead_code, reason = "describes what the engine of workspaces writes")]
struct EntryView {
    /// What it is.
    kind: EntryKindView,
    /// Its permissions.
    #[schema(example = 420)]
    mode: u32,
    /// Its owner.
    uid: u32,
    /// Its group.
    gid: u32,
    /// How long it is, in bytes.
    size: u64,
    /// When its contents last changed: seconds and nanoseconds.
    #[schema(value_type = Vec<i64>, min_items = 2, max_items = 2)]
    mtime: (i64, u32),
    /// Of a device: its number.
    rdev: u64,
}

/// What stands at a path.
#[derive(ToSchema)]
#[schema(as = EntryKind, rename_all = "snake_case")]
#[allow(dead_code, reason = "describes what the engine of workspaces writes")]
enum EntryKindView {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
}

/// Tells what a session's workspace has that it did not start with.
///
/// While it runs and after its end, for as long as the workspace is kept.
#[utoipa::path(get, path = "/sessions/{session_id}/changes", tag = "sessions", operation_id = "get_session_changes",
    security(("api_key" = ["read"])), params(SessionPath),
    responses((status = 200, body = ChangesView, description = "Path by path, and as a patch"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "Its workspace was removed")))]
pub(crate) async fn changes(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
) -> Result<Json<ChangesView>, ApiError> {
    let changes = app.control.session_changes(&id).await?;
    let listed = changes.changes.iter().map(serde_json::to_value);
    Ok(Json(ChangesView {
        changes: listed
            .collect::<Result<_, _>>()
            .map_err(|_| ApiError::internal())?,
        total: changes.total,
        diff: changes.diff,
        not_in_diff: changes.beside,
        truncated: changes.truncated,
    }))
}
