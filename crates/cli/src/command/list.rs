//! `sandbox list`

use crate::ending::Ending;
use crate::report::Problem;

/// List sandboxes, newest first
///
/// STATUS is active (a process runs in it), paused (its processes are frozen), idle, or stale (unused
/// for 7 days; `stale_days` in config.toml). `--all` adds those discarded, from the history.
///
/// Examples:
///   sandbox list
///   sandbox ls --all
///   sandbox list --json | jq -r '.[] | select(.status == "stale").name'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Also those that were discarded
    #[arg(long, short)]
    all: bool,

    /// Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status"}]
    #[arg(long)]
    json: bool,
}

pub(crate) fn list(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
