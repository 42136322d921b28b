//! `sandbox snapshot`

use jiff::Timestamp;
use sandbox_model::{ByteSize, Operation};
use sandbox_workspace::Sandbox;
use sandbox_workspace::checkpoint::{self, Label, LabelError};
use serde::Serialize;

use crate::ages;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::progress::Bar;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::surroundings;
use crate::table::Table;

/// Save a checkpoint inside a sandbox, or list them
///
/// A checkpoint holds the changes and the home inside. The label is printed on stdout; without one a
/// number is taken. Nothing may run in the sandbox meanwhile.
///
/// Examples:
///   sandbox snapshot risky
///   sandbox snapshot risky before-migration
///   sandbox snapshot risky --list
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// What to call it
    #[arg(value_name = "LABEL")]
    label: Option<String>,

    /// List the checkpoints
    #[arg(long, short, conflicts_with_all = ["label", "delete"])]
    list: bool,

    /// Delete the checkpoint LABEL
    #[arg(long, requires = "label")]
    delete: bool,

    /// Print JSON: {"label"}, or with --list [{"label", "created", "size", "home"}]
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Taken<'l> {
    label: &'l str,
}

/// What `--list --json` prints of each.
#[derive(Serialize)]
struct Listed<'s> {
    label: &'s str,
    created: Timestamp,
    size: u64,
    home: bool,
}

pub(crate) fn snapshot(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    if args.list {
        return list(&sandbox, args.json);
    }
    let label = args.label.as_deref().map(parse_label).transpose()?;
    let label = match (label, args.delete) {
        (Some(label), true) => {
            checkpoint::delete_snapshot(&sandbox, &label)?;
            narration::say(format_args!(
                "Deleted snapshot '{}' of '{}'.",
                label.as_str(),
                sandbox.name()
            ));
            return Ok(Ending::DONE);
        }
        (label, _) => take(&sandbox, label.as_ref())?,
    };
    match args.json {
        true => output::print_json(&Taken {
            label: label.as_str(),
        })?,
        false => output::print_line(label.as_str())?,
    }
    narration::say(format_args!(
        "Come back to it with: sandbox rollback {} {}",
        sandbox.name(),
        label.as_str()
    ));
    Ok(Ending::DONE)
}

fn take(sandbox: &Sandbox, label: Option<&Label>) -> Result<Label, Problem> {
    recorded(&sandbox.root, Operation::Snapshot, |detail| {
        detail.about(sandbox);
        let taken = checkpoint::snapshot(sandbox, label, &mut Bar::default())?;
        detail.text = taken.as_str().to_owned();
        Ok(taken)
    })
}

/// A label, or the error a person gets for what is none.
pub(crate) fn parse_label(text: &str) -> Result<Label, Refusal> {
    text.parse()
        .map_err(|error: LabelError| Refusal::new(error.to_string()))
}

fn list(sandbox: &Sandbox, json: bool) -> Result<Ending, Problem> {
    let snapshots = checkpoint::snapshots(sandbox)?;
    if json {
        let listed: Vec<Listed<'_>> = snapshots
            .iter()
            .map(|snapshot| Listed {
                label: snapshot.label.as_str(),
                created: snapshot.created,
                size: snapshot.size,
                home: snapshot.home,
            })
            .collect();
        output::print_json(&listed)?;
        return Ok(Ending::DONE);
    }
    if snapshots.is_empty() {
        narration::say(format_args!(
            "Sandbox '{}' has no snapshots.",
            sandbox.name()
        ));
        return Ok(Ending::DONE);
    }
    let mut table = Table::new(&["LABEL", "CREATED", "SIZE", "HOLDS"]);
    let now = Timestamp::now();
    for snapshot in &snapshots {
        table.row(vec![
            snapshot.label.as_str().to_owned(),
            ages::ago(snapshot.created, now),
            ByteSize(snapshot.size).to_string(),
            match snapshot.home {
                true => "changes and home",
                false => "changes",
            }
            .to_owned(),
        ]);
    }
    output::print_table(&table)?;
    Ok(Ending::DONE)
}
