//! Having code run: handing it over, and the whole way to its result and back.
//!
//! Python's peer is the bare interpreter that does nothing, `python3 -c pass`, started by us; they take
//! turns. Where it is called cold, no interpreter waits for the code: each execution is the first in a
//! session that did not come from the pool, asked for as soon as that is there. Where it is called warm, one does: there was an execution
//! before, and a pause after it. A shell is never started ahead; its peer is `bash -c true`.
//!
//! Sixteen clients at once have a session each, and each asks again as soon as it is answered.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::report::Row;
use crate::server::{Server, text};
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave, median, pause, percentile};

const ROUNDS: usize = 100;
const CLIENTS: usize = 16;

/// How long many clients ask, after a moment that does not count.
const WARMING: Duration = Duration::from_secs(2);
const ASKING: Duration = Duration::from_secs(10);

/// In which an interpreter gets ready.
const PAUSE: Duration = Duration::from_millis(100);

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "executions")?;
    let stage = &*stage;
    let server = Server::start(stage, &place.dir.join("server"), None, &[])?;
    let mut rows = submit(&server)?;
    rows.extend(round_trips(stage, &server, &place.dir)?);
    rows.push(together(&server)?);
    Ok(rows)
}

fn handler() -> Value {
    let code = "def handler(event):\n    return event['a'] + event['b']\n";
    json!({ "language": "python", "code": code, "event": { "a": 1, "b": 2 } })
}

fn shell() -> Value {
    json!({ "language": "shell", "code": "true" })
}

/// Handing over, each after the one before it is done.
fn submit(server: &Server) -> Result<Vec<Row>, StageError> {
    let mut client = server.client()?;
    let session = client.session("never")?;
    let path = format!("/sessions/{session}/execute");
    let mut samples = Vec::new();
    for round in 0..=2 * ROUNDS {
        let begun = Instant::now();
        let submitted = client.post(&path, &shell(), 200)?;
        let took = begun.elapsed();
        if round > 0 {
            samples.push(took);
        }
        await_end(&mut client, &text(&submitted, "execution_id"))?;
    }
    client.end(&session)?;
    let bar = Duration::from_millis(5);
    Ok(vec![
        Row::at_most("submit, p95", percentile(samples.clone(), 95), bar),
        Row::at_most("submit, p50", median(samples), bar).for_information(),
    ])
}

fn await_end(client: &mut Client, execution: &str) -> Result<(), StageError> {
    let path = format!("/executions/{execution}/status");
    loop {
        let status = text(&client.get(&path)?, "status");
        match status.as_str() {
            "pending" | "running" => pause(Duration::from_millis(2)),
            _ => return Ok(()),
        }
    }
}

fn round_trips(stage: &Stage, server: &Server, dir: &Path) -> Result<Vec<Row>, StageError> {
    let used = server.client()?.session("never")?;
    let plain = |words: &'static [&'static str]| -> Attempt<'_> {
        Box::new(move |_| stage.timed(stage.command(words[0], dir).args(&words[1..])))
    };
    let mut client = server.client()?;
    let cold: Attempt<'_> = Box::new(move |_| {
        let session = client.session("never")?;
        let took = round_trip(&mut client, &session, &handler())?;
        client.end(&session)?;
        Ok(took)
    });
    let again = |code: fn() -> Value| -> Result<Attempt<'_>, StageError> {
        let (mut client, session) = (server.client()?, &used);
        Ok(Box::new(move |_| {
            pause(PAUSE);
            round_trip(&mut client, session, &code())
        }))
    };
    let attempts = vec![
        plain(&["python3", "-c", "pass"]),
        cold,
        again(handler)?,
        plain(&["bash", "-c", "true"]),
        again(shell)?,
    ];
    let [python, cold, warm, bash, shell] = interleave(ROUNDS, attempts)?[..] else {
        unreachable!("a median for each attempt")
    };
    let bar = Duration::from_millis(10);
    let (python, bash) = (("python3 -c pass", python), ("bash -c true", bash));
    Ok(vec![
        Row::ratio("Python handler, cold", cold, python, 1.2),
        Row::at_most("Python handler, warm", warm, bar),
        Row::at_most("shell", shell, bar),
        Row::ratio("shell", shell, bash, 1.0).for_information(),
    ])
}

fn round_trip(client: &mut Client, session: &str, code: &Value) -> Result<Duration, StageError> {
    let begun = Instant::now();
    let result = client.run(session, code)?;
    let took = begun.elapsed();
    // A quick answer that is another one would be worth nothing.
    let is_handler = code["language"] == "python";
    match is_handler && result["return_value"] != 3 {
        true => Err(StageError::Output {
            command: code.to_string(),
            output: result.to_string(),
        }),
        false => Ok(took),
    }
}

/// How many executions a second there are when many ask at once.
fn together(server: &Server) -> Result<Row, StageError> {
    let clients: Result<Vec<_>, StageError> = (0..CLIENTS)
        .map(|_| {
            let mut client = server.client()?;
            let session = client.session("never")?;
            Ok((client, session))
        })
        .collect();
    let from = Instant::now() + WARMING;
    let until = from + ASKING;
    let counts: Result<Vec<u32>, StageError> = std::thread::scope(|scope| {
        let asking = clients?
            .into_iter()
            .map(|(client, session)| scope.spawn(move || ask_on(client, &session, from, until)));
        // All of them are there before the first is waited for.
        let asking: Vec<_> = asking.collect();
        let counts = asking.into_iter().map(|client| client.join());
        counts.map(|count| count.unwrap_or(Ok(0))).collect()
    });
    let rate = f64::from(counts?.iter().sum::<u32>()) / ASKING.as_secs_f64();
    let what = format!("shell executions a second, {CLIENTS} clients");
    Ok(Row::rate(&what, rate, 200.0))
}

/// Asks again and again; how many were answered in the time that counts.
fn ask_on(
    mut client: Client,
    session: &str,
    from: Instant,
    until: Instant,
) -> Result<u32, StageError> {
    let mut count = 0;
    loop {
        client.run(session, &shell())?;
        let now = Instant::now();
        if now >= until {
            break;
        }
        count += u32::from(now >= from);
    }
    client.end(session)?;
    Ok(count)
}
