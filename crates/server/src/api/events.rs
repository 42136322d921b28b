//! A session's events, as they happen.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use sandbox_control::Watch;
use sandbox_model::{SessionId, SessionNotice};
use utoipa::{IntoParams, ToSchema};

use crate::api::words::SessionPath;
use crate::authentication::Reader;
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// How often something is sent, so that nobody on the way takes the silence for an end.
const ALIVE: Duration = Duration::from_secs(15);

/// Where to go on.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes a header that is read by hand")]
pub(crate) struct LastEvent {
    /// The `id` of the last event that was seen; 0, or nothing, for all of them.
    #[param(rename = "Last-Event-ID", minimum = 0, required = false)]
    last_event_id: i64,
}

/// What happens to a session, as server-sent events. Each has an `id`, which only grows, and as data
/// `{"at": "2026-11-16T09:30:00Z", "detail": {…}}`:
///
/// | event | detail |
/// | --- | --- |
/// | `status` | `{"status", "cause", "error"}`; the first one is `{"status": "creating", "from_pool"}` |
/// | `execution` | `{"execution_id", "status"}`: one is over |
/// | `renewed` | `{"expires_at"}` |
/// | `forked` | `{"forked_to"}` |
/// | `promoted` | `{}`: what it changed was applied to the directory that it started from |
/// | `executor_ended` | `{"exit_status"}`: its processes ended by themselves; its next use starts them again |
/// | `node_lost` | `{"node_id"}`: its node has not been heard of for 30 seconds; it goes on when that is back |
/// | `workspace_removed` | `{}`: its files were kept for as long as is promised, and are gone |
///
/// A comment is sent every 15 seconds, so that nobody on the way takes silence for an end.
#[derive(ToSchema)]
#[schema(
    example = "id: 1\nevent: status\ndata: {\"at\":\"2026-11-16T09:30:00Z\",\"detail\":{\"status\":\"creating\",\"from_pool\":true}}\n\n"
)]
#[allow(dead_code, reason = "describes what is written event by event")]
struct SessionStream(String);

/// Watches what happens to a session.
///
/// All its events from the beginning, then those to come, as server-sent events. With `Last-Event-ID`, those after it:
/// nothing is missed.
#[utoipa::path(get, path = "/sessions/{session_id}/events", tag = "sessions", operation_id = "watch_session",
    security(("api_key" = ["read"])), params(SessionPath, LastEvent),
    responses((status = 200, content_type = "text/event-stream", body = SessionStream,
            description = "Its events, for as long as somebody listens"),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView)))]
pub(crate) async fn watch(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let after = match headers.get("last-event-id") {
        None => 0,
        Some(value) => {
            let number = value
                .to_str()
                .ok()
                .and_then(|text| text.trim().parse().ok());
            number.filter(|number| *number >= 0).ok_or_else(|| {
                ApiError::invalid(
                    "Last-Event-ID: is not a number",
                    "send the id of an event that came",
                )
            })?
        }
    };
    let watch = app.control.watch(&id, after).await?;
    Ok(Sse::new(events(watch)).keep_alive(KeepAlive::new().interval(ALIVE)))
}

/// The events, until the server ends or they cannot be read: the client comes again with the last one it has.
fn events(watch: Watch) -> impl Stream<Item = Result<Event, Infallible>> {
    let batches = stream::unfold(watch, |mut watch| async {
        let notices = watch.next().await.ok()?;
        (!notices.is_empty()).then(|| (stream::iter(notices), watch))
    });
    batches.flatten().map(|notice| Ok(written(notice)))
}

fn written(notice: SessionNotice) -> Event {
    let data = format!(r#"{{"at":"{}","detail":{}}}"#, notice.at, notice.detail);
    Event::default()
        .id(notice.id.to_string())
        .event(notice.kind)
        .data(data)
}
