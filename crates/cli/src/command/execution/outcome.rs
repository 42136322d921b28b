//! What became of code that a server ran, and how we end because of it.

use sandbox_model::{Class, Failure};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::ending::Ending;
use crate::narration;
use crate::report::{self, Problem, plain};

/// The status for code that was not done in time, as timeout(1) has it.
const TIMED_OUT: u8 = 124;

/// The status for code that was ended by something else than itself.
const NOT_ITS_OWN: u8 = 125;

/// What a server tells of an execution that is over.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    execution_id: String,
    status: String,
    /// What it printed; the first megabyte.
    pub(crate) stdout: String,
    /// What it printed as errors; the first megabyte.
    pub(crate) stderr: String,
    stdout_truncated: bool,
    stderr_truncated: bool,
    exit_code: i32,
    return_value: Option<Box<RawValue>>,
    error: Option<String>,
}

/// Code that did not end by itself.
#[derive(Debug, Error)]
#[error("execution {execution} {ending}")]
struct NotFinished {
    execution: String,
    ending: &'static str,
    source: Reason,
}

#[derive(Debug, Error)]
#[error("{0}")]
struct Reason(String);

impl Failure for NotFinished {
    fn class(&self) -> Class {
        Class::General
    }
}

impl Outcome {
    /// Says what its output does not, and gives the status that is the code's own.
    pub(crate) fn conclude(&self) -> Ending {
        for (stream, truncated) in [
            ("stdout", self.stdout_truncated),
            ("stderr", self.stderr_truncated),
        ] {
            if truncated {
                narration::warn(format_args!(
                    "there was more on {stream} than the server keeps"
                ));
            }
        }
        if let Some(value) = &self.return_value {
            narration::say(format_args!("Returned: {}", plain(value.get())));
        }
        if let Some(ending) = self.unfinished() {
            let reason = self.error.clone();
            let reason = reason.unwrap_or_else(|| "the server does not say why".to_owned());
            report::tell(&Problem::from(NotFinished {
                execution: self.execution_id.clone(),
                ending,
                source: Reason(reason),
            }));
        }
        self.ending()
    }

    /// The status that is the code's own, where it has one.
    pub(crate) fn ending(&self) -> Ending {
        match self.unfinished() {
            Some("timed out") => Ending::Status(TIMED_OUT),
            Some(_) => Ending::Status(NOT_ITS_OWN),
            None => Ending::Status(u8::try_from(self.exit_code).unwrap_or(1)),
        }
    }

    /// How it was ended, where it did not end by itself.
    fn unfinished(&self) -> Option<&'static str> {
        match self.status.as_str() {
            "success" | "failed" => None,
            "timeout" => Some("timed out"),
            "cancelled" => Some("was cancelled"),
            _ => Some("crashed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(status: &str, exit_code: i32) -> Ending {
        let outcome = Outcome {
            execution_id: "exec_20260131_a1b2c3d4".to_owned(),
            status: status.to_owned(),
            stdout: String::new(),
            stderr: String::new(),
            stdout_truncated: false,
            stderr_truncated: false,
            exit_code,
            return_value: None,
            error: None,
        };
        outcome.ending()
    }

    #[test]
    fn the_status_is_the_codes_own_or_says_that_it_has_none() {
        assert_eq!(ending("success", 0), Ending::DONE);
        assert_eq!(ending("failed", 7), Ending::Status(7));
        assert_eq!(ending("failed", 137), Ending::Status(137));
        assert_eq!(ending("failed", -1), Ending::Status(1));
        assert_eq!(ending("timeout", -1), Ending::Status(124));
        assert_eq!(ending("crashed", -1), Ending::Status(125));
        assert_eq!(ending("cancelled", -1), Ending::Status(125));
    }
}
