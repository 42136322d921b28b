//! Bringing a server up: on which port, and when it is ready.

use std::time::{Duration, Instant};

use crate::port;
use crate::supervisor::{Ending, PATIENCE, Supervisor};

/// Between two questions to a server that does not answer yet.
const PAUSE: Duration = Duration::from_millis(20);

/// How many ports are tried before the test fails.
const PORTS: usize = 5;

/// Starts a server on a port of its own. `prepare` makes the supervisor for a port, `answers` asks
/// the server a question.
#[track_caller]
pub fn on_a_free_port(
    mut prepare: impl FnMut(u16) -> Supervisor,
    answers: impl Fn(u16, &Supervisor) -> bool,
) -> (u16, Supervisor) {
    let mut said = String::new();
    for _ in 0..PORTS {
        let port = port::free();
        let mut supervisor = prepare(port);
        match bring_up(&mut supervisor, |supervisor| answers(port, supervisor)) {
            Ok(()) => return (port, supervisor),
            // It ended by itself: perhaps another took the port.
            Err(log) => said = log,
        }
    }
    panic!("the server does not start; it said:\n{said}")
}

/// Starts the server and waits until it answers; gives what it said when it ended instead.
#[track_caller]
pub fn bring_up(
    supervisor: &mut Supervisor,
    answers: impl Fn(&Supervisor) -> bool,
) -> Result<(), String> {
    supervisor.start();
    let deadline = Instant::now() + PATIENCE;
    while !answers(supervisor) {
        if supervisor.ended_within(PAUSE) {
            supervisor.end(Ending::Kill);
            return Err(supervisor.log());
        }
        let log = || supervisor.log();
        assert!(
            Instant::now() < deadline,
            "no answer; the server said:\n{}",
            log()
        );
    }
    Ok(())
}
