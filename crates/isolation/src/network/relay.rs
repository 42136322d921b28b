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
use super::stop::Stop;

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

/// Joins `client` and `server` until they are done, one breaks, or the gate closes.
pub(super) fn relay(stop: &Stop, client: &OwnedFd, server: &OwnedFd, request: Flow, until: Until) {
    without_delay(client);
    without_delay(server);
    if exchange(stop, client, server, request, until).is_err() {
        reset_on_close(client);
        reset_on_close(server);
    }
}

fn exchange(
    stop: &Stop,
    client: &OwnedFd,
    server: &OwnedFd,
    mut request: Flow,
    until: Until,
) -> io::Result<()> {
    let mut answer = Flow::starting_with(Vec::new());
    let (mut client_gone, mut server_gone) = (false, false);
    loop {
        request.settle(server);
        answer.settle(client);
        let answered = answer.stage == Stage::Done;
        if answered && (until == Until::Answered || request.stage == Stage::Done) {
            return Ok(());
        }
        let at_client = interest(client, &request, &answer, client_gone);
        let at_server = interest(server, &answer, &request, server_gone);
        let [at_client, at_server] = stop.poll([at_client, at_server], None)?;
        serve(
            client,
            at_client,
            &mut request,
            &mut answer,
            &mut client_gone,
        )?;
        serve(
            server,
            at_server,
            &mut answer,
            &mut request,
            &mut server_gone,
        )?;
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
