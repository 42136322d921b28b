//! Fields that hold one of a few words, and identifiers, as the API's description tells of them.
//!
//! The words are the model's own, so that none is missing here. What is written and read is text.

use std::borrow::Cow;

use sandbox_model::execution::ArtifactKind;
use sandbox_model::{ExecutionStatus, NodeStatus, RuntimeKind, SessionStatus};
use utoipa::openapi::schema::{Object, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

macro_rules! words {
    ($(#[doc = $doc:literal])+ $view:ident: $name:literal, $words:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(crate) struct $view;

        impl PartialSchema for $view {
            fn schema() -> RefOr<Schema> {
                let description = [$($doc),+].map(str::trim).join("\n");
                Object::builder()
                    .schema_type(Type::String)
                    .description(Some(description))
                    .enum_values(Some($words))
                    .into()
            }
        }

        impl ToSchema for $view {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    };
}

words!(
    /// Where a session is in its life. It ends as `completed`, `failed`, `timeout` or `terminated`, for good.
    SessionStatusView: "SessionStatus",
    SessionStatus::ALL.map(SessionStatus::as_str)
);
words!(
    /// Where an execution is in its life. It ends as `completed` (its exit status was 0), `failed` (it was
    /// another), `timeout`, `crashed` (it was lost) or `cancelled`, for good.
    ExecutionStatusView: "ExecutionStatus",
    ExecutionStatus::ALL.map(ExecutionStatus::as_str)
);
words!(
    /// How an execution ended: what is `completed` as a status is `success` here.
    ResultStatusView: "ResultStatus",
    ["success", "failed", "timeout", "crashed", "cancelled"]
);
words!(
    /// Why an execution did not succeed, as a code: `Sandbox.ExecTimeout` where it took too long, `Sandbox.DiskFull`
    /// where it failed for want of disk space, `Sandbox.ProcessLimit` where it failed because the session has as many
    /// processes as it may have, `Sandbox.ExecException` where it ended with another exit status than 0 for any other reason.
    ResultCodeView: "ResultCode",
    [
        "Sandbox.ExecTimeout",
        "Sandbox.ExecException",
        "Sandbox.DiskFull",
        "Sandbox.ProcessLimit"
    ]
);
words!(
    /// What hosts sessions. `local` is the server's own kernel.
    RuntimeTypeView: "RuntimeType",
    RuntimeKind::ALL.map(RuntimeKind::as_str)
);
words!(
    /// How a node is. Only one that is `online` takes new sessions.
    NodeStatusView: "NodeStatus",
    NodeStatus::ALL.map(NodeStatus::as_str)
);
words!(
    /// What an artifact is.
    ArtifactTypeView: "ArtifactType",
    ArtifactKind::ALL.map(ArtifactKind::as_str)
);
words!(
    /// What an entry of a directory is.
    FileKindView: "FileKind",
    ["file", "directory", "link", "other"]
);
words!(
    /// How the server is: `degraded` where something fails that not everything needs.
    HealthStatusView: "HealthStatus",
    ["healthy", "degraded", "unhealthy"]
);
words!(
    /// How a part of the server is.
    ComponentStatusView: "ComponentStatus",
    ["healthy", "unhealthy"]
);
words!(
    /// That it was accepted.
    SubmittedView: "Submitted",
    ["submitted"]
);

/// A session in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes what is read as an identifier")]
pub(crate) struct SessionPath {
    /// The session.
    #[param(pattern = "^sess_[a-z0-9]{16}$", example = "sess_4k2jx9q0w7m3n5pd")]
    session_id: String,
}

/// An execution in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes what is read as an identifier")]
pub(crate) struct ExecutionPath {
    /// The execution.
    #[param(
        pattern = "^exec_[0-9]{8}_[a-z0-9]{8}$",
        example = "exec_20261116_8f3kq2zd"
    )]
    execution_id: String,
}

/// A template in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes what is read as an identifier")]
pub(crate) struct TemplatePath {
    /// The template.
    #[param(
        pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
        example = "python-basic"
    )]
    template_id: String,
}

/// A file in a session's workspace, in a path.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "describes what is read piece by piece")]
pub(crate) struct FilePath {
    /// The session.
    #[param(pattern = "^sess_[a-z0-9]{16}$", example = "sess_4k2jx9q0w7m3n5pd")]
    session_id: String,
    /// Where it is in the workspace, with slashes as they are: `plots/sales.svg`.
    #[param(example = "plots/sales.svg")]
    path: String,
}

/// What makes a request safe to send again.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes a header that is read by hand")]
pub(crate) struct IdempotencyHeader {
    /// A name for this request, 1 to 128 visible ASCII characters: sent again with the same name and body, it
    /// is answered as it was the first time, and not done again. The same name with another body is 409.
    #[param(
        rename = "Idempotency-Key",
        pattern = "^[!-~]{1,128}$",
        required = false
    )]
    idempotency_key: String,
}
