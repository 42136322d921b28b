//! Ending what takes too long: when, and what is left of it.
//!
//! The code has a tree of processes that do not want to end: they ignore what can be ignored, one has
//! left its session, one its parent. What is told is how far from its second the answer came, seen by the
//! client, at worst; and no process of the tree may be there when it does.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::processes::Process;
use crate::report::Row;
use crate::server::{Server, text};
use crate::stage::{Filesystem, Stage, StageError};

const ROUNDS: usize = 15;
const LIMIT: Duration = Duration::from_secs(1);

const STUBBORN: &str = "trap '' TERM INT HUP QUIT
setsid sleep 1000 &
(sleep 1000 & sleep 1000 & exec sleep 1000) &
while :; do sleep 1000; done";

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "timeouts")?;
    let server = Server::start(stage, &place.dir.join("server"), None, &[])?;
    let mut client = server.client()?;
    let session = client.session("never")?;
    let path = format!("/sessions/{session}/execute?wait=true");
    let code = json!({ "language": "shell", "code": STUBBORN, "timeout": LIMIT.as_secs() });
    let mut worst = Duration::ZERO;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let result = client.post(&path, &code, 200)?;
        let took = begun.elapsed();
        let left = sleepers(&server);
        if text(&result, "status") != "timeout" || left > 0 {
            return Err(StageError::Output {
                command: "an execution that takes too long".to_owned(),
                output: format!("{left} processes are left; {result}"),
            });
        }
        worst = worst.max(took.abs_diff(LIMIT));
    }
    client.end(&session)?;
    let bar = Duration::from_millis(100);
    Ok(vec![Row::at_most(
        "timeout, furthest from its second",
        worst,
        bar,
    )])
}

/// How many processes of the code there are.
fn sleepers(server: &Server) -> usize {
    let executors = server.executors().into_iter();
    let inside = executors.flat_map(Process::tree);
    let names = inside.filter_map(Process::name);
    names.filter(|name| name == "sleep").count()
}
