//! `sandbox execution list`

use jiff::Timestamp;
use sandbox_model::{ExecutionStatus, SessionId};

use super::view::Status;
use crate::ages;
use crate::client::{Client, Paging, Request, listing};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// List a session's executions, newest first
///
/// Examples:
///   sandbox execution list sess_0123456789abcdef
///   sandbox execution list sess_0123456789abcdef --status failed --json
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Only those that are pending, running, completed, failed, timeout, crashed or cancelled
    #[arg(long, value_name = "STATUS")]
    status: Option<ExecutionStatus>,

    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"executions": [status], "total", "next_cursor"}
    #[arg(long)]
    json: bool,
}

pub(super) fn list(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let request = Request::get(&["sessions", args.session.as_str(), "executions"])
        .query("status", args.status);
    let found = listing(client, &request, "executions", &args.paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let executions: Vec<Status> = found.read()?;
    if executions.is_empty() {
        narration::say(format_args!("No executions."));
        return Ok(Ending::DONE);
    }
    let mut table = Table::new(&[
        "EXECUTION",
        "LANGUAGE",
        "STATUS",
        "ATTEMPT",
        "CREATED",
        "TOOK",
    ]);
    let now = Timestamp::now();
    for execution in &executions {
        table.row(vec![
            plain(&execution.execution_id),
            plain(&execution.language),
            plain(&execution.status),
            execution.retry_count.to_string(),
            ages::ago(execution.created_at, now),
            took(execution).unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}

fn took(execution: &Status) -> Option<String> {
    let time = execution.ended_at()?.duration_since(execution.started_at?);
    Some(format!("{:.3} s", time.as_secs_f64().max(0.0)))
}
