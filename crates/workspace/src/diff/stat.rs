//! How much changed, file by file, as `git diff --stat` prints it.

use std::io::{self, Write};

use sandbox_model::{Change, ChangeKind, ChangeSet, RelPath};

use super::Colour;
use super::hunk::Comparison;
use super::section::{Body, Version, versions};
use crate::view::View;

/// Columns of a line.
const WIDTH: usize = 80;
/// The longest name shown whole.
const NAME_WIDTH: usize = 50;

struct Row {
    name: String,
    counted: Counted,
}

enum Counted {
    Lines {
        added: usize,
        removed: usize,
    },
    Bytes {
        before: u64,
        after: u64,
    },
    /// What git has no lines for.
    Words(String),
}

/// Added and deleted lines per file, and their sum, as `git diff --stat` prints them.
pub fn stat(
    view: &View<'_>,
    changes: &ChangeSet,
    colour: Colour,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut rows = Vec::new();
    for change in &changes.changes {
        if let Some(counted) = count(view, change)? {
            rows.push(Row {
                name: name(change),
                counted,
            });
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let name_width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0);
    let name_width = name_width.min(NAME_WIDTH);
    let most = rows
        .iter()
        .map(|row| row.counted.total())
        .max()
        .unwrap_or(0);
    let number_width = most.to_string().len().max(3);
    let graph = WIDTH.saturating_sub(name_width + number_width + 5).max(10);
    for row in &rows {
        let shown = shortened(&row.name, name_width);
        let look = row.counted.show(number_width, scale(most, graph), colour);
        writeln!(out, " {shown:name_width$} | {look}")?;
    }
    writeln!(out, "{}", summary(&rows))
}

fn count(view: &View<'_>, change: &Change) -> io::Result<Option<Counted>> {
    let (before, after) = versions(view, change)?;
    if before.is_none() && after.is_none() {
        return Ok(words(change).map(Counted::Words));
    }
    let empty = || Body::Text(Vec::new());
    let body = |version: Option<Version>| version.map_or_else(empty, |version| version.body);
    Ok(Some(match (body(before), body(after)) {
        (Body::Text(before), Body::Text(after)) => {
            let (added, removed) = Comparison::new(&before, &after).counts();
            Counted::Lines { added, removed }
        }
        _ => {
            let size = |entry: Option<sandbox_model::Entry>| entry.map_or(0, |entry| entry.size);
            Counted::Bytes {
                before: size(change.before),
                after: size(change.after),
            }
        }
    }))
}

/// Directories are told by what is in them, unless they themselves changed.
fn words(change: &Change) -> Option<String> {
    let kind = change.after.or(change.before)?.kind;
    match (&change.kind, kind) {
        (ChangeKind::Mode, _) => {
            let (before, after) = (change.before?, change.after?);
            Some(format!("mode {:04o} -> {:04o}", before.mode, after.mode))
        }
        (_, sandbox_model::EntryKind::Directory) => None,
        (ChangeKind::Deleted, kind) => Some(format!("{} deleted", kind.as_str())),
        (_, kind) => Some(format!("new {}", kind.as_str())),
    }
}

impl Counted {
    fn total(&self) -> usize {
        match self {
            Counted::Lines { added, removed } => added + removed,
            Counted::Bytes { .. } | Counted::Words(_) => 0,
        }
    }

    fn show(&self, width: usize, scale: impl Fn(usize) -> usize, colour: Colour) -> String {
        let paint = |code: &str, sign: &str, count: usize| match colour {
            Colour::Terminal if count > 0 => format!("{code}{}\x1b[m", sign.repeat(count)),
            _ => sign.repeat(count),
        };
        match self {
            Counted::Lines { added, removed } => {
                let plus = paint("\x1b[32m", "+", scale(*added));
                let minus = paint("\x1b[31m", "-", scale(*removed));
                let total = added + removed;
                format!("{total:width$} {plus}{minus}")
                    .trim_end()
                    .to_owned()
            }
            Counted::Bytes { before, after } => format!("Bin {before} -> {after} bytes"),
            Counted::Words(words) => words.clone(),
        }
    }
}

/// Signs for a count, so that the largest fills `graph`; what is not zero shows at least one.
fn scale(most: usize, graph: usize) -> impl Fn(usize) -> usize {
    move |count| match (count, most <= graph) {
        (0, _) => 0,
        (_, true) => count,
        _ => 1 + count * (graph - 2) / most,
    }
}

/// The path; for a rename both, with what they share said once.
fn name(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Renamed { from, .. } => renamed(from, &change.path),
        _ => change.path.to_string(),
    }
}

fn renamed(from: &RelPath, to: &RelPath) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let most = old.len().min(new.len());
    let head = old
        .iter()
        .zip(&new)
        .take(most.saturating_sub(1))
        .take_while(|(a, b)| a == b)
        .count();
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take(most - head).take_while(|(a, b)| a == b).count();
    let text = |names: &[&[u8]]| sandbox_model::path::escape(&names.join(&b'/'));
    if head + tail == 0 {
        return format!("{from} => {to}");
    }
    let middle = |names: &[&[u8]]| text(&names[head..names.len() - tail]);
    let mut shown = text(&old[..head]);
    if head > 0 {
        shown.push('/');
    }
    shown.push_str(&format!("{{{} => {}}}", middle(&old), middle(&new)));
    if tail > 0 {
        shown.push('/');
        shown.push_str(&text(&old[old.len() - tail..]));
    }
    shown
}

/// A name too long loses its beginning.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(length - (width - 3)).collect();
    format!("...{kept}")
}

fn summary(rows: &[Row]) -> String {
    let (mut added, mut removed) = (0, 0);
    for row in rows {
        if let Counted::Lines {
            added: more,
            removed: less,
        } = &row.counted
        {
            added += more;
            removed += less;
        }
    }
    let counted = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let mut text = format!(" {} changed", counted(rows.len(), "file", "files"));
    if added > 0 || removed == 0 {
        text.push_str(&format!(
            ", {}",
            counted(added, "insertion(+)", "insertions(+)")
        ));
    }
    if removed > 0 || added == 0 {
        text.push_str(&format!(
            ", {}",
            counted(removed, "deletion(-)", "deletions(-)")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rename_says_once_what_both_names_share() {
        let show = |from: &str, to: &str| {
            renamed(
                &RelPath::new(from.as_bytes()).unwrap(),
                &RelPath::new(to.as_bytes()).unwrap(),
            )
        };
        assert_eq!(show("a", "b"), "a => b");
        assert_eq!(show("src/a.rs", "src/b.rs"), "src/{a.rs => b.rs}");
        assert_eq!(show("a/x/c", "b/x/c"), "{a => b}/x/c");
        assert_eq!(show("a/c", "a/b/c"), "a/{ => b}/c");
    }
}
