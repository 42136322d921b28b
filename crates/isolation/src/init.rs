//! The sandbox's init: makes the mounts, starts the command, outlives nobody.
//!
//! It is process 1 of the sandbox's PID namespace, so when it ends the kernel kills everything else
//! in there; and the kernel kills it when the launcher ends. It keeps its capabilities, which is
//! what protects it from the command: nobody may trace or open a process that has more.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, leave};
use sandbox_linux::identity::Ids;
use sandbox_linux::network::{self, IpVersion};
use sandbox_linux::signal::{self, Signals};
use sandbox_linux::{hold, identity, message, mount, terminal, usage};

use crate::command::{Prepared, become_it};
use crate::control;
use crate::launch::Status;
use crate::limits;
use crate::network::PROXY_PORT;
use crate::perform::{Host, perform};
use crate::plan::Plan;
use crate::policy::Terminal;
use crate::step::{Failed, Step};

/// What the init is to do.
#[derive(Debug)]
pub struct Task {
    /// The mounts.
    pub plan: Plan,
    /// What they are put upon.
    pub host: Host,
    /// We are real root: the command gets the user namespace, not the init.
    pub privileged: bool,
    /// Who to be inside and who it is outside, when the init is in a new user namespace.
    pub map: Option<(Ids, Ids)>,
    /// The hostname inside, when the UTS namespace is new.
    pub hostname: Option<String>,
    /// The isolated network, if it is.
    pub network: Option<Listeners>,
    /// The command's terminal.
    pub terminal: Terminal,
    /// Limits hold only for what is forked after the launcher has put them in place.
    pub wait_for_limits: bool,
    /// The command.
    pub prepared: Prepared,
}

/// What an init without namespaces is to do.
#[derive(Debug)]
pub struct Alone {
    /// Wait until the launcher has put the limits in place.
    pub wait_for_limits: bool,
    /// The command.
    pub prepared: Prepared,
}

/// What listens inside an isolated network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    /// Forwarded ports.
    pub ports: Vec<u16>,
    /// The proxy too.
    pub proxy: bool,
    /// The namespace is new, so loopback is down.
    pub fresh: bool,
}

/// Runs as process 1 until the command has ended.
pub fn run(task: &Task, control: &OwnedFd, door: Option<OwnedFd>) -> i32 {
    let outcome = match start(task, control, door.is_some()) {
        Ok(command) => serve(&command, control, door),
        Err(failed) => control::send_failed(control, &failed),
    };
    i32::from(outcome.is_err())
}

/// Runs as process 1 and makes the sandbox, but starts no command in it: `body` does as it likes.
pub fn keep(task: &Task, control: OwnedFd, body: impl FnOnce() -> i32) -> i32 {
    let made = || -> Result<(), Failed> {
        arrive(task, &control)?;
        if task.map.is_some() {
            limits::bound_namespace();
        }
        perform(&task.plan, task.host)?;
        let listeners = settle(task)?;
        await_launcher(&control, &mut [0; 1])?;
        let listeners: Vec<_> = listeners.iter().map(AsFd::as_fd).collect();
        control::send_ready(&control, &listeners).map_err(Step::Lifeline.failed())
    };
    match made() {
        Ok(()) => body(),
        Err(failed) => {
            let _ = control::send_failed(&control, &failed);
            1
        }
    }
}

/// Ties this process to the launcher, and becomes whom it is to be.
fn arrive(task: &Task, control: &OwnedFd) -> Result<(), Failed> {
    lifeline(control).map_err(Step::Lifeline.failed())?;
    if let Some((inside, outside)) = task.map {
        identity::map_self(inside, outside).map_err(Step::Identity.failed())?;
    }
    // Modes of what is made here are meant exactly.
    rustix::process::umask(Mode::empty());
    Ok(())
}

/// What else belongs to the sandbox beside its mounts.
fn settle(task: &Task) -> Result<Vec<OwnedFd>, Failed> {
    if let Some(name) = &task.hostname {
        identity::set_hostname(name).map_err(Step::Hostname.failed())?;
    }
    let listeners = task.network.as_ref().map(listen).transpose()?;
    Ok(listeners.unwrap_or_default())
}

/// The launcher's word, when it has put the limits in place and done what else is to be done before.
fn await_launcher(control: &OwnedFd, word: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Failed> {
    let (length, descriptors) = message::receive(control, word).map_err(Step::Limits.failed())?;
    if length == 0 {
        // It is gone, and this process about to be killed.
        leave(1);
    }
    Ok((length, descriptors))
}

fn start(task: &Task, control: &OwnedFd, door: bool) -> Result<Child, Failed> {
    arrive(task, control)?;
    let namespaces = match task.privileged {
        true => Namespaces::NEWUSER,
        false => Namespaces::empty(),
    };
    if door {
        // Before there is a child to miss.
        signal::block(&[Signal::CHILD.as_raw()]).map_err(Step::Fork.failed())?;
    }
    let fork = || Forked::new(&task.prepared, namespaces);
    // It gets ready while the mounts are made.
    let early = (!task.wait_for_limits).then(fork).transpose()?;
    let processes = perform(&task.plan, task.host)?;
    if let (Some(early), None) = (&early, &task.prepared.command) {
        early.say_mounted()?;
    }
    let listeners = settle(task)?;
    let mut terminal = match task.terminal {
        Terminal::Inherit => None,
        Terminal::New => Some(open_terminal().map_err(Step::Terminal.failed())?),
    };
    let mut word = vec![0; task.prepared.longest_word()];
    let (length, streams) = await_launcher(control, &mut word)?;
    let asked = control::Word::read(&word[..length]).and_then(|word| word.terminal);
    if let Some(size) = asked {
        terminal = Some(open_apart(size).map_err(Step::Terminal.failed())?);
    }
    let forked = early.map_or_else(fork, Ok)?;
    let slave = terminal.as_ref().map(|terminal| terminal.slave.as_fd());
    let descriptors: Vec<_> = slave
        .into_iter()
        .chain(streams.iter().map(AsFd::as_fd))
        .collect();
    let command = forked.start(&word[..length], &descriptors, processes.as_ref())?;
    let mut descriptors = vec![command.pidfd.as_fd()];
    descriptors.extend(terminal.as_ref().map(|terminal| terminal.master.as_fd()));
    descriptors.extend(listeners.iter().map(AsFd::as_fd));
    control::send_ready(control, &descriptors).map_err(Step::Lifeline.failed())?;
    Ok(command)
}

/// Runs as an ordinary process until the command has ended, and then ends what the command left.
pub fn run_alone(task: &Alone, control: &OwnedFd) -> i32 {
    let started = || -> Result<Child, Failed> {
        lifeline(control).map_err(Step::Lifeline.failed())?;
        // Orphans of the command come to us, so that they can be ended with it.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| Step::Lifeline.failed()(error.into()))?;
        if task.wait_for_limits {
            message::receive(control, &mut [0; 1]).map_err(Step::Limits.failed())?;
        }
        let forked = Forked::new(&task.prepared, Namespaces::empty())?;
        let command = forked.start(control::GO, &[], None)?;
        control::send_ready(control, &[command.pidfd.as_fd()]).map_err(Step::Lifeline.failed())?;
        Ok(command)
    };
    let outcome = match started() {
        Err(failed) => control::send_failed(control, &failed),
        Ok(command) => reap(command.pid).and_then(|status| {
            end_orphans();
            control::send_ended(control, status, usage::of_children().unwrap_or_default())
        }),
    };
    i32::from(outcome.is_err())
}

/// Kills what was left, again until nothing is: whoever is killed may leave children to us.
fn end_orphans() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    loop {
        let left = crate::processes::tree(own);
        for stat in left.iter().skip(1) {
            if let Some(pid) = Pid::from_raw(stat.pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // No children are left.
            Err(_) => return,
        }
    }
}

/// Dies with the launcher, even if the launcher was gone before this could be asked for.
pub(crate) fn lifeline(control: &OwnedFd) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if message::abandoned(control) {
        leave(1);
    }
    Ok(())
}

fn listen(listeners: &Listeners) -> Result<Vec<OwnedFd>, Failed> {
    if listeners.fresh {
        network::loopback_up().map_err(Step::Loopback.failed())?;
    }
    let mut sockets = Vec::new();
    for port in &listeners.ports {
        let failed = Step::Listen(usize::from(*port)).failed();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        sockets.push(network::listen(address).map_err(&failed)?);
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, *port));
        match network::listen(address) {
            // A host may have IPv6 switched off; then nothing inside looks for it either.
            Err(error) if is_without(&error) => {}
            outcome => sockets.push(outcome.map_err(&failed)?),
        }
    }
    if listeners.proxy {
        let failed = Step::Listen(usize::from(PROXY_PORT)).failed();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT));
        sockets.push(network::listen(address).map_err(failed)?);
    }
    Ok(sockets)
}

/// Is there no such family of addresses here?
fn is_without(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL)
    )
}

fn open_terminal() -> io::Result<terminal::Terminal> {
    let terminal = terminal::open()?;
    let ours = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    if let Some(size) = ours
        .iter()
        .find_map(|fd| rustix::termios::tcgetwinsize(fd).ok())
    {
        rustix::termios::tcsetwinsize(&terminal.master, size)?;
    }
    Ok(terminal)
}

/// A terminal of a devpts of its own: the one that all inner sandboxes share would let any of them read
/// what is typed here.
fn open_apart(size: terminal::Size) -> io::Result<terminal::Terminal> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::open("/dev/pts", flags, Mode::empty())?;
    mount::attach(mount::devpts()?, place)?;
    let terminal = terminal::open()?;
    terminal::resize(&terminal.master, size)?;
    Ok(terminal)
}

/// The command's process, before it becomes the command.
pub(crate) struct Forked {
    child: Child,
    channel: OwnedFd,
    /// It is in a new user namespace, which has no maps yet.
    unmapped: bool,
}

impl Forked {
    pub(crate) fn new(prepared: &Prepared, namespaces: Namespaces) -> Result<Forked, Failed> {
        let (ours, theirs) = message::pair().map_err(Step::Fork.failed())?;
        let child = clone(namespaces, Parent::Caller, ours, || {
            let Err(failed) = become_it(prepared, theirs.as_fd());
            let _ = message::send(&theirs, &failed.encode(), &[]);
            1
        });
        let (child, channel) = child.map_err(Step::Fork.failed())?;
        let unmapped = namespaces.contains(Namespaces::NEWUSER);
        Ok(Forked {
            child,
            channel,
            unmapped,
        })
    }

    /// Tells one that does not know its command yet that the mounts are made.
    pub(crate) fn say_mounted(&self) -> Result<(), Failed> {
        message::send(&self.channel, control::GO, &[]).map_err(Step::Fork.failed())
    }

    /// Passes the launcher's word on, and waits until it has become the command.
    ///
    /// While it does, no link in its `/proc` can be followed: the process is still this program
    /// then, and a command, or the interpreter it names, that is a link to `/proc/self/exe` would
    /// be this program's own file on the host, by a mount that was never sealed (CVE-2019-5736).
    pub(crate) fn start(
        self,
        word: &[u8],
        descriptors: &[BorrowedFd<'_>],
        processes: Option<&OwnedFd>,
    ) -> Result<Child, Failed> {
        let Forked {
            child,
            channel,
            unmapped,
        } = self;
        let guarded = processes.filter(|_| hold::at_exec(child.pid).is_ok());
        if let (Some(processes), None) = (processes, guarded) {
            // Somebody traces it already, or this host lets nobody: Landlock is left to guard the
            // file.
            mount::follow_links(processes).map_err(Step::Fork.failed())?;
        }
        if unmapped {
            let pid = child.pid.as_raw_nonzero().get();
            identity::map_all(pid).map_err(Step::Identity.failed())?;
        }
        if let Err(error) = message::send(&channel, word, descriptors) {
            // It has failed already, and said why.
            return Err(reported(&channel)?.unwrap_or_else(|| Step::Fork.failed()(error)));
        }
        if let Some(processes) = guarded
            && hold::wait(child.pid).map_err(Step::Fork.failed())? == hold::Reached::Exec
        {
            mount::follow_links(processes).map_err(Step::Fork.failed())?;
            hold::release(child.pid).map_err(Step::Fork.failed())?;
            return Ok(child);
        }
        // The channel closes by itself when exec succeeds.
        match reported(&channel)? {
            Some(failed) => Err(failed),
            None if guarded.is_some() => Err(Step::Fork.failed()(io::ErrorKind::BrokenPipe.into())),
            None => Ok(child),
        }
    }
}

/// What the command's process says before it is gone, or has become the command.
fn reported(channel: &OwnedFd) -> Result<Option<Failed>, Failed> {
    let mut bytes = [0; 16];
    let (length, _) = message::receive(channel, &mut bytes).map_err(Step::Fork.failed())?;
    Ok(Failed::decode(&bytes[..length]))
}

fn serve(command: &Child, control: &OwnedFd, door: Option<OwnedFd>) -> io::Result<()> {
    let status = match door {
        None => reap(command.pid)?,
        Some(door) => reap_and_hand_out(command.pid, door)?,
    };
    // The kernel would do it, but only while it takes the whole sandbox down, which takes a moment
    // that the launcher has a use for.
    signal::kill_all_others();
    while let Ok(_) | Err(rustix::io::Errno::INTR) = rustix::process::wait(WaitOptions::empty()) {}
    control::send_ended(control, status, usage::of_children().unwrap_or_default())
}

/// Waits for every child and grandchild until the command itself has ended.
fn reap(command: Pid) -> io::Result<Status> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return Ok(ended(status)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The same, and meanwhile makes sockets of this network namespace for whoever holds the door.
fn reap_and_hand_out(command: Pid, door: OwnedFd) -> io::Result<Status> {
    let signals = Signals::open(&[Signal::CHILD.as_raw()])?;
    let mut door = Some(door);
    loop {
        while signals.next()?.is_some() {}
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == command {
                return Ok(ended(status));
            }
        }
        let mut watched = vec![PollFd::new(&signals, PollFlags::IN)];
        watched.extend(door.as_ref().map(|door| PollFd::new(door, PollFlags::IN)));
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let asked = watched
            .get(1)
            .is_some_and(|door| !door.revents().is_empty());
        if asked && !door.as_ref().is_some_and(hand_out) {
            door = None;
        }
    }
}

/// Answers one request for a socket. `false` when the door is closed for good.
fn hand_out(door: &OwnedFd) -> bool {
    let mut request = [0];
    let version = match message::receive(door, &mut request) {
        Ok((1, _)) if request == *b"4" => IpVersion::V4,
        Ok((1, _)) if request == *b"6" => IpVersion::V6,
        Ok((0, _)) | Err(_) => return false,
        Ok(_) => return true,
    };
    match network::tcp_socket(version) {
        Ok(socket) => message::send(door, &request, &[socket.as_fd()]).is_ok(),
        // An answer without a descriptor: the asker sees that there is none.
        Err(_) => message::send(door, &request, &[]).is_ok(),
    }
}

pub(crate) fn ended(status: WaitStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (_, Some(signal)) => Status::Signalled(signal),
        (code, None) => Status::Exited(code.unwrap_or(0)),
    }
}
