//! `sandbox list`

use jiff::Timestamp;
use sandbox_isolation::Runs;
use sandbox_model::{BackendKind, ByteSize, Operation, Outcome, SandboxName};
use sandbox_workspace::changes::{ChangeOptions, change_set};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::root::RootError;
use sandbox_workspace::{Root, Sandbox, View, discard, history};
use serde::Serialize;

use crate::ages;
use crate::command::create::shown;
use crate::command::discard::until;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal};
use crate::status::Status;
use crate::surroundings;
use crate::table::Table;

/// List sandboxes, newest first
///
/// STATUS is active (a process runs in it), paused (its processes are frozen), idle, or stale (unused
/// for 7 days; `stale_days` in config.toml). `--all` adds those discarded, from the history; those that
/// `sandbox discard --undo` restores are called restorable.
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

    /// Print JSON: [{"name", "source", "backend", "created", "size", "changes", "status",
    /// "restorable_until"}]
    #[arg(long)]
    json: bool,
}

/// One sandbox in the listing; unknown values are null.
#[derive(Serialize)]
pub(crate) struct Row {
    name: SandboxName,
    source: String,
    backend: Option<BackendKind>,
    created: Timestamp,
    size: Option<u64>,
    changes: Option<usize>,
    status: Status,
    /// Until when a discarded one can be restored; of another, and of one that cannot be, null.
    restorable_until: Option<Timestamp>,
}

pub(crate) fn list(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
    let config = surroundings::config()?;
    let stale_days = config.stale_days();
    let mut rows = Vec::new();
    for name in root.names()? {
        match root.sandbox(name.as_str()) {
            Ok(sandbox) => rows.push(row(&sandbox, stale_days)),
            // Discarded while we looked.
            Err(RootError::NotFound { .. }) => {}
            Err(error) => narration::warn(format_args!("sandbox '{name}' cannot be read: {error}")),
        }
    }
    if args.all {
        rows.extend(restorable(&root, config.discarded_days())?);
        rows.extend(discarded(&root, &rows)?);
    }
    rows.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.name.cmp(&b.name)));
    match args.json {
        true => output::print_json(&rows)?,
        false => print(&rows)?,
    }
    Ok(Ending::DONE)
}

pub(crate) fn row(sandbox: &Sandbox, stale_days: u32) -> Row {
    let runs = Runs::open(&sandbox.runs_dir());
    let processes = runs.processes().unwrap_or_default();
    Row {
        name: sandbox.name().clone(),
        source: shown(sandbox.source()),
        backend: Some(sandbox.meta.backend),
        created: sandbox.meta.created,
        size: sandbox.disk_use().ok(),
        changes: count_changes(sandbox),
        status: Status::of(sandbox, &processes, stale_days),
        restorable_until: None,
    }
}

/// `None` while somebody must be alone with it, and when its source is gone.
pub(crate) fn count_changes(sandbox: &Sandbox) -> Option<usize> {
    let _lock = sandbox.lock_glance().ok()?;
    let view = View::open(sandbox).ok()?;
    let changes = change_set(&view, &ChangeOptions::default(), &mut Silent).ok()?;
    Some(changes.changes.len())
}

/// Discarded sandboxes that can be restored.
fn restorable(root: &Root, days: u32) -> Result<Vec<Row>, Problem> {
    let found = discard::discarded(root)?.into_iter();
    Ok(found
        .map(|found| Row {
            source: shown(&found.meta.source),
            backend: Some(found.meta.backend),
            created: found.meta.created,
            size: found.disk_use().ok(),
            changes: None,
            status: Status::Discarded,
            restorable_until: Timestamp::try_from(found.at).ok().map(|at| until(at, days)),
            name: found.meta.name,
        })
        .collect())
}

/// Sandboxes that the history knows and that are no more, each once.
fn discarded(root: &Root, present: &[Row]) -> Result<Vec<Row>, Problem> {
    let records = history::read(root.path())
        .map_err(|error| Refusal::io("cannot read the history", error))?;
    let mut rows: Vec<Row> = Vec::new();
    for record in records.iter().rev().filter(|record| {
        matches!(
            record.operation,
            Operation::Create | Operation::Fork | Operation::Try
        ) && record.outcome != Outcome::Declined
            && !matches!(record.outcome, Outcome::Failed { .. })
    }) {
        let known = |row: &Row| row.name == record.sandbox;
        if !present.iter().any(known) && !rows.iter().any(known) {
            rows.push(Row {
                name: record.sandbox.clone(),
                source: record.source.clone(),
                backend: record.detail.parse().ok(),
                created: record.at,
                size: None,
                changes: None,
                status: Status::Discarded,
                restorable_until: None,
            });
        }
    }
    Ok(rows)
}

fn print(rows: &[Row]) -> Result<(), Problem> {
    if rows.is_empty() {
        narration::say(format_args!(
            "No sandboxes yet. Make one with: sandbox create"
        ));
        return Ok(());
    }
    let headings = [
        "NAME", "SOURCE", "BACKEND", "CREATED", "SIZE", "CHANGES", "STATUS",
    ];
    let mut table = Table::new(&headings);
    let now = Timestamp::now();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for row in rows {
        table.row(vec![
            row.name.to_string(),
            row.source.clone(),
            or_dash(row.backend.map(|backend| backend.to_string())),
            ages::ago(row.created, now),
            or_dash(row.size.map(|size| ByteSize(size).to_string())),
            or_dash(row.changes.map(|changes| changes.to_string())),
            match row.restorable_until {
                Some(_) => format!("{}, restorable", row.status.as_str()),
                None => row.status.as_str().to_owned(),
            },
        ]);
    }
    output::print_table(&table)
}
