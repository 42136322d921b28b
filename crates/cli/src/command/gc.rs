//! `sandbox gc`

use std::time::Duration;

use sandbox_isolation::limits;
use sandbox_model::ByteSize;
use sandbox_workspace::garbage::{self, Garbage, GarbageKind, Holds};
use sandbox_workspace::{Root, undo};
use serde::Serialize;

use crate::command::create::shown;
use crate::command::discard;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::progress::Bar;
use crate::report::Problem;
use crate::summary::counted;
use crate::surroundings;
use crate::table::Table;

/// Clean up what nobody needs any more
///
/// Remains of interrupted creates and discards and of killed runs; what is kept to undo promotes beyond
/// the last 20 of each source and 30 days, or for a source that no longer exists and has no sandbox;
/// interrupted promotes whose source is gone; sandboxes discarded longer ago than they can be restored;
/// and, when asked with --stale, sandboxes that are stale and hold no changes. Unpromoted work in a
/// sandbox that was not discarded is never deleted. What is still kept for undo is shown, source by
/// source.
///
/// Examples:
///   sandbox gc --dry-run
///   sandbox gc
///   sandbox gc --stale
///   sandbox gc --discarded
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Show what would be deleted and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Also stale sandboxes without changes
    #[arg(long)]
    stale: bool,

    /// Also discarded sandboxes that could still be restored
    #[arg(long)]
    discarded: bool,

    /// Print JSON: [{"what", "path", "size", "deleted"}]
    #[arg(long)]
    json: bool,
}

/// What `--json` prints of each finding.
#[derive(Serialize)]
struct Finding {
    what: String,
    path: String,
    size: u64,
    deleted: bool,
}

pub(crate) fn gc(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
    let config = surroundings::config()?;
    let stale = Duration::from_secs(u64::from(config.stale_days()) * 86_400);
    let retention = match args.discarded {
        true => Duration::ZERO,
        false => discard::retention(config.discarded_days()),
    };
    let mut findings = Vec::new();
    for garbage in garbage::find(&root, stale, retention)? {
        let wanted = args.stale || !matches!(garbage.kind, GarbageKind::Stale { .. });
        let deleted = wanted
            && match args.dry_run {
                true => garbage.is_safe(),
                false => garbage::clean(&root, &garbage, &mut Bar::default())?,
            };
        findings.push(Finding {
            what: what(&garbage),
            path: shown(&garbage.path),
            size: garbage.size,
            deleted,
        });
    }
    findings.extend(sweep_groups(args.dry_run));
    let kept = kept_for_undo(&root, &findings)?;
    match args.json {
        true => {
            findings.extend(kept);
            output::print_json(&findings)?;
        }
        false => print(findings, kept, args.dry_run)?,
    }
    Ok(Ending::DONE)
}

/// What is kept to undo promotes and is not among `findings`.
fn kept_for_undo(root: &Root, findings: &[Finding]) -> Result<Vec<Finding>, Problem> {
    let shown_already = |path: &str| findings.iter().any(|finding| finding.path == path);
    let kept = undo::usage(root)?.into_iter().map(|used| Finding {
        what: format!(
            "kept to undo {} to {} (at most {}, for {} days)",
            counted(used.promotes, "promote", "promotes"),
            used.source.as_deref().map_or_else(|| "?".to_owned(), shown),
            undo::KEEP_COUNT,
            undo::KEEP_DAYS
        ),
        path: shown(&used.path),
        size: used.size,
        deleted: false,
    });
    Ok(kept.filter(|kept| !shown_already(&kept.path)).collect())
}

/// Removes the empty control groups of runs that were killed.
fn sweep_groups(dry_run: bool) -> impl Iterator<Item = Finding> {
    limits::abandoned().into_iter().map(move |group| Finding {
        what: "control group of a killed run".to_owned(),
        path: shown(&group),
        size: 0,
        deleted: dry_run || limits::remove_abandoned(&group),
    })
}

fn what(garbage: &Garbage) -> String {
    match &garbage.kind {
        GarbageKind::Discarded => "discarded, not wholly deleted".to_owned(),
        GarbageKind::Restorable { name, age, .. } => {
            let days = counted((age.as_secs() / 86_400) as usize, "day", "days");
            format!("sandbox '{name}', discarded {days} ago")
        }
        GarbageKind::Interrupted => "left by an interrupted create".to_owned(),
        GarbageKind::Expired => "kept to undo an old promote".to_owned(),
        GarbageKind::SetAside => "interrupted promote, its source is gone".to_owned(),
        GarbageKind::Orphaned => "kept to undo promotes to a source that is gone".to_owned(),
        GarbageKind::Stale { unused, holds, .. } => {
            let days = unused.as_secs() / 86_400;
            let holds = match holds {
                Holds::Nothing => "no changes".to_owned(),
                Holds::Changes(count) => counted(*count, "unpromoted change", "unpromoted changes"),
                Holds::Unknown => "unknown changes".to_owned(),
            };
            format!("sandbox unused for {days} days, {holds}")
        }
    }
}

fn print(findings: Vec<Finding>, kept: Vec<Finding>, dry_run: bool) -> Result<(), Problem> {
    let clean = findings.is_empty();
    if clean && kept.is_empty() {
        narration::say(format_args!("Nothing to clean."));
        return Ok(());
    }
    let findings: Vec<Finding> = findings.into_iter().chain(kept).collect();
    let mut table = Table::new(&["WHAT", "SIZE", "ACTION", "PATH"]);
    for finding in &findings {
        let action = match (finding.deleted, dry_run) {
            (true, true) => "would delete",
            (true, false) => "deleted",
            (false, _) => "kept",
        };
        table.row(vec![
            finding.what.clone(),
            ByteSize(finding.size).to_string(),
            action.to_owned(),
            finding.path.clone(),
        ]);
    }
    output::print_table(&table)?;
    if clean {
        narration::say(format_args!("Nothing to clean."));
        return Ok(());
    }
    let freed = findings
        .iter()
        .filter(|finding| finding.deleted)
        .map(|finding| finding.size)
        .sum();
    let would = if dry_run { "would be freed" } else { "freed" };
    narration::say(format_args!("{} {would}.", ByteSize(freed)));
    Ok(())
}
