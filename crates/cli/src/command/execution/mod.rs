//! `sandbox execution`

mod list;
mod outcome;
mod result;
mod view;

use sandbox_model::ExecutionId;

use crate::client::{Client, Request, ServerOptions};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};

pub(crate) use outcome::Outcome;
use view::{Program, Status};

/// Look at what was run in sessions, and end what runs
///
/// `sandbox exec SESSION CODE` runs something; with --detach it prints the execution's identifier.
///
/// Examples:
///   sandbox execution list sess_0123456789abcdef
///   sandbox execution result exec_20260131_a1b2c3d4 --wait
///   sandbox execution cancel exec_20260131_a1b2c3d4
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerOptions,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
#[cfg_attr(test, derive(PartialEq))]
enum Verb {
    #[command(visible_alias = "ls")]
    List(list::Args),
    Get(GetArgs),
    Status(StatusArgs),
    Result(result::Args),
    Cancel(CancelArgs),
}

/// Show everything about an execution, its code and its event
///
/// Examples:
///   sandbox execution get exec_20260131_a1b2c3d4
///   sandbox execution get exec_20260131_a1b2c3d4 --json | jq -r .code
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct GetArgs {
    /// The execution
    #[arg(value_name = "EXECUTION")]
    execution: ExecutionId,

    /// Print JSON: the execution, as the API has it
    #[arg(long)]
    json: bool,
}

/// Show where an execution is in its life
///
/// Examples:
///   sandbox execution status exec_20260131_a1b2c3d4
///   sandbox execution status exec_20260131_a1b2c3d4 --json | jq .progress
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct StatusArgs {
    /// The execution
    #[arg(value_name = "EXECUTION")]
    execution: ExecutionId,

    /// Print JSON: the status, as the API has it
    #[arg(long)]
    json: bool,
}

/// End an execution, with everything that it started
///
/// Examples:
///   sandbox execution cancel exec_20260131_a1b2c3d4
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct CancelArgs {
    /// The execution
    #[arg(value_name = "EXECUTION")]
    execution: ExecutionId,

    /// Print JSON: the status, as the API has it
    #[arg(long)]
    json: bool,
}

pub(crate) fn execution(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::List(args) => list::list(&client, args),
        Verb::Get(args) => get(&client, args),
        Verb::Status(args) => status(&client, args),
        Verb::Result(args) => result::result(&client, args),
        Verb::Cancel(args) => cancel(&client, args),
    }
}

fn get(client: &Client, args: &GetArgs) -> Result<Ending, Problem> {
    let answer = client.send(&Request::get(&["executions", args.execution.as_str()]))?;
    if args.json {
        output::print_line(answer.json()?)?;
        return Ok(Ending::DONE);
    }
    let mut fields = answer.read::<Status>()?.fields();
    fields.extend(answer.read::<Program>()?.fields());
    output::print_fields(&fields)?;
    Ok(Ending::DONE)
}

fn status(client: &Client, args: &StatusArgs) -> Result<Ending, Problem> {
    let request = Request::get(&["executions", args.execution.as_str(), "status"]);
    let answer = client.send(&request)?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => output::print_fields(&answer.read::<Status>()?.fields())?,
    }
    Ok(Ending::DONE)
}

fn cancel(client: &Client, args: &CancelArgs) -> Result<Ending, Problem> {
    let request = Request::post(&["executions", args.execution.as_str(), "cancel"]);
    let answer = client.send(&request)?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => {
            let cancelled: Status = answer.read()?;
            let (id, status) = (plain(&cancelled.execution_id), plain(&cancelled.status));
            narration::say(format_args!("Execution {id} is {status}."));
        }
    }
    Ok(Ending::DONE)
}
