//! Rendering a change set as text.
//!
//! [`unified`] writes a patch in git's format, exact enough that `git apply` (and, but for binary
//! files, `patch -p1`) turns what the workspace started from into what it has. [`stat`] counts lines.
//! [`hunk`] is the same comparison for callers that offer hunks one by one. For a terminal, nothing
//! in a name or in a file reaches it that it would obey.

mod beside;
mod binary;
pub mod hunk;
mod name;
mod section;
mod stat;
mod terminal;

use std::collections::HashSet;
use std::io::{self, Write};

use sandbox_model::{Change, ChangeKind, ChangeSet, EntryKind, RelPath};

use crate::view::View;

pub use stat::stat;

/// Whether the text is for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// With colours, and nothing in the files' own bytes that a terminal would obey.
    Terminal,
    /// For a terminal too, but without colours (`NO_COLOR`).
    Monochrome,
    /// Exact bytes, for `git apply` and `patch`.
    Plain,
}

/// Files above this are treated as binary: nobody reads their lines, and a hole costs nothing to
/// make.
const TEXT_LIMIT: u64 = 10 << 20;

/// So are those with more lines than this: comparing takes some hundred bytes of memory for each line.
const LINE_LIMIT: usize = 2 << 20;

/// A unified diff in git's format. What git cannot carry is listed after it on `beside`, a line each.
pub fn unified(
    view: &View<'_>,
    changes: &ChangeSet,
    colour: Colour,
    out: &mut dyn Write,
    beside: &mut dyn Write,
) -> io::Result<()> {
    let mut missed = beside::Missed::default();
    for change in in_applying_order(changes) {
        section::write(view, change, colour, out, &mut missed)?;
    }
    beside::collect(view, changes, &mut missed)?;
    missed.write(beside)
}

/// Does git call these contents binary? A NUL among the first bytes.
pub(crate) fn is_binary(contents: &[u8]) -> bool {
    contents.iter().take(8000).any(|byte| *byte == 0)
}

/// By path; but what was deleted below a directory comes before the file that took the directory's
/// name, since `patch` works line by line.
fn in_applying_order(changes: &ChangeSet) -> impl Iterator<Item = &Change> {
    let replaced: HashSet<&RelPath> = changes
        .changes
        .iter()
        .filter(|change| was_directory(change) && !is_directory(change))
        .filter(|change| change.after.is_some())
        .map(|change| &change.path)
        .collect();
    let goes_first = move |change: &&Change| {
        let gone = match &change.kind {
            ChangeKind::Deleted => Some(&change.path),
            _ => None,
        };
        // Paths may be thousands of directories deep: most workspaces need no look at those above.
        let gone = gone.filter(|_| !replaced.is_empty());
        gone.is_some_and(|path| above(path).any(|ancestor| replaced.contains(&ancestor)))
    };
    let (first, then): (Vec<_>, Vec<_>) = changes.changes.iter().partition(goes_first);
    first.into_iter().chain(then)
}

/// Every directory above `path`, nearest first.
fn above(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

fn was_directory(change: &Change) -> bool {
    change
        .before
        .is_some_and(|entry| entry.kind == EntryKind::Directory)
}

fn is_directory(change: &Change) -> bool {
    change
        .after
        .is_some_and(|entry| entry.kind == EntryKind::Directory)
}

#[cfg(test)]
mod tests;
