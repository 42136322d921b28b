//! Why something was not done, sorted by who must act.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use sandbox_executor::protocol::RefusalKind;
use sandbox_model::NodeId;
use sandbox_model::execution::ExecutionStatus;
use sandbox_runtime::{LineError, RuntimeError};
use sandbox_store::{ObjectsError, StoreError};

/// What is kept and can be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum Kind {
    Session,
    Execution,
    Template,
    File,
    Container,
    Node,
    Key,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Session => "session",
            Kind::Execution => "execution",
            Kind::Template => "template",
            Kind::File => "file",
            Kind::Container => "container",
            Kind::Node => "node",
            Kind::Key => "key",
        })
    }
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// What was asked for is not well formed, or not allowed. The asker must change it.
    #[error("{field}: {problem}")]
    Invalid {
        /// Which part of it.
        field: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        solution: String,
    },
    /// There is none.
    #[error("there is no {kind} {id}")]
    NotFound {
        /// What.
        kind: Kind,
        /// Which.
        id: String,
    },
    /// It cannot be done now, or not any more.
    #[error("{problem}")]
    Conflict {
        /// Why.
        problem: String,
        /// What to do.
        solution: String,
    },
    /// The operator does not allow it.
    #[error("{problem}")]
    Forbidden {
        /// What is not allowed.
        problem: String,
        /// What to do.
        solution: String,
    },
    /// It is larger than it may be.
    #[error("{what} is larger than {most} bytes")]
    TooLarge {
        /// What.
        what: String,
        /// How large it may be.
        most: u64,
    },
    /// There is no room for it.
    #[error("{problem}")]
    Exhausted {
        /// Of what.
        problem: String,
        /// What to do.
        solution: String,
    },
    /// Another server has this one's node. The operator must act.
    #[error("node {node} is that of another server, at {endpoint}")]
    Held {
        /// Which.
        node: NodeId,
        /// Where that server is, as a URL.
        endpoint: String,
    },
    /// Something that we need does not answer. The operator must act, or time will.
    #[error("{part} does not answer")]
    Unavailable {
        /// What.
        part: Cow<'static, str>,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Something failed that should not. The operator must act.
    #[error("cannot {what}")]
    Failed {
        /// What.
        what: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ControlError {
    /// A field that is not what it should be.
    pub fn invalid(
        field: &str,
        problem: impl fmt::Display,
        solution: impl Into<String>,
    ) -> ControlError {
        ControlError::Invalid {
            field: field.to_owned(),
            problem: problem.to_string(),
            solution: solution.into(),
        }
    }

    /// There is none of that name.
    pub fn not_found(kind: Kind, id: impl fmt::Display) -> ControlError {
        ControlError::NotFound {
            kind,
            id: id.to_string(),
        }
    }

    /// It cannot be done now.
    pub fn conflict(problem: impl fmt::Display, solution: impl Into<String>) -> ControlError {
        ControlError::Conflict {
            problem: problem.to_string(),
            solution: solution.into(),
        }
    }

    /// A node that alone has what was asked for is not to be had.
    pub(crate) fn away(node: &NodeId, reason: impl Into<String>) -> ControlError {
        ControlError::Unavailable {
            part: format!("node {node}, which has the workspace,").into(),
            source: reason.into().into(),
        }
    }

    /// An execution that has no result yet.
    pub(crate) fn unfinished(id: impl fmt::Display, status: ExecutionStatus) -> ControlError {
        ControlError::conflict(
            format!("execution {id} is {status}: it has no result yet"),
            "wait until it is over, or execute with ?wait=true",
        )
    }

    /// Something that should not have failed did.
    pub(crate) fn failed(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> ControlError {
        ControlError::Failed {
            what: what.into(),
            source: source.into(),
        }
    }
}

/// What helps where a limit does not hold.
const UNLIMITED: &str = "have the operator give the server control groups, as it had before: `sandbox doctor` tells how";

/// What helps where a disk is full.
const MAKE_ROOM: &str = "try again in a while; the operator must make room";

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> ControlError {
        match error {
            StoreError::Missing { kind, id } => match kind {
                "session" => ControlError::not_found(Kind::Session, id),
                "execution" => ControlError::not_found(Kind::Execution, id),
                "template" => ControlError::not_found(Kind::Template, id),
                "container" => ControlError::not_found(Kind::Container, id),
                "node" => ControlError::not_found(Kind::Node, id),
                "key" => ControlError::not_found(Kind::Key, id),
                _ => ControlError::failed("read the records", StoreError::Missing { kind, id }),
            },
            StoreError::Exists { .. } => ControlError::conflict(error, "choose another identifier"),
            StoreError::Stale { .. } => {
                ControlError::conflict(error, "read it again, and try again")
            }
            StoreError::InUse { .. } => ControlError::invalid(
                "template_id",
                error,
                "deprecate it with is_active=false: no new session will use it",
            ),
            StoreError::BadCursor => {
                ControlError::invalid("cursor", error, "use the cursor that the last page gave")
            }
            StoreError::BadLimit(_) => {
                ControlError::invalid("limit", error, "use a number from 1 to 200")
            }
            StoreError::Unkeepable { field, problem } => {
                ControlError::invalid(field, problem, "send text without control characters")
            }
            StoreError::Unavailable { .. } => ControlError::Unavailable {
                part: "the database".into(),
                source: error.into(),
            },
            StoreError::Full { .. } => ControlError::Exhausted {
                problem: "the disk of the database is full".to_owned(),
                solution: MAKE_ROOM.to_owned(),
            },
            _ => ControlError::failed("keep the records", error),
        }
    }
}

impl From<ObjectsError> for ControlError {
    fn from(error: ObjectsError) -> ControlError {
        ControlError::Unavailable {
            part: "the object store".into(),
            source: error.into(),
        }
    }
}

impl From<RuntimeError> for ControlError {
    fn from(error: RuntimeError) -> ControlError {
        match error {
            RuntimeError::NotFound { session, .. } => ControlError::NotFound {
                kind: Kind::Session,
                id: session.to_string(),
            },
            RuntimeError::Full { .. } => ControlError::Exhausted {
                problem: "the disk of the server is full".to_owned(),
                solution: MAKE_ROOM.to_owned(),
            },
            RuntimeError::Busy { .. } => ControlError::Exhausted {
                problem: error.to_string(),
                solution: "try again in a while".to_owned(),
            },
            RuntimeError::Unlimited { .. } => ControlError::conflict(error, UNLIMITED),
            RuntimeError::Conflict { .. } => {
                ControlError::conflict(error, "wait until it is done, and try again")
            }
            _ => ControlError::Unavailable {
                part: "the local runtime".into(),
                source: error.into(),
            },
        }
    }
}

impl From<LineError> for ControlError {
    fn from(error: LineError) -> ControlError {
        match error {
            LineError::Refused(refusal) => match refusal.kind {
                RefusalKind::Full => ControlError::Exhausted {
                    problem: format!("the session's disk is full: {}", refusal.reason),
                    solution: "remove files, or make a session with more disk".to_owned(),
                },
                RefusalKind::Busy => ControlError::Exhausted {
                    problem: format!("the session does too much at once: {}", refusal.reason),
                    solution: "wait until some of it is done".to_owned(),
                },
                RefusalKind::NotFound | RefusalKind::Wrong => ControlError::invalid(
                    "path",
                    refusal.reason,
                    "list the directory to see what is there",
                ),
                RefusalKind::Failed => {
                    ControlError::failed("do it in the session", LineError::Refused(refusal))
                }
            },
            error => ControlError::Unavailable {
                part: "the session's executor".into(),
                source: error.into(),
            },
        }
    }
}

/// An error with what caused it, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What of an error is for whoever asked. Of what failed on our side, they are told no more than that: paths and
/// addresses are for the log.
pub(crate) fn told(error: &ControlError) -> String {
    match error {
        // What became of a session's own executor is its owner's business.
        ControlError::Unavailable { source, .. } if source.is::<LineError>() => chain(error),
        ControlError::Unavailable { .. } | ControlError::Failed { .. } => error.to_string(),
        error => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_log_is_told_to_nobody_else() {
        let details = || std::io::Error::other("/var/lib/sandbox at 10.0.0.7:5432");
        let unavailable = ControlError::Unavailable {
            part: "the database".into(),
            source: details().into(),
        };
        let failed = ControlError::failed("keep the records", details());
        assert_eq!(told(&unavailable), "the database does not answer");
        assert_eq!(told(&failed), "cannot keep the records");
        assert!(chain(&failed).ends_with("10.0.0.7:5432"));
        let cut = ControlError::from(LineError::Cut);
        assert_eq!(told(&cut), chain(&cut));
    }

    #[test]
    fn what_the_asker_must_change_is_told_as_it_is() {
        let invalid = ControlError::invalid("timeout", "is too long", "choose a shorter one");
        assert_eq!(told(&invalid), "timeout: is too long");
        let missing = ControlError::not_found(Kind::Template, "a");
        assert_eq!(told(&missing), chain(&missing));
    }
}
