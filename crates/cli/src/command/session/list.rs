//! `sandbox session list`

use jiff::Timestamp;
use sandbox_model::{SessionStatus, TemplateId};

use super::view::Session;
use crate::ages;
use crate::client::{Client, Paging, Request, listing};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};
use crate::table::Table;

/// List sessions, newest first
///
/// Examples:
///   sandbox session list
///   sandbox session list --status running --all
///   sandbox session list --json | jq -r '.sessions[].session_id'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only those that are creating, running, paused, completed, failed, timeout or terminated
    #[arg(long, value_name = "STATUS")]
    status: Option<SessionStatus>,

    /// Only those made from this template
    #[arg(long, value_name = "TEMPLATE")]
    template: Option<TemplateId>,

    /// Only this agent's
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,

    #[command(flatten)]
    paging: Paging,

    /// Print JSON: {"sessions": [session], "total", "next_cursor"}
    #[arg(long)]
    json: bool,
}

pub(super) fn list(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let request = Request::get(&["sessions"])
        .query("status", args.status)
        .query("template_id", args.template.as_ref())
        .query("agent_id", args.agent.as_ref());
    let found = listing(client, &request, "sessions", &args.paging)?;
    if args.json {
        output::print_line(found.into_json()?)?;
        return Ok(Ending::DONE);
    }
    let sessions: Vec<Session> = found.read()?;
    if sessions.is_empty() {
        narration::say(format_args!("No sessions."));
        return Ok(Ending::DONE);
    }
    let mut table = Table::new(&[
        "SESSION", "TEMPLATE", "STATUS", "MODE", "AGENT", "CREATED", "EXPIRES",
    ]);
    let now = Timestamp::now();
    for session in &sessions {
        table.row(vec![
            plain(&session.session_id),
            plain(&session.template_id),
            plain(&session.status),
            plain(&session.mode),
            session
                .agent_id
                .as_deref()
                .map_or_else(|| "-".to_owned(), plain),
            ages::ago(session.created_at, now),
            match session.is_over() {
                true => "-".to_owned(),
                false => ages::until(session.expires_at, now),
            },
        ]);
    }
    output::print_table(&table)?;
    if let Some(rest) = found.rest() {
        narration::say(format_args!("{rest}"));
    }
    Ok(Ending::DONE)
}
