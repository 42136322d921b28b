//! What can go wrong with an object.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use sandbox_model::{Class, Failure};
use thiserror::Error;

use super::{LONGEST_LINK, ObjectKey};

/// Why an object could not be kept or had.
#[derive(Debug, Error)]
pub enum ObjectsError {
    /// The store cannot be opened.
    #[error("cannot open the objects in {place}")]
    Open {
        /// The directory, or bucket and endpoint.
        place: String,
        /// What stood against it.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// There is no such bucket.
    #[error("there is no bucket '{bucket}' at {endpoint}")]
    NoBucket {
        /// Its name.
        bucket: String,
        /// Where it was looked for.
        endpoint: String,
    },
    /// There is no such object.
    #[error("there is no object {key}")]
    NotFound {
        /// Its key.
        key: ObjectKey,
    },
    /// More came than may be kept.
    #[error("object {key} is larger than {most_bytes} bytes")]
    TooLarge {
        /// Its key.
        key: ObjectKey,
        /// What was allowed.
        most_bytes: u64,
    },
    /// A part was asked for that the object does not have.
    #[error("object {key} has {size} bytes and not the range asked for")]
    Range {
        /// Its key.
        key: ObjectKey,
        /// The whole object's size.
        size: u64,
    },
    /// Whoever brought the content failed.
    #[error("the content of object {key} ended early")]
    Content {
        /// Its key.
        key: ObjectKey,
        /// Their error.
        source: io::Error,
    },
    /// On files, a name is an object or has objects below it, never both.
    #[error("object {key} cannot be kept: another object's name is in the way")]
    InTheWay {
        /// Its key.
        key: ObjectKey,
    },
    /// A link was to be valid for longer than S3 allows.
    #[error("a link cannot be valid for {} s", valid.as_secs())]
    LinkTooLong {
        /// What was asked for.
        valid: Duration,
    },
    /// The store says that we may not.
    #[error("{place} does not let us {operation}")]
    Denied {
        /// The bucket and endpoint.
        place: String,
        /// What was tried, and on which object.
        operation: String,
        /// What the store said.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The store does not answer, or fails.
    #[error("cannot {operation}: {place} is not available")]
    Unavailable {
        /// The directory, or bucket and endpoint.
        place: String,
        /// What was tried, and on which object.
        operation: String,
        /// What stood against it.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Failure for ObjectsError {
    fn class(&self) -> Class {
        match self {
            ObjectsError::Denied { .. } => Class::Permission,
            ObjectsError::Unavailable { source, .. } | ObjectsError::Open { source, .. } => source
                .downcast_ref::<io::Error>()
                .map_or(Class::General, Class::of_io),
            _ => Class::General,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ObjectsError::NoBucket { bucket, .. } => Some(format!(
                "create the bucket '{bucket}', or name another with --objects s3:BUCKET"
            )),
            ObjectsError::Denied { .. } => Some(String::from(
                "check the access key, its secret and what it may do with the bucket",
            )),
            ObjectsError::LinkTooLong { .. } => {
                Some(format!("at most {} s", LONGEST_LINK.as_secs()))
            }
            _ => None,
        }
    }
}
