//! What was begun is done, though whoever asked for it has gone.
//!
//! The framework drops a request whose client hangs up, wherever it is at that moment: a session would stay
//! half made. So what changes something goes on in a task of its own.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use crate::error::ApiError;

/// Sees a request through that changes something.
pub(crate) async fn persevere(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let done = next.run(request).instrument(tracing::Span::current());
    match tokio::spawn(done).await {
        Ok(response) => response,
        Err(_) => ApiError::internal().into_response(),
    }
}
