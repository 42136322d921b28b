//! `sandbox rollback`

use sandbox_model::{Operation, Outcome};
use sandbox_workspace::checkpoint;

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
/// What changed since is lost, so it asks; take another snapshot first if you may want it. The
/// checkpoint itself stays. The source is not touched.
///
/// Examples:
///   sandbox rollback risky before-migration
///   sandbox rollback risky 1 --yes
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// The checkpoint
    #[arg(value_name = "LABEL")]
    label: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn rollback(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let label = parse_label(&args.label)?;
    checkpoint::find(&sandbox, &label)?;
    let question = format!(
        "Take sandbox '{}' back to '{}'? What changed in it since is lost.",
        sandbox.name(),
        label.as_str()
    );
    if !args.yes && !prompt::is_interactive() {
        return Err(
            Refusal::new(format!("not rolling back unasked: {question}"))
                .hint("there is no terminal to ask at; give --yes to roll back")
                .into(),
        );
    }
    recorded(&sandbox.root, Operation::Rollback, |detail| {
        detail.about(&sandbox);
        detail.text = label.as_str().to_owned();
        if !args.yes && !prompt::confirm(&question) {
            narration::say(format_args!("Aborted."));
            detail.outcome = Some(Outcome::Declined);
            return Ok(Ending::DONE);
        }
        checkpoint::rollback(&sandbox, &label, &mut Bar::default())?;
        let (name, label) = (sandbox.name(), label.as_str());
        narration::say(format_args!(
            "Sandbox '{name}' is where it was at '{label}'."
        ));
        Ok(Ending::DONE)
    })
}
