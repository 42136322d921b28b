//! A terminal in a session, over a WebSocket.
//!
//! Binary frames are what is typed and what is shown. Text frames are JSON: the client tells the terminal's
//! new size, the server how the program ended. What one side does not read stops the other: nothing is
//! kept for it beyond a frame.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use sandbox_control::{NewTerminal, Over, Size, Terminal};
use sandbox_model::SessionId;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tungstenite::Error as SocketError;
use utoipa::IntoParams;

use crate::api::words::SessionPath;
use crate::authentication::Operator;
use crate::error::{ApiError, ErrorView};
use crate::exact::{Exact, in_words};
use crate::preview;
use crate::query::{Id, Query};
use crate::state::App;

/// The longest frame that is taken.
const MOST: usize = 1 << 20;

/// How much is shown in a frame.
const PART: usize = 16 << 10;

/// How often something is sent when nothing is shown: who has vanished is noticed by it.
const ALIVE: Duration = Duration::from_secs(5);

/// How long the rest of what was shown may take to be read when the program has ended.
const REST: Duration = Duration::from_secs(30);

/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// What to run on a terminal.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TerminalQuery {
    /// How many characters are beside each other.
    #[serde(default = "usual_columns")]
    #[param(minimum = 1, maximum = 1000, default = 80)]
    columns: u16,
    /// How many lines are below each other.
    #[serde(default = "usual_rows")]
    #[param(minimum = 1, maximum = 1000, default = 24)]
    rows: u16,
    /// What to run, as a shell reads it; a shell to type to where it is not given.
    command: Option<String>,
}

fn usual_columns() -> u16 {
    80
}

fn usual_rows() -> u16 {
    24
}

/// What a client says in a text frame.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    resize: SizeView,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeView {
    columns: u16,
    rows: u16,
}

/// Opens a terminal in a session, as a WebSocket.
///
/// Binary frames are bytes, typed and shown. The client sends `{"resize": {"columns": 120, "rows": 40}}` as
/// text when the window changes; the server sends `{"exit_code": 0}` when the program has ended. The program
/// ends with the connection.
#[utoipa::path(get, path = "/sessions/{session_id}/terminal", tag = "terminal", operation_id = "open_terminal",
    security(("api_key" = ["operate"])), params(SessionPath, TerminalQuery),
    responses((status = 101, description = "From here on it is a WebSocket"),
        (status = 400, body = ErrorView, description = "It is not asked for as a WebSocket, or the size is none"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is not running"),
        (status = 503, body = ErrorView, description = "It has as many terminals as it may")))]
pub(crate) async fn open(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    Query(query): Query<TerminalQuery>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        ApiError::invalid(rejection.body_text(), "ask for it as a WebSocket")
    })?;
    if !is_from_us(&headers) {
        let detail = "Origin: the page is of another origin";
        return Err(ApiError::forbidden(detail));
    }
    let new = NewTerminal {
        command: query.command,
        size: Size::new(query.columns, query.rows)?,
    };
    let terminal = app.control.open_terminal(&caller, &id, new).await?;
    let upgrade = upgrade.max_message_size(MOST).max_frame_size(MOST);
    Ok(upgrade.on_upgrade(move |socket| attend(socket, terminal)))
}

/// Does nobody's page ask, or one of our own? A browser lets every page open WebSockets to everybody.
fn is_from_us(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().unwrap_or_default();
    let origin = origin.split_once("://").map(|(_, host)| host);
    let host = preview::host(headers).and_then(|host| host.to_str().ok());
    matches!((origin, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

type Sender = SplitSink<WebSocket, Message>;
type Receiver = SplitStream<WebSocket>;

/// Why a terminal is closed.
#[derive(Debug, PartialEq, Eq)]
enum Closing {
    /// The program has ended with this exit status, and everything it showed was sent.
    Exited(i32),
    /// The client has left, or is gone.
    Left,
    /// This is to be said to the client, with this code.
    Because(u16, String),
}

/// Sees a terminal through to its end.
async fn attend(socket: WebSocket, terminal: Terminal) {
    let (mut sender, mut receiver) = socket.split();
    let closing = see_through(&mut sender, &mut receiver, &terminal).await;
    // What runs there is not to wait until everything was said.
    drop(terminal);
    let farewell = async {
        let (code, reason) = match closing {
            Closing::Left => return,
            Closing::Exited(status) => {
                let text = json!({ "exit_code": status }).to_string();
                if sender.send(Message::Text(text.into())).await.is_err() {
                    return;
                }
                (close_code::NORMAL, String::new())
            }
            Closing::Because(code, reason) => (code, reason),
        };
        let frame = CloseFrame {
            code,
            reason: short(reason).into(),
        };
        if sender.send(Message::Close(Some(frame))).await.is_ok() {
            // A connection that is dropped with something unread loses what was sent last.
            while let Some(Ok(_)) = receiver.next().await {}
        }
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

async fn see_through(sender: &mut Sender, receiver: &mut Receiver, terminal: &Terminal) -> Closing {
    let showing = show(sender, terminal);
    let typing = take(receiver, terminal);
    tokio::pin!(showing, typing);
    let ended = tokio::select! {
        closing = &mut typing => return closing,
        shown = &mut showing => match shown {
            Ok(()) => return over(terminal.ended().await),
            Err(_) => return Closing::Left,
        },
        () = terminal.ending() => return going_away("the server is ending"),
        ended = terminal.ended() => ended,
    };
    if ended == Over::Lost {
        return over(ended);
    }
    tokio::select! {
        closing = typing => closing,
        shown = showing => match shown {
            Ok(()) => over(ended),
            Err(_) => Closing::Left,
        },
        () = terminal.ending() => going_away("the server is ending"),
        () = tokio::time::sleep(REST) => going_away("what was shown is not read"),
    }
}

fn over(ended: Over) -> Closing {
    match ended {
        Over::Exited(status) => Closing::Exited(status),
        Over::Lost => going_away("the session ended"),
    }
}

fn going_away(reason: &str) -> Closing {
    Closing::Because(close_code::AWAY, reason.to_owned())
}

/// Sends what is shown until there is no more of it, and something now and then.
async fn show(sender: &mut Sender, terminal: &Terminal) -> Result<(), axum::Error> {
    let mut part = vec![0; PART];
    loop {
        let read = tokio::time::timeout(ALIVE, terminal.read(&mut part));
        match read.await {
            Err(_) => sender.send(Message::Ping(Bytes::new())).await?,
            // What cannot be read any more is over.
            Ok(Ok(0) | Err(_)) => return Ok(()),
            Ok(Ok(length)) => {
                let bytes = Bytes::copy_from_slice(&part[..length]);
                sender.send(Message::Binary(bytes)).await?;
            }
        }
    }
}

/// Does what the client says until it leaves, or says what cannot be done.
async fn take(receiver: &mut Receiver, terminal: &Terminal) -> Closing {
    while let Some(message) = receiver.next().await {
        let done = match message {
            Ok(Message::Binary(bytes)) => terminal.write(&bytes).await,
            Ok(Message::Text(text)) => match size(&text) {
                Ok(size) => terminal.resize(size),
                Err(closing) => return closing,
            },
            Ok(Message::Ping(_) | Message::Pong(_)) => Ok(()),
            Ok(Message::Close(_)) => return Closing::Left,
            Err(error) => return broken(error),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "cannot write to a terminal");
            return Closing::Because(close_code::ERROR, "the terminal failed".to_owned());
        }
    }
    Closing::Left
}

/// The size that a text frame tells.
fn size(text: &str) -> Result<Size, Closing> {
    let not = |code, reason: String| Closing::Because(code, reason);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(not(
            close_code::INVALID,
            format!("a text frame is not JSON: {error}"),
        ));
    }
    let reader = &mut serde_json::Deserializer::from_str(text);
    let said = Said::deserialize(Exact(reader)).map_err(|error| {
        let problem = in_words(&error);
        let reason = format!("a text frame says something else than resize: {problem}");
        not(close_code::UNSUPPORTED, reason)
    })?;
    let SizeView { columns, rows } = said.resize;
    Size::new(columns, rows).map_err(|error| not(close_code::UNSUPPORTED, error.to_string()))
}

/// What a client is told that does not speak as it should.
fn broken(error: axum::Error) -> Closing {
    let error = error.into_inner();
    let (code, reason) = match error.downcast_ref::<SocketError>() {
        Some(SocketError::Capacity(_)) => (
            close_code::SIZE,
            format!("a frame is longer than {MOST} bytes"),
        ),
        Some(SocketError::Utf8(_)) => (close_code::INVALID, "a text frame is not UTF-8".to_owned()),
        Some(SocketError::Protocol(error)) => (close_code::PROTOCOL, error.to_string()),
        _ => return Closing::Left,
    };
    Closing::Because(code, reason)
}

/// A reason has to fit into a frame of 125 bytes.
fn short(mut reason: String) -> String {
    const LONGEST: usize = 123;
    if reason.len() > LONGEST {
        reason.truncate(reason.floor_char_boundary(LONGEST));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_frame_tells_a_size_and_nothing_else() {
        assert!(size(r#"{"resize": {"columns": 120, "rows": 40}}"#).is_ok());
        for (text, code) in [
            ("", close_code::INVALID),
            ("ls\n", close_code::INVALID),
            ("{\"resize\":", close_code::INVALID),
            ("{}", close_code::UNSUPPORTED),
            ("\"resize\"", close_code::UNSUPPORTED),
            ("[[120, 40]]", close_code::UNSUPPORTED),
            (r#"{"resize": {"columns": 120}}"#, close_code::UNSUPPORTED),
            (
                r#"{"resize": {"columns": 0, "rows": 40}}"#,
                close_code::UNSUPPORTED,
            ),
            (
                r#"{"resize": {"columns": 1, "rows": 1001}}"#,
                close_code::UNSUPPORTED,
            ),
            (
                r#"{"resize": {"columns": -1, "rows": 4}}"#,
                close_code::UNSUPPORTED,
            ),
            (
                r#"{"resize": {"columns": 1, "rows": 4}, "x": 1}"#,
                close_code::UNSUPPORTED,
            ),
            (r#"{"signal": 9}"#, close_code::UNSUPPORTED),
        ] {
            match size(text) {
                Err(Closing::Because(told, reason)) => {
                    assert_eq!(told, code, "{text}");
                    assert!(short(reason).len() <= 123);
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_page_of_another_origin_is_told_apart() {
        let from = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::HOST,
                "sandbox.example:8000".parse().expect("a host"),
            );
            headers.insert(header::ORIGIN, origin.parse().expect("an origin"));
            is_from_us(&headers)
        };
        assert!(from("http://sandbox.example:8000") && from("https://Sandbox.example:8000"));
        for other in [
            "null",
            "http://sandbox.example",
            "http://evil.example:8000",
            "",
        ] {
            assert!(!from(other), "{other}");
        }
        assert!(is_from_us(&HeaderMap::new()));
    }
}
