//! Port previews: speaking HTTP with a server that code in a session has started.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{OriginalUri, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sandbox_control::{Connection, Held, PortError};
use sandbox_model::SessionId;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::api::words::SessionPath;
use crate::authentication::Operator;
use crate::client_address::address;
use crate::error::{ApiError, ErrorView};
use crate::preview::Place;
use crate::query::Id;
use crate::request_id::Verbatim;
use crate::state::App;
use crate::tunnel;

/// How long a server may take to begin its answer, after it was sent everything.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of an answer may come before its body.
const MOST_HEAD: usize = 64 << 10;

/// Speaks with a server in a session.
///
/// Every method is passed on to the TCP port on the loopback of what runs in the session, an execution or
/// a terminal, and so are WebSockets. A page that comes back is an origin of its own.
#[utoipa::path(get, path = "/sessions/{session_id}/ports/{port}/{*path}", tag = "ports", operation_id = "speak_to_port",
    security(("api_key" = ["operate"])),
    params(SessionPath, ("port" = u16, Path, minimum = 1, maximum = 65535, description = "Where it listens"),
        ("path" = String, Path, description = "What it is asked for")),
    responses((status = 200, content_type = "*/*", body = String, description = "What the server answers, whatever that is"),
        (status = 400, body = ErrorView, description = "The port is none"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is not running"),
        (status = 503, body = ErrorView, description = "Nothing listens there, or it does not speak HTTP")))]
pub(crate) async fn pass(
    State(app): State<App>,
    _: Operator,
    Id(id): Id<SessionId>,
    OriginalUri(uri): OriginalUri,
    request: Request,
) -> Result<Response, ApiError> {
    let client = address(&request);
    let (place, target) = place(&uri)?;
    refuse_workers(request.headers())?;
    let Connection { socket, held } =
        app.control
            .connect(&id, place.port)
            .await
            .map_err(|error| match error {
                PortError::Nothing { session, port } => nothing(&session, port),
                PortError::Control(error) => error.into(),
            })?;
    let silent = |_| unavailable(place.port, "does not answer");
    let stream = TcpStream::from_std(socket.into()).map_err(silent)?;
    let exchange = Exchange {
        place,
        client,
        held: Arc::new(held),
    };
    exchange.pass(request, target, stream).await
}

/// Where a request goes: which port, and what is asked for there.
fn place(uri: &Uri) -> Result<(Place, Uri), ApiError> {
    let path = uri.path();
    let invalid =
        || ApiError::invalid("port: is not a number from 1 to 65535", "use such a number");
    let (_, rest) = path.split_once("/ports/").ok_or_else(invalid)?;
    let (text, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let port: u16 = text.parse().map_err(|_| invalid())?;
    if port == 0 || port.to_string() != text {
        return Err(invalid());
    }
    let prefix = path[..path.len() - tail.len()].to_owned();
    let tail = if tail.is_empty() { "/" } else { tail };
    let target = match uri.query() {
        Some(query) => format!("{tail}?{query}"),
        None => tail.to_owned(),
    };
    let target: PathAndQuery = target
        .parse()
        .map_err(|_| ApiError::invalid("the path is not one", "use another path"))?;
    Ok((Place { prefix, port }, Uri::from(target)))
}

/// A page could stay with the client as a worker, and there is none that is not our origin's.
fn refuse_workers(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.contains_key("service-worker") {
        true => Err(ApiError::invalid(
            "Service-Worker: a preview cannot have one",
            "do without it",
        )),
        false => Ok(()),
    }
}

/// One request and its answer.
struct Exchange {
    place: Place,
    client: IpAddr,
    held: Arc<Held>,
}

impl Exchange {
    async fn pass(
        self,
        request: Request,
        target: Uri,
        stream: TcpStream,
    ) -> Result<Response, ApiError> {
        let port = self.place.port;
        let unreadable = |_| unavailable(port, "does not speak HTTP");
        let handshake = http1::Builder::new()
            .max_buf_size(MOST_HEAD)
            .handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(unreadable)?;
        let held = self.held.clone();
        tokio::spawn(async move {
            // Why it ended is told to whoever waits for the answer.
            let _ = connection.with_upgrades().await;
            drop(held);
        });
        let (inward, upgrade, progress) = self.inward(request, target);
        let answer = progress
            .patiently(sender.send_request(inward))
            .await
            .ok_or_else(|| unavailable(port, "has not answered for a minute"))?;
        self.outward(answer.map_err(unreadable)?, upgrade)
    }

    /// The request as the server inside gets it; and what becomes of the client's connection if both leave
    /// HTTP.
    fn inward(&self, mut request: Request, target: Uri) -> (Request, Option<OnUpgrade>, Progress) {
        let upgrade = is_websocket(request.headers()).then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        parts.uri = target;
        parts.version = Version::HTTP_11;
        parts.extensions.clear();
        self.place.inward(&mut parts.headers, self.client);
        if upgrade.is_some() {
            to_websocket(&mut parts.headers);
        }
        let progress = Progress::default();
        let sent = progress.clone();
        let body = body.map_frame(move |frame| {
            sent.note();
            frame
        });
        let inward = Request::from_parts(parts, Body::new(body));
        (inward, upgrade, progress)
    }

    /// The answer as the client gets it.
    fn outward(
        self,
        mut answer: hyper::Response<Incoming>,
        upgrade: Option<OnUpgrade>,
    ) -> Result<Response, ApiError> {
        let left = match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS if is_websocket(answer.headers()) => {
                Some(hyper::upgrade::on(&mut answer))
            }
            status if status.is_informational() => {
                return Err(unavailable(
                    self.place.port,
                    "answers to what was not asked",
                ));
            }
            _ => None,
        };
        let (mut parts, body) = answer.into_parts();
        parts.version = Version::HTTP_11;
        parts.extensions.clear();
        self.place.outward(&mut parts.headers);
        let mut response = match (upgrade, left) {
            (Some(client), Some(server)) => {
                to_websocket(&mut parts.headers);
                tunnel::join(client, server, self.held);
                Response::from_parts(parts, Body::empty())
            }
            (None, Some(_)) => {
                return Err(unavailable(
                    self.place.port,
                    "answers to what was not asked",
                ));
            }
            (_, None) => Response::from_parts(parts, Body::new(body)),
        };
        response.extensions_mut().insert(Verbatim);
        Ok(response.into_response())
    }
}

/// Does a request ask, or an answer agree, to go on as a WebSocket?
fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    upgrade.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

fn to_websocket(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// When something of a request was last sent.
#[derive(Clone)]
struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Progress {
        Progress(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer for as long as it may take after the last of the request.
    async fn patiently<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(answer);
        loop {
            let deadline = self.last() + PATIENCE;
            if deadline <= Instant::now() {
                return None;
            }
            if let Ok(answer) = tokio::time::timeout_at(deadline, &mut answer).await {
                return Some(answer);
            }
        }
    }
}

fn nothing(session: &SessionId, port: u16) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "Sandbox.Unavailable",
        format!("nothing listens on port {port}"),
        format!("port {port}: nothing that runs in session {session} listens there"),
        format!("start a server on 127.0.0.1:{port} in the session, and let it run"),
    )
}

fn unavailable(port: u16, problem: &str) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "Sandbox.Unavailable",
        format!("the server on port {port} {problem}"),
        format!("port {port}: what listens there in the session {problem}"),
        "look at what the server in the session prints",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uri: &str) -> Option<(String, u16, String)> {
        let uri: Uri = uri.parse().expect("a URI");
        let (place, target) = place(&uri).ok()?;
        Some((place.prefix, place.port, target.to_string()))
    }

    #[test]
    fn what_is_asked_for_inside_is_what_follows_the_port() {
        let base = "/api/v1/sessions/x/ports/8000";
        for (tail, target) in [
            ("", "/"),
            ("/", "/"),
            ("?a=b", "/?a=b"),
            ("/a/b%2f..%2fc?d=/e", "/a/b%2f..%2fc?d=/e"),
            ("/../../x", "/../../x"),
            ("//x", "//x"),
            ("/ports/1/x", "/ports/1/x"),
        ] {
            let expected = (base.to_owned(), 8000, target.to_owned());
            assert_eq!(found(&format!("{base}{tail}")), Some(expected));
        }
        for port in ["0", "65536", "+80", "080", "-1", "8000x", "%38000", "", "x"] {
            assert_eq!(
                found(&format!("/api/v1/sessions/x/ports/{port}/x")),
                None,
                "{port}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_being_sent_is_waited_for() {
        let progress = Progress::default();
        let begin = Instant::now();
        let sending = progress.clone();
        let sent = tokio::spawn(async move {
            for _ in 0..3 {
                tokio::time::sleep(PATIENCE / 2).await;
                sending.note();
            }
        });
        let answer = progress.patiently(std::future::pending::<()>()).await;
        assert_eq!(answer, None);
        assert_eq!(begin.elapsed(), PATIENCE * 5 / 2);
        sent.await.expect("sent");
    }
}
