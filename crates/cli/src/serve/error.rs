//! Why settings cannot be used.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure};
use thiserror::Error;

use super::raw::Origin;
use crate::surroundings::SurroundingsError;

/// Why settings cannot be used. No text of it has a secret in it.
#[derive(Debug, Error)]
pub(crate) enum SettingError {
    /// The configuration file cannot be read.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// It says something that is not understood.
    #[error("{}:{line}: {message}", path.display())]
    Parse {
        path: PathBuf,
        line: usize,
        message: String,
    },
    /// A value is not one of its setting.
    #[error("{}: {message}", place(origin, name))]
    Value {
        name: &'static str,
        origin: Origin,
        message: String,
    },
    /// A variable holds something that is no text.
    #[error("{0} is not UTF-8")]
    NotText(String),
    /// A secret is given, and a file with it, too.
    #[error("{0} and {1} are both set")]
    Twice(String, String),
    /// The file with a secret cannot be used.
    #[error("{}: cannot use {}", place(origin, name), path.display())]
    SecretFile {
        name: &'static str,
        origin: Origin,
        path: PathBuf,
        source: io::Error,
    },
    /// Two settings name two places for objects, and neither is nearer.
    #[error("{0} and {1} name different places for objects")]
    TwoPlaces(Origin, Origin),
    /// One half of S3's credentials.
    #[error("{0} is set, and {1} is not")]
    HalfCredentials(Origin, &'static str),
    /// Nothing says where to keep what is kept.
    #[error(transparent)]
    Home(#[from] SurroundingsError),
}

/// Where a value stands, with its name where the place has none of its own.
fn place(origin: &Origin, name: &str) -> String {
    match origin {
        Origin::File(..) | Origin::Default => format!("{origin}: {name}"),
        Origin::Environment(_) | Origin::Flag(_) => origin.to_string(),
    }
}

impl Failure for SettingError {
    fn class(&self) -> Class {
        match self {
            SettingError::Read { source, .. } | SettingError::SecretFile { source, .. } => {
                Class::of_io(source)
            }
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            SettingError::Read { .. } => "name a file that is there with --config",
            SettingError::Parse { .. } => "docs/configuration.md lists every key",
            SettingError::Twice(..) | SettingError::TwoPlaces(..) => "keep one of the two",
            SettingError::SecretFile { .. } => {
                "the file holds the secret and nothing else, and the server can read it"
            }
            SettingError::HalfCredentials(..) => {
                "set both, or neither to use the machine's own role"
            }
            SettingError::Home(_) => "set HOME, or name a directory with --data",
            SettingError::Value { .. } | SettingError::NotText(_) => return None,
        };
        Some(hint.to_owned())
    }
}
