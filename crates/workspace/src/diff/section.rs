//! One file's part of a patch.

use std::io::{self, Write};

use sandbox_model::{Change, ChangeKind, Entry, EntryKind, RelPath};

use super::beside::Missed;
use super::hunk::{Comparison, Line};
use super::terminal::{Look, write_line};
use super::{Colour, LINE_LIMIT, TEXT_LIMIT, binary, is_binary, name};
use crate::content;
use crate::side::Side;
use crate::view::View;

/// Contents above this are named as changed, but not carried.
const CARRIED_LIMIT: u64 = 32 << 20;

/// One version of a file or symlink.
pub(super) struct Version {
    pub(super) mode: GitMode,
    pub(super) body: Body,
}

/// All that git keeps of a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitMode {
    File,
    Executable,
    Symlink,
}

/// What is in it.
pub(super) enum Body {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// Too large to be carried.
    Huge,
    /// What it was at first was not kept.
    Lost,
}

impl GitMode {
    /// The mode git would keep of `entry`; `None` for what git does not know.
    pub(super) fn of(entry: &Entry) -> Option<GitMode> {
        match entry.kind {
            EntryKind::File if entry.mode & 0o100 != 0 => Some(GitMode::Executable),
            EntryKind::File => Some(GitMode::File),
            EntryKind::Symlink => Some(GitMode::Symlink),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            GitMode::File => "100644",
            GitMode::Executable => "100755",
            GitMode::Symlink => "120000",
        }
    }
}

impl Version {
    /// Reads one version; `None` for what git does not know.
    pub(super) fn read(
        side: &dyn Side,
        path: &RelPath,
        entry: Option<&Entry>,
    ) -> io::Result<Option<Version>> {
        let Some(entry) = entry else { return Ok(None) };
        let Some(mode) = GitMode::of(entry) else {
            return Ok(None);
        };
        let body = match mode {
            GitMode::Symlink => side.read_link(path).map(Body::Text),
            GitMode::File | GitMode::Executable => read_file(side, path),
        };
        let body = match body {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Body::Lost,
            body => body.map_err(|error| naming(path, &error))?,
        };
        Ok(Some(Version { mode, body }))
    }
}

fn read_file(side: &dyn Side, path: &RelPath) -> io::Result<Body> {
    let file = side.open(path)?;
    let text_sized = file.metadata()?.len() <= TEXT_LIMIT;
    Ok(match content::read_up_to(&file, CARRIED_LIMIT)? {
        None => Body::Huge,
        Some(contents) if text_sized && !is_binary(&contents) && few_lines(&contents) => {
            Body::Text(contents)
        }
        Some(contents) => Body::Binary(contents),
    })
}

fn few_lines(contents: &[u8]) -> bool {
    let ends = contents.iter().filter(|byte| **byte == b'\n');
    ends.take(LINE_LIMIT + 1).count() <= LINE_LIMIT
}

fn naming(path: &RelPath, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

impl Body {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Body::Text(bytes) | Body::Binary(bytes) => Some(bytes),
            Body::Huge | Body::Lost => None,
        }
    }
}

/// Both versions of what `change` is about, where git knows their kind.
pub(super) fn versions(
    view: &View<'_>,
    change: &Change,
) -> io::Result<(Option<Version>, Option<Version>)> {
    let from = match &change.kind {
        ChangeKind::Renamed { from, .. } => from,
        _ => &change.path,
    };
    let before = Version::read(view.before(), from, change.before.as_ref())?;
    let after = Version::read(view.workspace(), &change.path, change.after.as_ref())?;
    Ok((before, after))
}

/// Writes the part of the patch that is about `change`; nothing when git has no words for it.
pub(super) fn write(
    view: &View<'_>,
    change: &Change,
    colour: Colour,
    out: &mut dyn Write,
    missed: &mut Missed,
) -> io::Result<()> {
    let (before, after) = versions(view, change)?;
    let section = |before, after| Section {
        change,
        colour,
        before,
        after,
    };
    match (&before, &after) {
        (None, None) => Ok(()),
        // git has no word for "became a symlink": the one goes, the other comes.
        (Some(old), Some(new))
            if (old.mode == GitMode::Symlink) != (new.mode == GitMode::Symlink) =>
        {
            section(Some(old), None).write(out, missed)?;
            section(None, Some(new)).write(out, missed)
        }
        _ => section(before.as_ref(), after.as_ref()).write(out, missed),
    }
}

struct Section<'c> {
    change: &'c Change,
    colour: Colour,
    before: Option<&'c Version>,
    after: Option<&'c Version>,
}

impl Section<'_> {
    fn write(&self, out: &mut dyn Write, missed: &mut Missed) -> io::Result<()> {
        let renamed = matches!(self.change.kind, ChangeKind::Renamed { .. });
        let same_mode = match (self.before, self.after) {
            (Some(before), Some(after)) => before.mode == after.mode,
            _ => false,
        };
        if !self.contents_differ() && same_mode && !renamed {
            return Ok(());
        }
        self.header(out)?;
        self.body(out, missed)
    }

    fn old_path(&self) -> &RelPath {
        match &self.change.kind {
            ChangeKind::Renamed { from, .. } => from,
            _ => &self.change.path,
        }
    }

    fn line(&self, text: &str, look: Look, out: &mut dyn Write) -> io::Result<()> {
        write_line(text.as_bytes(), look, self.colour, out)
    }

    fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        let (old, new) = (self.old_path(), &self.change.path);
        let quoted = |prefix, path| name::quoted(prefix, path, self.colour);
        let mut lines = vec![format!(
            "diff --git {} {}",
            quoted("a/", old),
            quoted("b/", new)
        )];
        match (self.before, self.after) {
            (Some(before), Some(after)) if before.mode != after.mode => {
                lines.push(format!("old mode {}", before.mode.as_str()));
                lines.push(format!("new mode {}", after.mode.as_str()));
            }
            (None, Some(after)) => lines.push(format!("new file mode {}", after.mode.as_str())),
            (Some(before), None) => {
                lines.push(format!("deleted file mode {}", before.mode.as_str()));
            }
            _ => {}
        }
        if let ChangeKind::Renamed { from, similarity } = &self.change.kind {
            lines.push(format!("similarity index {similarity}%"));
            lines.push(format!("rename from {}", quoted("", from)));
            lines.push(format!("rename to {}", quoted("", new)));
        }
        if self.colour == Colour::Plain
            && self.contents_differ()
            && let (Some(old), Some(new)) = (object(self.before), object(self.after))
        {
            lines.push(format!("index {old}..{new}{}", self.unchanged_mode()));
        }
        lines
            .iter()
            .try_for_each(|line| self.line(line, Look::Header, out))
    }

    /// A mode that stays is said beside the objects: `patch` needs it to know a symlink.
    fn unchanged_mode(&self) -> String {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before.mode == after.mode => {
                format!(" {}", after.mode.as_str())
            }
            _ => String::new(),
        }
    }

    fn contents_differ(&self) -> bool {
        fn bytes(version: Option<&Version>) -> Option<&[u8]> {
            version.map_or(Some(&[]), |version| version.body.bytes())
        }
        let one_side = self.before.is_none() != self.after.is_none();
        match (bytes(self.before), bytes(self.after)) {
            (Some(before), Some(after)) => before != after || one_side,
            _ => !matches!(
                self.change.kind,
                ChangeKind::Mode
                    | ChangeKind::Renamed {
                        similarity: 100,
                        ..
                    }
            ),
        }
    }

    fn body(&self, out: &mut dyn Write, missed: &mut Missed) -> io::Result<()> {
        if !self.contents_differ() {
            return Ok(());
        }
        let empty = Body::Text(Vec::new());
        let before = self.before.map_or(&empty, |version| &version.body);
        let after = self.after.map_or(&empty, |version| &version.body);
        match (before, after) {
            (Body::Text(before), Body::Text(after)) => self.text(before, after, out),
            (Body::Huge | Body::Lost, _) | (_, Body::Huge | Body::Lost) => {
                let lost = matches!(before, Body::Lost) || matches!(after, Body::Lost);
                missed.add(
                    &self.change.path,
                    if lost {
                        "contents not in the patch: what it held at first was not kept"
                    } else {
                        "contents not in the patch: too large"
                    },
                );
                self.differ(out)
            }
            (before, after) => match (self.colour, before.bytes(), after.bytes()) {
                (Colour::Plain, Some(before), Some(after)) => binary::write(before, after, out),
                _ => self.differ(out),
            },
        }
    }

    fn differ(&self, out: &mut dyn Write) -> io::Result<()> {
        let (old, new) = self.names();
        self.line(
            &format!("Binary files {old} and {new} differ"),
            Look::Plain,
            out,
        )
    }

    /// The names on both sides, `/dev/null` for the one that does not exist.
    fn names(&self) -> (String, String) {
        let named = |version: Option<&Version>, prefix, path| match version {
            Some(_) => name::quoted(prefix, path, self.colour),
            None => "/dev/null".to_owned(),
        };
        (
            named(self.before, "a/", self.old_path()),
            named(self.after, "b/", &self.change.path),
        )
    }

    fn text(&self, before: &[u8], after: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let comparison = Comparison::new(before, after);
        let hunks = comparison.hunks();
        if hunks.is_empty() {
            return Ok(());
        }
        let (old, new) = self.names();
        self.line(&format!("--- {old}"), Look::Header, out)?;
        self.line(&format!("+++ {new}"), Look::Header, out)?;
        for hunk in &hunks {
            self.line(&hunk.header(), Look::Span, out)?;
            for line in comparison.lines(hunk) {
                self.content_line(line, out)?;
            }
        }
        Ok(())
    }

    fn content_line(&self, line: Line<'_>, out: &mut dyn Write) -> io::Result<()> {
        let (sign, look, text) = match line {
            Line::Context(text) => (b' ', Look::Plain, text),
            Line::Removed(text) => (b'-', Look::Removed, text),
            Line::Added(text) => (b'+', Look::Added, text),
        };
        let (bare, ended) = match text.strip_suffix(b"\n") {
            Some(bare) => (bare, true),
            None => (text, false),
        };
        let mut shown = Vec::with_capacity(bare.len() + 1);
        shown.push(sign);
        shown.extend_from_slice(bare);
        write_line(&shown, look, self.colour, out)?;
        if ended {
            Ok(())
        } else {
            self.line("\\ No newline at end of file", Look::Plain, out)
        }
    }
}

/// git's name of a version's contents, where they are at hand.
fn object(version: Option<&Version>) -> Option<String> {
    match version {
        None => Some(binary::NO_OBJECT.to_owned()),
        Some(version) => version.body.bytes().map(binary::object_name),
    }
}
