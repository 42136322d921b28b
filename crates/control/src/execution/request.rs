//! What may be asked for: code, and its bounds.

use sandbox_model::Language;
use sandbox_model::request::{
    MOST_CODE_BYTES, MOST_EVENT_BYTES, MOST_EVENT_DEPTH, TIMEOUTS, depth,
};
use serde_json::Value;

use crate::error::ControlError;

/// Code to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExecution {
    /// The code.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// What it is given.
    pub event: Value,
    /// How long it may take, in seconds.
    pub timeout_seconds: u32,
    /// Whether it is run again when it crashes.
    pub retry: bool,
}

impl NewExecution {
    pub(super) fn check(&self) -> Result<(), ControlError> {
        if self.code.len() > MOST_CODE_BYTES {
            let problem = format!("has {} bytes, more than {MOST_CODE_BYTES}", self.code.len());
            return Err(ControlError::invalid(
                "code",
                problem,
                "upload it as a file, and run that",
            ));
        }
        if self.code.trim().is_empty() {
            return Err(ControlError::invalid(
                "code",
                "is empty",
                "send what is to be run",
            ));
        }
        if self.event.to_string().len() > MOST_EVENT_BYTES {
            let problem = format!("is larger than {MOST_EVENT_BYTES} bytes");
            return Err(ControlError::invalid(
                "event",
                problem,
                "upload it as a file",
            ));
        }
        if depth(&self.event) > MOST_EVENT_DEPTH {
            let problem = format!("is nested deeper than {MOST_EVENT_DEPTH} levels");
            return Err(ControlError::invalid(
                "event",
                problem,
                "upload it as a file",
            ));
        }
        if !TIMEOUTS.contains(&self.timeout_seconds) {
            let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
            let problem = format!(
                "{} is not between {least} and {most} seconds",
                self.timeout_seconds
            );
            return Err(ControlError::invalid(
                "timeout",
                problem,
                "choose one in between",
            ));
        }
        Ok(())
    }
}
