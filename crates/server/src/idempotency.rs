//! Requests that a client may send again without their being done again.
//!
//! What a request makes is promised in the records before it is made. From then on its key leads to that, and
//! to nothing else: it is not done again because its answer failed.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandbox_control::{Caller, Control, ControlError, Repeatable, Turn, chain};
use sandbox_store::records::Remembered;
use serde::Serialize;

use crate::error::ApiError;
use crate::state::App;

const HEADER: &str = "idempotency-key";

/// How long who hears that a request failed waits for it to be forgotten. What is not is found by whoever asks again.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

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
}

/// What became of a request whose answer was never kept.
#[derive(Debug)]
pub(crate) enum Found<T> {
    /// It was done: this came of it.
    Done(T),
    /// It is being done.
    Underway,
    /// Nothing came of it, and nothing will.
    Failed,
    /// Nothing came of it yet.
    Nothing,
}

/// A request with a key, as the records know it.
struct Named<'r> {
    control: &'r Control,
    scope: String,
    key: String,
    digest: &'r str,
}

/// What is to be done about a request with a key.
enum Known<T> {
    /// It is for us to do, on behalf of this caller.
    New(Caller),
    /// It was answered so.
    Answered { status: u16, body: Vec<u8> },
    /// It was done, and this came of it.
    Done(T),
}

/// Does the request, or answers as it was answered the first time. `found` looks for what was promised by one
/// that was begun before.
pub(crate) async fn answered_once<T: Serialize, F, B>(
    app: &App,
    status: StatusCode,
    mut request: Request<'_>,
    found: impl Fn(String) -> F,
    body: impl FnOnce(Caller) -> B,
) -> Result<Response, ApiError>
where
    F: Future<Output = Result<Found<T>, ApiError>>,
    B: Future<Output = Result<T, ApiError>>,
{
    let Some(key) = request.key.take() else {
        let value = body(request.caller).await?;
        return Ok((status, axum::Json(value)).into_response());
    };
    let (named, caller) = Named::of(app, request, key);
    let turn = named.control.take_request(&named.scope, &named.key);
    let value = match named.known(turn.as_ref(), caller, &found).await? {
        Known::New(caller) => named.attempt(&found, body(caller)).await?,
        Known::Done(value) => value,
        Known::Answered { status, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            return Ok(written(status, body));
        }
    };
    let text = serde_json::to_vec(&value).map_err(|_| ApiError::internal())?;
    let records = named.control.records();
    let kept = records.complete(&named.scope, &named.key, status.as_u16(), &text);
    kept.await.map_err(ControlError::from)?;
    Ok(written(status, text))
}

/// Does the request, or finds what came of it the first time. No answer is kept: whoever asks again may want
/// another one, made of the same thing.
pub(crate) async fn made_once<T, F, B>(
    app: &App,
    mut request: Request<'_>,
    found: impl Fn(String) -> F,
    body: impl FnOnce(Caller) -> B,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<Found<T>, ApiError>>,
    B: Future<Output = Result<T, ApiError>>,
{
    let Some(key) = request.key.take() else {
        return body(request.caller).await;
    };
    let (named, caller) = Named::of(app, request, key);
    let turn = named.control.take_request(&named.scope, &named.key);
    match named.known(turn.as_ref(), caller, &found).await? {
        Known::New(caller) => named.attempt(&found, body(caller)).await,
        Known::Done(value) => Ok(value),
        // None is kept here, so it was not this request's.
        Known::Answered { .. } => Err(used_otherwise()),
    }
}

impl<'r> Named<'r> {
    fn of(app: &'r App, request: Request<'r>, key: String) -> (Named<'r>, Caller) {
        let holder = request.caller.key_id.as_ref().map(ToString::to_string);
        let named = Named {
            control: &app.control,
            scope: format!("{} {}", holder.unwrap_or_default(), request.action),
            key,
            digest: request.digest,
        };
        (named, request.caller)
    }

    /// What is known of it; if that is nothing, it is begun.
    async fn known<T, F>(
        &self,
        turn: Option<&Turn>,
        mut caller: Caller,
        found: &impl Fn(String) -> F,
    ) -> Result<Known<T>, ApiError>
    where
        F: Future<Output = Result<Found<T>, ApiError>>,
    {
        let Named {
            control,
            scope,
            key,
            digest,
        } = self;
        loop {
            // Only who has the turn begins it: two would each take what the other began for abandoned.
            let known = match turn {
                Some(_) => control.begin_request(scope, key, digest).await?,
                None => match control.look_at_request(scope, key, digest).await? {
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
                    return Ok(Known::New(caller));
                }
                Remembered::Replay { status, body } => return Ok(Known::Answered { status, body }),
                Remembered::Mismatch => return Err(used_otherwise()),
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
                Found::Done(value) => return Ok(Known::Done(value)),
                Found::Failed => {}
                Found::Nothing if control.is_abandoned(&doing).await? => {}
                Found::Nothing | Found::Underway => return Err(underway()),
            }
            let abandoned = control.records().abandon(scope, key, &doing).await;
            abandoned.map_err(ControlError::from)?;
        }
    }

    /// Does it. What failed may be tried again under the same key.
    async fn attempt<T, F>(
        &self,
        found: &impl Fn(String) -> F,
        body: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<Found<T>, ApiError>>,
    {
        let error = match body.await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // A database that does not answer has been waited for already.
        match tokio::time::timeout(PATIENCE, self.forget(found, &error)).await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => {
                let error = chain(&problem);
                tracing::warn!(error, "cannot forget a request that failed");
            }
            Err(_) => tracing::warn!("cannot forget a request that failed in time"),
        }
        Err(error)
    }

    /// Forgets it, unless something may have come of it all the same: that is for whoever asks again to find.
    async fn forget<T, F>(
        &self,
        found: &impl Fn(String) -> F,
        error: &ApiError,
    ) -> Result<(), ControlError>
    where
        F: Future<Output = Result<Found<T>, ApiError>>,
    {
        let known = self
            .control
            .look_at_request(&self.scope, &self.key, self.digest);
        let Some(Remembered::InProgress(doing)) = known.await? else {
            return Ok(());
        };
        let is_nothing = match &doing.object {
            None => true,
            Some(object) => match found(object.clone()).await {
                Ok(Found::Failed) => true,
                // Where the database broke off, what it was told may still come.
                Ok(Found::Nothing) => error.is_refusal(),
                _ => false,
            },
        };
        if is_nothing {
            let records = self.control.records();
            records.abandon(&self.scope, &self.key, &doing).await?;
        }
        Ok(())
    }
}

fn used_otherwise() -> ApiError {
    let problem = "this Idempotency-Key was used for another request";
    ControlError::conflict(problem, "use another key").into()
}

fn underway() -> ApiError {
    let problem = "a request with this Idempotency-Key is being done";
    ControlError::conflict(problem, "wait for its answer").into()
}

fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, body).into_response()
}
