//! The nursery at work.
//!
//! It does one thing at a time, so nothing it does may take long: what does is an errand's, and until a
//! session that it ends has ended it does other things. Orders for one session are obeyed in turn all the same.
//!
//! All sessions end with it, so nothing ends it but the end of the server. What code in a session can use up,
//! of descriptors in flight for example, makes one order fail, and that order's sender is told.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use sandbox_isolation::Status;
use sandbox_isolation::accountant::Accountant;
use sandbox_isolation::keeper::Kept;
use sandbox_isolation::limits::{self, Ground, Group};
use sandbox_linux::message;
use sandbox_linux::powers::Powers;
use sandbox_model::id::SessionId;
use serde::{Deserialize, Serialize};

use super::errand::Errand;
use super::owners::{Owner, Owners};
use super::raise::{self, Raised};
use super::{APART, Done, LONG, Notice, Order, Refusal, SHORT, What, workspaces};
use crate::promotion::Promote;
use crate::runtime::Usage;
use crate::spec::SessionSpec;

/// What it has in hand.
pub(super) struct At {
    /// Which supervisor this is. The orders of others are not obeyed.
    supervisor: u64,
    root: PathBuf,
    socket: OwnedFd,
    epoll: OwnedFd,
    ground: Ground,
    owners: Owners,
    /// None where it could not be started again yet.
    accountant: Option<Accountant>,
    sessions: BTreeMap<SessionId, Session>,
    /// Whose end is told under which number. No number is used twice: an end may be told when the
    /// session is another already.
    watched: BTreeMap<u64, Watched>,
    /// Sessions that are being ended or discarded, and what is to be done with them afterwards.
    busy: BTreeMap<SessionId, VecDeque<(Order, Option<OwnedFd>)>>,
    /// Groups of sessions that have ended.
    left: VecDeque<(SessionId, Group)>,
    next: u64,
    /// What could not be sent yet, the oldest first.
    unsent: VecDeque<(Notice, Option<OwnedFd>)>,
    /// Where orders are read to. What is written between two sessions, both have a copy of: little should be.
    received: Vec<u8>,
}

/// A session that is raised.
struct Session {
    key: u64,
    kept: Kept,
    /// Where what is written goes, and how much may be there.
    layer: PathBuf,
    disk: u64,
    /// How much of what was there at first may be, though it is more.
    allowed: Option<u64>,
    /// Somebody wants it frozen.
    frozen: bool,
    /// So many errands need it still.
    held: u32,
}

/// What ends under a number.
enum Watched {
    Session(SessionId),
    /// One that was told to, and what follows.
    Ending(SessionId, Box<Session>, Next),
    /// And what waits for it.
    Errand(Errand, Waits),
}

/// What waits for an errand.
enum Waits {
    Nothing,
    /// A session, by its number, that is held still.
    Held(u64),
    /// Orders for this session.
    Orders(SessionId),
}

/// What is done when a session has ended, for whoever ordered it under a number.
#[derive(Clone, Copy)]
enum Next {
    /// That is told.
    Tell(u64),
    /// Its workspace is removed.
    Discard(u64),
}

/// The kernel takes a group apart for as long as there are mounts, and nobody can make one meanwhile. So that
/// is left for when nothing else has happened for a moment, but no more than so many.
const QUIET: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 4;
const MOST_LEFT: usize = 128;

/// How long it may take to copy a workspace or remove one, and to look at one.
const COPYING: Duration = Duration::from_secs(600);
const LOOKING: Duration = Duration::from_secs(120);

/// How long it waits before it tries again what the machine had no room for.
const AGAIN: Duration = Duration::from_millis(20);
const ACCOUNTANT_AGAIN: Duration = Duration::from_secs(1);

/// What is read from the socket.
enum Received {
    Order(Box<Order>, Option<OwnedFd>),
    /// An order that cannot be read, its number where that is known, and why.
    Unreadable(Option<u64>, Refusal),
    /// The server is gone.
    End,
}

/// All that is wanted of an order that cannot be read.
#[derive(Deserialize)]
struct Numbered {
    number: u64,
}

/// What epoll says of the socket, and of the accountant.
const SOCKET: u64 = u64::MAX;
const ACCOUNTANT: u64 = u64::MAX - 1;

impl At {
    pub(super) fn new(
        supervisor: u64,
        root: PathBuf,
        socket: OwnedFd,
        ground: Ground,
        owners: Owners,
    ) -> io::Result<At> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let accountant = Accountant::start()?;
        let at = At {
            supervisor,
            root,
            socket,
            epoll,
            ground,
            owners,
            accountant: None,
            sessions: BTreeMap::new(),
            watched: BTreeMap::new(),
            busy: BTreeMap::new(),
            left: VecDeque::new(),
            next: 0,
            unsent: VecDeque::new(),
            received: vec![0; SHORT],
        };
        at.watch(SOCKET, &at.socket)?;
        at.watch(ACCOUNTANT, accountant.pidfd())?;
        Ok(At {
            accountant: Some(accountant),
            ..at
        })
    }

    fn watch(&self, key: u64, descriptor: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)?;
        Ok(())
    }

    /// Until the server is gone.
    pub(super) fn work(mut self) -> io::Result<()> {
        let enforceable = limits::enforceable(&self.ground);
        self.say(Notice::Ready(self.supervisor, enforceable), None)?;
        // What cannot be removed now is in nobody's way.
        let _ = workspaces::sweep(&self.root);
        // A source that cannot be repaired now must not keep the server from its other sessions; the next
        // promote to it tells why.
        let recover = || workspaces::recover_sources(&self.root);
        let owner = self.owners.of_sources();
        let _ = self.owners.acting(owner, Powers::Kill, recover)?;
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let timeout = self.patience().map(timespec);
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, room, timeout.as_ref()) {
                Ok(0) => self.remove_left(self.left.len().saturating_sub(AT_ONCE)),
                Ok(_) => self.remove_left(MOST_LEFT),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.errands().for_each(Errand::end_if_late);
            self.send_unsent()?;
            if self.accountant.is_none() {
                self.replace_accountant();
            }
            for event in &events {
                let epoll::Event { data, .. } = *event;
                match data.u64() {
                    SOCKET => match self.receive()? {
                        Received::Order(order, line) => self.obey(*order, line)?,
                        Received::Unreadable(Some(number), refusal) => {
                            self.say(Notice::Done(number, Err(refusal)), None)?;
                        }
                        Received::Unreadable(None, refusal) => {
                            self.say(Notice::Trouble(refusal.short().reason), None)?;
                        }
                        Received::End => return Ok(()),
                    },
                    ACCOUNTANT => self.replace_accountant(),
                    ended => self.note_end(ended)?,
                }
            }
        }
    }

    fn errands(&self) -> impl Iterator<Item = &Errand> {
        self.watched.values().filter_map(|watched| match watched {
            Watched::Errand(errand, _) => Some(errand),
            Watched::Session(_) | Watched::Ending(..) => None,
        })
    }

    /// How long there is nothing to do but wait.
    fn patience(&self) -> Option<Duration> {
        let deadline = self.errands().map(Errand::deadline).min();
        let late = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let quiet = (!self.left.is_empty()).then_some(QUIET);
        let again = (!self.unsent.is_empty()).then_some(AGAIN);
        let accountant = self.accountant.is_none().then_some(ACCOUNTANT_AGAIN);
        { late.into_iter().chain(quiet) }
            .chain(again)
            .chain(accountant)
            .min()
    }

    /// Removes the groups that were left first, until there are no more than so many.
    fn remove_left(&mut self, most: usize) {
        let many = self.left.len().saturating_sub(most);
        for (_, mut group) in self.left.drain(..many) {
            group.remove();
        }
    }

    /// Ends what is raised; its group is removed later.
    fn put_away(&mut self, id: &SessionId, session: Session) {
        let group = session.kept.leave();
        self.left.extend(group.map(|group| (id.clone(), group)));
    }

    fn receive(&mut self) -> io::Result<Received> {
        let received = message::receive(&self.socket, &mut self.received);
        let (length, mut descriptors) = match received {
            Ok(received) => received,
            Err(error) if is_gone(&error) => return Ok(Received::End),
            Err(error) => return Ok(Received::Unreadable(None, error.into())),
        };
        let refused = |number, error: &dyn std::fmt::Display| {
            let reason = format!("the order cannot be read: {error}");
            Received::Unreadable(number, reason.into())
        };
        Ok(match &self.received[..length] {
            [] => Received::End,
            [APART, number @ ..] => {
                let number = std::str::from_utf8(number).ok();
                let number = number.and_then(|number| number.parse().ok());
                if descriptors.is_empty() {
                    return Ok(refused(number, &"no descriptor came with it"));
                }
                match read_apart(descriptors.remove(0)) {
                    Ok(order) => Received::Order(Box::new(order), descriptors.pop()),
                    Err(error) => refused(number, &error),
                }
            }
            text => match serde_json::from_slice(text) {
                Ok(order) => Received::Order(Box::new(order), descriptors.pop()),
                Err(error) => {
                    let numbered = serde_json::from_slice(text).ok();
                    refused(numbered.map(|Numbered { number }| number), &error)
                }
            },
        })
    }

    fn obey(&mut self, order: Order, line: Option<OwnedFd>) -> io::Result<()> {
        if order.supervisor != self.supervisor {
            let reason = "the process that raises sessions was started again".to_owned();
            return self.say(Notice::Done(order.number, Err(reason.into())), None);
        }
        if let Some(orders) = order.what.session().and_then(|id| self.busy.get_mut(id)) {
            orders.push_back((order, line));
            return Ok(());
        }
        let number = order.number;
        let done = match order.what {
            What::Ping => Ok(Done::Plain),
            What::Raise(spec) => self.raise(&spec, line),
            What::Freeze(id) => self.still(&id, true),
            What::Thaw(id) => self.still(&id, false),
            What::Usage(id) => self.usage(&id),
            // These are answered when they are done.
            What::End(id) => return self.end(id, Next::Tell(number)),
            What::Discard(id) => return self.end(id, Next::Discard(number)),
            What::Fork(from, to) => match self.fork(number, &from, &to) {
                Ok(()) => return Ok(()),
                Err(refusal) => Err(refusal),
            },
            What::Changes(id) => match self.changes(number, &id) {
                Ok(()) => return Ok(()),
                Err(refusal) => Err(refusal),
            },
            What::Promote(id, what) => match self.promote(number, &id, &what) {
                Ok(()) => return Ok(()),
                Err(refusal) => Err(refusal),
            },
        };
        self.say(Notice::Done(number, done), None)
    }

    fn raise(&mut self, spec: &SessionSpec, line: Option<OwnedFd>) -> Result<Done, Refusal> {
        let line = line.ok_or_else(|| "no line came with the order".to_owned())?;
        let id = spec.session_id.clone();
        if self.accountant.is_none() {
            let reason = "nothing can watch its disk space now".to_owned();
            return Err(reason.into());
        }
        if self.sessions.contains_key(&id) {
            return Err(Refusal::conflict("it is raised already"));
        }
        // It would have the name of the new one.
        if let Some(place) = self.left.iter().position(|(left, _)| *left == id)
            && let Some((_, mut group)) = self.left.remove(place)
        {
            group.remove();
        }
        let Raised {
            kept,
            limits_enforced,
            walls,
            layer,
            allowed,
        } = {
            let owner = self.owners.of_spec(spec)?;
            let (root, ground) = (&self.root, &self.ground);
            // What is in the workspace's directory could be code's, so that its owner's powers have to do.
            let raise = || raise::raise(root, ground, spec, line);
            self.owners.acting(owner, Powers::None, raise)??
        };
        let key = self.number();
        let session = Session {
            key,
            kept,
            layer,
            disk: spec.resources.disk.0,
            allowed,
            frozen: false,
            held: 0,
        };
        self.watch(key, session.kept.pidfd())?;
        if let Some(accountant) = &self.accountant {
            session.account(accountant)?;
        }
        self.watched.insert(key, Watched::Session(id.clone()));
        self.sessions.insert(id, session);
        Ok(Done::Raised(limits_enforced, walls))
    }

    /// Ends a session, if it is raised, and does what is next.
    fn end(&mut self, id: SessionId, next: Next) -> io::Result<()> {
        self.busy.insert(id.clone(), VecDeque::new());
        match self.sessions.remove(&id) {
            Some(mut session) => {
                session.kept.kill();
                let key = session.key;
                self.watched
                    .insert(key, Watched::Ending(id, Box::new(session), next));
                Ok(())
            }
            None => self.go_on(id, next),
        }
    }

    fn go_on(&mut self, id: SessionId, next: Next) -> io::Result<()> {
        let (number, done) = match next {
            Next::Tell(number) => (number, Ok(Done::Plain)),
            Next::Discard(number) => {
                let root = self.root.clone();
                // It is put beside those of other users, and may be deleted with them.
                let powers = (self.owners.of_discard(&id), Powers::Files);
                let errand =
                    self.errand(number, COPYING, powers, || workspaces::discard(&root, &id));
                let sent =
                    errand.and_then(|errand| self.send_out(errand, Waits::Orders(id.clone())));
                match sent {
                    Ok(()) => return Ok(()),
                    Err(refusal) => (number, Err(refusal)),
                }
            }
        };
        self.say(Notice::Done(number, done), None)?;
        self.obey_next(&id)
    }

    /// Obeys what was ordered for a session while it was busy.
    fn obey_next(&mut self, id: &SessionId) -> io::Result<()> {
        let orders = self.busy.remove(id).unwrap_or_default();
        orders
            .into_iter()
            .try_for_each(|(order, line)| self.obey(order, line))
    }

    fn still(&mut self, id: &SessionId, frozen: bool) -> Result<Done, Refusal> {
        let session = self.raised(id)?;
        let before = std::mem::replace(&mut session.frozen, frozen);
        if let Err(error) = session.settle() {
            session.frozen = before;
            return Err(error.into());
        }
        Ok(Done::Plain)
    }

    fn usage(&mut self, id: &SessionId) -> Result<Done, Refusal> {
        let consumption = self.raised(id)?.kept.consumption();
        Ok(Done::Usage(Usage::from(consumption)))
    }

    /// Nothing may be written while a workspace is copied: one that is raised is held still, and one that is not is
    /// raised afterwards.
    fn fork(&mut self, number: u64, from: &SessionId, to: &SessionId) -> Result<(), Refusal> {
        let root = self.root.clone();
        if !self.sessions.contains_key(from) {
            let end = || workspaces::end_orphans_of(&root, from);
            self.owners
                .acting(self.owners.of(from)?, Powers::None, end)??;
        }
        let owner = self.owners.of_copy(from)?;
        let held = match self.sessions.get_mut(from) {
            Some(session) => {
                session.held += 1;
                if let Err(error) = session.settle() {
                    session.held -= 1;
                    return Err(error.into());
                }
                Waits::Held(session.key)
            }
            None => Waits::Orders(from.clone()),
        };
        let is_raised = matches!(held, Waits::Held(_));
        let powers = match owner {
            // It reads what belongs to another user.
            Owner::Single(_) => (owner, Powers::Files),
            Owner::Own | Owner::Shared(_) => (owner, Powers::None),
        };
        let errand = self.errand(number, COPYING, powers, || {
            workspaces::fork(&root, from, to, is_raised)
        });
        match errand {
            Ok(errand) => self.send_out(errand, held),
            Err(refusal) => {
                if let Waits::Held(key) = held {
                    self.release(key);
                }
                Err(refusal)
            }
        }
    }

    fn changes(&mut self, number: u64, id: &SessionId) -> Result<(), Refusal> {
        let (root, owner) = (self.root.clone(), self.owners.of(id)?);
        let powers = (owner, Powers::None);
        let errand = self.errand(number, LOOKING, powers, || workspaces::changes(&root, id))?;
        self.send_out(errand, Waits::Nothing)
    }

    /// What is promoted must not change meanwhile, and its workspace is another one afterwards.
    fn promote(&mut self, number: u64, id: &SessionId, what: &Promote) -> Result<(), Refusal> {
        if self.sessions.contains_key(id) {
            return Err(Refusal::conflict("it is raised"));
        }
        let (root, owner) = (self.root.clone(), self.owners.of(id)?);
        let powers = (owner, Powers::None);
        let errand = self.errand(number, COPYING, powers, || {
            workspaces::promote(&root, id, what)
        })?;
        self.send_out(errand, Waits::Orders(id.clone()))
    }

    /// Has `work` done as the owner of a session, with these powers.
    fn errand<T: Serialize>(
        &self,
        number: u64,
        patience: Duration,
        (owner, powers): (Owner, Powers),
        work: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<Errand, Refusal> {
        let start = || Errand::start(number, patience, powers, work);
        Ok(self.owners.acting(owner, powers, start)??)
    }

    fn send_out(&mut self, errand: Errand, waits: Waits) -> Result<(), Refusal> {
        let key = self.number();
        match self.watch(key, errand.pidfd()) {
            Ok(()) => {
                if let Waits::Orders(id) = &waits {
                    self.busy.entry(id.clone()).or_default();
                }
                self.watched.insert(key, Watched::Errand(errand, waits));
                Ok(())
            }
            Err(error) => {
                if let Waits::Held(key) = waits {
                    self.release(key);
                }
                Err(error.into())
            }
        }
    }

    fn raised(&mut self, id: &SessionId) -> Result<&mut Session, Refusal> {
        self.sessions.get_mut(id).ok_or_else(Refusal::not_raised)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn note_end(&mut self, key: u64) -> io::Result<()> {
        match self.watched.remove(&key) {
            Some(Watched::Session(id)) => {
                let Some(session) = self.sessions.remove(&id) else {
                    return Ok(());
                };
                let status = match session.kept.wait() {
                    Ok(Status::Exited(code)) => code,
                    Ok(Status::Signalled(signal)) => 128 + signal,
                    // It ended; only how is not known.
                    Err(_) => -1,
                };
                // Whoever hears of it finds everybody in it gone.
                self.put_away(&id, session);
                self.say(Notice::Ended(id, status), None)
            }
            Some(Watched::Ending(id, session, next)) => {
                self.put_away(&id, *session);
                self.go_on(id, next)
            }
            Some(Watched::Errand(errand, waits)) => {
                if let Waits::Held(key) = waits {
                    self.release(key);
                }
                let (number, done, report) = errand.back();
                self.say(Notice::Done(number, done), report)?;
                match waits {
                    Waits::Orders(id) => self.obey_next(&id),
                    Waits::Nothing | Waits::Held(_) => Ok(()),
                }
            }
            None => Ok(()),
        }
    }

    /// Lets go what was held for an errand, if it is the same still.
    fn release(&mut self, held: u64) {
        let is_it = |session: &&mut Session| session.key == held;
        if let Some(session) = self.sessions.values_mut().find(is_it) {
            session.held -= 1;
            // What cannot be thawed now can be by order.
            let _ = session.settle();
        }
    }

    /// It should not end, but the disks of sessions must not depend on that. Where it cannot be replaced now, it
    /// is tried again, and no session is raised meanwhile.
    fn replace_accountant(&mut self) {
        // Its descriptor is closed with it, so nothing is heard of it again.
        drop(self.accountant.take());
        let replace = || -> io::Result<Accountant> {
            let accountant = Accountant::start()?;
            self.watch(ACCOUNTANT, accountant.pidfd())?;
            for session in self.sessions.values() {
                session.account(&accountant)?;
            }
            Ok(accountant)
        };
        match replace() {
            Ok(accountant) => self.accountant = Some(accountant),
            Err(error) => {
                let trouble = format!("nothing watches the disk space of sessions: {error}");
                self.unsent.push_back((Notice::Trouble(trouble), None));
            }
        }
    }

    /// Tells the server something, after everything that it was not told yet. It fails when there is no
    /// server any more, and then only.
    fn say(&mut self, notice: Notice, report: Option<OwnedFd>) -> io::Result<()> {
        let notice = match notice {
            Notice::Done(number, Err(refusal)) => Notice::Done(number, Err(refusal.short())),
            notice => notice,
        };
        self.unsent.push_back((notice, report));
        self.send_unsent()
    }

    fn send_unsent(&mut self) -> io::Result<()> {
        while let Some((notice, report)) = self.unsent.front() {
            let descriptors: Vec<_> = report.iter().map(AsFd::as_fd).collect();
            let text = serde_json::to_vec(notice)?;
            let Err(error) = message::send(&self.socket, &text, &descriptors) else {
                self.unsent.pop_front();
                continue;
            };
            if is_gone(&error) {
                return Err(error);
            }
            match (notice, report) {
                // The machine may refuse descriptors for long; whoever waits for this should not.
                (Notice::Done(number, _), Some(_)) => {
                    let number = *number;
                    let reason = format!("its report cannot be sent: {error}");
                    let trouble = Notice::Trouble(format!("a report cannot be sent: {error}"));
                    self.unsent.pop_front();
                    let refused = Notice::Done(number, Err(reason.into()));
                    self.unsent.push_front((trouble, None));
                    self.unsent.push_front((refused, None));
                }
                // There is room for a few bytes before long.
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// Is there nobody at the other end any more?
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::PIPE, Errno::CONNRESET, Errno::NOTCONN, Errno::BADF];
    Errno::from_io_error(error).is_some_and(|error| gone.contains(&error))
}

fn read_apart(file: OwnedFd) -> io::Result<Order> {
    let mut file = File::from(file);
    file.rewind()?;
    Ok(serde_json::from_reader(BufReader::new(file.take(LONG)))?)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

impl Session {
    /// Freezes or thaws it, as is wanted of it.
    fn settle(&mut self) -> io::Result<()> {
        match self.frozen || self.held > 0 {
            true => self.kept.freeze(),
            false => self.kept.thaw(),
        }
    }

    fn account(&self, accountant: &Accountant) -> io::Result<()> {
        accountant.watch(&self.kept, self.layer.clone(), self.disk, self.allowed)
    }
}
