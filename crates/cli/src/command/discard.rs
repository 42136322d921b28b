//! `sandbox discard`

use std::time::Duration;

use jiff::Timestamp;
use sandbox_isolation::Home;
use sandbox_isolation::home::is_untouched;
use sandbox_model::{BackendKind, ByteSize, Operation, Outcome, SandboxName};
use sandbox_workspace::root::RootError;
use sandbox_workspace::{Root, Sandbox, checkpoint, discard, spare};
use serde::Serialize;

use crate::ages;
use crate::command::create::shown;
use crate::command::list::{count_changes, row};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::progress::Bar;
use crate::prompt;
use crate::record::{Detail, recorded};
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;
use crate::table::Table;

/// Delete a sandbox and the changes in it
///
/// The source is not touched, and an earlier promote can still be undone. A sandbox with changes can be
/// restored with --undo for 7 days (`discarded_days` in config.toml); then it is deleted by the next
/// discard or `sandbox gc`. Until then it uses disk space: --purge deletes at once.
///
/// Examples:
///   sandbox discard risky
///   sandbox rm -f calm-otter-42 bold-fox-7
///   sandbox discard --undo
///   sandbox discard --undo risky
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandboxes
    #[arg(value_name = "NAME", required_unless_present = "undo")]
    names: Vec<String>,

    /// Do not ask
    #[arg(long, short, visible_short_alias = 'y', visible_alias = "yes")]
    force: bool,

    /// Delete at once; it cannot be restored
    #[arg(long, conflicts_with = "undo")]
    purge: bool,

    /// Restore discarded sandboxes, of one name the latest; without a NAME, list them
    #[arg(long)]
    undo: bool,

    /// With --undo: restore it under this name
    #[arg(long = "as", value_name = "NEW", requires = "undo")]
    new_name: Option<String>,

    /// With --undo: print JSON: [{"name", "source", "backend", "discarded", "until", "size"}], or the
    /// sandboxes restored as `list` prints them
    #[arg(long, requires = "undo")]
    json: bool,
}

/// What `--undo --json` prints of each discarded sandbox.
#[derive(Serialize)]
struct Restorable {
    name: SandboxName,
    source: String,
    backend: BackendKind,
    discarded: Timestamp,
    until: Timestamp,
    size: Option<u64>,
}

/// Deletes it without a question or a record: it was only made to be thrown away. Where nothing was
/// left in it, its directories serve the next.
pub(crate) fn silently(sandbox: Sandbox) -> Result<(), Problem> {
    let untouched = surroundings::homes().is_ok_and(|paths| {
        is_untouched(&Home {
            paths,
            layer: sandbox.home_dir(),
            credentials: Vec::new(),
        })
    });
    if untouched && spare::put_aside(&sandbox)? {
        return Ok(());
    }
    discard::discard(sandbox, &mut Bar::default())?;
    Ok(())
}

/// Discards what a person decided to discard at once after it was made. Gives how to get it back, if
/// that can be done.
pub(crate) fn after_try(sandbox: Sandbox) -> Result<Option<String>, Problem> {
    let root = sandbox.root.clone();
    let days = surroundings::config()?.discarded_days();
    recorded(&root, Operation::Discard, |detail| {
        detail.about(&sandbox);
        put_away(sandbox, days, detail)
    })
}

/// Discards it for `days`, or for good where that is none. Gives how to get it back.
fn put_away(sandbox: Sandbox, days: u32, detail: &mut Detail) -> Result<Option<String>, Problem> {
    let name = sandbox.name().clone();
    if days == 0 {
        discard::discard(sandbox, &mut Bar::default())?;
        return Ok(None);
    }
    discard::set_aside(sandbox, retention(days), &mut Bar::default())?;
    let until = until(Timestamp::now(), days);
    detail.text = format!("can be restored until {}", ages::local(until));
    let days = counted(days as usize, "day", "days");
    Ok(Some(format!(
        "Get it back within {days}: sandbox discard --undo {name}"
    )))
}

pub(crate) fn retention(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 86_400)
}

/// When what was discarded at `at` is no longer kept.
pub(crate) fn until(at: Timestamp, days: u32) -> Timestamp {
    at.checked_add(retention(days)).unwrap_or(Timestamp::MAX)
}

pub(crate) fn discard(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
    let days = surroundings::config()?.discarded_days();
    if args.undo {
        return undo(&root, args, days);
    }
    let days = if args.purge { 0 } else { days };
    // All or none: a name that is wrong must not leave half of the others deleted.
    let sandboxes: Vec<Sandbox> = args
        .names
        .iter()
        .map(|name| root.sandbox(name))
        .collect::<Result<_, _>>()?;
    if !args.force && !prompt::is_interactive() {
        return Err(Refusal::new(format!(
            "not discarding {} unasked",
            shown_names(&sandboxes)
        ))
        .hint("there is no terminal to ask at; give --force to discard")
        .into());
    }
    for sandbox in sandboxes {
        discard_one(&root, sandbox, args.force, days)?;
    }
    Ok(Ending::DONE)
}

fn discard_one(root: &Root, sandbox: Sandbox, force: bool, days: u32) -> Result<(), Problem> {
    let name = sandbox.name().clone();
    recorded(root, Operation::Discard, |detail| {
        detail.about(&sandbox);
        let changes = count_changes(&sandbox);
        // Snapshots are work, too.
        let has_snapshots = || checkpoint::snapshots(&sandbox).map_or(true, |all| !all.is_empty());
        let days = match changes {
            Some(0) if !has_snapshots() => 0,
            _ => days,
        };
        if !force && !prompt::confirm(&question(&name, changes, days)) {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(());
        }
        let way_back = put_away(sandbox, days, detail)?;
        narration::say(format_args!("Discarded sandbox '{name}'."));
        if let Some(way_back) = way_back {
            narration::say(format_args!("{way_back}"));
        }
        Ok(())
    })
}

fn question(name: &SandboxName, changes: Option<usize>, days: u32) -> String {
    let changes = match changes {
        Some(0) => "no changes".to_owned(),
        Some(count) => counted(count, "unpromoted change", "unpromoted changes"),
        None => "unknown changes".to_owned(),
    };
    let afterwards = match days {
        0 => "This cannot be undone.".to_owned(),
        days => format!(
            "It can be restored for {}.",
            counted(days as usize, "day", "days")
        ),
    };
    format!("Discard sandbox '{name}' with {changes}? {afterwards}")
}

fn undo(root: &Root, args: &Args, days: u32) -> Result<Ending, Problem> {
    if args.names.is_empty() {
        return match &args.new_name {
            Some(_) => Err(Refusal::new("--as needs the NAME of a discarded sandbox").into()),
            None => list_restorable(root, days, args.json),
        };
    }
    if args.new_name.is_some() && args.names.len() > 1 {
        return Err(Refusal::new("--as renames one sandbox, but several are named").into());
    }
    let mut restored = Vec::new();
    for name in &args.names {
        let name: SandboxName = name.parse().map_err(RootError::Name)?;
        let wanted = match &args.new_name {
            Some(wanted) => wanted.parse().map_err(RootError::Name)?,
            None => name.clone(),
        };
        let sandbox = recorded(root, Operation::Restore, |detail| {
            let sandbox = match discard::restore(root, &name, &wanted) {
                Err(RootError::Exists(taken)) => {
                    return Err(Refusal::new(format!("a sandbox named '{taken}' exists already"))
                        .hint(format!(
                            "`sandbox discard --undo {name} --as OTHER` restores it under another name"
                        ))
                        .into());
                }
                restored => restored?,
            };
            detail.about(&sandbox);
            if wanted != name {
                detail.text = format!("was '{name}'");
            }
            Ok(sandbox)
        })?;
        narration::say(format_args!("Restored sandbox '{wanted}'."));
        restored.push(sandbox);
    }
    if args.json {
        let stale_days = surroundings::config()?.stale_days();
        let rows: Vec<_> = restored
            .iter()
            .map(|found| row(found, stale_days))
            .collect();
        output::print_json(&rows)?;
    }
    Ok(Ending::DONE)
}

fn list_restorable(root: &Root, days: u32, json: bool) -> Result<Ending, Problem> {
    let rows: Vec<Restorable> = discard::discarded(root)?
        .into_iter()
        .map(|found| {
            let discarded = Timestamp::try_from(found.at).unwrap_or_default();
            Restorable {
                size: found.disk_use().ok(),
                source: shown(&found.meta.source),
                backend: found.meta.backend,
                name: found.meta.name,
                discarded,
                until: until(discarded, days),
            }
        })
        .collect();
    if json {
        output::print_json(&rows)?;
    } else if rows.is_empty() {
        narration::say(format_args!("No discarded sandbox can be restored."));
    } else {
        let mut table = Table::new(&["NAME", "SOURCE", "DISCARDED", "UNTIL", "SIZE"]);
        let now = Timestamp::now();
        for row in rows {
            table.row(vec![
                row.name.to_string(),
                row.source,
                ages::ago(row.discarded, now),
                ages::local(row.until),
                row.size
                    .map_or_else(|| "-".to_owned(), |size| ByteSize(size).to_string()),
            ]);
        }
        output::print_table(&table)?;
    }
    Ok(Ending::DONE)
}

fn shown_names(sandboxes: &[Sandbox]) -> String {
    let names: Vec<String> = sandboxes
        .iter()
        .map(|sandbox| format!("'{}'", sandbox.name()))
        .collect();
    names.join(", ")
}
