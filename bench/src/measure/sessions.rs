//! Making a session, from the pool and without it, and what its executor takes while nobody uses it.
//!
//! The two kinds take turns. Each session is ended before the next one is made, and between them there
//! is a pause in which the pool is filled again: a client that comes now and then, not one that asks
//! for more than there is. One that comes when the pool is empty is told so, and does not count.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::Client;
use crate::processes::Weight;
use crate::report::Row;
use crate::server::{Server, text};
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{median, pause, percentile};

const ROUNDS: usize = 100;

/// How long the pool has to be filled again.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a new session expects code, and has an interpreter waiting for it, and some more.
const EXPECTING: Duration = Duration::from_secs(3);

/// How long it may take to be filled at all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "sessions")?;
    let server = Server::start(stage, &place.dir.join("server"), None, &[])?;
    let mut client = server.client()?;
    let (mut pooled, mut cold) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for (pool, samples) in [("require", &mut pooled), ("never", &mut cold)] {
            let took = create(&mut client, pool)?;
            if round > 0 {
                samples.push(took);
            }
        }
    }
    let within = |milliseconds| Duration::from_millis(milliseconds);
    Ok(vec![
        Row::at_most(
            "create from the pool, p95",
            percentile(pooled.clone(), 95),
            within(20),
        ),
        Row::at_most("create from the pool, p50", median(pooled), within(20)).for_information(),
        Row::at_most(
            "create without the pool, p95",
            percentile(cold.clone(), 95),
            within(100),
        ),
        Row::at_most("create without the pool, p50", median(cold), within(100)).for_information(),
        executor(&server, &mut client)?,
    ])
}

/// How long it took to make a session; it is ended afterwards.
fn create(client: &mut Client, pool: &str) -> Result<Duration, StageError> {
    let wanted = json!({ "template_id": "python-basic", "pool": pool });
    let deadline = Instant::now() + PATIENCE;
    loop {
        pause(PAUSE);
        let begun = Instant::now();
        let answered = client.try_post("/sessions", &wanted)?;
        let took = begun.elapsed();
        match answered {
            (201, session) => {
                client.end(&text(&session, "session_id"))?;
                return Ok(took);
            }
            // The pool is empty.
            (503, _) if Instant::now() < deadline => {}
            (status, answer) => {
                return Err(StageError::Output {
                    command: "POST /sessions".to_owned(),
                    output: format!("{status} {answer}"),
                });
            }
        }
    }
}

/// The executor of a session that was made and not used, with the inner sandbox that waits in it.
fn executor(server: &Server, client: &mut Client) -> Result<Row, StageError> {
    let before = server.executors();
    let session = client.session("never")?;
    pause(EXPECTING);
    let raised = server.executors().into_iter();
    let own: Vec<_> = raised.filter(|process| !before.contains(process)).collect();
    let weight = Weight::of(own.into_iter().flat_map(|process| process.tree()));
    client.end(&session)?;
    Ok(Row::memory("executor, idle", weight.memory, None, 5 << 10))
}
