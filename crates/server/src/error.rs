//! How every failure looks from outside.
//!
//! A handler gives an [`ApiError`]; the outermost layer, which knows the request's identifier, writes it
//! out. What the framework itself refuses takes the same shape there.

mod codes;

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandbox_control::{ControlError, Kind, chain};
use sandbox_model::RequestId;
use serde::Serialize;
use utoipa::ToSchema;

pub use codes::ERROR_CODES;

/// What went wrong, for the client.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    description: String,
    detail: String,
    solution: String,
    /// In seconds.
    retry_after: Option<u32>,
    /// The size of the file that does not have the range asked for.
    size: Option<u64>,
}

/// An error, as it is written.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error, example = json!({
    "error_code": "Sandbox.SessionNotFound",
    "description": "there is no session sess_4k2jx9q0w7m3n5pd",
    "error_detail": "session sess_4k2jx9q0w7m3n5pd is not known",
    "solution": "check the identifier; list the sessions to see those there are",
    "request_id": "req_q8z2k5m1x0w7t4bd",
}))]
pub(crate) struct ErrorView {
    /// Which error it is, such as `Sandbox.SessionNotFound`. There may be more of them one day.
    #[schema(pattern = "^(Sandbox|Internal)\\.[A-Za-z]+$")]
    error_code: String,
    /// What failed, in words.
    description: String,
    /// On what, and why.
    error_detail: String,
    /// What to do next.
    solution: String,
    /// The request, as the server's log knows it.
    request_id: String,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        description: impl Into<String>,
        detail: impl Into<String>,
        solution: impl Into<String>,
    ) -> ApiError {
        ApiError {
            status,
            code,
            description: short(description.into()),
            detail: short(detail.into()),
            solution: solution.into(),
            retry_after: None,
            size: None,
        }
    }

    /// A request that is not what it should be.
    pub(crate) fn invalid(detail: impl Into<String>, solution: impl Into<String>) -> ApiError {
        let description = "the request is not valid";
        let code = "Sandbox.InvalidParameter";
        ApiError::new(StatusCode::BAD_REQUEST, code, description, detail, solution)
    }

    /// Nobody we know.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "Sandbox.Unauthorized",
            "the request has no valid API key",
            detail,
            "send the header `Authorization: Bearer KEY`; the admin key is in admin.key in the data directory",
        )
    }

    /// Somebody we know, who may not.
    pub(crate) fn forbidden(detail: impl Into<String>) -> ApiError {
        ApiError::new(
            StatusCode::FORBIDDEN,
            "Sandbox.Forbidden",
            "the API key does not allow this",
            detail,
            "use a key with a greater scope",
        )
    }

    /// Too often.
    pub(crate) fn too_many(wait: Duration) -> ApiError {
        let seconds = u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX);
        let mut error = ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "Sandbox.TooManyRequests",
            "too many requests",
            format!("the rate limit is used up for {seconds} s"),
            format!("wait {seconds} s, as Retry-After says"),
        );
        error.retry_after = Some(seconds);
        error
    }

    /// A range that a file of this size does not have.
    pub(crate) fn unsatisfiable(size: u64) -> ApiError {
        let mut error = ApiError::new(
            StatusCode::RANGE_NOT_SATISFIABLE,
            "Sandbox.InvalidParameter",
            "the file does not have the range asked for",
            format!("Range: the file has {size} bytes"),
            "ask for bytes that it has",
        );
        error.size = Some(size);
        error
    }

    /// Something that we need does not answer.
    pub(crate) fn unavailable(part: &str) -> ApiError {
        let mut error = ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Sandbox.Unavailable",
            format!("{part} does not answer"),
            format!("{part} is needed for this, and failed"),
            "try again in a while; /health tells which parts are well",
        );
        error.retry_after = Some(1);
        error
    }

    /// Something that should not have failed did. The details are for the log.
    pub(crate) fn internal() -> ApiError {
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Sandbox.InternalError",
            "the server failed",
            "an error that it did not expect",
            "look for the request's identifier in the server's log",
        )
    }

    /// Is it the client who must act?
    pub(crate) fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// The same, as executors are told of it.
    pub(crate) fn inward(mut self) -> ApiError {
        self.code = match self.code {
            "Sandbox.NotFound" => "Internal.NotFound",
            "Sandbox.MethodNotAllowed" => "Internal.MethodNotAllowed",
            "Sandbox.InvalidParameter" => "Internal.InvalidParameter",
            "Sandbox.PayloadTooLarge" => "Internal.PayloadTooLarge",
            "Sandbox.TooManyRequests" => "Internal.TooManyRequests",
            "Sandbox.CapacityExhausted" => "Internal.CapacityExhausted",
            "Sandbox.Unavailable" => "Internal.Unavailable",
            "Sandbox.InternalError" => "Internal.InternalError",
            code => code,
        };
        self
    }

    /// Its body in answer to a request that never reached a handler.
    pub(crate) fn text(&self, request_id: &RequestId) -> Vec<u8> {
        serde_json::to_vec(&self.view(request_id)).unwrap_or_default()
    }

    fn view(&self, request_id: &RequestId) -> ErrorView {
        ErrorView {
            error_code: self.code.to_owned(),
            description: self.description.clone(),
            error_detail: self.detail.clone(),
            solution: self.solution.clone(),
            request_id: request_id.to_string(),
        }
    }

    /// As it is written in answer to this request.
    pub(crate) fn render(&self, request_id: &RequestId) -> Response {
        let mut response = (self.status, axum::Json(self.view(request_id))).into_response();
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        if let Some(size) = self.size
            && let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}"))
        {
            headers.insert(header::CONTENT_RANGE, value);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    /// A request whose head could not be read.
    pub(crate) fn of_head(status: StatusCode) -> ApiError {
        let (description, detail, solution) = match status {
            StatusCode::URI_TOO_LONG => (
                "the request's URI is too long",
                "a URI may have 65534 bytes",
                "send what is long in the body, where the route has one",
            ),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
                "the request's headers are too large",
                "a request may have 100 headers, and 400 KiB of them together with its URI",
                "send fewer or shorter headers",
            ),
            StatusCode::REQUEST_TIMEOUT => (
                "the request did not arrive in time",
                "its head must arrive within 30 seconds",
                "send it again, faster",
            ),
            _ => (
                "the request is malformed",
                "its first line or one of its headers is not valid HTTP",
                "send an HTTP/1.1 or HTTP/2 request",
            ),
        };
        let code = "Sandbox.InvalidParameter";
        ApiError::new(status, code, description, detail, solution)
    }

    /// What the framework refused, in our words.
    pub(crate) fn of_status(status: StatusCode) -> ApiError {
        match status {
            StatusCode::NOT_FOUND => ApiError::new(
                status,
                "Sandbox.NotFound",
                "there is nothing at this path",
                "no route has it",
                "see /api/v1/openapi.json for those there are",
            ),
            StatusCode::METHOD_NOT_ALLOWED => ApiError::new(
                status,
                "Sandbox.MethodNotAllowed",
                "this path does not take that method",
                "the Allow header names those it takes",
                "see /api/v1/openapi.json",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                StatusCode::BAD_REQUEST,
                "Sandbox.PayloadTooLarge",
                "the request is too large",
                "its body is larger than this route takes",
                "send less",
            ),
            status if status.is_client_error() => {
                let reason = status.canonical_reason().unwrap_or("refused");
                let code = "Sandbox.InvalidParameter";
                let solution = "see /api/v1/openapi.json";
                ApiError::new(status, code, "the request is not valid", reason, solution)
            }
            _ => ApiError::internal(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<ControlError> for ApiError {
    fn from(error: ControlError) -> ApiError {
        match error {
            ControlError::Invalid {
                field,
                problem,
                solution,
            } => ApiError::invalid(format!("{field}: {problem}"), solution),
            ControlError::NotFound { kind, id } => not_found(kind, &id),
            ControlError::Conflict { problem, solution } => {
                let description = "it cannot be done in the state that it is in";
                let code = "Sandbox.StateConflict";
                ApiError::new(StatusCode::CONFLICT, code, description, problem, solution)
            }
            ControlError::Forbidden { problem, solution } => {
                let (code, description) = ("Sandbox.Forbidden", "the operator does not allow it");
                ApiError::new(StatusCode::FORBIDDEN, code, description, problem, solution)
            }
            ControlError::TooLarge { what, most } => ApiError::new(
                StatusCode::BAD_REQUEST,
                "Sandbox.PayloadTooLarge",
                "it is too large",
                format!("{what} is larger than {most} bytes"),
                "send less, or in parts",
            ),
            ControlError::Exhausted { problem, solution } => {
                let description = "there is no room for it now";
                let code = "Sandbox.CapacityExhausted";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                ApiError::new(status, code, description, problem, solution)
            }
            // Told when a server starts, and to nobody who asks one.
            error @ ControlError::Held { .. } => {
                tracing::error!(%error, "{error}");
                ApiError::internal()
            }
            ControlError::Unavailable { part, source } => {
                tracing::error!(%part, error = %chain(source.as_ref()), "{part} does not answer");
                ApiError::unavailable(&part)
            }
            ControlError::Failed { what, source } => {
                tracing::error!(error = %chain(source.as_ref()), "cannot {what}");
                ApiError::internal()
            }
        }
    }
}

fn not_found(kind: Kind, id: &str) -> ApiError {
    let code = match kind {
        Kind::Session => "Sandbox.SessionNotFound",
        Kind::Execution => "Sandbox.ExecutionNotFound",
        Kind::Template => "Sandbox.TemplateNotFound",
        Kind::File => "Sandbox.FileNotFound",
        Kind::Container => "Sandbox.ContainerNotFound",
        Kind::Node => "Sandbox.NodeNotFound",
        Kind::Key => "Sandbox.KeyNotFound",
    };
    let (description, solution) = match kind {
        Kind::File => (
            format!("File not found in workspace: {id}"),
            "list the directory to see what is there".to_owned(),
        ),
        kind => (
            format!("there is no {kind} {id}"),
            format!("check the identifier; list the {kind}s to see those there are"),
        ),
    };
    let detail = format!("{kind} {id} is not known");
    ApiError::new(StatusCode::NOT_FOUND, code, description, detail, solution)
}

/// What somebody sent may be megabytes long, and is not sent back whole.
fn short(mut text: String) -> String {
    const MOST: usize = 5000;
    if text.len() > MOST {
        text.truncate(text.floor_char_boundary(MOST));
        text.push('…');
    }
    text
}
