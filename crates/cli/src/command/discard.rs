//! `sandbox discard`

use sandbox_isolation::Home;
use sandbox_isolation::home::is_untouched;
use sandbox_model::{Operation, Outcome};
use sandbox_workspace::{Root, Sandbox, discard, spare};

use crate::command::list::count_changes;
use crate::ending::Ending;
use crate::narration;
use crate::progress::Bar;
use crate::prompt;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;

/// Delete a sandbox and the changes in it
///
/// The source is not touched, and an earlier promote can still be undone.
///
/// Examples:
///   sandbox discard risky
///   sandbox rm -f calm-otter-42 bold-fox-7
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandboxes
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Do not ask
    #[arg(long, short, visible_short_alias = 'y', visible_alias = "yes")]
    force: bool,
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

pub(crate) fn discard(args: &Args) -> Result<Ending, Problem> {
    let root = surroundings::root()?;
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
        discard_one(&root, sandbox, args.force)?;
    }
    Ok(Ending::DONE)
}

fn discard_one(root: &Root, sandbox: Sandbox, force: bool) -> Result<(), Problem> {
    let name = sandbox.name().clone();
    recorded(root, Operation::Discard, |detail| {
        detail.about(&sandbox);
        if !force && !prompt::confirm(&question(&sandbox)) {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(());
        }
        discard::discard(sandbox, &mut Bar::default())?;
        narration::say(format_args!("Discarded sandbox '{name}'."));
        Ok(())
    })
}

fn question(sandbox: &Sandbox) -> String {
    let changes = match count_changes(sandbox) {
        Some(0) => "no changes".to_owned(),
        Some(count) => counted(count, "unpromoted change", "unpromoted changes"),
        None => "unknown changes".to_owned(),
    };
    format!(
        "Discard sandbox '{}' with {changes}? This cannot be undone.",
        sandbox.name()
    )
}

fn shown_names(sandboxes: &[Sandbox]) -> String {
    let names: Vec<String> = sandboxes
        .iter()
        .map(|sandbox| format!("'{}'", sandbox.name()))
        .collect();
    names.join(", ")
}
