//! A session's events, as they happen.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use sandbox_control::Watch;
use sandbox_model::{SessionId, SessionNotice};

use crate::authentication::Reader;
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// How often something is sent, so that nobody on the way takes the silence for an end.
const ALIVE: Duration = Duration::from_secs(15);

/// A session's events, as server-sent events.
///
/// All of them from the beginning, then those to come. With `Last-Event-ID`, those after it: nothing is missed.
#[utoipa::path(get, path = "/sessions/{session_id}/events", tag = "sessions",
    params(("session_id" = String, Path),
        ("Last-Event-ID" = Option<i64>, Header, description = "The last event that was seen")),
    responses((status = 200, content_type = "text/event-stream", body = String),
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

/// The events, until they cannot be read: the client comes again with the last one it has.
fn events(watch: Watch) -> impl Stream<Item = Result<Event, Infallible>> {
    let batches = stream::unfold(watch, |mut watch| async {
        let notices = watch.next().await.ok()?;
        Some((stream::iter(notices), watch))
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
