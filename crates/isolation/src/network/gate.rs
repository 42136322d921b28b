//! The gate itself: one thread that accepts at every door, and one for each connection.
//!
//! Threads rather than an event loop: the connections of one command are few, their stacks are
//! touched no deeper than used, and an idle gate is a single sleeping thread. How many there are at
//! once is bounded, so that nothing inside can use up the host's threads or our descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::entrance::{Door, Entrances};
use super::outside::{Host, Outside};
use super::proxy::{self, Proxy, Rules};
use super::publish::{self, Sockets};
use super::refused::Ledger;
use super::socket::reset_on_close;
use super::stop::Stop;
use super::{Doors, Refused, forward};

/// Address space of a thread's stack, of which only what is used becomes memory. Resolvers are the
/// deepest thing that runs on one.
pub(super) const STACK: usize = 256 * 1024;

/// Connections at once. Each holds two descriptors, and 1024 is the usual limit of a process.
pub(super) const MOST_CONNECTIONS: usize = 384;

/// How long to wait when no connection can be accepted just now.
const BREATHER: Duration = Duration::from_millis(50);

/// A gate that serves. Dropping it closes it.
#[derive(Debug)]
pub struct Gate {
    stop: Arc<Stop>,
    ledger: Arc<Ledger>,
    acceptor: Option<JoinHandle<()>>,
}

/// What connections are served with.
#[derive(Debug)]
struct Service {
    stop: Arc<Stop>,
    ledger: Arc<Ledger>,
    proxy: Proxy,
    sockets: Option<Sockets>,
}

impl Gate {
    /// Starts serving in threads of its own. Without a single door no thread is started.
    pub fn open(doors: Doors) -> io::Result<Gate> {
        Gate::open_to(doors, Arc::new(Host))
    }

    /// The same, before another outside.
    pub(super) fn open_to(doors: Doors, outside: Arc<dyn Outside>) -> io::Result<Gate> {
        if doors.sockets.is_none() && !doors.published.is_empty() {
            let reason = "published ports need sockets of the sandbox's network";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let stop = Arc::new(Stop::new()?);
        let ledger = Arc::new(Ledger::default());
        let entrances = Entrances::new(doors.ports, doors.proxy, doors.published)?;
        let service = Service {
            stop: stop.clone(),
            ledger: ledger.clone(),
            proxy: Proxy::new(
                Rules::new(doors.hosts, doors.others),
                outside,
                stop.clone(),
                ledger.clone(),
            ),
            sockets: doors.sockets.map(Sockets::over),
        };
        let acceptor = if entrances.is_empty() {
            None
        } else {
            Some(spawn("gate", move || {
                accept(&Arc::new(service), entrances)
            })?)
        };
        Ok(Gate {
            stop,
            ledger,
            acceptor,
        })
    }

    /// Stops serving, ends every connection, and tells what was refused, most often first.
    pub fn close(mut self) -> Vec<Refused> {
        self.end();
        self.ledger.sorted()
    }

    fn end(&mut self) {
        self.stop.raise();
        if let Some(acceptor) = self.acceptor.take() {
            // A thread that panicked has nothing left to stop.
            let _ = acceptor.join();
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(work)
}

/// The acceptor: until the gate closes, and then until every connection has ended.
fn accept(service: &Arc<Service>, mut entrances: Entrances) {
    let mut connections: Vec<JoinHandle<()>> = Vec::new();
    while let Ok(ready) = entrances.ready(&service.stop) {
        for (listener, door) in ready {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match rustix::net::accept_with(listener, flags) {
                Ok(client) => {
                    connections.retain(|connection| !connection.is_finished());
                    let others = connections.len();
                    connections.extend(service.clone().admit(door, client, others));
                }
                // The client has gone again.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                // No descriptors or memory left, or a broken listener: reported for ever, so that
                // looking again at once would be a spin.
                Err(_) => service.stop.pause(BREATHER),
            }
        }
    }
    for connection in connections {
        let _ = connection.join();
    }
}

impl Service {
    /// Gives a connection a thread, or sends it away.
    fn admit(
        self: Arc<Self>,
        door: Door,
        client: OwnedFd,
        others: usize,
    ) -> Option<JoinHandle<()>> {
        let refuse = |client: &OwnedFd, reason: &str| {
            self.ledger.record(&door.describe(), reason);
            reset_on_close(client);
        };
        if others >= MOST_CONNECTIONS {
            refuse(
                &client,
                &format!("more than {MOST_CONNECTIONS} connections at once"),
            );
            return None;
        }
        let client = Arc::new(client);
        let (service, socket) = (self.clone(), client.clone());
        match spawn("gate-connection", move || service.serve(door, &socket)) {
            Ok(handle) => Some(handle),
            Err(error) => {
                refuse(&client, &format!("no thread for it: {error}"));
                None
            }
        }
    }

    fn serve(&self, door: Door, client: &OwnedFd) {
        match (door, &self.sockets) {
            (Door::Port(port), _) => forward::serve(&self.stop, client, port),
            (Door::Proxy, _) => proxy::serve(&self.proxy, client),
            (Door::Published { inside, .. }, Some(sockets)) => {
                publish::serve(&self.stop, sockets, client, inside);
            }
            (Door::Published { .. }, None) => reset_on_close(client),
        }
    }
}
