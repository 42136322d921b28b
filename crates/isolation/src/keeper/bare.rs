//! Keeping without namespaces: Landlock and the system-call filter, for containers that give nothing else.
//!
//! The keeper is an ordinary process, and what it starts shares the container's processes, network and files
//! with it; but it may write in the workspace and in a temporary directory of its own alone, read the system
//! and nothing else, and neither signal nor look into anybody who is not of the same execution. Landlock does
//! that only since kernel 6.12, and before that it is refused.
//!
//! Each execution has an init here, too: it adopts what the command leaves behind, and ends all of it when the
//! command has ended, when it is told to, and when its keeper is gone. What one execution leaves to the next
//! is what it wrote in the workspace, and what the kernel keeps by name for a whole container, such as shared
//! memory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use sandbox_linux::cgroup::Entrance;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};
use sandbox_linux::signal::{self, Signals};
use sandbox_linux::{landlock, message, seccomp, usage};
use sandbox_model::WorkspaceMount;

use super::{Inner, Keeper, Kept, Ready};
use crate::command::{Prepared, Turn};
use crate::control::{self, Report};
use crate::error::LaunchError;
use crate::init::{self, Forked, Task};
use crate::launch::{Blocked, Status, current_umask, records, step};
use crate::limits::{self, Enforcer};
use crate::order::Order;
use crate::perform::Host;
use crate::plan::Plan;
use crate::policy::{Policy, Terminal};
use crate::processes;
use crate::runs::{LiveRun, Record, Runs};
use crate::scratch;
use crate::step::{Failed, Step};
use crate::unwalled::{DEVICES, READABLE};

/// The first version of Landlock that keeps signals within an execution: kernel 6.12.
const NEEDED: u32 = 6;

/// Where a program looks for its temporary directory.
const TEMPORARY: &str = "TMPDIR";

/// What a keeper without namespaces has instead of them.
#[derive(Debug)]
pub(super) struct Bare {
    /// Where temporary directories are made.
    scratch: PathBuf,
    /// The inits that run, so that what is nobody's can be told.
    inits: Rc<Inits>,
}

type Inits = RefCell<BTreeSet<i32>>;

/// Can what is at `path` be read by what a keeper without namespaces starts?
pub fn shows(path: &Path) -> bool {
    READABLE.iter().any(|shown| path.starts_with(shown))
}

/// As [`keep`](super::keep), without namespaces: the workspace is where it is, and temporary directories are
/// made in `scratch`. Must be called while the process has a single thread.
pub fn keep_bare(
    policy: &Policy,
    runs: &Runs,
    scratch: &Path,
    passed: Vec<OwnedFd>,
    body: impl FnOnce(Keeper, Vec<OwnedFd>) -> i32,
) -> Result<Kept, LaunchError> {
    let workspace = check(policy)?;
    let enforcer = Enforcer::prepare(policy)?;
    let mutex = runs.lock_launches().map_err(records(runs))?;
    let mask = Blocked::new().map_err(step("block signals"))?;
    if runs.donor().map_err(records(runs))?.is_some() {
        return Err(LaunchError::Joined {
            what: "a keeper".to_owned(),
        });
    }
    let (ours, theirs) = message::pair().map_err(step("make a socket pair"))?;
    let made = clone(Namespaces::empty(), Parent::Caller, ours, || {
        let descriptors: Vec<_> = [theirs.as_fd()]
            .into_iter()
            .chain(passed.iter().map(AsFd::as_fd))
            .collect();
        let settle = || -> io::Result<()> {
            close_others(&descriptors)?;
            init::lifeline(&theirs)?;
            // Whatever loses its init is found here.
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            Ok(rustix::process::set_dumpable_behavior(
                DumpableBehavior::NotDumpable,
            )?)
        };
        match settle().and_then(|()| control::send_ready(&theirs, &[])) {
            Ok(()) => body(Keeper::bare(policy, workspace, scratch, &mask), passed),
            Err(_) => 1,
        }
    });
    let (init, control) = made.map_err(step("start a process"))?;
    let give_up = |error: LaunchError| {
        init.kill();
        let _ = init.wait();
        error
    };
    match control::receive(&control) {
        Ok(Report::Ready(_)) => {}
        Ok(_) => {
            let error = io::ErrorKind::BrokenPipe.into();
            return Err(give_up(step("hear from the keeper")(error)));
        }
        Err(error) => return Err(give_up(step("hear from the keeper")(error))),
    }
    let run = LiveRun::of(policy, init.pid.as_raw_nonzero().get());
    let record = Record::write(runs, &run).map_err(|error| give_up(records(runs)(error)))?;
    drop(mutex);
    Ok(Kept {
        init,
        record,
        enforcer,
        _gatehouse: None,
        frozen: false,
        tally: None,
    })
}

/// What this wall cannot do is refused in words.
fn check(policy: &Policy) -> Result<&Path, LaunchError> {
    let refuse = |reason: String, hint: &str| LaunchError::Wall {
        reason,
        hint: hint.to_owned(),
    };
    if rustix::process::geteuid().is_root() {
        return Err(refuse(
            "without namespaces code would be root".to_owned(),
            "start it as an ordinary user",
        ));
    }
    let version = landlock::version();
    if version < NEEDED {
        return Err(refuse(
            format!(
                "Landlock keeps code from its executor since version {NEEDED}, and this kernel has {version}"
            ),
            "use kernel 6.12 or newer with lsm=landlock,…, or let the container make user namespaces",
        ));
    }
    match &policy.workspace {
        WorkspaceMount::Bind { dir } => Ok(dir),
        WorkspaceMount::Overlay { .. } => Err(refuse(
            "without namespaces nothing can be mounted, and this workspace is an overlay"
                .to_owned(),
            "use a directory as it is",
        )),
    }
}

impl Keeper {
    fn bare(policy: &Policy, workspace: &Path, scratch: &Path, mask: &Blocked) -> Keeper {
        let prepared = Prepared {
            command: None,
            filter: seccomp::filter_among_equals(),
            directories: vec![workspace.to_owned()],
            writable: vec![workspace.to_owned()],
            readable: READABLE.iter().map(PathBuf::from).collect(),
            devices: DEVICES.iter().map(PathBuf::from).collect(),
            mask: mask.before,
            umask: current_umask(),
            limits: limits::of_code(),
            turn: Turn::Most,
        };
        Keeper {
            policy: policy.clone(),
            is_apart: false,
            tally: None,
            inner: Task {
                plan: Plan {
                    operations: Vec::new(),
                    writable: Vec::new(),
                },
                host: Host::Sealed,
                privileged: false,
                map: None,
                hostname: None,
                network: None,
                terminal: Terminal::Inherit,
                wait_for_limits: false,
                prepared,
            },
            entrance: Rc::new(Entrance::default()),
            bare: Some(Bare {
                scratch: scratch.to_owned(),
                inits: Rc::default(),
            }),
        }
    }
}

impl Bare {
    /// As [`Keeper::prepare`].
    pub(super) fn prepare(
        &self,
        prepared: &Prepared,
        entrance: &Rc<Entrance>,
    ) -> Result<Ready, LaunchError> {
        let (ours, theirs) = message::pair().map_err(step("make a socket pair"))?;
        let made = clone(
            Namespaces::empty(),
            Parent::Caller,
            ours,
            || match close_others(&[theirs.as_fd()]) {
                Ok(()) => run(prepared, &self.scratch, &theirs),
                Err(_) => 1,
            },
        );
        let (init, control) = made.map_err(step("start a process"))?;
        let pid = init.pid.as_raw_nonzero().get();
        self.inits.borrow_mut().insert(pid);
        let inner = Inner {
            init,
            control,
            command: Vec::new(),
            entrance: entrance.clone(),
            orphanage: Some(Orphanage {
                init: pid,
                inits: self.inits.clone(),
            }),
        };
        Ok(Ready { inner, tally: None })
    }
}

/// Where what an init leaves goes that was killed itself, which is to us.
#[derive(Debug)]
pub(super) struct Orphanage {
    init: i32,
    inits: Rc<Inits>,
}

impl Orphanage {
    /// Tells the init behind `control` to end everything, and itself.
    pub(super) fn close(&self, control: &OwnedFd) {
        let _ = rustix::net::shutdown(control, rustix::net::Shutdown::Both);
    }
}

impl Drop for Orphanage {
    /// Its init has been waited for.
    fn drop(&mut self) {
        let mut inits = self.inits.borrow_mut();
        inits.remove(&self.init);
        let own = rustix::process::getpid().as_raw_nonzero().get();
        end_tree(own, &inits);
    }
}

/// Runs as the init of one execution.
fn run(prepared: &Prepared, scratch: &Path, control: &OwnedFd) -> i32 {
    let outcome = match start(prepared, scratch, control) {
        Ok((command, temporary)) => serve(&command, temporary, control),
        Err(failed) => control::send_failed(control, &failed),
    };
    i32::from(outcome.is_err())
}

fn start(
    prepared: &Prepared,
    scratch: &Path,
    control: &OwnedFd,
) -> Result<(Child, Temporary), Failed> {
    let settle = || -> io::Result<()> {
        // Nobody ends this process but its keeper's word or end: it has others to end.
        rustix::process::set_parent_process_death_signal(None)?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        signal::block(&[Signal::CHILD.as_raw()])?;
        Ok(())
    };
    settle().map_err(Step::Lifeline.failed())?;
    let temporary = Temporary::make(scratch).map_err(Step::Directory.failed())?;
    sweep(scratch);
    let mut writable = prepared.writable.clone();
    writable.push(temporary.path.clone());
    let prepared = Prepared {
        command: None,
        filter: prepared.filter.clone(),
        directories: prepared.directories.clone(),
        writable,
        readable: prepared.readable.clone(),
        devices: prepared.devices.clone(),
        mask: prepared.mask,
        umask: prepared.umask,
        limits: prepared.limits.clone(),
        turn: prepared.turn,
    };
    let forked = Forked::new(&prepared, Namespaces::empty())?;
    // There are none to be made.
    forked.say_mounted()?;
    let mut word = vec![0; prepared.longest_word()];
    let (length, streams) = message::receive(control, &mut word).map_err(Step::Fork.failed())?;
    if length == 0 {
        // Nobody wants it any more. What waits for a word ends by that.
        temporary.remove();
        leave(0);
    }
    let word = with_temporary(&word[..length], &temporary.path).map_err(Step::Fork.failed())?;
    let streams: Vec<_> = streams.iter().map(AsFd::as_fd).collect();
    let command = forked.start(&word, &streams, None)?;
    control::send_ready(control, &[command.pidfd.as_fd()]).map_err(Step::Lifeline.failed())?;
    Ok((command, temporary))
}

/// The word to go on, with the temporary directory in the command's environment.
fn with_temporary(word: &[u8], temporary: &Path) -> io::Result<Vec<u8>> {
    let order = word.strip_prefix(control::GO).and_then(Order::decode);
    let mut order = order.ok_or(io::ErrorKind::InvalidData)?;
    order.env.retain(|(name, _)| name != TEMPORARY);
    order
        .env
        .push((TEMPORARY.into(), OsString::from(temporary)));
    Ok([control::GO, &order.encode()?].concat())
}

/// Waits for the command's end, or for the keeper's; then ends everything.
fn serve(command: &Child, temporary: Temporary, control: &OwnedFd) -> io::Result<()> {
    let status = await_end(command.pid, control)?;
    let own = rustix::process::getpid().as_raw_nonzero().get();
    end_tree(own, &BTreeSet::new());
    let Some(status) = status else {
        // Whoever waits for this process does not wait for files to be removed: the next one does that.
        return Ok(());
    };
    control::send_ended(control, status, usage::of_children().unwrap_or_default())?;
    temporary.remove();
    Ok(())
}

/// How the command ended; nothing, where it has to be ended.
fn await_end(command: Pid, control: &OwnedFd) -> io::Result<Option<Status>> {
    let signals = Signals::open(&[Signal::CHILD.as_raw()])?;
    loop {
        while signals.next()?.is_some() {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == command {
                return Ok(Some(init::ended(status)));
            }
        }
        let mut watched = [
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(control, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Nothing is said to one that runs: what comes is the end.
        if !watched[1].revents().is_empty() {
            return Ok(None);
        }
    }
}

/// Ends every process that descends from `root`, which is the caller, except for the `spared` children and
/// what descends from them. They are stopped before they are killed: what forks all the time could fork faster
/// than it is killed, but not while it stands still.
fn end_tree(root: i32, spared: &BTreeSet<i32>) {
    loop {
        let left = descendants(root, spared);
        if left.is_empty() {
            return;
        }
        let running = |stat: &&processes::Stat| !matches!(stat.state, 'T' | 't' | 'Z' | 'X');
        let moving: Vec<_> = left.iter().filter(running).collect();
        let (signal, whom) = match moving.is_empty() {
            true => (Signal::KILL, left.iter().collect()),
            false => (Signal::STOP, moving),
        };
        for stat in whom {
            if let Some(pid) = Pid::from_raw(stat.pid) {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
        let wait = match signal == Signal::KILL {
            true => WaitOptions::empty(),
            false => WaitOptions::NOHANG,
        };
        for stat in left.iter().filter(|stat| stat.parent == root) {
            let _ = rustix::process::waitpid(Pid::from_raw(stat.pid), wait);
        }
    }
}

fn descendants(root: i32, spared: &BTreeSet<i32>) -> Vec<processes::Stat> {
    let mut all = processes::tree(root);
    let mut apart = spared.clone();
    all.retain(|stat| {
        let is_apart = apart.contains(&stat.pid) || apart.contains(&stat.parent);
        if is_apart {
            apart.insert(stat.pid);
        }
        stat.pid != root && !is_apart
    });
    all
}

/// A temporary directory. Whoever holds its lock is alive.
struct Temporary {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Temporary {
    fn make(scratch: &Path) -> io::Result<Temporary> {
        let own = rustix::process::getpid().as_raw_nonzero();
        for number in 0u32.. {
            let path = scratch.join(format!("{own}-{number}"));
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            // Somebody who sweeps may have been faster than its lock.
            if let Some(lock) = lock(&path, FlockOperation::NonBlockingLockShared)
                && rustix::fs::fstat(&lock)?.st_nlink > 0
            {
                return Ok(Temporary { path, _lock: lock });
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn remove(self) {
        scratch::remove_all(&self.path);
    }
}

/// Removes the temporary directories of those who are gone.
fn sweep(scratch: &Path) {
    for entry in std::fs::read_dir(scratch).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Some(_lock) = lock(&path, FlockOperation::NonBlockingLockExclusive) {
            scratch::remove_all(&path);
        }
    }
}

fn lock(path: &Path, how: FlockOperation) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&directory, how).ok()?;
    Some(directory)
}
