//! Telling the control plane.
//!
//! A connection for each report: there are few, and one that was kept open would be found broken at the next.
//! What the control plane says to a report is final or not; telling again what is not is up to the teller.

use std::fmt;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use sandbox_model::report::SESSION_HEADER;
use sandbox_model::{RequestId, SessionId};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::content::Content;
use crate::token::Token;

/// The name of what a request is called.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much of an answer is read.
const LONGEST_ANSWER: usize = 16 << 10;

/// How much of it is told.
const LONGEST_REASON: usize = 300;

/// Where the control plane is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
    /// What all paths begin with.
    prefix: String,
}

/// The control plane, as we speak to it.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    address: Address,
    session: SessionId,
    token: Rc<Token>,
}

/// Something to be told.
#[derive(Debug)]
pub(crate) struct Telling<'t> {
    /// To which path below `/internal`.
    pub(crate) to: String,
    /// What.
    pub(crate) content: Content,
    /// The request that it comes of.
    pub(crate) request_id: Option<&'t RequestId>,
    /// What makes it the same when it comes twice.
    pub(crate) key: Option<String>,
    /// How long that may take.
    pub(crate) patience: Duration,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was taken.
    Taken,
    /// It is not taken, and never will be.
    Refused {
        /// By this status.
        status: StatusCode,
        /// In its words.
        reason: String,
    },
    /// Nobody took it; somebody may, later.
    Later(String),
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Address, &'static str> {
        let uri: Uri = text.parse().map_err(|_| "it is not a URL")?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("it speaks no TLS; use http:// to what ends TLS beside it");
            }
            _ => return Err("it is not an http:// URL"),
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or("it names no host")?;
        if uri.query().is_some() {
            return Err("it has a query");
        }
        Ok(Address {
            // As they are written in URLs, addresses of version 6 are in brackets.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl ControlPlane {
    /// The one at `address`, which knows us by the `token` of `session`.
    pub(crate) fn new(address: Address, session: SessionId, token: Rc<Token>) -> ControlPlane {
        ControlPlane {
            address,
            session,
            token,
        }
    }

    /// Tells it something, once.
    pub(crate) async fn tell(&self, telling: Telling<'_>) -> Verdict {
        let patience = telling.patience;
        match tokio::time::timeout(patience, self.send(telling)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(reason)) => Verdict::Later(reason),
            Err(_) => Verdict::Later(format!("{} does not answer", self.address)),
        }
    }

    async fn send(&self, telling: Telling<'_>) -> Result<Verdict, String> {
        let lost = |error: hyper::Error| format!("{} was lost: {error}", self.address);
        let to = (self.address.host.as_str(), self.address.port);
        let connected = TcpStream::connect(to).await;
        let stream = connected.map_err(|error| format!("{}: {error}", self.address))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(lost)?;
        let request = self.request(telling)?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(lost)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), LONGEST_ANSWER).collect();
            let text = body.await.map(|body| body.to_bytes()).unwrap_or_default();
            Ok(judge(status, &text))
        };
        tokio::pin!(connection, exchange);
        tokio::select! {
            biased;
            verdict = &mut exchange => verdict,
            // What it says when it ends is for whoever waits for the answer.
            _ = &mut connection => exchange.await,
        }
    }

    fn request(&self, telling: Telling<'_>) -> Result<Request<Content>, String> {
        let path = format!("{}/internal{}", self.address.prefix, telling.to);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, self.token.header())
            .header(SESSION_HEADER, self.session.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(id) = telling.request_id {
            request = request.header(REQUEST_ID, id.as_str());
        }
        if let Some(key) = telling.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        request
            .body(telling.content)
            .map_err(|error| error.to_string())
    }
}

/// What a status means. What is not said by the control plane itself, but on the way to it, passes: a proxy whose
/// server is away answers 404 or 403, too.
fn judge(status: StatusCode, text: &[u8]) -> Verdict {
    let reason = || {
        let text = String::from_utf8_lossy(text);
        let text: String = text
            .chars()
            .filter(|c| !c.is_control())
            .take(LONGEST_REASON)
            .collect();
        text
    };
    match status {
        status if status.is_success() => Verdict::Taken,
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::CONFLICT
        | StatusCode::GONE
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY
            if is_ours(text) =>
        {
            Verdict::Refused {
                status,
                reason: reason(),
            }
        }
        status => Verdict::Later(format!("it answered {status}: {}", reason())),
    }
}

/// Is this an error as the control plane writes them?
fn is_ours(text: &[u8]) -> bool {
    let error: Value = serde_json::from_slice(text).unwrap_or_default();
    let code = error["error_code"].as_str();
    code.is_some_and(|code| code.starts_with("Internal.") || code.starts_with("Sandbox."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<Address>();
        assert_eq!(read("http://one").unwrap().to_string(), "one:80");
        assert_eq!(
            read("http://[::1]:8000/").unwrap().to_string(),
            "[::1]:8000"
        );
        let below = read("http://one:1/a/b/").unwrap();
        assert_eq!((below.prefix.as_str(), below.port), ("/a/b", 1));
        for text in [
            "https://one",
            "one:80",
            "ftp://one",
            "/one",
            "http://",
            "http://one?x",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_may_pass_is_told_again_and_what_is_said_is_final() {
        let judged = |status: u16, text: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            matches!(judge(status, text.as_bytes()), Verdict::Refused { .. })
        };
        let is_final = |status: u16| {
            judged(
                status,
                r#"{"description":"no","error_code":"Internal.StateConflict"}"#,
            )
        };
        assert!([400, 401, 404, 409].into_iter().all(is_final));
        assert!(judged(404, r#"{"error_code":"Sandbox.NotFound"}"#));
        // Somebody else's words.
        for text in [
            "",
            "{}",
            "<html>404 Not Found</html>",
            r#"{"error_code":"NotFound"}"#,
            r#"{"error_code":404}"#,
            r#"["Internal.InvalidExecution"]"#,
            r#""Internal.InvalidExecution""#,
        ] {
            for status in [400, 401, 403, 404, 409, 410, 413, 422] {
                assert!(!judged(status, text), "{status} {text}");
            }
        }
        assert!(
            ![302, 408, 429, 500, 502, 503, 504]
                .into_iter()
                .any(is_final)
        );
        assert_eq!(judge(StatusCode::CREATED, b""), Verdict::Taken);
    }
}
