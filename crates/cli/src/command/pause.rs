//! `sandbox pause`

use std::time::Duration;

use sandbox_isolation::Runs;
use sandbox_model::{Operation, SandboxName};
use serde::Serialize;

use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::record::recorded;
use crate::report::{Problem, Refusal};
use crate::summary::counted;
use crate::surroundings;

/// Freeze the processes of a sandbox
///
/// They keep their memory, files and connections, and use no processor until `sandbox resume`.
/// With --stop they are ended instead (SIGTERM, then SIGKILL) and only the files are kept.
///
/// Examples:
///   sandbox pause risky
///   sandbox pause risky --stop
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// End the processes, keep the files
    #[arg(long)]
    stop: bool,

    /// Print JSON: {"name", "processes"}
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct Affected<'s> {
    pub(crate) name: &'s SandboxName,
    pub(crate) processes: usize,
}

/// How long processes have to end by themselves.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn pause(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let (verb, said) = if args.stop {
        ("stop", "Stopped")
    } else {
        ("pause", "Paused")
    };
    let processes = recorded(&sandbox.root, Operation::Pause, |detail| {
        detail.about(&sandbox);
        let runs = Runs::open(&sandbox.runs_dir());
        let done = if args.stop {
            runs.stop(GRACE)
        } else {
            runs.freeze()
        };
        let count = done.map_err(|error| {
            Refusal::io(format!("cannot {verb} sandbox '{}'", sandbox.name()), error)
        })?;
        detail.text = format!("{verb}, {}", counted(count, "process", "processes"));
        Ok(count)
    })?;
    if args.json {
        output::print_json(&Affected {
            name: sandbox.name(),
            processes,
        })?;
    }
    match processes {
        0 => narration::say(format_args!(
            "Nothing runs in sandbox '{}'.",
            sandbox.name()
        )),
        count => narration::say(format_args!(
            "{said} {} of sandbox '{}'.",
            counted(count, "process", "processes"),
            sandbox.name()
        )),
    }
    Ok(Ending::DONE)
}
