//! Two sockets joined: what one sends, the other receives.
//!
//! Ends are kept apart: when one side has sent its last byte, the other is told so and may go on
//! answering. A connection that breaks on one side is reset on the other, never ended politely,
//! or a cut-off download would look complete. At most one chunk per direction is held: who sends
//! faster than the other reads is made to wait by TCP itself.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::net::Shutdown;

use super::socket::{Received, receive, reset_on_close, send, without_delay};

/// How much one direction holds.
const CHUNK: usize = 32 * 1024;

/// One direction of a relay.
pub(super) struct Flow {
    bytes: Vec<u8>,
    sent: usize,
    stage: Stage,
    passes: Option<Passes>,
}

/// How many of these bytes may pass; those behind them are dropped. An error breaks the connection.
type Passes = Box<dyn FnMut(&[u8]) -> io::Result<usize> + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// The sender has ended; what is held still goes out.
    Flushing,
    Done,
}

/// When a relay is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Both sides have ended.
    BothEnd,
    /// The server has: one question, one answer.
    Answered,
}

impl Flow {
    /// A direction that begins with these bytes.
    pub(super) fn starting_with(bytes: Vec<u8>) -> Flow {
        Flow {
            bytes,
            sent: 0,
            stage: Stage::Reading,
            passes: None,
        }
    }

    /// Lets through only what `passes` says.
    pub(super) fn limited(
        mut self,
        passes: impl FnMut(&[u8]) -> io::Result<usize> + Send + 'static,
    ) -> Flow {
        self.passes = Some(Box::new(passes));
        self
    }

    fn holds(&self) -> bool {
        self.sent < self.bytes.len()
    }

    fn wants_to_read(&self) -> bool {
        self.stage == Stage::Reading && !self.holds()
    }

    fn wants_to_write(&self) -> bool {
        self.stage != Stage::Done && self.holds()
    }

    fn read(&mut self, from: &OwnedFd) -> io::Result<()> {
        self.bytes.clear();
        self.sent = 0;
        match receive(from, &mut self.bytes, CHUNK)? {
            Received::End => self.stage = Stage::Flushing,
            Received::Bytes(_) => {
                if let Some(passes) = &mut self.passes {
                    let count = passes(&self.bytes)?;
                    self.bytes.truncate(count);
                }
            }
            Received::Nothing => {}
        }
        Ok(())
    }

    fn write(&mut self, to: &OwnedFd) {
        match send(to, &self.bytes[self.sent..]) {
            Ok(count) => self.sent += count,
            // The receiver wants no more; what it has said itself is still to be delivered.
            Err(_) => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        self.stage = Stage::Done;
        self.bytes = Vec::new();
        self.sent = 0;
    }

    /// Passes the end on once everything before it is out.
    fn settle(&mut self, to: &OwnedFd) {
        if self.stage == Stage::Flushing && !self.holds() {
            let _ = rustix::net::shutdown(to, Shutdown::Write);
            self.give_up();
        }
    }
}

/// The other side of a connection, and how the two are to be joined.
pub(super) struct Joint {
    pub(super) server: OwnedFd,
    pub(super) request: Flow,
    pub(super) until: Until,
}

impl Joint {
    /// Everything goes both ways.
    pub(super) fn plain(server: OwnedFd) -> Joint {
        Joint {
            server,
            request: Flow::starting_with(Vec::new()),
            until: Until::BothEnd,
        }
    }
}

/// Two sockets that are joined, by one thread for all of them.
pub(super) struct Relay {
    client: OwnedFd,
    server: OwnedFd,
    request: Flow,
    answer: Flow,
    until: Until,
    client_gone: bool,
    server_gone: bool,
}

impl Relay {
    pub(super) fn new(client: OwnedFd, joint: Joint) -> Relay {
        without_delay(&client);
        without_delay(&joint.server);
        Relay {
            client,
            server: joint.server,
            request: joint.request,
            answer: Flow::starting_with(Vec::new()),
            until: joint.until,
            client_gone: false,
            server_gone: false,
        }
    }

    /// Passes ends on. `false` when all is said.
    pub(super) fn settle(&mut self) -> bool {
        self.request.settle(&self.server);
        self.answer.settle(&self.client);
        let answered = self.answer.stage == Stage::Done;
        !(answered && (self.until == Until::Answered || self.request.stage == Stage::Done))
    }

    /// What to wait for at the client and at the server.
    pub(super) fn interests(&self) -> [Option<(&OwnedFd, PollFlags)>; 2] {
        [
            interest(&self.client, &self.request, &self.answer, self.client_gone),
            interest(&self.server, &self.answer, &self.request, self.server_gone),
        ]
    }

    /// Passes on what there is, where the two are ready like this. An error breaks the connection.
    pub(super) fn pass(&mut self, [at_client, at_server]: [PollFlags; 2]) -> io::Result<()> {
        let (request, answer) = (&mut self.request, &mut self.answer);
        serve(
            &self.client,
            at_client,
            request,
            answer,
            &mut self.client_gone,
        )?;
        serve(
            &self.server,
            at_server,
            answer,
            request,
            &mut self.server_gone,
        )
    }

    /// Makes both sides take the coming close for a failure.
    pub(super) fn reset(&self) {
        reset_on_close(&self.client);
        reset_on_close(&self.server);
    }
}

/// What to wait for at a socket that `from` comes from and `to` goes to. A dead socket reports
/// itself for ever, so once that is known it is only asked when something is wanted of it.
fn interest<'fd>(
    socket: &'fd OwnedFd,
    from: &Flow,
    to: &Flow,
    gone: bool,
) -> Option<(&'fd OwnedFd, PollFlags)> {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, from.wants_to_read());
    flags.set(PollFlags::OUT, to.wants_to_write());
    (!gone || !flags.is_empty()).then_some((socket, flags))
}

fn serve(
    socket: &OwnedFd,
    ready: PollFlags,
    from: &mut Flow,
    to: &mut Flow,
    gone: &mut bool,
) -> io::Result<()> {
    let dead = ready.intersects(PollFlags::HUP | PollFlags::ERR);
    if from.wants_to_read() && (dead || ready.contains(PollFlags::IN)) {
        from.read(socket)?;
    }
    if to.wants_to_write() && (dead || ready.contains(PollFlags::OUT)) {
        to.write(socket);
    }
    if dead {
        *gone = true;
        to.give_up();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_socket_is_asked_only_while_something_is_wanted_of_it() {
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = OwnedFd::from(socket);
        let reading = Flow::starting_with(Vec::new());
        let holding = Flow::starting_with(vec![1]);
        let asked = |from: &Flow, gone| interest(&socket, from, &reading, gone).map(|(_, f)| f);
        assert_eq!(asked(&reading, false), Some(PollFlags::IN));
        assert_eq!(asked(&reading, true), Some(PollFlags::IN));
        // Alive it is watched even so: a reset must be noticed.
        assert_eq!(asked(&holding, false), Some(PollFlags::empty()));
        assert_eq!(asked(&holding, true), None);
    }
}
