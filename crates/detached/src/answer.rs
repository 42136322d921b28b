//! What is answered to a request.

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use sandbox_executor::protocol::RefusalKind;
use sandbox_model::RequestId;
use sandbox_runtime::LineError;
use serde::Serialize;

use crate::content::{self, Content};
use crate::control_plane::REQUEST_ID;

/// Why a request is not followed: with every field that an error of the control plane has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    status: StatusCode,
    code: &'static str,
    description: &'static str,
    detail: String,
    solution: &'static str,
    allow: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct View<'v> {
    error_code: String,
    description: &'v str,
    error_detail: &'v str,
    solution: &'v str,
    request_id: &'v RequestId,
}

impl Refused {
    /// One of this status and code.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        description: &'static str,
        detail: impl Into<String>,
        solution: &'static str,
    ) -> Refused {
        Refused {
            status,
            code,
            description,
            detail: detail.into(),
            solution,
            allow: None,
        }
    }

    /// A request that says something that cannot be.
    pub(crate) fn invalid(detail: impl Into<String>) -> Refused {
        Refused::new(
            StatusCode::BAD_REQUEST,
            "InvalidParameter",
            "the request is not valid",
            detail,
            "correct the request",
        )
    }

    /// One that is too large.
    pub(crate) fn too_large(detail: impl Into<String>) -> Refused {
        Refused::new(
            StatusCode::BAD_REQUEST,
            "PayloadTooLarge",
            "the request is too large",
            detail,
            "send less",
        )
    }

    /// Nobody who may ask.
    pub(crate) fn unauthorized() -> Refused {
        Refused::new(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "the token is not the one of this session",
            "there is no token, or it is another one's",
            "send the session's token as a bearer's",
        )
    }

    /// Nothing of the kind.
    pub(crate) fn not_found(detail: impl Into<String>) -> Refused {
        Refused::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "there is nothing at this path",
            detail,
            "look at the path",
        )
    }

    /// Something that cannot be done in this way.
    pub(crate) fn method(allow: &'static str) -> Refused {
        Refused {
            allow: Some(allow),
            ..Refused::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                "this cannot be done with that",
                format!("it takes {allow}"),
                "use another method",
            )
        }
    }

    /// Not as things are.
    pub(crate) fn conflict(detail: impl Into<String>, solution: &'static str) -> Refused {
        Refused::new(
            StatusCode::CONFLICT,
            "StateConflict",
            "it cannot be so in the state that it is in",
            detail,
            solution,
        )
    }

    /// Not now.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Refused {
        Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Unavailable",
            "the executor cannot do that now",
            detail,
            "ask again later",
        )
    }

    /// As an answer to the request of that name.
    pub(crate) fn response(&self, request_id: &RequestId) -> Response<Content> {
        let view = View {
            error_code: format!("Internal.{}", self.code),
            description: self.description,
            error_detail: &self.detail,
            solution: self.solution,
            request_id,
        };
        let mut response = json(self.status, &view);
        if let Some(allow) = self.allow {
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

impl From<LineError> for Refused {
    fn from(error: LineError) -> Refused {
        let LineError::Refused(refusal) = error else {
            return Refused::unavailable(error.to_string());
        };
        match refusal.kind {
            RefusalKind::NotFound => Refused::new(
                StatusCode::NOT_FOUND,
                "FileNotFound",
                "there is no such file in the workspace",
                refusal.reason,
                "list the directory",
            ),
            RefusalKind::Wrong => Refused::invalid(refusal.reason),
            RefusalKind::Full => Refused::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "StorageFull",
                "there is no room in the workspace",
                refusal.reason,
                "remove something first",
            ),
            RefusalKind::Busy => Refused::unavailable(refusal.reason),
            RefusalKind::Failed => Refused::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalError",
                "it was tried and failed",
                refusal.reason,
                "look at the workspace",
            ),
        }
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Content> {
    let kind = HeaderValue::from_static("application/json");
    let mut response = plain(status, content::of_json(value));
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An answer of this content.
pub(crate) fn plain(status: StatusCode, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    response
}

/// Names the request in its answer.
pub(crate) fn named(mut response: Response<Content>, request_id: &RequestId) -> Response<Content> {
    if let Ok(value) = HeaderValue::from_str(request_id.as_str()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}
