//! What an execution prints, as it comes.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use base64::prelude::{BASE64_STANDARD, Engine};
use futures_util::{Stream, stream};
use sandbox_control::Submitted;
use sandbox_executor::Stream as Stdio;
use serde_json::json;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::view::ResultView;

/// What an execution prints, as it prints it, and what becomes of it, as server-sent events:
///
/// | event | data |
/// | --- | --- |
/// | `submitted` | `{"execution_id": "exec_…"}`, once, first |
/// | `stdout`, `stderr` | `{"base64": "…"}`: some bytes, which need not be UTF-8 by themselves |
/// | `result` | an ExecutionResult, once, last |
/// | `error` | `{}`, instead of `result`, where what became of it could not be kept |
///
/// A comment is sent now and then, so that nobody on the way takes silence for an end.
#[derive(ToSchema)]
#[schema(
    example = "event: submitted\ndata: {\"execution_id\":\"exec_20261116_8f3kq2zd\"}\n\nevent: stdout\ndata: {\"base64\":\"aGVsbG8K\"}\n\n"
)]
#[allow(dead_code, reason = "describes what is written event by event")]
pub(super) struct ExecutionStream(String);

/// What an execution prints, as it comes, and its result.
pub(super) fn streamed(submitted: Submitted) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, events) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut submitted = submitted;
        // Whoever listened may have gone.
        let send = |event: Event| drop(sender.send(event));
        let begun = json!({ "execution_id": submitted.execution.id });
        send(Event::default().event("submitted").data(begun.to_string()));
        let output = submitted.output.take();
        let was_heard = output.is_some();
        if let Some(mut output) = output {
            while let Some((stream, bytes)) = output.recv().await {
                send(printed(stream, &bytes));
            }
        }
        let Some(finished) = submitted.finished().await else {
            send(Event::default().event("error").data("{}"));
            return;
        };
        // Somebody else heard it as it came; what is kept of it is told at once.
        let kept = &finished.result;
        for (stream, text) in [(Stdio::Stdout, &kept.stdout), (Stdio::Stderr, &kept.stderr)] {
            if !was_heard && !text.is_empty() {
                send(printed(stream, text.as_bytes()));
            }
        }
        let result = ResultView::of(&finished);
        let _ = Event::default().event("result").json_data(result).map(send);
    });
    let events = stream::unfold(events, |mut events| async {
        events.recv().await.map(|event| (Ok(event), events))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

fn printed(stream: Stdio, bytes: &[u8]) -> Event {
    let name = match stream {
        Stdio::Stdout => "stdout",
        Stdio::Stderr => "stderr",
    };
    // Printed bytes need not be UTF-8, and a piece of them may end within a letter.
    let text = json!({ "base64": BASE64_STANDARD.encode(bytes) });
    Event::default().event(name).data(text.to_string())
}
