//! `sandbox sync`

use clap::ValueEnum;

use sandbox_model::Operation;
use sandbox_workspace::Sandbox;
use sandbox_workspace::sync::{self, SyncAction, Synced};

use crate::ending::Ending;
use crate::narration::{self, Paint};
use crate::output::{self, Output};
use crate::preview;
use crate::progress::Bar;
use crate::promotion::{self, Consent, Form, Wishes};
use crate::reading::Reading;
use crate::record::recorded;
use crate::report::Problem;
use crate::summary::counted;
use crate::surroundings;

/// Bring the source's changes into a sandbox
///
/// Three-way: what only the source changed is taken over, what only the sandbox changed stays, what
/// both changed is merged where it is text and the edits fit together, else left and named. On the
/// overlay backend unchanged files show the source live; sync reconciles the changed ones. With
/// conflicts the exit status is 5.
///
/// Examples:
///   sandbox sync risky
///   sandbox sync risky --dry-run
///   sandbox sync risky --direction sandbox-to-source
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Which way; sandbox-to-source is `sandbox promote`
    #[arg(long, value_enum, default_value_t = Direction::SourceToSandbox)]
    direction: Direction,

    /// Show what would be done and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Do not ask (for sandbox-to-source)
    #[arg(long, short)]
    yes: bool,

    /// Print JSON: {"steps": [{"path", "action"}], "conflicts"}
    #[arg(long)]
    json: bool,
}

/// Which side changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    /// The sandbox takes over the source's changes
    SourceToSandbox,
    /// The source takes over the sandbox's changes
    SandboxToSource,
}

pub(crate) fn sync(args: &Args) -> Result<Ending, Problem> {
    let form = if args.json { Form::Json } else { Form::Text };
    if args.direction == Direction::SandboxToSource {
        let consent = match (args.dry_run, args.yes) {
            (true, _) => Consent::DryRun,
            (false, true) => Consent::Given,
            (false, false) => Consent::Ask,
        };
        let wishes = Wishes {
            consent,
            form,
            ..Wishes::default()
        };
        promotion::promote(surroundings::sandbox(&args.name)?, wishes)?;
        return Ok(Ending::DONE);
    }
    let reading = Reading::open(&args.name)?;
    let plan = sync::plan(&reading.view()?, &[], &mut Bar::default())?;
    let sandbox = reading.release();
    let synced = match args.dry_run {
        true => Synced {
            steps: plan.steps,
            conflicts: plan.conflicts,
        },
        false => recorded(&sandbox.root, Operation::Sync, |detail| {
            detail.about(&sandbox);
            let synced = sync::apply(&sandbox, plan, &mut Bar::default())?;
            detail.text = counted(synced.steps.len(), "path", "paths");
            Ok(synced)
        })?,
    };
    tell(&sandbox, &synced, args)?;
    Ok(Ending::Status(if synced.conflicts.is_empty() {
        0
    } else {
        5
    }))
}

fn tell(sandbox: &Sandbox, synced: &Synced, args: &Args) -> Result<(), Problem> {
    if args.json {
        return output::print_json(synced);
    }
    let paint = Paint::stdout();
    let mut out = Output::open();
    for step in &synced.steps {
        let action = match step.action {
            SyncAction::Update => "update  ".to_owned(),
            SyncAction::Create => paint.good("create  "),
            SyncAction::Delete => paint.bad("delete  "),
            SyncAction::Merge => "merge   ".to_owned(),
            SyncAction::Same => paint.faint("same    "),
        };
        out.line(format!("  {action}  {}", step.path))?;
    }
    for conflict in &synced.conflicts {
        out.line(preview::conflict_line(conflict, paint))?;
    }
    out.finish()?;
    let count = counted(synced.steps.len(), "path", "paths");
    let would = if args.dry_run {
        "would bring"
    } else {
        "brought"
    };
    match (synced.steps.is_empty(), synced.conflicts.len()) {
        (true, 0) => narration::say(format_args!("Already in step with the source.")),
        (_, 0) => narration::say(format_args!(
            "Sync {would} {count} into '{}'.",
            sandbox.name()
        )),
        (_, conflicts) => narration::say(format_args!(
            "Sync {would} {count} into '{}' and left {} as the sandbox has it.",
            sandbox.name(),
            counted(conflicts, "conflict", "conflicts")
        )),
    }
    Ok(())
}
