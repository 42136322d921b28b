//! `sandbox file list`

use jiff::Timestamp;
use sandbox_model::{ByteSize, SessionId};
use serde::Deserialize;

use crate::ages;
use crate::client::{Client, Paging, Request, listing, workspace_path};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// List a directory of a session's workspace, by name
///
/// Examples:
///   sandbox file list sess_0123456789abcdef
///   sandbox file ls sess_0123456789abcdef out --all
///   sandbox file list sess_0123456789abcdef --json | jq -r '.files[].name'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// The directory [the workspace itself]
    #[arg(value_name = "PATH")]
    path: Option<String>,

    /// How many entries, 1 to 1000 [200]
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,

    /// Where the page before this one ended, as it said
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,

    /// All of them, page after page
    #[arg(long, short)]
    all: bool,

    /// Print JSON: {"path", "files": [{"name", "kind", "size", "modified_at"}], "next_cursor"}
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    kind: String,
    size: u64,
    modified_at: Option<Timestamp>,
}

pub(super) fn list(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let path = workspace_path(args.path.as_deref().unwrap_or_default())?;
    let request = Request::get(&["sessions", args.session.as_str(), "files"])
        .query("path", Some(&path).filter(|path| !path.is_empty()));
    let paging = Paging {
        limit: args.limit,
        offset: None,
        cursor: args.cursor.clone(),
        all: args.all,
    };
    let found = listing(client, &request, "files", &paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let entries: Vec<Entry> = found.read()?;
    if entries.is_empty() {
        narration::say(format_args!("Nothing there."));
        return Ok(Ending::DONE);
    }
    let mut table = Table::new(&["NAME", "KIND", "SIZE", "MODIFIED"]);
    let now = Timestamp::now();
    for entry in &entries {
        let modified = entry.modified_at.map(|at| ages::ago(at, now));
        table.row(vec![
            plain(&entry.name),
            plain(&entry.kind),
            ByteSize(entry.size).to_string(),
            modified.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}
