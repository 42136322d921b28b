//! `sandbox session`

mod changes;
mod create;
mod events;
mod life;
mod list;
mod view;

use sandbox_model::SessionId;

use crate::client::{Request, ServerOptions};
use crate::ending::Ending;
use crate::output;
use crate::report::Problem;
use view::Session;

/// Make, look at and end sessions of a server
///
/// A session is a sandbox that a server (`sandbox serve`) manages: it has a workspace, code runs in it
/// with `sandbox exec SESSION`, and files go in and out with `sandbox file`.
///
/// Examples:
///   session=$(sandbox session create python-basic)
///   sandbox exec $session 'echo hello'
///   sandbox session list --status running
///   sandbox session delete $session
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
    Create(Box<create::Args>),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Get(GetArgs),
    #[command(visible_alias = "rm")]
    Delete(life::DeleteArgs),
    Renew(life::RenewArgs),
    Pause(life::PauseArgs),
    Resume(life::ResumeArgs),
    Fork(life::ForkArgs),
    Changes(changes::Args),
    Events(events::Args),
}

/// Show everything about a session
///
/// Examples:
///   sandbox session get sess_0123456789abcdef
///   sandbox session get sess_0123456789abcdef --json | jq .limits_enforced
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
struct GetArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Print JSON: the session, as the API has it
    #[arg(long)]
    json: bool,
}

pub(crate) fn session(args: &Args) -> Result<Ending, Problem> {
    let client = args.server.connect()?;
    match &args.verb {
        Verb::Create(args) => create::create(&client, args),
        Verb::List(args) => list::list(&client, args),
        Verb::Get(args) => {
            let answer = client.send(&Request::get(&["sessions", args.session.as_str()]))?;
            match args.json {
                true => output::print_line(answer.json()?)?,
                false => output::print_fields(&answer.read::<Session>()?.fields())?,
            }
            Ok(Ending::DONE)
        }
        Verb::Delete(args) => life::delete(&client, args),
        Verb::Renew(args) => life::renew(&client, args),
        Verb::Pause(args) => life::pause(&client, args),
        Verb::Resume(args) => life::resume(&client, args),
        Verb::Fork(args) => life::fork(&client, args),
        Verb::Changes(args) => changes::changes(&client, args),
        Verb::Events(args) => events::events(&client, args),
    }
}
