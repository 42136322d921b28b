//! `sandbox resume`

use sandbox_isolation::Runs;
use sandbox_model::Operation;

use crate::command::pause::Affected;
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;

/// Let the processes of a paused sandbox go on
///
/// Examples:
///   sandbox resume risky
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Print JSON: {"name", "processes"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn resume(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let processes = recorded(&sandbox.root, Operation::Resume, |detail| {
        detail.about(&sandbox);
        let runs = Runs::open(&sandbox.runs_dir());
        let count = runs.thaw().map_err(|error| {
            Refusal::io(format!("cannot resume sandbox '{}'", sandbox.name()), error)
        })?;
        detail.text = counted(count, "process", "processes");
        Ok(count)
    })?;
    if args.json {
        output::print_json(&Affected {
            name: sandbox.name(),
            processes,
        })?;
    }
    narration::say(format_args!(
        "Resumed {} of sandbox '{}'.",
        counted(processes, "process", "processes"),
        sandbox.name()
    ));
    Ok(Ending::DONE)
}
