//! The process that raises sessions.
//!
//! A server has threads, and a process with threads must not fork; so before it has any, it forks a process
//! that never does: the watcher, which forks the supervisor and forks it again when it ends. The supervisor
//! makes workspaces and sandboxes, keeps what it raised until it ends, and says
//! when that is. Everything it does, it does as the user whom sessions belong to on the host. It ends
//! with the server, and all sessions with it; their workspaces stay.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use sandbox_isolation::limits::Ground;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others};
use sandbox_linux::message;
use sandbox_model::id::SessionId;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use serde::{Deserialize, Serialize};

use crate::promotion::Promote;
use crate::runtime::Usage;
use crate::spec::SessionSpec;
use crate::users::Users;
pub(crate) use workspaces::SANDBOXES;

mod errand;
mod origin;
mod owners;
mod raise;
mod reach;
mod watcher;
mod work;
mod workspaces;

/// Pieces of control groups are called this and the nursery's pid, so that leftovers can be told.
const GROUND: &str = "sandbox-nursery-";

/// The longest message that goes through the socket itself. A longer one is in a file in memory, whose
/// descriptor comes first, with [`APART`] and its number in its place.
pub(crate) const SHORT: usize = 64 << 10;

/// The longest message at all: the most paths that a promote can name.
const LONG: u64 = 64 << 20;

pub(crate) const APART: u8 = b'@';

/// The longest notice.
pub(crate) const LONGEST_NOTICE: usize = 16 << 10;

/// The longest reason that is reported, in bytes: with everything escaped it fits into a notice.
const LONGEST_REASON: usize = 2 << 10;

/// What the nursery is told, under a number of the teller's choosing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u64,
    /// Which supervisor it is for: the first one, or the one that was started after so many others.
    pub(crate) supervisor: u64,
    pub(crate) what: What,
}

/// What it is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// Nothing; but say so.
    Ping,
    /// Raise this session. The executor's end of its line comes along.
    Raise(SessionSpec),
    /// End this one. Its workspace stays.
    End(SessionId),
    /// End this one, and remove its workspace.
    Discard(SessionId),
    /// Stop everything in this one where it is.
    Freeze(SessionId),
    /// Let it go on.
    Thaw(SessionId),
    /// Make the second a workspace that is a copy of the first one's.
    Fork(SessionId, SessionId),
    /// Tell what this one's workspace has that it did not start with.
    Changes(SessionId),
    /// Apply what this one's workspace has become to its source.
    Promote(SessionId, Promote),
    /// Tell what this one uses.
    Usage(SessionId),
}

impl What {
    /// With which session it is to do it.
    fn session(&self) -> Option<&SessionId> {
        match self {
            What::Ping => None,
            What::Raise(spec) => Some(&spec.session_id),
            What::End(id)
            | What::Discard(id)
            | What::Freeze(id)
            | What::Thaw(id)
            | What::Fork(id, _)
            | What::Changes(id)
            | What::Promote(id, _)
            | What::Usage(id) => Some(id),
        }
    }
}

/// What it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The supervisor of this number is there, and can enforce these limits.
    Ready(u64, LimitsEnforced),
    /// The supervisor ended, for this reason, and another one is started. The watcher says it.
    Down(String),
    /// Something failed that no order can be told of.
    Trouble(String),
    /// What was ordered under this number is done, or could not be for this reason.
    Done(u64, Result<Done, Refusal>),
    /// A session ended that nobody ended here, with this status.
    Ended(SessionId, i32),
}

/// What there is to say of something done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Done {
    /// Nothing.
    Plain,
    /// A session was raised, and has these.
    Raised(LimitsEnforced, Walls),
    /// It uses this much.
    Usage(Usage),
    /// It is in a file, whose descriptor comes with this: `Result<T, Refusal>`, as JSON.
    Apart,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) reason: String,
}

/// What sort of reason it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// There is no such session, or no such workspace.
    NotFound,
    /// Not now: it is in another state.
    Conflict,
    /// There is no room for it.
    Full,
    /// It would not be held to what it was promised to be.
    Unlimited,
    /// It was tried.
    Failed,
}

impl Refusal {
    pub(crate) fn not_raised() -> Refusal {
        Refusal {
            kind: RefusalKind::NotFound,
            reason: "it is not raised".to_owned(),
        }
    }

    /// For an error, with what caused it in one line.
    pub(crate) fn because(error: impl std::error::Error + 'static) -> Refusal {
        let mut refusal = Refusal::from(error.to_string());
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(error) = cause {
            let kind = error.downcast_ref().map(io::Error::kind);
            if let Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) = kind {
                refusal.kind = RefusalKind::Full;
            }
            cause = error.source();
            if let Some(cause) = cause {
                refusal.reason = format!("{}: {cause}", refusal.reason);
            }
        }
        refusal
    }

    pub(crate) fn unlimited(resource: &str) -> Refusal {
        Refusal {
            kind: RefusalKind::Unlimited,
            reason: format!("its limit of {resource} cannot be enforced on this host now"),
        }
    }

    /// The same with a reason that fits into a notice.
    fn short(mut self) -> Refusal {
        self.reason
            .truncate(self.reason.floor_char_boundary(LONGEST_REASON));
        self
    }

    pub(crate) fn conflict(reason: &str) -> Refusal {
        Refusal {
            kind: RefusalKind::Conflict,
            reason: reason.to_owned(),
        }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal {
            kind: RefusalKind::Failed,
            reason,
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::because(error)
    }
}

/// The nursery, as the server sees it.
#[derive(Debug)]
pub struct Nursery {
    pub(crate) socket: OwnedFd,
    pub(crate) enforceable: LimitsEnforced,
    /// Where its state is.
    pub(crate) root: PathBuf,
    /// The users of its sessions, where it was started by root.
    pub(crate) users: Option<Users>,
    /// The watcher ends, with the supervisor, when this is closed.
    lifeline: Option<OwnedFd>,
    watcher: Child,
}

impl Nursery {
    /// Starts it, with its state in `root`, which is made where it is missing. As real root, it becomes one of
    /// `users`, and gives `root` to them; where each session has a user of its own, it keeps the power to act as
    /// those. Must be called while the process has a single thread.
    pub fn start(root: &Path, users: Option<Users>) -> io::Result<Nursery> {
        let (ours, theirs) = message::pair()?;
        let (lifeline, its_end) = message::pair()?;
        std::fs::create_dir_all(root)?;
        if let Some(Users { user, .. }) = users {
            std::os::unix::fs::chown(root, Some(user.user), Some(user.group))?;
        }
        Ground::sweep(GROUND);
        let kept = (ours, lifeline);
        let (watcher, (socket, lifeline)) =
            clone(Namespaces::empty(), Parent::Caller, kept, || {
                let watch = || -> io::Result<()> {
                    close_others(&[theirs.as_fd(), its_end.as_fd()])?;
                    origin::forget()?;
                    // An interrupt at the server's terminal is the server's, which sees through what runs.
                    rustix::process::setsid()?;
                    watcher::watch(root, users, &theirs, &its_end)
                };
                i32::from(watch().is_err())
            })?;
        drop((theirs, its_end));
        let mut nursery = Nursery {
            socket,
            enforceable: LimitsEnforced::default(),
            root: root.to_owned(),
            users,
            lifeline: Some(lifeline),
            watcher,
        };
        let mut bytes = [0; LONGEST_NOTICE];
        let (length, _) = message::receive(&nursery.socket, &mut bytes)?;
        let reason = match serde_json::from_slice(&bytes[..length]) {
            Ok(Notice::Ready(_, enforceable)) => {
                nursery.enforceable = enforceable;
                return Ok(nursery);
            }
            Ok(Notice::Down(reason)) => format!(": {reason}"),
            _ => String::new(),
        };
        Err(io::Error::other(format!(
            "the process that raises sessions does not start{reason}"
        )))
    }
}

fn ground_of(nursery: Pid) -> String {
    format!("{GROUND}{}", nursery.as_raw_nonzero())
}

impl Drop for Nursery {
    fn drop(&mut self) {
        // The watcher ends the supervisor, and every session with it, and removes their control groups.
        drop(self.lifeline.take());
        let _ = self.watcher.wait();
    }
}
