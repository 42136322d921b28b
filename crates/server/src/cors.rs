//! Which pages in browsers may ask.
//!
//! None, unless the operator names where they come from. A page brings a key that it was given, never a
//! cookie: so a browser is not told that it may send what it knows of its own.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser need not ask again.
const REMEMBERED: Duration = Duration::from_secs(600);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Lets pages from `origins` ask; none where there are no pages.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let every = origins.iter().any(|origin| origin == "*");
    let named = origins.iter().filter_map(|origin| origin.parse().ok());
    let origins = match every {
        true => AllowOrigin::any(),
        false => AllowOrigin::list(named.collect::<Vec<HeaderValue>>()),
    };
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    let sent = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        header::RANGE,
        HeaderName::from_static("idempotency-key"),
        HeaderName::from_static("last-event-id"),
        REQUEST_ID,
    ];
    let read = [
        header::CONTENT_DISPOSITION,
        header::CONTENT_RANGE,
        header::RETRY_AFTER,
        REQUEST_ID,
    ];
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods(methods)
        .allow_headers(sent)
        .expose_headers(read)
        .max_age(REMEMBERED);
    Some(layer)
}
