//! `sandbox rollback`

use sandbox_model::{Operation, Outcome};
use sandbox_workspace::Sandbox;
use sandbox_workspace::checkpoint::{self, Label, RolledBack};

use crate::command::snapshot::parse_label;
use crate::ending::Ending;
use crate::narration;
use crate::progress::Bar;
use crate::prompt;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// Take a sandbox back to a checkpoint
///
/// What changed since is lost, in the workspace and in the home inside, so it asks; take another
/// snapshot first if you may want it. The checkpoint itself stays. The source is not touched.
///
/// With --home only the home goes back, and the workspace stays as it is; without LABEL the home is
/// emptied, as in a new sandbox.
///
/// Examples:
///   sandbox rollback risky before-migration
///   sandbox rollback risky 1 --yes
///   sandbox rollback risky --home
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// The checkpoint
    #[arg(value_name = "LABEL", required_unless_present = "home")]
    label: Option<String>,

    /// Only the home; without LABEL, empty it
    #[arg(long)]
    home: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// What goes back, and to where.
enum Target {
    Everything(Label),
    Home(Label),
    EmptyHome,
}

pub(crate) fn rollback(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let label = args.label.as_deref().map(parse_label).transpose()?;
    if let Some(label) = &label {
        checkpoint::find(&sandbox, label)?;
    }
    let target = match (label, args.home) {
        (Some(label), false) => Target::Everything(label),
        (Some(label), true) => Target::Home(label),
        (None, _) => Target::EmptyHome,
    };
    let name = sandbox.name();
    let question = match &target {
        Target::Everything(label) => format!(
            "Take sandbox '{name}' back to '{label}'? What changed in it and in its home since is lost."
        ),
        Target::Home(label) => format!(
            "Take the home of sandbox '{name}' back to '{label}'? What changed in it since is lost."
        ),
        Target::EmptyHome => {
            format!("Empty the home of sandbox '{name}'? What was written to it is lost.")
        }
    };
    if !args.yes && !prompt::is_interactive() {
        return Err(
            Refusal::new(format!("not rolling back unasked: {question}"))
                .hint("there is no terminal to ask at; give --yes to roll back")
                .into(),
        );
    }
    recorded(&sandbox.root, Operation::Rollback, |detail| {
        detail.about(&sandbox);
        detail.text = match &target {
            Target::Everything(label) => label.to_string(),
            Target::Home(label) => format!("the home, {label}"),
            Target::EmptyHome => "the home".to_owned(),
        };
        if !args.yes && !prompt::confirm(&question) {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(Ending::DONE);
        }
        perform(&sandbox, &target)?;
        Ok(Ending::DONE)
    })
}

fn perform(sandbox: &Sandbox, target: &Target) -> Result<(), Problem> {
    let name = sandbox.name();
    let bar = &mut Bar::default();
    match target {
        Target::Everything(label) => match checkpoint::rollback(sandbox, label, bar)? {
            RolledBack::Everything => narration::say(format_args!(
                "Sandbox '{name}' and its home are where they were at '{label}'."
            )),
            RolledBack::WorkspaceOnly => {
                narration::say(format_args!(
                    "The workspace of sandbox '{name}' is where it was at '{label}'."
                ));
                narration::warn(format_args!(
                    "snapshot '{label}' was made by an earlier version and does not hold the home, which stays as it is; \
                     `sandbox rollback {name} --home` empties it"
                ));
            }
        },
        Target::Home(label) => {
            checkpoint::rollback_home(sandbox, label, bar)?;
            narration::say(format_args!(
                "The home of sandbox '{name}' is where it was at '{label}'."
            ));
        }
        Target::EmptyHome => {
            checkpoint::reset_home(sandbox)?;
            narration::say(format_args!("The home of sandbox '{name}' is empty."));
        }
    }
    Ok(())
}
