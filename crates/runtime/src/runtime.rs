//! What every runtime does.
//!
//! Whoever hosts sessions is a [`Runtime`]: this machine's kernel, and whatever else passes the conformance
//! suite. How a session ends without being asked to, each tells in its own way, when it is made.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;

use sandbox_isolation::limits::Consumption;
use sandbox_model::Change;
use sandbox_model::id::SessionId;
use sandbox_model::runtime::{LimitsEnforced, RuntimeKind, Walls};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;

use crate::line::Line;
use crate::promotion::{Promote, Promotion};
use crate::room::Room;
use crate::spec::{Image, SessionSpec};

/// What is asked of a runtime, under way.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuntimeError>> + Send + 'a>>;

/// Something that hosts sessions.
pub trait Runtime: Debug + Send + Sync {
    /// Which one it is.
    fn kind(&self) -> RuntimeKind;

    /// Which limits it can enforce. Known before anything is raised.
    fn enforceable(&self) -> LimitsEnforced;

    /// What its host has, and what of that is free.
    fn room(&self) -> Result<Room, RuntimeError>;

    /// Checks that sessions can have this image, or says why not.
    fn check_image(&self, image: &Image) -> Result<(), String>;

    /// Does it answer?
    fn ping(&self) -> Asked<'_, ()>;

    /// Raises a session, new or not. A limit that cannot be enforced is none; what it has says which.
    fn raise(&self, spec: SessionSpec) -> Asked<'_, Raised>;

    /// Ends a session, with everything that runs in it. Its workspace stays. No error if it has ended.
    fn end<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()>;

    /// Ends a session and removes its workspace. No error if there is none.
    fn discard<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()>;

    /// Stops everything in a session where it is, its executor too: nothing is answered until it is thawed.
    /// Time goes on. An execution whose deadline passes meanwhile is ended as soon as it is thawed.
    fn freeze<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()>;

    /// Lets it go on.
    fn thaw<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()>;

    /// Gives `to`, which has none, a workspace that is a copy of the one of `from`. If that is raised, it
    /// stands still while it is copied.
    fn fork<'a>(&'a self, from: &'a SessionId, to: &'a SessionId) -> Asked<'a, ()>;

    /// The sessions that have a workspace here, raised or not.
    fn workspaces(&self) -> Asked<'_, Vec<SessionId>>;

    /// What a session's workspace has that it did not start with, raised or not. Only so many reports exist
    /// at a time: who asks for another one waits for a moment, and is refused then.
    fn changes<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ChangeReport>;

    /// Applies what a session's workspace has become to the directory it is a copy of, all of it or nothing.
    /// Not while the session is raised.
    fn promote<'a>(&'a self, session: &'a SessionId, what: Promote) -> Asked<'a, Promotion>;

    /// What a session that is raised uses.
    fn usage<'a>(&'a self, session: &'a SessionId) -> Asked<'a, Usage>;
}

/// A session that was raised.
#[derive(Debug, Clone)]
pub struct Raised {
    /// The line to its executor.
    pub line: Line,
    /// Which of its limits are enforced.
    pub limits_enforced: LimitsEnforced,
    /// Which walls it has.
    pub walls: Walls,
}

/// What a workspace has that it did not start with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Path by path.
    pub changes: Vec<Change>,
    /// How many there are, told or not.
    pub total: u64,
    /// The same as a patch in git's format.
    pub diff: String,
    /// What such a patch cannot carry, a line each.
    #[serde(rename = "not_in_diff")]
    pub beside: String,
    /// There is more than is told here.
    pub truncated: bool,
}

/// [`Changes`] as JSON, in a file in memory, so that whoever passes them on need not hold them.
#[derive(Debug)]
pub struct ChangeReport {
    pub(crate) file: File,
    /// Where in the file they are.
    pub(crate) place: Range<u64>,
    /// One of the places for reports.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl ChangeReport {
    /// How many bytes of JSON there are.
    pub fn length(&self) -> u64 {
        self.place.end - self.place.start
    }

    /// The next bytes of the JSON after the first `offset`; none at its end.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length().saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = into.len().min(left);
        self.file
            .read_at(&mut into[..most], self.place.start + offset)
    }

    /// All of it, parsed.
    pub fn read(&self) -> io::Result<Changes> {
        let mut text = vec![0; usize::try_from(self.length()).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut text, self.place.start)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// What a session uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory, in bytes, without what could be dropped from it.
    pub memory_bytes: u64,
    /// Time of processors since it was raised; none where nobody counts it.
    pub cpu_time_ms: Option<f64>,
    /// Processes and threads, the executor's own too.
    pub tasks: u64,
}

impl From<Consumption> for Usage {
    fn from(consumption: Consumption) -> Usage {
        Usage {
            memory_bytes: consumption.memory.unwrap_or(0),
            cpu_time_ms: consumption.cpu.map(|time| time.as_secs_f64() * 1000.0),
            tasks: consumption.tasks.unwrap_or(0),
        }
    }
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// There is no such session here, or no workspace of it.
    #[error("cannot {operation} session {session}: {reason}")]
    NotFound {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// What there is not.
        reason: String,
    },
    /// Not as things are: it is raised already, or its workspace is in use.
    #[error("cannot {operation} session {session}: {reason}")]
    Conflict {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// What is in the way.
        reason: String,
    },
    /// There is no room for it on the host's disk.
    #[error("cannot {operation} session {session}: {reason}")]
    Full {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// What there is no room for.
        reason: String,
    },
    /// It would not be held to what it was promised to be.
    #[error("cannot {operation} session {session}: {reason}")]
    Unlimited {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// Which limit would not hold.
        reason: String,
    },
    /// Too much else is being done at the moment.
    #[error("cannot {operation} session {session}: {reason}")]
    Busy {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// What else.
        reason: String,
    },
    /// It was tried and failed.
    #[error("cannot {operation} session {session}: {reason}")]
    Failed {
        /// What was to be done.
        operation: &'static str,
        /// To which.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// What its host has cannot be found out.
    #[error("cannot find out what this machine has free")]
    Room(#[source] io::Error),
    /// What hosts the sessions is gone.
    #[error("the process that raises sessions is gone")]
    Gone,
    /// It answers something else.
    #[error("the process that raises sessions does not answer to what it was told")]
    Nonsense,
    /// It cannot be told.
    #[error("cannot tell the process that raises sessions")]
    Tell(#[source] io::Error),
}
