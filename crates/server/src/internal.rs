//! What executors in containers report.
//!
//! Each session has a token of its own, derived from one secret: what speaks for one session cannot speak for
//! another. It reaches the executor by a descriptor, and never the code that the executor runs. Every code of
//! an error that is answered here begins with `Internal.`.

mod executions;
mod sessions;
mod speaker;
mod token;

use std::net::IpAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use sandbox_control::{ControlError, Kind, News};
use serde::Serialize;

use crate::client_address::address;
use crate::error::ApiError;
use crate::state::App;

pub(crate) use token::Tokens;

/// Its routes, all below `/internal`.
pub(crate) fn router() -> Router<App> {
    let routes = Router::new()
        .route(
            "/sessions/{session_id}/container_ready",
            post(sessions::ready),
        )
        .route(
            "/sessions/{session_id}/container_exited",
            post(sessions::exited),
        )
        .route(
            "/executions/{execution_id}/status",
            post(executions::status),
        )
        .route(
            "/executions/{execution_id}/heartbeat",
            post(executions::heartbeat),
        )
        .route(
            "/executions/{execution_id}/artifacts",
            post(executions::artifacts),
        )
        .route(
            "/executions/{execution_id}/result",
            post(executions::result),
        )
        .fallback(nothing)
        .method_not_allowed_fallback(otherwise);
    Router::new()
        .nest("/internal", routes)
        // Which is not below it to the router.
        .route("/internal/", any(nothing))
        .layer(map_response(inward))
}

/// There is nothing at this path.
async fn nothing(State(app): State<App>, request: Request) -> ApiError {
    let error = ApiError::of_status(StatusCode::NOT_FOUND);
    stranger(&app, address(&request), error)
}

/// This path does not take that method.
async fn otherwise(State(app): State<App>, request: Request) -> ApiError {
    let error = ApiError::of_status(StatusCode::METHOD_NOT_ALLOWED);
    stranger(&app, address(&request), error)
}

/// What somebody hears who is no executor, unless they ask too often.
fn stranger(app: &App, address: IpAddr, error: ApiError) -> ApiError {
    match app.rates.strangers.take(address) {
        Ok(()) => error,
        Err(wait) => ApiError::too_many(wait),
    }
}

/// An error as executors are told of it, whoever found it.
async fn inward(mut response: Response) -> Response {
    match response.extensions_mut().remove::<ApiError>() {
        Some(error) => error.inward().into_response(),
        None => response,
    }
}

/// What a report is answered with.
#[derive(Debug, Serialize)]
struct Heard {
    message: &'static str,
}

fn heard(news: News) -> Response {
    let (status, message) = match news {
        News::First => (StatusCode::CREATED, "it was kept"),
        News::Again => (StatusCode::OK, "it was kept already"),
    };
    (status, axum::Json(Heard { message })).into_response()
}

/// Nobody who may report this.
fn unauthorized() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "Internal.Unauthorized",
        "the token is not the one of this session",
        "there is no token, or it is another one's",
        "send the token that came with the session",
    )
}

/// An error as executors are told of it.
fn refused(error: ControlError) -> ApiError {
    match error {
        ControlError::NotFound { kind, id } => {
            let code = match kind {
                Kind::Execution => "Internal.InvalidExecution",
                _ => "Internal.InvalidSession",
            };
            ApiError::new(
                StatusCode::NOT_FOUND,
                code,
                format!("there is no {kind} {id}"),
                format!("{kind} {id} is not known"),
                "report nothing more of it",
            )
        }
        ControlError::Conflict { problem, solution } => ApiError::new(
            StatusCode::CONFLICT,
            "Internal.StateConflict",
            "it cannot be so in the state that it is in",
            problem,
            solution,
        ),
        error => error.into(),
    }
}
