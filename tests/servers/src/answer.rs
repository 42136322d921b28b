//! Bringing a server up: on which port, and when it is ready.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use crate::port;
use crate::supervisor::{Ending, PATIENCE, Supervisor};

/// Between two questions to a server that does not answer yet.
const PAUSE: Duration = Duration::from_millis(20);

/// How many ports are tried before the test fails.
const PORTS: usize = 5;

/// Starts a server on a port of its own. `prepare` makes its data and gives the command for a port,
/// `answers` asks the server a question.
#[track_caller]
pub fn on_a_free_port(
    mut prepare: impl FnMut(u16) -> Server,
    answers: impl Fn(u16) -> bool,
) -> (u16, Server) {
    let mut said = String::new();
    for _ in 0..PORTS {
        let port = port::free();
        let mut server = prepare(port);
        match server.bring_up(|| answers(port)) {
            Ok(()) => return (port, server),
            // It ended by itself: perhaps another took the port.
            Err(log) => said = log,
        }
    }
    panic!("the server does not start; it said:\n{said}")
}

/// A server that has its data and can be started.
#[derive(Debug)]
pub struct Server {
    /// Who looks after it.
    pub supervisor: Supervisor,
    /// What starts it.
    pub command: Vec<OsString>,
}

impl Server {
    /// Starts it and waits until it answers; gives what it said when it ended instead.
    #[track_caller]
    fn bring_up(&mut self, answers: impl Fn() -> bool) -> Result<(), String> {
        self.supervisor.start(&self.command);
        let deadline = Instant::now() + PATIENCE;
        while !answers() {
            if self.supervisor.ended_within(PAUSE) {
                self.supervisor.end(Ending::Kill);
                return Err(self.supervisor.log());
            }
            let log = || self.supervisor.log();
            assert!(
                Instant::now() < deadline,
                "no answer; the server said:\n{}",
                log()
            );
        }
        Ok(())
    }

    /// Starts it again and waits until it answers.
    #[track_caller]
    pub fn bring_up_again(&mut self, answers: impl Fn() -> bool) {
        if let Err(log) = self.bring_up(answers) {
            panic!("the server does not start again; it said:\n{log}");
        }
    }
}
