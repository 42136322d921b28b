//! `sandbox session delete`, `renew`, `pause`, `resume` and `fork`

use sandbox_model::SessionId;
use serde::{Deserialize, Serialize};

use super::create::tell;
use super::view::Session;
use crate::ages;
use crate::client::{Answer, Client, Request};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, plain};

/// End sessions, with everything that runs in them
///
/// Their files stay downloadable for a day. Ending one that has ended is no error.
///
/// Examples:
///   sandbox session delete sess_0123456789abcdef
///   sandbox session list --json | jq -r '.sessions[].session_id' | xargs sandbox session rm
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct DeleteArgs {
    /// The sessions
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<SessionId>,

    /// Print JSON: {"message"} for each, on a line
    #[arg(long)]
    json: bool,
}

/// Let a session live for its time from now on
///
/// Examples:
///   sandbox session renew sess_0123456789abcdef
///   sandbox session renew sess_0123456789abcdef --timeout 3600
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct RenewArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// How long, 60 to 3600 seconds; as before without it
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,

    /// Print JSON: the session, as the API has it
    #[arg(long)]
    json: bool,
}

/// Stop everything in a session where it is
///
/// It uses no processor until `sandbox session resume`. It still expires.
///
/// Examples:
///   sandbox session pause sess_0123456789abcdef
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct PauseArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Print JSON: the session, as the API has it
    #[arg(long)]
    json: bool,
}

/// Let a session that was paused go on
///
/// Examples:
///   sandbox session resume sess_0123456789abcdef
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct ResumeArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Print JSON: the session, as the API has it
    #[arg(long)]
    json: bool,
}

/// Make a session like another one, whose workspace starts as a copy of its
///
/// The new one's identifier is printed on stdout.
///
/// Examples:
///   sandbox session fork sess_0123456789abcdef
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct ForkArgs {
    /// The session to fork
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Print JSON: the new session, as the API has it
    #[arg(long)]
    json: bool,
}

pub(super) fn delete(client: &Client, args: &DeleteArgs) -> Result<Ending, Problem> {
    #[derive(Deserialize)]
    struct Done {
        message: String,
    }
    for session in &args.sessions {
        let answer = client.send(&Request::delete(&["sessions", session.as_str()]))?;
        match args.json {
            true => output::print_line(answer.json()?)?,
            false => {
                let done: Done = answer.read()?;
                narration::say(format_args!("{}", plain(&done.message)));
            }
        }
    }
    Ok(Ending::DONE)
}

pub(super) fn renew(client: &Client, args: &RenewArgs) -> Result<Ending, Problem> {
    #[derive(Serialize)]
    struct Body {
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<u32>,
    }
    let body = Body {
        timeout: args.timeout,
    };
    let request = Request::post(&["sessions", args.session.as_str(), "renew"]).json(&body);
    shown(&client.send(&request)?, args.json, |session| {
        let until = ages::local(session.expires_at);
        format!("Session {} lives until {until}.", session.session_id)
    })
}

pub(super) fn pause(client: &Client, args: &PauseArgs) -> Result<Ending, Problem> {
    let request = Request::post(&["sessions", args.session.as_str(), "pause"]);
    shown(&client.send(&request)?, args.json, |session| {
        format!("Paused session {}.", session.session_id)
    })
}

pub(super) fn resume(client: &Client, args: &ResumeArgs) -> Result<Ending, Problem> {
    let request = Request::post(&["sessions", args.session.as_str(), "resume"]);
    shown(&client.send(&request)?, args.json, |session| {
        format!("Resumed session {}.", session.session_id)
    })
}

pub(super) fn fork(client: &Client, args: &ForkArgs) -> Result<Ending, Problem> {
    let request = Request::post(&["sessions", args.session.as_str(), "fork"]);
    let answer = client.send(&request)?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => tell(&answer.read()?)?,
    }
    Ok(Ending::DONE)
}

/// Prints the session as JSON, or says what was done with it.
fn shown(
    answer: &Answer,
    json: bool,
    said: impl FnOnce(&Session) -> String,
) -> Result<Ending, Problem> {
    match json {
        true => output::print_line(answer.json()?)?,
        false => narration::say(format_args!("{}", plain(&said(&answer.read()?)))),
    }
    Ok(Ending::DONE)
}
