//! `sandbox history`

use sandbox_model::{HistoryRecord, Outcome};
use sandbox_workspace::history;

use crate::ages;
use crate::ending::Ending;
use crate::output::{self, Output};
use crate::report::{Problem, Refusal, plain};
use crate::surroundings;
use crate::table::Table;

/// Show every operation on every sandbox
///
/// When, what, on which sandbox, who, how it ended and how long it took, newest first.
///
/// Examples:
///   sandbox history
///   sandbox history risky -n 5
///   sandbox history --json | jq 'select(.operation == "promote")'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only this sandbox
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// At most so many
    #[arg(long, short = 'n', value_name = "NUMBER")]
    limit: Option<usize>,

    /// Print JSON, one record per line, as they are stored
    #[arg(long)]
    json: bool,
}

pub(crate) fn history(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
    let mut records = history::read(root.path())
        .map_err(|error| Refusal::io("cannot read the history", error))?;
    records.reverse();
    records.retain(|record| {
        args.name
            .as_ref()
            .is_none_or(|name| record.sandbox.as_str() == name)
    });
    records.truncate(args.limit.unwrap_or(usize::MAX));
    match args.json {
        true => print_json(&records)?,
        false => print(&records)?,
    }
    Ok(Ending::DONE)
}

fn print_json(records: &[HistoryRecord]) -> Result<(), Problem> {
    let mut out = Output::open();
    for record in records {
        let line = serde_json::to_string(record)
            .map_err(|error| Refusal::io("cannot write JSON", error.into()))?;
        out.line(line)?;
    }
    Ok(out.finish()?)
}

fn print(records: &[HistoryRecord]) -> Result<(), Problem> {
    let mut table = Table::new(&["WHEN", "WHAT", "SANDBOX", "WHO", "ENDED", "TOOK", "DETAIL"]);
    for record in records {
        table.row(vec![
            ages::local(record.at),
            format!("{:?}", record.operation).to_lowercase(),
            record.sandbox.to_string(),
            user_name(record.user),
            outcome(&record.outcome),
            format!("{} ms", record.took_ms),
            plain(&record.detail),
        ]);
    }
    output::print_table(&table)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Exited { status } => format!("exit {status}"),
        Outcome::Declined => "declined".to_owned(),
        Outcome::Failed { error } => format!("failed: {}", plain(error)),
    }
}

/// The user's name as `/etc/passwd` has it, else the number: no directory service is asked.
fn user_name(uid: u32) -> String {
    let entries = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = entries.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| uid.to_string())
}
