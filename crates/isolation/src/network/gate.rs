//! The gate itself: one thread that accepts at every door and joins the two sides of every connection,
//! and a few that open the other side.
//!
//! Opening takes a conversation, a look at the resolver and a connection to the world, which is said best in
//! order, in a thread; joining is the same for all, for as long as they last. So the number of threads
//! does not follow the number of connections, and both are bounded: nothing inside can use up the host's
//! threads or our descriptors. All threads of a gate are confined ([`super::confine`]) before the first
//! connection is accepted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::confine::{Binding, confine};
use super::entrance::{Door, Entrances};
use super::outside::{Host, Outside};
use super::proxy::{self, HANDSHAKE_TIME, Proxy, Rules};
use super::publish::{self, Sockets};
use super::refused::Ledger;
use super::relay::{Joint, Relay};
use super::socket::reset_on_close;
use super::stop::{Stop, locked};
use super::{Doors, Refused, forward};

/// Address space of a thread's stack, of which only what is used becomes memory. Resolvers are the
/// deepest thing that runs on one.
pub(super) const STACK: usize = 256 * 1024;

/// Connections at once. Each holds two descriptors, and 1024 is the usual limit of a process.
pub(super) const MOST_CONNECTIONS: usize = 384;

/// Connections whose other side is being opened at once, each by a thread. Others wait.
pub(super) const MOST_OPENING: usize = 16;

/// How long to wait when no connection can be accepted just now.
const BREATHER: Duration = Duration::from_millis(50);

/// A gate that serves. Dropping it closes it.
#[derive(Debug)]
pub struct Gate {
    stop: Arc<Stop>,
    ledger: Arc<Ledger>,
    server: Option<JoinHandle<()>>,
}

/// What connections are served with.
struct Service {
    stop: Arc<Stop>,
    ledger: Arc<Ledger>,
    proxy: Proxy,
    sockets: Option<Sockets>,
    openings: Mutex<Openings>,
    /// Says that there is something new among them.
    news: OwnedFd,
}

/// The connections whose other side is being opened, and those whose other side was.
#[derive(Default)]
struct Openings {
    under_way: usize,
    done: Vec<(OwnedFd, Joint)>,
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
            openings: Mutex::default(),
            news: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let server = if entrances.is_empty() {
            None
        } else {
            Some(spawn("gate", move || serve(service, entrances))?)
        };
        Ok(Gate {
            stop,
            ledger,
            server,
        })
    }

    /// Stops serving, ends every connection, and tells what was refused, most often first.
    pub fn close(mut self) -> Vec<Refused> {
        self.end();
        self.ledger.sorted()
    }

    fn end(&mut self) {
        self.stop.raise();
        if let Some(server) = self.server.take() {
            // A thread that panicked has nothing left to stop.
            let _ = server.join();
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

/// Serves until the gate closes, and then until every thread has ended.
fn serve(service: Service, entrances: Entrances) {
    let binding = match entrances.awaits_system_port() {
        true => Binding::Privileged,
        false => Binding::Unprivileged,
    };
    if let Err(error) = confine(binding) {
        // A gate that leads nowhere is better than one without walls.
        let reason = format!("the proxy cannot be confined, so it serves nobody: {error}");
        return service.ledger.record("all connections", &reason);
    }
    let mut connections = Connections {
        service: Arc::new(service),
        entrances,
        waiting: Vec::new(),
        relays: Vec::new(),
        threads: Vec::new(),
        not_before: None,
    };
    while connections.turn().is_ok() {}
    connections.relays.iter().for_each(Relay::reset);
    for thread in connections.threads {
        let _ = thread.join();
    }
}

/// All connections of a gate.
struct Connections {
    service: Arc<Service>,
    entrances: Entrances,
    /// Those whose other side is not being opened yet.
    waiting: Vec<Waiting>,
    relays: Vec<Relay>,
    /// Those that open, or have just opened, the other side of one.
    threads: Vec<JoinHandle<()>>,
    /// When to accept again, after a failure.
    not_before: Option<Instant>,
}

/// One that waits for a thread, or for its client to say what it wants.
struct Waiting {
    client: OwnedFd,
    door: Door,
    deadline: Instant,
}

impl Connections {
    /// Waits until something can be done, and does it. Fails when the gate closes.
    fn turn(&mut self) -> io::Result<()> {
        self.settle();
        let is_free = self.service.can_open();
        let deadline = self.deadline();
        let mut wanted = vec![(self.service.news.as_fd(), PollFlags::IN)];
        let accepts = self.not_before.is_none();
        let listeners = self.entrances.listeners().filter(|_| accepts);
        wanted.extend(listeners.map(|(listener, _)| (listener.as_fd(), PollFlags::IN)));
        let first_client = wanted.len();
        let clients = self.waiting.iter().filter(|_| is_free);
        wanted.extend(clients.map(Waiting::interest));
        let first_relay = wanted.len();
        let interests = self.relays.iter().flat_map(Relay::interests);
        wanted.extend(
            interests
                .flatten()
                .map(|(socket, flags)| (socket.as_fd(), flags)),
        );
        let ready = self.service.stop.poll_all(&wanted, deadline)?;
        if !ready[0].is_empty() {
            // It only says that there is something to take, which the next turn does.
            let _ = rustix::io::read(&self.service.news, &mut [0; 8]);
        }
        self.pass(&ready[first_relay..]);
        self.open_ready(&ready[first_client..first_relay]);
        self.accept(&ready[1..first_client]);
        Ok(())
    }

    /// Takes in what has been opened, and lets go what is over.
    fn settle(&mut self) {
        let done = std::mem::take(&mut locked(&self.service.openings).done);
        let joined = done.into_iter();
        self.relays
            .extend(joined.map(|(client, joint)| Relay::new(client, joint)));
        self.relays.retain_mut(Relay::settle);
        self.threads.retain(|thread| !thread.is_finished());
        let now = Instant::now();
        self.waiting.retain(|waiting| now < waiting.deadline);
        self.not_before = self.not_before.filter(|until| now < *until);
        self.entrances.take_over();
    }

    /// When there is something to do though nothing has happened.
    fn deadline(&self) -> Option<Instant> {
        let again = self.entrances.next_try();
        let waiting = self.waiting.iter().map(|waiting| waiting.deadline);
        waiting.chain(self.not_before).chain(again).min()
    }

    /// Passes on what there is at the sockets that were asked for.
    fn pass(&mut self, ready: &[PollFlags]) {
        let mut ready = ready.iter().copied();
        self.relays.retain_mut(|relay| {
            let asked = relay.interests().map(|interest| interest.is_some());
            let found = asked.map(|is_asked| match is_asked {
                true => ready.next().unwrap_or(PollFlags::empty()),
                false => PollFlags::empty(),
            });
            let passed = relay.pass(found);
            if passed.is_err() {
                relay.reset();
            }
            passed.is_ok()
        });
    }

    /// Has the other side opened of those who wait and are ready, who came first first.
    fn open_ready(&mut self, ready: &[PollFlags]) {
        let mut index = 0;
        for flags in ready {
            if flags.is_empty() || !self.service.can_open() {
                index += 1;
                continue;
            }
            let waiting = self.waiting.remove(index);
            self.open(waiting);
        }
    }

    fn open(&mut self, Waiting { client, door, .. }: Waiting) {
        let opening = Opening::begin(&self.service);
        let client = Arc::new(Mutex::new(Some(client)));
        let held = client.clone();
        let work = move || {
            if let Some(client) = locked(&held).take() {
                opening.run(door, client);
            }
        };
        match spawn("gate-opening", work) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                if let Some(client) = locked(&client).take() {
                    self.refuse(door, &client, &format!("no thread for it: {error}"));
                }
            }
        }
    }

    fn accept(&mut self, ready: &[PollFlags]) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let mut accepted = Vec::new();
        for ((listener, door), _) in { self.entrances.listeners() }
            .zip(ready)
            .filter(|(_, ready)| !ready.is_empty())
        {
            match rustix::net::accept_with(listener, flags) {
                Ok(client) => accepted.push((door, client)),
                // The client has gone again.
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
                // No descriptors or memory left, or a broken listener: reported for ever, so that
                // looking again at once would be a spin.
                Err(_) => self.not_before = Some(Instant::now() + BREATHER),
            }
        }
        for (door, client) in accepted {
            let others = self.waiting.len() + self.relays.len() + self.service.openings();
            if others >= MOST_CONNECTIONS {
                let reason = format!("more than {MOST_CONNECTIONS} connections at once");
                self.refuse(door, &client, &reason);
                continue;
            }
            let deadline = Instant::now() + HANDSHAKE_TIME;
            self.waiting.push(Waiting {
                client,
                door,
                deadline,
            });
        }
    }

    fn refuse(&self, door: Door, client: &OwnedFd, reason: &str) {
        self.service.ledger.record(&door.describe(), reason);
        reset_on_close(client);
    }
}

impl Waiting {
    /// A client of the proxy is waited for until it says something; the others need not.
    fn interest(&self) -> (BorrowedFd<'_>, PollFlags) {
        let flags = match self.door {
            Door::Proxy => PollFlags::IN,
            Door::Port(_) | Door::Published { .. } => PollFlags::OUT,
        };
        (self.client.as_fd(), flags)
    }
}

impl Service {
    /// May the other side of one more be opened?
    fn can_open(&self) -> bool {
        locked(&self.openings).under_way < MOST_OPENING
    }

    /// How many connections are neither waiting nor joined.
    fn openings(&self) -> usize {
        let openings = locked(&self.openings);
        openings.under_way + openings.done.len()
    }
}

/// A place among those whose other side is being opened.
struct Opening {
    service: Arc<Service>,
    /// What came of it.
    done: Option<(OwnedFd, Joint)>,
}

impl Opening {
    fn begin(service: &Arc<Service>) -> Opening {
        locked(&service.openings).under_way += 1;
        Opening {
            service: service.clone(),
            done: None,
        }
    }

    fn run(mut self, door: Door, client: OwnedFd) {
        let service = &self.service;
        let joint = match (door, &service.sockets) {
            (Door::Port(port), _) => forward::open(&service.stop, &client, port),
            (Door::Proxy, _) => proxy::open(&service.proxy, &client),
            (Door::Published { inside, .. }, Some(sockets)) => {
                publish::open(&service.stop, sockets, &client, inside)
            }
            (Door::Published { .. }, None) => {
                reset_on_close(&client);
                None
            }
        };
        self.done = joint.map(|joint| (client, joint));
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut openings = locked(&self.service.openings);
        openings.under_way -= 1;
        openings.done.extend(self.done.take());
        drop(openings);
        // It can only fail when the counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.service.news, &1u64.to_ne_bytes());
    }
}
