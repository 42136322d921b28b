//! Whoever watches the disk space of many sandboxes that are kept.
//!
//! A run has a launcher that waits for it and looks at its layer meanwhile. Who keeps many sandboxes has
//! no time for that, so one process beside it looks at all of them. It looks when something ran since it
//! last did, more often the closer a sandbox is to its limit; and when one has grown beyond, it kills
//! everything that runs in it. The keeper stays, so that what is too much can be removed.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{Timespec, epoll};
use rustix::process::{Pid, Signal};
use sandbox_linux::cgroup;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};
use sandbox_linux::message;
use sandbox_linux::powers::{self, Powers};
use serde::{Deserialize, Serialize};

use crate::accounting::{self, Accounting, Glances, unlinked};
use crate::keeper::Kept;
use crate::kills::Tally;
use crate::processes;

/// The accountant, as its starter sees it. It ends with this value.
#[derive(Debug)]
pub struct Accountant {
    socket: OwnedFd,
    process: Child,
}

/// What it is told. The keeper's pidfd comes along, and where to count whom it kills.
#[derive(Debug, Serialize, Deserialize)]
struct Watch {
    keeper: i32,
    layer: PathBuf,
    most: u64,
    /// How much of what is there already may be, though it is more; all of it where that is not known.
    allowed: Option<u64>,
    /// A file whose text changes when something in the sandbox runs; none where it must be assumed to.
    clock: Option<PathBuf>,
}

const LONGEST: usize = 16 << 10;

/// How much disk space the tree at `place` takes, as it is counted against a limit.
pub fn space(place: &Path) -> io::Result<u64> {
    accounting::space::space(place, u64::MAX)
}

impl Accountant {
    /// Starts it. Must be called while the process has a single thread.
    pub fn start() -> io::Result<Accountant> {
        let (ours, theirs) = message::pair()?;
        let (process, socket) = clone(Namespaces::empty(), Parent::Caller, ours, || {
            let work = || -> io::Result<()> {
                close_others(&[theirs.as_fd()])?;
                powers::drop_all_but(Powers::Count)?;
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if message::abandoned(&theirs) {
                    leave(1);
                }
                Books::open(theirs)?.keep()
            };
            i32::from(work().is_err())
        })?;
        Ok(Accountant { socket, process })
    }

    /// Becomes readable when it ends, which it should not.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.process.pidfd.as_fd()
    }

    /// Watches that `layer`, where what is written in `kept` goes, does not grow beyond `most` bytes, for
    /// as long as the keeper lives. `allowed` bytes may be there even if they are more: what it was made with.
    pub fn watch(
        &self,
        kept: &Kept,
        layer: PathBuf,
        most: u64,
        allowed: Option<u64>,
    ) -> io::Result<()> {
        let watch = Watch {
            keeper: kept.pid(),
            layer,
            most,
            allowed,
            clock: kept.group().and_then(|group| group.clock()),
        };
        let text = serde_json::to_vec(&watch)?;
        let descriptors: Vec<_> = [kept.pidfd()]
            .into_iter()
            .chain(kept.tally().map(AsFd::as_fd))
            .collect();
        message::send(&self.socket, &text, &descriptors)
    }
}

impl Drop for Accountant {
    fn drop(&mut self) {
        self.process.kill();
        let _ = self.process.wait();
    }
}

/// All that is watched.
struct Books {
    socket: OwnedFd,
    epoll: OwnedFd,
    accounts: BTreeMap<u64, Account>,
    next: u64,
    glances: Glances,
}

/// One sandbox.
struct Account {
    keeper: i32,
    pidfd: OwnedFd,
    tally: Option<Tally>,
    accounting: Accounting,
    clock: Option<PathBuf>,
    /// What the clock said before that was looked at.
    time: Option<Vec<u8>>,
    /// How often nothing had happened since.
    skipped: u32,
}

/// What epoll says of the socket.
const SOCKET: u64 = u64::MAX;

impl Books {
    fn open(socket: OwnedFd) -> io::Result<Books> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(SOCKET);
        epoll::add(&epoll, &socket, data, epoll::EventFlags::IN)?;
        Ok(Books {
            socket,
            epoll,
            accounts: BTreeMap::new(),
            next: 0,
            glances: Glances::default(),
        })
    }

    /// Until whoever started it is gone.
    fn keep(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let timeout = self.timeout();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, room, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let epoll::Event { data, .. } = *event;
                match data.u64() {
                    SOCKET if !self.enter()? => return Ok(()),
                    SOCKET => {}
                    ended => drop(self.accounts.remove(&ended)),
                }
            }
            let now = Instant::now();
            for account in self.accounts.values_mut() {
                if account.accounting.next() <= now && account.accounting.is_due(&mut self.glances)
                {
                    account.check(&mut self.glances);
                }
            }
        }
    }

    /// Until the next account is due.
    fn timeout(&self) -> Option<Timespec> {
        let due = self
            .accounts
            .values()
            .map(|account| account.accounting.next());
        let left = due.min()?.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    /// Takes one in; `false` when there will be none any more.
    fn enter(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; LONGEST];
        let (length, descriptors) = message::receive(&self.socket, &mut bytes)?;
        if length == 0 {
            return Ok(false);
        }
        let watch: Watch = serde_json::from_slice(&bytes[..length])?;
        let mut descriptors = descriptors.into_iter();
        let Some(pidfd) = descriptors.next() else {
            return Ok(true);
        };
        let tally = descriptors.next().map(Tally::from_descriptor);
        self.next += 1;
        let data = epoll::EventData::new_u64(self.next);
        epoll::add(&self.epoll, &pidfd, data, epoll::EventFlags::IN)?;
        let account = Account::new(watch, pidfd, tally);
        self.accounts.insert(self.next, account);
        Ok(true)
    }
}

impl Account {
    fn new(watch: Watch, pidfd: OwnedFd, tally: Option<Tally>) -> Account {
        let accounting = Accounting::beyond(vec![watch.layer], watch.most, watch.allowed);
        let most = accounting.most();
        if let Some(tally) = &tally {
            // One that was ended for it, and started again, is as full as before.
            tally.set_full(accounting.last() > most.saturating_add(most / 8));
        }
        Account {
            keeper: watch.keeper,
            pidfd,
            tally,
            accounting,
            clock: watch.clock,
            time: None,
            skipped: 0,
        }
    }

    fn check(&mut self, glances: &mut Glances) {
        let clock = self.clock.as_ref();
        let time = clock.and_then(|clock| std::fs::read(clock).ok());
        if time.is_some() && time == self.time {
            self.skipped += 1;
            if self.accounting.last() > self.accounting.most() {
                // Whoever removes files wants to go on at once.
                self.skipped = 1;
            }
            return self.accounting.skip(glances, self.skipped);
        }
        self.skipped = 0;
        let (keeper, group) = (self.keeper, clock.and_then(|clock| clock.parent()));
        let inside = || match group {
            Some(group) => cgroup::processes(group),
            None => processes::tree(keeper)
                .iter()
                .map(|stat| stat.pid)
                .collect(),
        };
        let last = self.accounting.last();
        let used = self
            .accounting
            .look(glances, || unlinked::space(inside().into_iter()));
        self.time = time;
        let most = self.accounting.most();
        // Who is over the limit may run to free space. But every one that is caught growing has grown a
        // little, and many of them a lot: from some point on nothing runs at all.
        let grows = used > last;
        let is_full = used > most.saturating_add(most / 8);
        if let Some(tally) = &self.tally {
            tally.set_full(is_full);
        }
        if used > most && (grows || is_full) {
            self.end_all();
        }
    }

    /// Kills every inner sandbox by its init, and with it everything inside.
    fn end_all(&self) {
        let inside = processes::tree(self.keeper);
        // With the descriptor in hand: where the keeper is not gone, the number is its own.
        if processes::is_gone(self.pidfd.as_fd()) {
            return;
        }
        // First, so that whoever notices its end can say why.
        if let Some(tally) = &self.tally {
            tally.add();
        }
        for inner in inside.iter().filter(|stat| stat.parent == self.keeper) {
            if let Some(pid) = Pid::from_raw(inner.pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}
