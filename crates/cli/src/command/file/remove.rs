//! `sandbox file remove`

use sandbox_model::SessionId;
use serde::Serialize;

use crate::client::{Client, Request, workspace_path};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal, plain};

/// Remove files from a session's workspace, and directories with all that is in them
///
/// Examples:
///   sandbox file remove sess_0123456789abcdef data.csv
///   sandbox file rm sess_0123456789abcdef out tmp
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// What to remove
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    /// Print JSON: {"session_id", "path"} for each, on a line
    #[arg(long)]
    json: bool,
}

/// What `--json` prints of each.
#[derive(Debug, Serialize)]
struct Removed<'a> {
    session_id: &'a str,
    path: &'a str,
}

pub(super) fn remove(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let paths: Result<Vec<String>, _> =
        args.paths.iter().map(|path| workspace_path(path)).collect();
    let paths = paths?;
    if paths.iter().any(String::is_empty) {
        return Err(Refusal::new("the workspace itself cannot be removed")
            .hint("name what is in it, or end the session with `sandbox session delete`")
            .into());
    }
    let session_id = args.session.as_str();
    for path in &paths {
        client.send(&Request::delete(&["sessions", session_id]).file(path))?;
        match args.json {
            true => {
                let line = serde_json::to_vec(&Removed { session_id, path });
                output::print_line(line.unwrap_or_else(|_| unreachable!("texts are JSON")))?;
            }
            false => narration::say(format_args!("Removed {}.", plain(path))),
        }
    }
    Ok(Ending::DONE)
}
