//! What a session's workspace has that it did not start with.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use sandbox_model::SessionId;
use sandbox_runtime::ChangeReport;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::api::words::SessionPath;
use crate::authentication::Reader;
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// How much of a report is sent at once.
const PIECE: usize = 64 << 10;

/// How long a client may take to take the next piece, and all of them.
const STALL: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(300);

/// What a workspace has that it did not start with.
#[derive(ToSchema)]
#[schema(as = Changes)]
#[allow(dead_code, reason = "describes what the runtime writes")]
pub(crate) struct ChangesView {
    /// Path by path, as `sandbox diff --json` tells them.
    changes: Vec<ChangeView>,
    /// How many there are, listed or not. Where `truncated` is set there may be more: paths are counted up to
    /// 64 MiB of them.
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
/// While it runs and after its end, for as long as the workspace is kept. At most 10,000 changes are listed, and at
/// most 8 MiB of them, as many bytes of diff, and an eighth of that of what a diff cannot carry; `truncated` says
/// that there is more. A server makes and sends four of these at a time. Others wait up to 30 seconds.
#[utoipa::path(get, path = "/sessions/{session_id}/changes", tag = "sessions", operation_id = "get_session_changes",
    security(("api_key" = ["read"])), params(SessionPath),
    responses((status = 200, body = ChangesView, description = "Path by path, and as a patch"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "Its workspace was removed"),
        (status = 503, body = ErrorView, description = "Four change sets are being made or sent, or a part does not answer")))]
pub(crate) async fn changes(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
) -> Result<Response, ApiError> {
    let report = app.control.session_changes(&id).await?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::CONTENT_LENGTH, HeaderValue::from(report.length())),
    ];
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(report, sender));
    let pieces = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Sends a report piece by piece, for as long as its client takes them: another one may wait for its place.
async fn send(report: ChangeReport, sender: mpsc::Sender<io::Result<Bytes>>) {
    let end = Instant::now() + LONGEST;
    let mut sent = 0;
    while sent < report.length() {
        // A file in memory, so nobody waits for a disk.
        let mut piece = vec![0; PIECE];
        let read = report.read_at(sent, &mut piece);
        let is_last = !matches!(read, Ok(1..));
        sent += *read.as_ref().unwrap_or(&0) as u64;
        let piece = read.map(|count| {
            piece.truncate(count);
            Bytes::from(piece)
        });
        let until = end.min(Instant::now() + STALL);
        match timeout_at(until, sender.send(piece)).await {
            Ok(Ok(())) if !is_last => {}
            _ => return,
        }
    }
}
