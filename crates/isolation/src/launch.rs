//! Starting a command behind its walls, and waiting for it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use sandbox_model::{Class, Failure};
use thiserror::Error;

use crate::network::Refused;
use crate::policy::Policy;
use crate::runs::Runs;

/// A command that runs. Dropping it kills everything it started.
#[derive(Debug)]
pub struct Run {
    /// The other end of its terminal, for [`crate::policy::Terminal::New`].
    pub master: Option<OwnedFd>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status or signal.
    pub status: Status,
    /// The size limit stopped it: bytes used when it was stopped.
    pub over_size: Option<u64>,
    /// The memory limit killed something inside.
    pub out_of_memory: bool,
    /// Connections that the proxy refused.
    pub refused: Vec<Refused>,
}

/// An exit status or a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `exit(n)`.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
}

/// Why a command could not be started. Nothing is left behind.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A step of the plan failed.
    #[error("cannot {step}")]
    Step {
        /// The step, with its object: "mount the overlay at /home/ada/app".
        step: String,
        /// Why.
        #[source]
        source: io::Error,
        /// What to do.
        hint: Option<String>,
    },
    /// The command is not there, or not executable: exit 127 or 126.
    #[error("cannot run '{command}'")]
    Exec {
        /// What was to be run.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A limit was asked for that this host cannot enforce.
    #[error("cannot enforce {limit}: {reason}")]
    Limit {
        /// Which, as the flag: "--memory".
        limit: &'static str,
        /// In words.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// Another run of the sandbox is on with other isolation settings.
    #[error("sandbox is running with other settings: {what}")]
    Joined {
        /// Which settings differ.
        what: String,
    },
    /// The wall asked for cannot be had.
    #[error("cannot isolate: {reason}")]
    Wall {
        /// In words.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// An exposed or hidden path is not usable.
    #[error("cannot {verb} {path}: {reason}")]
    Path {
        /// "expose" or "hide".
        verb: &'static str,
        /// Which.
        path: PathBuf,
        /// In words.
        reason: String,
    },
}

impl Failure for LaunchError {
    fn class(&self) -> Class {
        todo!()
    }
}

/// Starts `policy`'s command, joining a live run's namespaces where there is one. `lock` is the
/// sandbox's shared lock: the init inside keeps a duplicate, so the sandbox stays busy until its
/// last process is gone. Must be called while the process has a single thread.
pub fn launch(policy: &Policy, runs: &Runs, lock: BorrowedFd<'_>) -> Result<Run, LaunchError> {
    todo!("{policy:?} {runs:?} {lock:?}")
}

impl Run {
    /// Passes a signal on to the command.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        todo!("{signal}")
    }

    /// Waits for the command to end and everything it started to be gone. Meanwhile serves the
    /// network gate and the size limit, and passes on the signals the caller got (SIGTERM, SIGHUP,
    /// SIGUSR1, SIGUSR2, SIGWINCH; SIGINT and SIGQUIT from the terminal reach the command by
    /// themselves and are ignored here).
    pub fn wait(self) -> io::Result<Ended> {
        todo!()
    }
}
