//! `sandbox session events`

use std::io::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::{SessionId, SessionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::view::Session;
use crate::ages;
use crate::client::{Client, ClientError, Event, Events, Next, Request};
use crate::ending::Ending;
use crate::output::Output;
use crate::report::{Problem, Refusal, plain};

/// Show what happens to a session, as it happens
///
/// Everything from the beginning, then what is to come, until the session has ended. When the connection
/// breaks, it goes on with the event after the last one.
///
/// Examples:
///   sandbox session events sess_0123456789abcdef
///   sandbox session events sess_0123456789abcdef --after 17 --json
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// Only those after the event of this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,

    /// Print JSON, a line for each: {"id", "event", "at", "detail"}
    #[arg(long)]
    json: bool,
}

/// After so long without an event, a session that has ended has no more of them.
const QUIET: Duration = Duration::from_secs(3);

/// How often it is asked anew without anything having come, and how long is waited before.
const MOST_FAILURES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// An event's data.
#[derive(Debug, Deserialize)]
struct Notice {
    at: Timestamp,
    detail: Box<RawValue>,
}

/// What `--json` prints of each.
#[derive(Debug, Serialize)]
struct Told<'e> {
    id: Option<u64>,
    event: &'e str,
    at: Timestamp,
    detail: &'e RawValue,
}

pub(super) fn events(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let mut last = args.after;
    let mut failures = 0;
    loop {
        let before = last;
        let error = match watch(client, args, &mut last) {
            Ok(()) => return Ok(Ending::DONE),
            Err(Watching::Over(problem)) => return Err(problem),
            Err(Watching::Broke(error)) => error,
        };
        let was_never_there = failures == 0 && matches!(error, ClientError::Unreachable { .. });
        failures = if last == before { failures + 1 } else { 1 };
        if was_never_there || failures > MOST_FAILURES {
            return Err(error.into());
        }
        client.wait(PAUSE);
    }
}

/// Why watching stopped before the session did.
enum Watching {
    /// For good.
    Over(Problem),
    /// The connection did; it may be made again.
    Broke(ClientError),
}

impl From<ClientError> for Watching {
    fn from(error: ClientError) -> Watching {
        match error {
            ClientError::Broken { .. } | ClientError::Unreachable { .. } => Watching::Broke(error),
            error => Watching::Over(error.into()),
        }
    }
}

impl From<Problem> for Watching {
    fn from(problem: Problem) -> Watching {
        Watching::Over(problem)
    }
}

/// Prints the events after `last`, which is the last one seen, until the session has ended.
fn watch(client: &Client, args: &Args, last: &mut Option<u64>) -> Result<(), Watching> {
    let id = args.session.as_str();
    let session: Session = client.send(&Request::get(&["sessions", id]))?.read()?;
    let request = Request::get(&["sessions", id, "events"])
        .header("accept", Some("text/event-stream"))
        .header("last-event-id", *last);
    let mut stream = client.open(&request)?;
    let mut events = Events::default();
    loop {
        let next = match session.is_over() {
            true => stream.next_within(QUIET)?,
            false => stream.next()?.map_or(Next::End, Next::Piece),
        };
        let piece = match next {
            Next::Piece(piece) => piece,
            Next::Silence | Next::Signal(_) => return Ok(()),
            Next::End => {
                return Err(Watching::Broke(ClientError::ended(client.server())));
            }
        };
        for event in events.feed(&piece) {
            let id = event.id.as_deref().and_then(|id| id.parse().ok());
            *last = id.or(*last);
            if tell(&event, id, args.json)? == Then::Over {
                return Ok(());
            }
        }
    }
}

/// Whether the session goes on after an event.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    GoesOn,
    Over,
}

fn tell(event: &Event, id: Option<u64>, json: bool) -> Result<Then, Problem> {
    let notice: Notice = serde_json::from_slice(&event.data).map_err(|error| {
        Refusal::new(format!("cannot understand the event '{}'", event.name)).caused_by(error)
    })?;
    let mut out = Output::open();
    match json {
        true => {
            let told = Told {
                id,
                event: &event.name,
                at: notice.at,
                detail: &notice.detail,
            };
            let line = serde_json::to_vec(&told);
            out.line(line.map_err(|error| out.blame(error.into(), "cannot write JSON"))?)?;
        }
        false => {
            let number = id.map_or_else(String::new, |id| id.to_string());
            let (at, name) = (ages::local(notice.at), plain(&event.name));
            let detail = plain(notice.detail.get());
            out.line(format!("{number:>6}  {at}  {name:<14}  {detail}"))?;
        }
    }
    out.flush()
        .map_err(|error| out.blame(error, "cannot write the output"))?;
    Ok(match &*event.name == "status" && is_over(&notice.detail) {
        true => Then::Over,
        false => Then::GoesOn,
    })
}

fn is_over(detail: &RawValue) -> bool {
    let detail: Value = serde_json::from_str(detail.get()).unwrap_or_default();
    let status = detail["status"].as_str().unwrap_or_default();
    status
        .parse::<SessionStatus>()
        .is_ok_and(SessionStatus::is_over)
}
