//! Rendering a change set as text.

use std::io::{self, Write};

use sandbox_model::ChangeSet;

use crate::view::View;

/// Whether the text is for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With colours, and nothing in the files' own bytes that a terminal would obey.
    Terminal,
    /// Exact bytes, for `git apply` and `patch`.
    Plain,
}

/// A unified diff in git's format. What git cannot carry is listed after it on `beside`.
pub fn unified(
    view: &View<'_>,
    changes: &ChangeSet,
    colour: Colour,
    out: &mut dyn Write,
    beside: &mut dyn Write,
) -> io::Result<()> {
    todo!("{changes:?} {colour:?} {:p} {:p} {:p}", view, out, beside)
}

/// Added and deleted lines per file, and their sum, as `git diff --stat` prints them.
pub fn stat(
    view: &View<'_>,
    changes: &ChangeSet,
    colour: Colour,
    out: &mut dyn Write,
) -> io::Result<()> {
    todo!("{changes:?} {colour:?} {:p} {:p}", view, out)
}

/// Does git call these contents binary? A NUL among the first bytes.
pub(crate) fn is_binary(contents: &[u8]) -> bool {
    contents.iter().take(8000).any(|byte| *byte == 0)
}
