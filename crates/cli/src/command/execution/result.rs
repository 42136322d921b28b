//! `sandbox execution result`

use std::io::Write as _;
use std::time::Duration;

use sandbox_model::{Class, ExecutionId};

use super::outcome::Outcome;
use super::view::Status;
use crate::client::{Client, Request};
use crate::ending::Ending;
use crate::narration;
use crate::output::{self, Output};
use crate::report::{Problem, Refusal};

/// Show what became of an execution, as if it had just been run
///
/// What it printed goes to stdout and stderr, and its exit status is ours, as `sandbox exec` has it.
/// One that is not over is an error, with exit status 5, unless it is waited for.
///
/// Examples:
///   sandbox execution result exec_20260131_a1b2c3d4
///   sandbox execution result exec_20260131_a1b2c3d4 --wait --json | jq .artifacts
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The execution
    #[arg(value_name = "EXECUTION")]
    execution: ExecutionId,

    /// Wait until it is over
    #[arg(long, short)]
    wait: bool,

    /// Print JSON: the result, as the API has it
    #[arg(long)]
    json: bool,
}

/// How long is waited before it is asked again: a little longer each time.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

pub(super) fn result(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let id = args.execution.as_str();
    if args.wait {
        until_over(client, id)?;
    }
    let answer = match client.send(&Request::get(&["executions", id, "result"])) {
        Err(error) if error.is_refusal(409) => {
            return Err(Refusal::new(format!("execution {id} is not over"))
                .class(Class::Conflict)
                .hint("give --wait to wait for it")
                .into());
        }
        answer => answer?,
    };
    let outcome: Outcome = answer.read()?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(outcome.ending());
    }
    let mut out = Output::open();
    out.write_all(outcome.stdout.as_bytes())
        .map_err(|error| out.blame(error, "cannot write the output"))?;
    out.finish()?;
    narration::raw(&outcome.stderr);
    Ok(outcome.conclude())
}

fn until_over(client: &Client, id: &str) -> Result<(), Problem> {
    let request = Request::get(&["executions", id, "status"]);
    let mut wait = SHORTEST_WAIT;
    while !client.send(&request)?.read::<Status>()?.is_over() {
        client.wait(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    Ok(())
}
