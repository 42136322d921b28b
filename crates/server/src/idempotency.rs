//! Requests that a client may send again without their being done again.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandbox_control::{Caller, ControlError, Repeatable};
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
    pub(crate) caller: Caller,
    /// What it does, so that one key can be used on two routes.
    pub(crate) action: &'r str,
    /// What the client calls it.
    pub(crate) key: Option<String>,
    /// What tells it from another one.
    pub(crate) digest: &'r str,
    /// What it is answered with.
    pub(crate) status: StatusCode,
}

/// What became of a request whose answer was never kept.
#[derive(Debug)]
pub(crate) enum Found<T> {
    /// It was done: this is its answer.
    Done(T),
    /// It is being done.
    Underway,
    /// Nothing came of it, and nothing will.
    Failed,
    /// Nothing came of it yet.
    Nothing,
}

/// Does the request, or answers as it was answered the first time. `found` looks for what was promised by one
/// that was begun before.
pub(crate) async fn once<T: Serialize, F, B>(
    app: &App,
    request: Request<'_>,
    found: impl Fn(String) -> F,
    body: impl FnOnce(Caller) -> B,
) -> Result<Response, ApiError>
where
    F: Future<Output = Result<Found<T>, ApiError>>,
    B: Future<Output = Result<T, ApiError>>,
{
    let Request {
        mut caller, status, ..
    } = request;
    let Some(key) = request.key else {
        let value = body(caller).await?;
        return Ok((status, axum::Json(value)).into_response());
    };
    let (control, records) = (&app.control, app.control.records());
    let holder = caller.key_id.as_ref().map(ToString::to_string);
    let scope = format!("{} {}", holder.unwrap_or_default(), request.action);
    let turn = control.take_request(&scope, &key);
    let answered = loop {
        // Only who has the turn begins it: two would each take what the other began for abandoned.
        let known = match &turn {
            Some(_) => control.begin_request(&scope, &key, request.digest).await?,
            None => match control
                .look_at_request(&scope, &key, request.digest)
                .await?
            {
                Some(known) => known,
                None => return Err(underway()),
            },
        };
        let doing = match known {
            Remembered::Fresh(begun_at) => {
                caller.repeatable = Some(Repeatable {
                    scope: scope.clone(),
                    key: key.clone(),
                    begun_at,
                });
                break body(caller).await;
            }
            Remembered::Replay { status, body } => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                return Ok(written(status, body));
            }
            Remembered::Mismatch => {
                let problem = "this Idempotency-Key was used for another request";
                return Err(ControlError::conflict(problem, "use another key").into());
            }
            Remembered::InProgress(doing) => doing,
        };
        if turn.is_none() {
            return Err(underway());
        }
        let became = match &doing.object {
            Some(object) => found(object.clone()).await?,
            None => Found::Nothing,
        };
        match became {
            Found::Done(value) => break Ok(value),
            Found::Failed => {}
            Found::Nothing if control.is_abandoned(&doing).await? => {}
            Found::Nothing | Found::Underway => return Err(underway()),
        }
        let abandoned = records.abandon(&scope, &key, &doing).await;
        abandoned.map_err(ControlError::from)?;
    };
    let text = answered.and_then(|value| {
        let text = serde_json::to_vec(&value);
        text.map_err(|_| ApiError::internal())
    });
    match text {
        Ok(text) => {
            let kept = records.complete(&scope, &key, status.as_u16(), &text).await;
            kept.map_err(ControlError::from)?;
            Ok(written(status, text))
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

fn underway() -> ApiError {
    let problem = "a request with this Idempotency-Key is being done";
    ControlError::conflict(problem, "wait for its answer").into()
}

fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, body).into_response()
}
