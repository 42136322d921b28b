//! Requests that a client may send again without their being done again.

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sandbox_control::{Caller, ControlError};
use sandbox_store::records::Remembered;
use serde::Serialize;

use crate::error::ApiError;
use crate::state::App;

const HEADER: &str = "idempotency-key";

/// The longest key.
const LONGEST: usize = 128;

/// The key that a client gave its request.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(HEADER) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_graphic();
    if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) {
        let detail = "Idempotency-Key: is not 1 to 128 visible ASCII characters";
        return Err(ApiError::invalid(detail, "use a UUID, for example"));
    }
    Ok(Some(text.to_owned()))
}

/// A request that may come twice.
#[derive(Debug)]
pub(crate) struct Request<'r> {
    /// Who sends it.
    pub(crate) caller: &'r Caller,
    /// What it does, so that one key can be used on two routes.
    pub(crate) action: &'r str,
    /// What the client calls it.
    pub(crate) key: Option<String>,
    /// What tells it from another one.
    pub(crate) digest: &'r str,
}

/// Does the request, or answers as it was answered the first time.
pub(crate) async fn once<T: Serialize>(
    app: &App,
    request: Request<'_>,
    status: StatusCode,
    body: impl Future<Output = Result<T, ApiError>>,
) -> Result<Response, ApiError> {
    let Some(key) = request.key else {
        return Ok((status, axum::Json(body.await?)).into_response());
    };
    let records = app.control.records();
    let holder = request
        .caller
        .key_id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let scope = format!("{holder} {}", request.action);
    let known = records.remember(&scope, &key, request.digest).await;
    match known.map_err(ControlError::from)? {
        Remembered::Fresh => {}
        Remembered::Replay { status, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
            return Ok((status, json, body).into_response());
        }
        Remembered::InProgress => {
            let problem = "a request with this Idempotency-Key is being done";
            return Err(ControlError::conflict(problem, "wait for its answer").into());
        }
        Remembered::Mismatch => {
            let problem = "this Idempotency-Key was used for another request";
            return Err(ControlError::conflict(problem, "use another key").into());
        }
    }
    let answered = match body.await {
        Ok(value) => serde_json::to_vec(&value).map_err(|_| ApiError::internal()),
        Err(error) => Err(error),
    };
    match answered {
        Ok(text) => {
            let kept = records.complete(&scope, &key, status.as_u16(), &text).await;
            kept.map_err(ControlError::from)?;
            let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
            Ok((status, json, text).into_response())
        }
        Err(error) => {
            // What failed may be tried again under the same key.
            if let Err(error) = records.forget(&scope, &key).await {
                tracing::warn!(%error, "cannot forget a request that failed");
            }
            Err(error)
        }
    }
}
