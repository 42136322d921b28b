//! Every request has an identifier: the client's own if it is well formed, else one made here. It is on the
//! answer, on every log line, and in every error.

use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use sandbox_control::random;
use sandbox_model::RequestId;
use tracing::Instrument;

use crate::error::ApiError;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// An answer that is as it is to be, whatever its status: somebody else's, passed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verbatim;

/// Names the request, and writes out the error that answers it, if one does.
pub(crate) async fn name(mut request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(HEADER)
        .and_then(|value| value.to_str().ok());
    let id: RequestId = match given.and_then(|text| text.parse().ok()) {
        Some(id) => id,
        None => RequestId::random(random::numbers()),
    };
    request.extensions_mut().insert(id.clone());
    // Whatever is logged of it has this, however little is logged.
    let span = tracing::error_span!("request", request_id = %id);
    let response = next.run(request).instrument(span).await;
    let mut response = written(response, &id);
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

fn written(response: Response, id: &RequestId) -> Response {
    if let Some(error) = response.extensions().get::<ApiError>() {
        return with_headers_of(&response, error.render(id));
    }
    if response.extensions().get::<Verbatim>().is_some() {
        return response;
    }
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let is_ours = kind.is_some_and(|kind| kind.starts_with("application/json"));
    if (status.is_client_error() || status.is_server_error()) && !is_ours {
        return with_headers_of(&response, ApiError::of_status(status).render(id));
    }
    response
}

/// What was said beside the error, such as which methods are allowed, is still said.
fn with_headers_of(response: &Response, mut rendered: Response) -> Response {
    for (name, value) in response.headers() {
        if *name != CONTENT_LENGTH && !rendered.headers().contains_key(name) {
            rendered.headers_mut().insert(name, value.clone());
        }
    }
    rendered
}
