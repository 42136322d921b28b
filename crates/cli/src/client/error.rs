//! What can go wrong between us and a server.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure};
use serde::Deserialize;
use thiserror::Error;

/// Why a server was not asked, or did not do what it was asked. No text of it has a key in it.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// What was named is not a server.
    #[error("'{text}' is not a server's address: {problem}")]
    Address { text: String, problem: &'static str },
    /// A variable holds something that is no text.
    #[error("{0} is not UTF-8")]
    NotText(&'static str),
    /// A key is given, and a file with one, too.
    #[error("{0} and {1} are both set")]
    Twice(&'static str, &'static str),
    /// The file with the key cannot be used.
    #[error("cannot read the API key in {}", path.display())]
    KeyFile { path: PathBuf, source: io::Error },
    /// A key that cannot be one.
    #[error("what is in {0} is not an API key")]
    NoKeyAtAll(String),
    /// There is no key to send.
    #[error("there is no API key for {server}")]
    NoKey { server: String },
    /// A key would be sent for everybody on the way to read.
    #[error("not sending the API key unencrypted to {host}")]
    Plain { host: String },
    /// The client cannot be set up.
    #[error("cannot speak to {server}")]
    SetUp { server: String, source: Cause },
    /// Nobody answers there.
    #[error("cannot reach the server at {server}")]
    Unreachable {
        server: String,
        local: bool,
        source: Cause,
    },
    /// The answer, or what we sent, broke off.
    #[error("the connection to {server} broke off")]
    Broken { server: String, source: Cause },
    /// What was to be sent cannot be read.
    #[error("cannot read {what}")]
    Source { what: String, source: io::Error },
    /// The server says no.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// Something answers that is not our server.
    #[error("{server} answers with status {status}, and not as a sandbox server does")]
    Stranger { server: String, status: u16 },
    /// The server sends us elsewhere.
    #[error("{server} sends us on to {to}, where we do not go with a key")]
    Elsewhere { server: String, to: String },
    /// An answer that does not say what it should.
    #[error("cannot understand the answer of {server}")]
    Unreadable {
        server: String,
        source: serde_json::Error,
    },
    /// An answer without end.
    #[error("the answer of {server} is longer than any should be")]
    TooLong { server: String },
    /// A path that leads out of a workspace.
    #[error("'{0}' leads out of the workspace")]
    Path(String),
}

/// What the server said when it refused.
#[derive(Debug, Deserialize, Error)]
#[error("{description}")]
pub(crate) struct Refused {
    /// The status of the answer.
    #[serde(skip)]
    pub(crate) status: u16,
    pub(crate) error_code: String,
    description: String,
    error_detail: String,
    solution: String,
    request_id: String,
    /// The detail, as what caused it.
    #[serde(skip)]
    source: Option<Cause>,
}

impl Refused {
    /// Reads the server's error object; `None` when it is none.
    pub(super) fn read(status: u16, body: &[u8]) -> Option<Refused> {
        let mut refused: Refused = serde_json::from_slice(body).ok()?;
        refused.status = status;
        refused.source = Some(Cause(format!(
            "{} ({}, request {})",
            refused.error_detail, refused.error_code, refused.request_id
        )));
        Some(refused)
    }

    fn class(&self) -> Class {
        match (self.status, self.error_code.as_str()) {
            (401 | 403, _) => Class::Permission,
            (404, _) => Class::NotFound,
            (409, _) => Class::Conflict,
            (_, "Sandbox.CapacityExhausted" | "Sandbox.PayloadTooLarge") => Class::DiskFull,
            _ => Class::General,
        }
    }
}

/// Why something failed, in words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cause(pub(super) String);

impl Cause {
    /// The innermost reason: what libraries wrap around it tells nobody anything.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Cause {
        let mut innermost = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        Cause(innermost.to_string())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Cause {}

impl ClientError {
    /// An answer that ended before it was complete.
    pub(crate) fn ended(server: String) -> ClientError {
        ClientError::Broken {
            server,
            source: Cause("the server ended it".to_owned()),
        }
    }

    /// Did the server refuse with this status?
    pub(crate) fn is_refusal(&self, status: u16) -> bool {
        matches!(self, ClientError::Refused(refused) if refused.status == status)
    }
}

impl Failure for ClientError {
    fn class(&self) -> Class {
        match self {
            ClientError::KeyFile { source, .. } | ClientError::Source { source, .. } => {
                Class::of_io(source)
            }
            ClientError::NoKey { .. } | ClientError::Plain { .. } => Class::Permission,
            ClientError::Refused(refused) => refused.class(),
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ClientError::Address { .. } => {
                "write it as http://127.0.0.1:8000 or https://example.com"
            }
            ClientError::Twice(..) => "keep one of the two",
            ClientError::KeyFile { .. } => "name a file that is there, and that you can read",
            ClientError::NoKeyAtAll(_) => "a key is one word, and there is nothing beside it",
            ClientError::NoKey { .. } => {
                "set SANDBOX_API_KEY, or name a file with it in SANDBOX_API_KEY_FILE or --key-file; \
                 the server keeps the admin's in admin.key in its data directory"
            }
            ClientError::Plain { .. } => {
                "use https, or a tunnel (ssh -L 8000:127.0.0.1:8000 HOST); give --allow-plain-http \
                 if you trust everybody on the way"
            }
            ClientError::Unreachable { local: true, .. } => {
                "start it with `sandbox serve`, or name another with --server or SANDBOX_SERVER"
            }
            ClientError::Unreachable { .. } => {
                "see whether the address in --server or SANDBOX_SERVER is right, and reachable from here"
            }
            ClientError::Stranger { .. } => {
                "see whether the address in --server or SANDBOX_SERVER is a sandbox server's"
            }
            ClientError::Elsewhere { .. } => "if that is the server, name it with --server",
            ClientError::Refused(refused) => match refused.error_code.as_str() {
                // What the server says is for those who write requests by hand.
                "Sandbox.Unauthorized" => {
                    "see whether the key in SANDBOX_API_KEY, SANDBOX_API_KEY_FILE or --key-file is \
                     this server's; the admin's is in admin.key in its data directory"
                }
                _ => return Some(refused.solution.clone()),
            },
            ClientError::Path(_) => "paths are relative to /workspace",
            ClientError::NotText(_)
            | ClientError::SetUp { .. }
            | ClientError::Broken { .. }
            | ClientError::Source { .. }
            | ClientError::Unreadable { .. }
            | ClientError::TooLong { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> ClientError {
        let body = format!(
            r#"{{"error_code":"{code}","description":"what","error_detail":"why",
                "solution":"do","request_id":"req"}}"#
        );
        let refused = Refused::read(status, body.as_bytes()).unwrap();
        ClientError::Refused(Box::new(refused))
    }

    #[test]
    fn what_the_server_says_is_what_is_told() {
        let error = refused(400, "Sandbox.InvalidParameter");
        assert_eq!(error.to_string(), "what");
        assert_eq!(error.hint().as_deref(), Some("do"));
        let cause = error.source().unwrap().to_string();
        assert_eq!(cause, "why (Sandbox.InvalidParameter, request req)");
    }

    #[test]
    fn refusals_have_the_statuses_of_other_commands() {
        for (status, code, class) in [
            (400, "Sandbox.InvalidParameter", Class::General),
            (400, "Sandbox.PayloadTooLarge", Class::DiskFull),
            (401, "Sandbox.Unauthorized", Class::Permission),
            (403, "Sandbox.Forbidden", Class::Permission),
            (404, "Sandbox.SessionNotFound", Class::NotFound),
            (409, "Sandbox.StateConflict", Class::Conflict),
            (500, "Sandbox.InternalError", Class::General),
            (503, "Sandbox.CapacityExhausted", Class::DiskFull),
            (503, "Sandbox.Unavailable", Class::General),
        ] {
            assert_eq!(refused(status, code).class(), class, "{code}");
        }
    }

    #[test]
    fn what_is_no_error_object_is_no_refusal() {
        for body in ["", "{}", "<html>502 Bad Gateway</html>", "[1]"] {
            assert!(Refused::read(502, body.as_bytes()).is_none(), "{body}");
        }
    }
}
