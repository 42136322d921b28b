//! A request's body, as JSON.

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use ring::digest::{SHA256, digest};
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::exact::{Exact, in_words};
use crate::pace::{Paced, REQUEST, TooSlow};

/// The longest body of most requests: an event of a megabyte, code, and what JSON adds to them.
const LONGEST: usize = 4 << 20;

/// A body that was read, of at most so many bytes.
#[derive(Debug)]
pub(crate) struct Body<T, const MOST: usize = LONGEST> {
    /// What it says.
    pub(crate) value: T,
    /// What tells it from another one.
    pub(crate) digest: String,
}

impl<S: Sync, T: DeserializeOwned, const MOST: usize> FromRequest<S> for Body<T, MOST> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Body<T, MOST>, ApiError> {
        let kind = request.headers().get(CONTENT_TYPE);
        let kind = kind
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or("application/json");
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let detail = format!("the body is {}", essence.escape_debug());
            let solution = "send the header `Content-Type: application/json`; `curl --json` does";
            return Err(ApiError::invalid(detail, solution));
        }
        let bytes = read_most(request.into_body(), MOST).await?;
        // Nothing at all says as much as an empty object.
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        Ok(Body {
            value: parse(text)?,
            digest: hexadecimal(digest(&SHA256, text).as_ref()),
        })
    }
}

/// The whole of it, if it is no longer than most may be.
pub(crate) async fn read(body: axum::body::Body) -> Result<bytes::Bytes, ApiError> {
    read_most(body, LONGEST).await
}

async fn read_most(body: axum::body::Body, most: usize) -> Result<bytes::Bytes, ApiError> {
    let limited = Limited::new(Paced::new(body, REQUEST), most);
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::new(
            axum::http::StatusCode::BAD_REQUEST,
            "Sandbox.PayloadTooLarge",
            "the request is too large",
            format!("its body is larger than {most} bytes"),
            "upload large data as a file",
        )),
        Err(error) => Err(TooSlow::refusal(&*error)
            .unwrap_or_else(|| ApiError::invalid("the body ended early", "send it again"))),
    }
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    let reader = &mut serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(Exact(&mut *reader));
    let value = read.map_err(|error| {
        let path = error.path().to_string();
        let problem = in_words(error.inner());
        let detail = match path.as_str() {
            "." => format!("the body: {problem}"),
            path => format!("{path}: {problem}"),
        };
        ApiError::invalid(
            detail,
            "correct the body; /api/v1/openapi.json describes it",
        )
    })?;
    reader.end().map_err(|error| {
        ApiError::invalid(
            format!("the body: {error}"),
            "send one JSON object and nothing after it",
        )
    })?;
    Ok(value)
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
