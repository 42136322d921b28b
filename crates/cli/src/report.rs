//! How every error is told.
//!
//! ```text
//! error: cannot overlay /home/ada/app
//!   caused by: Operation not permitted (os error 1)
//! hint: user namespaces are off; `sandbox doctor` shows how to turn them on
//! ```
//!
//! Errors of the libraries and of this crate's own modules all arrive as a [`Failure`]; nothing here
//! knows any of them by name. What they quote from outside may hold anything, so control characters
//! are escaped before they reach the terminal.

use std::error::Error;

use sandbox_model::{Class, Failure};

use crate::narration::{self, Paint};
use crate::output::OutputError;

/// Why a command stopped.
#[derive(Debug)]
pub(crate) enum Problem {
    /// To be told.
    Failure(Box<dyn Failure>),
    /// Told already; only the status is left.
    Told(u8),
    /// Whoever read our output went away: not our failure.
    ClosedPipe,
}

impl<F: Failure> From<F> for Problem {
    fn from(failure: F) -> Problem {
        Problem::Failure(Box::new(failure))
    }
}

impl From<OutputError> for Problem {
    fn from(error: OutputError) -> Problem {
        match error.is_closed_pipe() {
            true => Problem::ClosedPipe,
            false => Problem::Failure(Box::new(error.unwritable())),
        }
    }
}

impl Problem {
    /// Its exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Problem::Failure(failure) => failure.class().exit_status(),
            Problem::Told(status) => *status,
            Problem::ClosedPipe => 0,
        }
    }

    /// One line, for the history.
    pub(crate) fn line(&self) -> String {
        match self {
            Problem::Failure(failure) => plain(&failure.to_string()),
            Problem::Told(status) => format!("status {status}"),
            Problem::ClosedPipe => "output closed".to_owned(),
        }
    }

    /// Is it of this class?
    pub(crate) fn is(&self, class: Class) -> bool {
        matches!(self, Problem::Failure(failure) if failure.class() == class)
    }
}

/// Prints the problem to stderr and gives its exit status.
pub(crate) fn tell(problem: &Problem) -> u8 {
    if let Problem::Failure(failure) = problem {
        narration::raw(&render(failure.as_ref(), Paint::stderr()));
    }
    problem.status()
}

/// The text of an error: its line, its causes, its hint.
fn render(failure: &dyn Failure, paint: Paint) -> String {
    let mut text = format!(
        "{} {}\n",
        paint.error("error:"),
        plain(&failure.to_string())
    );
    let mut cause = failure.source();
    while let Some(error) = cause {
        text.push_str(&format!("  caused by: {}\n", plain(&error.to_string())));
        cause = error.source();
    }
    if let Some(hint) = failure.hint() {
        text.push_str(&format!("{} {}\n", paint.hint("hint:"), plain(&hint)));
    }
    text
}

/// The text without anything a terminal would obey. Backslashes stay: the text is for reading.
pub(crate) fn plain(text: &str) -> String {
    if text.chars().any(sandbox_model::path::is_unprintable) {
        sandbox_model::path::escape(text.as_bytes()).replace("\\\\", "\\")
    } else {
        text.to_owned()
    }
}

/// An error that is nothing but its words: for what only the command line can get wrong.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    message: String,
    hint: Option<String>,
    class: Class,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Refusal {
    /// A refusal in words.
    pub(crate) fn new(message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            hint: None,
            class: Class::General,
            source: None,
        }
    }

    /// What to do instead.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// Another class than [`Class::General`].
    pub(crate) fn class(mut self, class: Class) -> Refusal {
        self.class = class;
        self
    }

    /// With its cause.
    pub(crate) fn caused_by(mut self, error: impl Error + Send + Sync + 'static) -> Refusal {
        self.source = Some(Box::new(error));
        self
    }

    /// A system call that failed: `cannot OPERATION OBJECT`.
    pub(crate) fn io(what: impl Into<String>, error: std::io::Error) -> Refusal {
        let class = Class::of_io(&error);
        Refusal::new(what).class(class).caused_by(error)
    }
}

impl Failure for Refusal {
    fn class(&self) -> Class {
        self.class
    }

    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_its_hint() {
        let error = Refusal::io("cannot overlay /app", std::io::Error::from_raw_os_error(1))
            .hint("user namespaces are off");
        assert_eq!(
            render(&error, Paint::plain()),
            "error: cannot overlay /app\n  caused by: Operation not permitted (os error 1)\n\
             hint: user namespaces are off\n"
        );
        assert_eq!(Problem::from(error).status(), 3);
    }

    #[test]
    fn what_an_error_quotes_cannot_steer_the_terminal() {
        let error = Refusal::new("no sandbox named 'a\x1b[2Jb\\c'");
        assert_eq!(
            render(&error, Paint::plain()),
            "error: no sandbox named 'a\\x1b[2Jb\\c'\n"
        );
    }
}
