//! `sandbox session changes`

use std::io::{self, IsTerminal as _};

use sandbox_model::{Change, SessionId};
use serde::Deserialize;

use crate::client::{Client, Request};
use crate::command::diff::file_line;
use crate::ending::Ending;
use crate::narration;
use crate::output::{self, Output};
use crate::report::{Problem, plain};

/// Show what a session's workspace has that it did not start with
///
/// A unified diff in git's format, which `git apply` and `patch` accept. What they cannot carry is
/// listed on stderr.
///
/// Examples:
///   sandbox session changes sess_0123456789abcdef
///   sandbox session changes sess_0123456789abcdef --files
///   sandbox session changes sess_0123456789abcdef | git apply
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Changed paths with a letter: A added, M modified, D deleted, R renamed, P permissions, T type
    #[arg(long, visible_alias = "name-only", conflicts_with = "json")]
    files: bool,

    /// Print JSON: {"changes": [change], "total", "diff", "not_in_diff", "truncated"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Changes {
    changes: Vec<Change>,
    total: u64,
    diff: String,
    not_in_diff: String,
    truncated: bool,
}

pub(super) fn changes(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let request = Request::get(&["sessions", args.session.as_str(), "changes"]);
    let answer = client.send(&request)?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    let found: Changes = answer.read()?;
    let mut out = Output::open();
    match args.files {
        true => {
            for change in &found.changes {
                out.line(file_line(change))?;
            }
        }
        false => print(&found.diff, &mut out)?,
    }
    out.finish()?;
    if !args.files {
        for line in found.not_in_diff.lines() {
            narration::say(format_args!("{}", plain(line)));
        }
    }
    if found.truncated {
        narration::warn(format_args!(
            "there is more than the server tells: {} changes in all",
            found.total
        ));
    }
    Ok(Ending::DONE)
}

/// A terminal gets nothing of the files' own bytes that it would obey; a pipe or file gets the exact text.
fn print(diff: &str, out: &mut Output) -> Result<(), Problem> {
    if !io::stdout().is_terminal() {
        return io::Write::write_all(out, diff.as_bytes())
            .map_err(|error| out.blame(error, "cannot write the diff"));
    }
    for line in diff.lines() {
        out.line(line.split('\t').map(plain).collect::<Vec<_>>().join("\t"))?;
    }
    Ok(())
}
