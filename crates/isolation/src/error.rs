//! Why a launch failed, in words for whoever asked for it.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure};
use thiserror::Error;

use crate::network::NetworkError;

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
    /// A standard stream is a directory: `..` leads from it to all of the host.
    #[error("{stream} is a directory, which would lead out of the sandbox")]
    Stream {
        /// "standard input".
        stream: &'static str,
    },
    /// The isolated network cannot be had as asked.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Failure for LaunchError {
    fn class(&self) -> Class {
        match self {
            LaunchError::Step { source, .. } | LaunchError::Exec { source, .. } => {
                Class::of_io(source)
            }
            LaunchError::Wall { .. } => Class::Permission,
            LaunchError::Joined { .. } => Class::Busy,
            LaunchError::Network(error) => error.class(),
            LaunchError::Limit { .. } | LaunchError::Path { .. } | LaunchError::Stream { .. } => {
                Class::General
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            LaunchError::Step { hint, .. } => hint.clone(),
            LaunchError::Network(error) => error.hint(),
            LaunchError::Limit { hint, .. } | LaunchError::Wall { hint, .. } => Some(hint.clone()),
            LaunchError::Joined { .. } => {
                Some("wait for it to end, or run with the same settings".to_owned())
            }
            LaunchError::Stream { .. } => {
                Some("give it a file, a pipe or /dev/null instead".to_owned())
            }
            LaunchError::Exec { .. } | LaunchError::Path { .. } => None,
        }
    }
}
