//! What is said beside the data: progress, results, warnings. All of it to stderr.
//!
//! Nobody may depend on it and a closed stderr must not stop a command, so failures to write are
//! passed over.

use std::fmt;
use std::io::{self, IsTerminal, Write};

/// Says one line.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    raw(&format!("{line}\n"));
}

/// Warns in one line.
pub(crate) fn warn(line: fmt::Arguments<'_>) {
    raw(&format!("{} {line}\n", Paint::stderr().warning("warning:")));
}

/// Text that has its own line ends.
pub(crate) fn raw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Colours, or their absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

macro_rules! paints {
    ($($name:ident $code:literal),*) => {
        $(pub(crate) fn $name(self, text: &str) -> String {
            match self.on {
                true => format!(concat!("\x1b[", $code, "m{}\x1b[0m"), text),
                false => text.to_owned(),
            }
        })*
    };
}

impl Paint {
    /// Never any colour.
    #[cfg(test)]
    pub(crate) const fn plain() -> Paint {
        Paint { on: false }
    }

    /// For text on stdout.
    pub(crate) fn stdout() -> Paint {
        Paint {
            on: io::stdout().is_terminal() && colour_wanted(),
        }
    }

    /// For text on stderr.
    pub(crate) fn stderr() -> Paint {
        Paint {
            on: io::stderr().is_terminal() && colour_wanted(),
        }
    }

    /// Is there colour?
    pub(crate) const fn is_on(self) -> bool {
        self.on
    }

    paints!(error "1;31", warning "1;33", hint "1;36", good "32", bad "31", caution "33", faint "2", strong "1");
}

/// <https://no-color.org>: any non-empty value turns colour off. A dumb terminal has none.
fn colour_wanted() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_colour && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
