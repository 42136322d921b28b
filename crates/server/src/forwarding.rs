//! Passing a request on to the server that has its session.
//!
//! Servers that share a database each have sessions of their own. What needs a session's workspace or its
//! processes is asked of the server that has them; everything else, any of them answers from the records.
//! A request is passed on once: the server that gets it answers, whatever it finds.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sandbox_control::{ControlError, Elsewhere, check_agent_id};
use sandbox_model::{ExecutionId, RequestId, SessionId};
use serde::Deserialize;

use crate::authentication::Holder;
use crate::body;
use crate::client_address::address;
use crate::error::ApiError;
use crate::preview;
use crate::request_id::Verbatim;
use crate::state::App;
use crate::tunnel;

pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("x-sandbox-forwarded");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long a server may take to be reached: one whose machine is gone does not even refuse.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a connection to one is kept on which nothing is asked: for less than the other one keeps it.
const IDLE: Duration = Duration::from_secs(20);

/// Speaks to other servers.
pub(crate) type Peers = Client<HttpConnector, Body>;

/// What speaks to other servers.
pub(crate) fn peers() -> Peers {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(PATIENCE));
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .build(connector)
}

/// Passes a request on if its session is elsewhere.
pub(crate) async fn forward(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_known = request.extensions().get::<Holder>().is_some();
    if !is_known || request.headers().contains_key(FORWARDED) {
        return next.run(request).await;
    }
    let about = About::of(request.method(), request.uri().path());
    let (about, request) = match about {
        Some(About::Creation) if app.control.records().is_shared() => {
            match with_agent(request).await {
                Ok(read) => read,
                Err(error) => return error.into_response(),
            }
        }
        about => (about, request),
    };
    match place(&app, about).await {
        Ok(None) => next.run(request).await,
        Ok(Some(other)) => match pass_on(&app, &other, request).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        },
        // Whoever answers here says it better.
        Err(ControlError::NotFound { .. }) => next.run(request).await,
        Err(error) => ApiError::from(error).into_response(),
    }
}

/// Where a request is to go, if not here.
async fn place(app: &App, about: Option<About>) -> Result<Option<Elsewhere>, ControlError> {
    let session = match about {
        None | Some(About::Creation) => return Ok(None),
        Some(About::Agent(agent)) => return app.control.elsewhere_for(&agent).await,
        Some(About::End(id)) => return app.control.elsewhere_to_end(&id).await,
        Some(About::Session(id)) => id,
        Some(About::Execution(id)) => app.control.execution(&id).await?.session_id,
    };
    app.control.elsewhere(&session).await
}

/// What a request is about that only one server can do.
#[derive(Debug, PartialEq, Eq)]
enum About {
    /// A session that is to be made; whose, its body says.
    Creation,
    /// The next persistent session of an agent.
    Agent(String),
    /// The end of a session, which any server can write down where its node is lost.
    End(SessionId),
    Session(SessionId),
    Execution(ExecutionId),
}

impl About {
    fn of(method: &Method, path: &str) -> Option<About> {
        let path = path.strip_prefix("/api/v1/")?;
        let parts: Vec<&str> = path.split('/').collect();
        let is_change = method != Method::GET && method != Method::HEAD;
        match parts[..] {
            ["sessions"] if method == Method::POST => Some(About::Creation),
            [
                "sessions",
                id,
                "files" | "archive" | "changes" | "terminal" | "ports",
                ..,
            ] => id.parse().ok().map(About::Session),
            ["sessions", id] if method == Method::DELETE => id.parse().ok().map(About::End),
            ["sessions", id, ..] if is_change => id.parse().ok().map(About::Session),
            ["executions", id, ..] if is_change => id.parse().ok().map(About::Execution),
            _ => None,
        }
    }
}

/// What of a session that is to be made tells where.
#[derive(Debug, Deserialize)]
struct Wanted {
    mode: Option<String>,
    agent_id: Option<String>,
}

/// Whose session is to be made, where that matters, and the request as it was.
async fn with_agent(request: Request) -> Result<(Option<About>, Request), ApiError> {
    let (parts, content) = request.into_parts();
    let bytes = body::read(content).await?;
    // What is not well formed, whoever answers here says.
    let wanted = serde_json::from_slice::<Wanted>(&bytes).ok();
    let agent = wanted.filter(|wanted| wanted.mode.as_deref() == Some("persistent"));
    let agent = agent.and_then(|wanted| wanted.agent_id);
    let agent = agent.filter(|agent| check_agent_id(agent).is_ok());
    Ok((
        agent.map(About::Agent),
        Request::from_parts(parts, Body::from(bytes)),
    ))
}

async fn pass_on(app: &App, other: &Elsewhere, mut request: Request) -> Result<Response, ApiError> {
    let Elsewhere { node, endpoint } = other;
    let unreachable = |error: Box<dyn std::error::Error + Send + Sync>| {
        ApiError::from(ControlError::Unavailable {
            part: format!("node {node}, which has the workspace,").into(),
            source: error,
        })
    };
    let client = address(&request);
    let upgrade = request
        .headers()
        .contains_key(header::UPGRADE)
        .then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    preview::note_client(&mut parts.headers, client);
    let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let target = format!("{}{path}", endpoint.trim_end_matches('/'));
    parts.uri = target
        .parse::<Uri>()
        .map_err(|error| unreachable(error.into()))?;
    parts.headers.remove(header::HOST);
    // However it came here.
    parts.version = Version::HTTP_11;
    parts
        .headers
        .insert(FORWARDED, HeaderValue::from_static("1"));
    if let Some(id) = parts.extensions.get::<RequestId>()
        && let Ok(value) = HeaderValue::from_str(id.as_str())
    {
        parts.headers.insert(REQUEST_ID, value);
    }
    let answer = app.peers.request(Request::from_parts(parts, body)).await;
    let mut answer = answer.map_err(|error| unreachable(error.into()))?;
    if let (StatusCode::SWITCHING_PROTOCOLS, Some(client)) = (answer.status(), upgrade) {
        tunnel::join(client, hyper::upgrade::on(&mut answer), ());
    }
    // The other server has put it into its form already.
    answer.extensions_mut().insert(Verbatim);
    Ok(answer.map(Body::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_the_session_itself_is_passed_on() {
        let session = "sess_abcdefghijklmnop";
        let id: SessionId = session.parse().expect("a valid identifier");
        let about = |method, path: &str| {
            let path = format!("/api/v1/{path}");
            About::of(&method, &path).map(|about| format!("{about:?}"))
        };
        let its_end = Some(format!("{:?}", About::End(id.clone())));
        let its = Some(format!("{:?}", About::Session(id)));
        assert_eq!(
            about(Method::POST, &format!("sessions/{session}/execute")),
            its
        );
        assert_eq!(
            about(Method::DELETE, &format!("sessions/{session}")),
            its_end
        );
        assert_eq!(
            about(Method::DELETE, &format!("sessions/{session}/files/a")),
            its
        );
        assert_eq!(
            about(Method::GET, &format!("sessions/{session}/files/a/b")),
            its
        );
        assert_eq!(
            about(Method::GET, &format!("sessions/{session}/changes")),
            its
        );
        for path in [
            "/terminal",
            "/ports/8000",
            "/ports/8000/",
            "/ports/8000/a/b",
        ] {
            let path = format!("sessions/{session}{path}");
            assert_eq!(about(Method::GET, &path), its);
        }
        for path in ["", "/events", "/executions"] {
            assert_eq!(
                about(Method::GET, &format!("sessions/{session}{path}")),
                None
            );
        }
        assert_eq!(about(Method::GET, "sessions"), None);
        assert_eq!(about(Method::POST, "sessions").as_deref(), Some("Creation"));
        assert_eq!(
            about(Method::GET, "executions/exec_20261116_abcdefgh/result"),
            None
        );
        assert!(about(Method::POST, "executions/exec_20261116_abcdefgh/cancel").is_some());
    }
}
