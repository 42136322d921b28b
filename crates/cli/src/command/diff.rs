//! `sandbox diff`

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use sandbox_model::{Change, ChangeKind, ChangeSet, Timestamp};
use sandbox_workspace::View;
use sandbox_workspace::changes::{ChangeOptions, change_set};
use sandbox_workspace::diff::{self, Colour};

use crate::ages;
use crate::ending::Ending;
use crate::narration::{self, Paint};
use crate::output::Output;
use crate::progress::Bar;
use crate::reading::{self, Reading};
use crate::report::{Problem, Refusal};

/// Show what changed in a sandbox
///
/// A unified diff in git's format: `git apply` and `patch` accept what is printed to a pipe or file. What
/// they cannot carry (empty directories, FIFOs, extended attributes) is listed on stderr. Paths are
/// relative to the source, or to the current directory when that is inside it.
///
/// Examples:
///   sandbox diff risky
///   sandbox diff risky src/ --stat
///   sandbox diff risky --files --since 10m
///   sandbox diff risky | git apply
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Only what is at or below these
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Lines added and deleted per file
    #[arg(long, conflicts_with_all = ["files", "json"])]
    stat: bool,

    /// Changed paths with a letter: A added, M modified, D deleted, R renamed, P permissions, T type
    #[arg(long, visible_alias = "name-only", conflicts_with = "json")]
    files: bool,

    /// Only what was modified since: 10m, 2h, 3d, 2026-01-31, '2026-01-31 14:00'
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Print JSON: [{"path", "kind", "before", "after", "flags", …}]
    #[arg(long)]
    json: bool,

    /// Exit with status 1 when there are changes
    #[arg(long)]
    exit_code: bool,
}

pub(crate) fn diff(args: &Args) -> Result<Ending, Problem> {
    let since = args.since.as_deref().map(parse_since).transpose()?;
    let reading = Reading::open(&args.name)?;
    let paths = reading::below_source(&reading.sandbox, &args.paths)?;
    let view = reading.view()?;
    let options = ChangeOptions {
        paths,
        since,
        ..ChangeOptions::default()
    };
    let changes = change_set(&view, &options, &mut Bar::default())?;
    let mut out = Output::open();
    if args.json {
        out.json(&changes.changes)?;
    } else if args.files {
        for change in &changes.changes {
            out.line(file_line(change))?;
        }
    } else {
        show(&view, &changes, args.stat, &mut out)?;
    }
    out.finish()?;
    let different = args.exit_code && !changes.is_empty();
    Ok(Ending::Status(u8::from(different)))
}

fn parse_since(text: &str) -> Result<Timestamp, Refusal> {
    let at = ages::parse(text, jiff::Timestamp::now()).map_err(|error| {
        Refusal::new(error).hint("write 10m, 2h, 3d, 2026-01-31, '2026-01-31 14:00' or RFC 3339")
    })?;
    Ok(Timestamp(
        at.as_second(),
        at.subsec_nanosecond().unsigned_abs(),
    ))
}

/// `LETTER<tab>PATH`; of a rename, the old path and the new.
pub(crate) fn file_line(change: &Change) -> String {
    let letter = change.kind.letter();
    match &change.kind {
        ChangeKind::Renamed { from, .. } => format!("{letter}\t{from}\t{}", change.path),
        _ => format!("{letter}\t{}", change.path),
    }
}

/// The diff itself. A terminal gets nothing of the files' own bytes that it would obey, with colours
/// or without; a pipe or file gets the exact bytes.
fn show(view: &View<'_>, changes: &ChangeSet, stat: bool, out: &mut Output) -> Result<(), Problem> {
    let colour = match (io::stdout().is_terminal(), Paint::stdout().is_on()) {
        (true, true) => Colour::Terminal,
        (true, false) => Colour::Monochrome,
        (false, _) => Colour::Plain,
    };
    let mut beside = Vec::new();
    let shown = match stat {
        true => diff::stat(view, changes, colour, out),
        false => diff::unified(view, changes, colour, out, &mut beside),
    };
    if let Err(error) = shown {
        return Err(out.blame(error, "cannot read the changes"));
    }
    out.flush()
        .map_err(|error| out.blame(error, "cannot write the diff"))?;
    narration::raw(&String::from_utf8_lossy(&beside));
    Ok(())
}
