//! A sandbox that is kept open without a command in it, for whoever starts many.
//!
//! [`keep`] makes a sandbox as a launch does, but its process 1 is the caller's own code, the keeper. It
//! keeps its power over the sandbox, so it must be trusted; what it starts is not. Each execution is a
//! second, inner sandbox: processes, scratch directories and, unless the keeper's is shared, a network of
//! its own; the workspace is everybody's. Making one takes longer than most commands, so a keeper makes
//! them ahead ([`Keeper::prepare`]) and tells them later what to run ([`Ready::start`]).
//!
//! An inner sandbox runs one command and ends with it, with every process of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use sandbox_linux::cgroup::{Consumption, Entrance, Group};
use sandbox_linux::clone::{Child, Namespaces, Parent, close_others, unshare};
use sandbox_linux::message;
use sandbox_linux::powers::{self, Powers};
use sandbox_linux::terminal::Size;
use sandbox_linux::usage::{self, Usage};
use sandbox_model::Network;
use sandbox_model::runtime::LimitsEnforced;

use crate::command::{Prepared, Turn};
use crate::control::{self, Report};
pub use crate::doorway::Doorway;
use crate::error::LaunchError;
use crate::explain;
use crate::facts;
use crate::init::{self, Listeners, Task};
use crate::kills::Tally;
use crate::launch::{self, Blocked, Status, namespaces, records, step};
use crate::limits::{self, Bounds, Enforcer};
use crate::network::{Doors, Gatehouse, Others};
use crate::order::Order;
use crate::pause;
use crate::perform::Host;
use crate::plan;
use crate::policy::{Policy, Terminal};
use crate::processes;
use crate::runs::{LiveRun, Record, Runs};
use crate::scratch::{self, Leftovers};
use crate::step::{Failed, Step};

mod bare;

pub use crate::kills::Kills;
use bare::{Bare, Orphanage};
pub use bare::{keep_bare, shows};

/// What an inner sandbox has of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerNetwork {
    /// Loopback, for itself alone.
    Own,
    /// What the kept sandbox has.
    Shared,
}

/// On what terms a sandbox is kept.
#[derive(Debug)]
pub struct Terms {
    /// Its limits. They bind the keeper and everything in it together.
    pub bounds: Bounds,
    /// What of the network an inner sandbox has.
    pub network: InnerNetwork,
    /// Whom it may reach, where its network is isolated, beside those that the policy names.
    pub others: Others,
}

/// A kept sandbox, as its maker sees it. It ends with this value.
#[derive(Debug)]
pub struct Kept {
    init: Child,
    record: Record,
    /// Holds the limits; its groups are removed when this is dropped.
    enforcer: Enforcer,
    /// Who is killed for disk space is counted here.
    tally: Option<Tally>,
    /// Closes when this is dropped.
    _gatehouse: Option<Gatehouse>,
    frozen: bool,
}

/// How long everything in a sandbox may take to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// The same from the inside: makes inner sandboxes.
#[derive(Debug)]
pub struct Keeper {
    policy: Policy,
    inner: Task,
    /// The network of inner sandboxes is not the host's.
    is_apart: bool,
    /// Where inner sandboxes are held to a limit that the keeper is not.
    entrance: Rc<Entrance>,
    tally: Option<Rc<Tally>>,
    /// There are no namespaces.
    bare: Option<Bare>,
}

/// An inner sandbox that waits for its command.
#[derive(Debug)]
pub struct Ready {
    inner: Inner,
    /// Whether the disk is full is said here.
    tally: Option<Rc<Tally>>,
}

/// One that was told what to run. It ends with this value, at the latest.
#[derive(Debug)]
pub struct Inner {
    init: Child,
    control: OwnedFd,
    /// What it was told to run.
    command: Vec<OsString>,
    /// How it is held.
    entrance: Rc<Entrance>,
    /// Where what it leaves goes, when it has no namespaces that end with it.
    orphanage: Option<Orphanage>,
}

/// What became of it.
#[derive(Debug)]
pub enum Progress {
    /// The command runs.
    Started {
        /// Its process.
        command: OwnedFd,
        /// Our end of its terminal, where it was started on one.
        terminal: Option<OwnedFd>,
    },
    /// It could not be started.
    Failed(LaunchError),
    /// It ended, and everything that it started.
    Ended(Status, Usage),
    /// It was killed from outside, with all that was in it.
    Gone,
}

/// Makes a sandbox by `policy` (whose command is not looked at) and runs `body` as its process 1, with
/// the descriptors in `passed` and no others but the usual three. `lock` is the sandbox's shared lock, of
/// which the keeper holds a duplicate. No run of the sandbox may be live. Must be called while the process
/// has a single thread, and so must everything that `body` calls of the [`Keeper`].
pub fn keep(
    policy: &Policy,
    runs: &Runs,
    lock: BorrowedFd<'_>,
    network: InnerNetwork,
    passed: Vec<OwnedFd>,
    body: impl FnOnce(Keeper, Vec<OwnedFd>) -> i32,
) -> Result<Kept, LaunchError> {
    let mut enforcer = Enforcer::prepare(policy)?;
    enforcer.add_own(limits::of_code());
    let bounds = Bounds {
        enforcer,
        entrance: Entrance::default(),
        tally: None,
        enforced: LimitsEnforced::default(),
    };
    let terms = Terms {
        bounds,
        network,
        others: Others::Refused,
    };
    keep_on(policy, runs, lock, terms, passed, body)
}

/// As [`keep`], on these `terms`; the limits that `policy` has are not looked at.
pub fn keep_on(
    policy: &Policy,
    runs: &Runs,
    lock: BorrowedFd<'_>,
    terms: Terms,
    passed: Vec<OwnedFd>,
    body: impl FnOnce(Keeper, Vec<OwnedFd>) -> i32,
) -> Result<Kept, LaunchError> {
    let Terms {
        bounds,
        network,
        others,
    } = terms;
    let Bounds {
        enforcer,
        entrance,
        tally,
        ..
    } = bounds;
    let counted = tally.as_ref().map(Tally::try_clone).transpose();
    let counted = counted.map_err(step("keep count of whom is killed"))?;
    let mut facts = facts::look(policy)?;
    let mutex = runs.lock_launches().map_err(records(runs))?;
    let mask = Blocked::new().map_err(step("block signals"))?;
    if runs.donor().map_err(records(runs))?.is_some() {
        return Err(LaunchError::Joined {
            what: "a keeper".to_owned(),
        });
    }
    let places = scratch::places(policy, &facts);
    let slot = scratch::choose(&places);
    facts.slot = slot.to_string();
    let task = launch::task(policy, &facts, None, false, &enforcer, &mask);
    let (ours, theirs) = message::pair().map_err(step("make a socket pair"))?;
    let lock = lock
        .try_clone_to_owned()
        .map_err(step("keep the sandbox locked"))?;
    let way = enforcer.way()?;
    let namespaces = namespaces(policy, &task);
    let body = |entered| {
        let own = [lock.as_fd(), theirs.as_fd()];
        let descriptors: Vec<_> = own
            .into_iter()
            .chain(entrance.descriptors())
            .chain(tally.iter().map(AsFd::as_fd))
            .chain(passed.iter().map(AsFd::as_fd))
            .collect();
        if close_others(&descriptors).is_err() {
            return 1;
        }
        if let Err(error) = entered {
            let failed = Step::Limits.failed()(error);
            return i32::from(control::send_failed(&theirs, &failed).is_err());
        }
        let mut keeper = Keeper::new(policy, &task, network, entrance);
        keeper.tally = tally.map(Rc::new);
        init::keep(&task, theirs, move || {
            let _lock = lock;
            body(keeper, passed)
        })
    };
    // Who starts it may own neither the groups above its own nor the process's user.
    let start = || way.start(namespaces, Parent::Caller, ours, body);
    let made = powers::with(Powers::Files, start).and_then(|made| made);
    let (init, control) = made.map_err(|error| explain::no_namespaces(&error))?;
    let give_up = |error: LaunchError| {
        init.kill();
        let _ = init.wait();
        error
    };
    let pid = init.pid.as_raw_nonzero().get();
    let _ = message::send(&control, control::GO, &[]);
    Leftovers::beside(slot, &places).steps_while(|| !message::waiting(&control));
    let listeners = match control::receive(&control) {
        Ok(Report::Ready(listeners)) => listeners,
        Ok(Report::Failed(failed)) => {
            let error = explain::failed(policy, &task.plan, task.privileged, failed);
            return Err(give_up(error));
        }
        Ok(_) => {
            return Err(give_up(step("set up the sandbox")(
                io::ErrorKind::BrokenPipe.into(),
            )));
        }
        Err(error) => return Err(give_up(step("hear from the keeper")(error))),
    };
    let gatehouse = open_gate(policy, listeners, others, &enforcer).map_err(give_up)?;
    let record = Record::write(runs, &LiveRun::of(policy, pid));
    let record = record.map_err(|error| give_up(records(runs)(error)))?;
    drop(mutex);
    Ok(Kept {
        init,
        record,
        enforcer,
        tally: counted,
        _gatehouse: gatehouse,
        frozen: false,
    })
}

/// The gate of an isolated network, if anything leads through it. It is held as what it serves is.
fn open_gate(
    policy: &Policy,
    listeners: Vec<OwnedFd>,
    others: Others,
    enforcer: &Enforcer,
) -> Result<Option<Gatehouse>, LaunchError> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let failed = step("open the network gate");
    let doors = launch::doors(policy, listeners.into_iter()).map_err(&failed)?;
    let Some(doors) = doors.map(|doors| Doors { others, ..doors }) else {
        return Ok(None);
    };
    let opened = Gatehouse::open(doors, &enforcer.way()?);
    opened.map(Some).map_err(&failed)
}

impl Kept {
    /// Its keeper's number on the host.
    pub fn pid(&self) -> i32 {
        self.init.pid.as_raw_nonzero().get()
    }

    /// Becomes readable when the keeper ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.init.pidfd.as_fd()
    }

    /// Waits for the keeper to end: its exit status.
    pub fn wait(&self) -> io::Result<Status> {
        let status = self.init.wait()?;
        Ok(match (status.exit_status(), status.terminating_signal()) {
            (_, Some(signal)) => Status::Signalled(signal),
            (code, None) => Status::Exited(code.unwrap_or(0)),
        })
    }

    /// The group that holds it, where there is one.
    pub fn group(&self) -> Option<&Group> {
        self.enforcer.group()
    }

    /// Where it is counted who is killed for disk space.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// What it uses: as its group counts it, or as its processes do.
    pub fn consumption(&self) -> Consumption {
        let counted = self.group().map(Group::consumption).unwrap_or_default();
        if counted.memory.is_some() && counted.tasks.is_some() {
            return counted;
        }
        let processes = processes::tree(self.pid());
        let pages: u64 = processes.iter().map(|stat| stat.resident_pages).sum();
        let by_processes = Consumption {
            memory: Some(pages * sandbox_linux::clone::page_size()),
            cpu: None,
            tasks: Some(processes.len() as u64),
        };
        Consumption {
            memory: counted.memory.or(by_processes.memory),
            cpu: counted.cpu,
            tasks: counted.tasks.or(by_processes.tasks),
        }
    }

    /// Is everything in it stopped, the keeper included?
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Stops everything in it where it is, the keeper included. Who waits for something by the clock finds
    /// that time went on.
    pub fn freeze(&mut self) -> io::Result<()> {
        if self.frozen {
            return Ok(());
        }
        match self.freezer() {
            Some(group) => group.freeze().inspect_err(|_| drop(group.thaw()))?,
            None => drop(pause::freeze_tree(self.pid(), PATIENCE)?),
        }
        self.frozen = true;
        Ok(())
    }

    /// Lets it go on.
    pub fn thaw(&mut self) -> io::Result<()> {
        if !self.frozen {
            return Ok(());
        }
        match self.freezer() {
            Some(group) => group.thaw()?,
            None => drop(pause::thaw_tree(self.pid())),
        }
        self.frozen = false;
        Ok(())
    }

    fn freezer(&self) -> Option<&Group> {
        self.group().filter(|group| group.can_freeze())
    }
}

impl Kept {
    /// Begins to end it. It has ended when that [can be read](Kept::pidfd), and is gone when this is dropped.
    pub fn kill(&mut self) {
        self.init.kill();
        // Where a group of version 1 holds it, it cannot die before.
        let _ = self.thaw();
    }
}

impl Kept {
    /// Ends it, and gives the group that held it, which is empty then and the caller's to remove.
    pub fn leave(mut self) -> Option<Group> {
        self.kill();
        let _ = self.init.wait();
        self.enforcer.leave_group()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.kill();
        let _ = self.init.wait();
        self.record.remove();
    }
}

impl Keeper {
    fn new(policy: &Policy, task: &Task, network: InnerNetwork, entrance: Entrance) -> Keeper {
        let prepared = &task.prepared;
        let inner = Task {
            plan: plan::inner(&task.plan),
            host: Host::Sealed,
            privileged: task.privileged,
            map: None,
            hostname: None,
            network: (network == InnerNetwork::Own).then(|| Listeners {
                ports: Vec::new(),
                proxy: false,
                fresh: true,
            }),
            terminal: Terminal::Inherit,
            // Who is forked by a keeper is under its limits.
            wait_for_limits: false,
            prepared: Prepared {
                command: None,
                filter: prepared.filter.clone(),
                directories: prepared.directories.clone(),
                writable: inner_writable(&prepared.writable),
                readable: prepared.readable.clone(),
                devices: prepared.devices.clone(),
                mask: prepared.mask,
                umask: prepared.umask,
                limits: prepared.limits.clone(),
                turn: Turn::First,
            },
        };
        let is_isolated = matches!(policy.settings.network, Network::Isolated { .. });
        Keeper {
            policy: policy.clone(),
            is_apart: is_isolated || inner.network.is_some(),
            inner,
            entrance: Rc::new(entrance),
            tally: None,
            bare: None,
        }
    }

    /// How often something in it was killed for what was used up.
    pub fn kills(&self) -> Kills {
        Kills {
            memory: self.entrance.killed_for_memory(),
            disk: self.tally.as_ref().map_or(0, |tally| tally.count()),
        }
    }

    /// Begins to make an inner sandbox; it goes on by itself.
    pub fn prepare(&self) -> Result<Ready, LaunchError> {
        if let Some(bare) = &self.bare {
            return bare.prepare(&self.inner.prepared, &self.entrance);
        }
        let (ours, theirs) = message::pair().map_err(step("make a socket pair"))?;
        let mut namespaces = Namespaces::NEWNS | Namespaces::NEWPID | Namespaces::NEWIPC;
        if self.inner.network.is_some() {
            namespaces |= Namespaces::NEWNET;
        }
        let entrance = &self.entrance;
        let made = entrance.start(namespaces, Parent::Caller, ours, |entered| {
            // A namespace too, now that it is where it stays: what is around its group is nobody's
            // business inside.
            let entered = entered.and_then(|()| unshare(Namespaces::NEWCGROUP));
            match entered.and_then(|()| close_others(&[theirs.as_fd()])) {
                Ok(()) => init::run(&self.inner, &theirs, None),
                Err(_) => 1,
            }
        });
        let (init, control) = made.map_err(|error| explain::no_namespaces(&error))?;
        let inner = Inner {
            init,
            control,
            command: Vec::new(),
            entrance: self.entrance.clone(),
            orphanage: None,
        };
        let tally = self.tally.clone();
        Ok(Ready { inner, tally })
    }

    /// What became of `inner`. Waits until there is something to tell: see [`Inner::control`].
    pub fn progress(&self, inner: &Inner) -> io::Result<Progress> {
        Ok(match control::receive(&inner.control)? {
            Report::Ready(descriptors) => {
                let mut descriptors = descriptors.into_iter();
                let command = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
                let terminal = descriptors.next();
                Progress::Started { command, terminal }
            }
            Report::Failed(Failed {
                step: Step::Exec,
                error,
            }) => Progress::Failed(launch::exec_error_of(&inner.command, error)),
            Report::Failed(failed) => {
                let (plan, privileged) = (&self.inner.plan, self.inner.privileged);
                Progress::Failed(explain::failed(&self.policy, plan, privileged, failed))
            }
            Report::Ended(status, usage) => Progress::Ended(status, usage),
            Report::Joined(..) => return Err(io::ErrorKind::InvalidData.into()),
            Report::Gone => Progress::Gone,
        })
    }

    /// The way into the network of `inner`; none where that is the host's.
    pub fn doorway(&self, inner: &Inner) -> io::Result<Option<Doorway>> {
        if !self.is_apart {
            return Ok(None);
        }
        let network = match self.inner.network {
            Some(_) => InnerNetwork::Own,
            None => InnerNetwork::Shared,
        };
        let init = inner.init.pidfd.try_clone()?;
        Ok(Some(Doorway::new(init, network)))
    }
}

/// Nothing in `/proc`: who can write there can take back that it is the first to go.
fn inner_writable(kept: &[PathBuf]) -> Vec<PathBuf> {
    let processes = Path::new("/proc");
    let is_other = |place: &&PathBuf| place.as_path() != processes;
    kept.iter().filter(is_other).cloned().collect()
}

impl Ready {
    /// Tells it what to run, with `streams`: input, output, errors, and one more where the order says
    /// how that is told. Does not wait for it to be started.
    pub fn start(self, order: &Order, streams: &[BorrowedFd<'_>]) -> Result<Inner, LaunchError> {
        let word = [control::GO, &encoded(order)?].concat();
        self.told(order, &word, streams)
    }

    /// Tells it what to run on a terminal of its own, which nobody else can open. Our end of it comes when
    /// it was started.
    pub fn start_on_terminal(self, order: &Order, size: Size) -> Result<Inner, LaunchError> {
        let word = control::go_on_terminal(size, &encoded(order)?);
        self.told(order, &word, &[])
    }

    fn told(
        mut self,
        order: &Order,
        word: &[u8],
        streams: &[BorrowedFd<'_>],
    ) -> Result<Inner, LaunchError> {
        // One that has ended does not hear it; it has said why.
        let has_ended = |error: &io::Error| {
            let ended = [Errno::PIPE, Errno::CONNRESET, Errno::NOTCONN];
            Errno::from_io_error(error).is_some_and(|error| ended.contains(&error))
        };
        if let Some(tally) = self.tally.filter(|tally| stays_full(tally)) {
            // As if it had been killed as soon as it started: it could write for as long as that takes.
            tally.add();
            self.inner.init.kill();
            self.inner.command = order.command.clone();
            return Ok(self.inner);
        }
        match message::send(&self.inner.control, word, streams) {
            // It would wait for its command for ever.
            Err(error) if !has_ended(&error) => Err(launch::exec_error_of(&order.command, error)),
            _ => {
                self.inner.command = order.command.clone();
                Ok(self.inner)
            }
        }
    }

    /// Is it being made, or waiting? One that could not be made is not: starting it tells why.
    pub fn is_alive(&self) -> bool {
        !message::waiting(&self.inner.control)
    }
}

/// How long something that is to be started waits for a full disk to be counted anew, and how often it asks:
/// its files may just have been removed.
const RECOUNT: (Duration, u32) = (Duration::from_millis(10), 20);

#[expect(
    clippy::disallowed_methods,
    reason = "the count is in shared memory, which has no event to wait for"
)]
fn stays_full(tally: &Tally) -> bool {
    let (pause, times) = RECOUNT;
    (0..times).all(|_| {
        tally.is_full() && {
            std::thread::sleep(pause);
            true
        }
    })
}

fn encoded(order: &Order) -> Result<Vec<u8>, LaunchError> {
    let failed = |source| launch::exec_error_of(&order.command, source);
    order.encode().map_err(failed)
}

impl Inner {
    /// Becomes readable when there is [`Keeper::progress`].
    pub fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Kills everything in it.
    pub fn kill(&self) {
        match &self.orphanage {
            Some(orphanage) => orphanage.close(&self.control),
            None => self.init.kill(),
        }
    }

    /// Becomes readable when everything in it is gone and the kernel has cleaned up.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.init.pidfd.as_fd()
    }

    /// Kills everything in it and waits until it is gone: what it has used.
    pub fn end(self) -> io::Result<Usage> {
        self.entrance.unthrottled(|| {
            self.kill();
            usage::of_ended(&self.init)
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // One that was waited for is told by an error here.
        if processes::is_gone(self.init.pidfd.as_fd()) {
            let _ = self.init.wait();
            return;
        }
        self.entrance.unthrottled(|| {
            self.kill();
            let _ = self.init.wait();
        });
    }
}
