//! The last steps of the command's own process, from its fork to its exec.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Rlimit, Signal};
use sandbox_linux::landlock::{Domain, Grant};
use sandbox_linux::seccomp::{self, Instruction};
use sandbox_linux::signal::{self, Mask};
use sandbox_linux::{capabilities, exec, message, terminal};

use crate::control;
use crate::limits::OwnLimit;
use crate::order::{self, Order};
use crate::step::{Failed, Step};

/// All that the command's process needs, made ready before the fork.
#[derive(Debug)]
pub struct Prepared {
    /// The program; none where an [`Order`] brings it.
    pub command: Option<exec::Command>,
    /// The system-call filter.
    pub filter: Vec<Instruction>,
    /// Working directories, the best first.
    pub directories: Vec<PathBuf>,
    /// Where writing is allowed.
    pub writable: Vec<PathBuf>,
    /// Where reading is allowed.
    pub readable: Vec<PathBuf>,
    /// Devices of the host that may be used. None where the sandbox has a `/dev` of its own.
    pub devices: Vec<PathBuf>,
    /// The signals that were blocked before the launch.
    pub mask: Mask,
    /// The file mode mask before the launch.
    pub umask: Mode,
    /// Limits that the process puts on itself.
    pub limits: Vec<OwnLimit>,
    /// Whose turn it is when memory runs out.
    pub turn: Turn,
}

/// Who is killed when memory runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Whoever has most.
    Most,
    /// The command and what it starts, before anybody else, however little they have.
    First,
}

/// Becomes the command. `channel` leads to the init and closes when exec succeeds.
pub fn become_it(prepared: &Prepared, channel: BorrowedFd<'_>) -> Result<Infallible, Failed> {
    // What takes longest, and wants nothing that the init is still making; all that follows the
    // filter lets through.
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| Step::Privileges.failed()(error.into()))?;
    seccomp::attach(&prepared.filter).map_err(Step::Filter.failed())?;
    // Where the command is told later, what can be done before it is, is.
    let early = match prepared.command {
        Some(_) => None,
        None => {
            await_mounts(channel)?;
            Some(domain(prepared).map_err(Step::Landlock.failed())?)
        }
    };
    let word = await_init(prepared, channel)?;
    if let Some(slave) = &word.slave {
        terminal::take_over(slave.as_fd()).map_err(Step::Terminal.failed())?;
    }
    rustix::process::umask(prepared.umask);
    let directories = word.directory.iter().chain(&prepared.directories);
    enter_directory(directories).map_err(Step::Directory.failed())?;
    limit(&prepared.limits).map_err(Step::Limits.failed())?;
    if prepared.turn == Turn::First {
        go_first().map_err(Step::Limits.failed())?;
    }
    own_devices().map_err(Step::Privileges.failed())?;
    let domain = early.map_or_else(|| domain(prepared), Ok);
    let domain = domain.map_err(Step::Landlock.failed())?;
    capabilities::drop_all().map_err(Step::Privileges.failed())?;
    domain.enter().map_err(Step::Landlock.failed())?;
    exec::close_on_exec_from(3).map_err(Step::Privileges.failed())?;
    if let Some(extra) = &word.extra {
        exec::keep_at_exec(extra.as_fd()).map_err(Step::Privileges.failed())?;
    }
    // Where there is no PID namespace, this is what ends the command with its init.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Step::Lifeline.failed()(error.into()))?;
    signal::default_action(Signal::PIPE.as_raw());
    signal::restore(&prepared.mask).map_err(Step::Privileges.failed())?;
    let command = word.command.as_ref().or(prepared.command.as_ref());
    let command = command.ok_or_else(|| Step::Exec.failed()(io::ErrorKind::NotFound.into()))?;
    command.exec().map_err(Step::Exec.failed())
}

impl Prepared {
    /// How long the launcher's word can be.
    pub fn longest_word(&self) -> usize {
        match self.command {
            Some(_) => control::GO.len(),
            None => control::GO.len() + control::SIZE + order::MOST,
        }
    }
}

/// What came with the word to go on.
#[derive(Default)]
struct Word {
    /// The other end of a new terminal.
    slave: Option<OwnedFd>,
    /// The command, where it was not known before.
    command: Option<exec::Command>,
    /// Its working directory.
    directory: Option<PathBuf>,
    /// A descriptor that it gets beside the three usual ones.
    extra: Option<OwnedFd>,
}

/// Waits until the init has made the mounts.
fn await_mounts(channel: BorrowedFd<'_>) -> Result<(), Failed> {
    match message::receive(channel, &mut [0; 1]).map_err(Step::Fork.failed())? {
        (0, _) => Err(Step::Fork.failed()(io::ErrorKind::BrokenPipe.into())),
        _ => Ok(()),
    }
}

/// Waits for the init's word: everything is made, the maps are written, and the exec is watched.
fn await_init(prepared: &Prepared, channel: BorrowedFd<'_>) -> Result<Word, Failed> {
    let broken = || Step::Fork.failed()(io::ErrorKind::BrokenPipe.into());
    let mut bytes = vec![0; prepared.longest_word()];
    let (length, mut descriptors) =
        message::receive(channel, &mut bytes).map_err(Step::Fork.failed())?;
    let word = control::Word::read(&bytes[..length]).ok_or_else(broken)?;
    if prepared.command.is_some() {
        return Ok(Word {
            slave: descriptors.pop(),
            ..Word::default()
        });
    }
    let order = Order::decode(word.order).ok_or_else(broken)?;
    let (slave, extra) = match word.terminal {
        Some(_) => (Some(descriptors.pop().ok_or_else(broken)?), None),
        None => (
            None,
            take_streams(descriptors).map_err(Step::Fork.failed())?,
        ),
    };
    let mut env = order.env;
    if let (Some(name), Some(extra)) = (order.extra, &extra) {
        env.push((name, extra.as_raw_fd().to_string().into()));
    }
    let command = exec::Command::new(&order.command, &env).map_err(Step::Exec.failed())?;
    Ok(Word {
        slave,
        command: Some(command),
        directory: Some(order.cwd),
        extra,
    })
}

/// Makes the first three the usual streams; the fourth, if there is one, is given back.
fn take_streams(descriptors: Vec<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    let mut descriptors = descriptors.into_iter();
    if let Some(stdin) = descriptors.next() {
        rustix::stdio::dup2_stdin(stdin)?;
    }
    if let Some(stdout) = descriptors.next() {
        rustix::stdio::dup2_stdout(stdout)?;
    }
    if let Some(stderr) = descriptors.next() {
        rustix::stdio::dup2_stderr(stderr)?;
    }
    Ok(descriptors.next())
}

/// The usual stream is the host's null device, opened through the host's writable mount: root
/// inside would own it, and could change its mode for everyone. Ours is mounted read-only.
fn own_devices() -> io::Result<()> {
    type Replace = fn(OwnedFd) -> rustix::io::Result<()>;
    let streams: [(BorrowedFd<'_>, Replace); 3] = [
        (rustix::stdio::stdin(), |own| rustix::stdio::dup2_stdin(own)),
        (rustix::stdio::stdout(), |own| {
            rustix::stdio::dup2_stdout(own)
        }),
        (rustix::stdio::stderr(), |own| {
            rustix::stdio::dup2_stderr(own)
        }),
    ];
    for (stream, replace) in streams {
        let Some(path) = rustix::fs::fstat(stream).ok().and_then(memory_device) else {
            continue;
        };
        let access = rustix::fs::fcntl_getfl(stream)? & (OFlags::RWMODE | OFlags::APPEND);
        replace(rustix::fs::open(
            path,
            access | OFlags::CLOEXEC,
            Mode::empty(),
        )?)?;
    }
    Ok(())
}

/// The path of a device that every `/dev` has, the sandbox's too.
fn memory_device(found: rustix::fs::Stat) -> Option<&'static str> {
    if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice {
        return None;
    }
    match (
        rustix::fs::major(found.st_rdev),
        rustix::fs::minor(found.st_rdev),
    ) {
        (1, 3) => Some("/dev/null"),
        (1, 5) => Some("/dev/zero"),
        (1, 7) => Some("/dev/full"),
        (1, 8) => Some("/dev/random"),
        (1, 9) => Some("/dev/urandom"),
        _ => None,
    }
}

/// By path and only now: a working directory from before the mounts is the raw source.
fn enter_directory<'d>(directories: impl Iterator<Item = &'d PathBuf>) -> io::Result<()> {
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for directory in directories {
        outcome = rustix::process::chdir(directory).map_err(io::Error::from);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn limit(limits: &[OwnLimit]) -> io::Result<()> {
    for limit in limits {
        let before = rustix::process::getrlimit(limit.resource);
        let hard = before.maximum.map_or(limit.hard, |it| it.min(limit.hard));
        let limits = Rlimit {
            current: Some(limit.soft.min(hard)),
            maximum: Some(hard),
        };
        rustix::process::setrlimit(limit.resource, limits)?;
    }
    Ok(())
}

/// Raises the score by which the kernel chooses to the highest there is; children inherit it. By number:
/// links in `/proc` cannot be followed yet.
fn go_first() -> io::Result<()> {
    let own = rustix::process::getpid().as_raw_nonzero();
    std::fs::write(format!("/proc/{own}/oom_score_adj"), "1000")
}

fn domain(prepared: &Prepared) -> io::Result<Domain> {
    let mut domain = match prepared.devices.is_empty() {
        true => Domain::new()?,
        false => Domain::with_devices()?,
    };
    let places = prepared.readable.iter().map(|path| (path, Grant::Read));
    let places = places.chain(prepared.writable.iter().map(|path| (path, Grant::Write)));
    let places = places.chain(prepared.devices.iter().map(|path| (path, Grant::Device)));
    for (path, grant) in places {
        let place = match open_place(path) {
            // What was exposed or made by a run that is joined may be gone by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            outcome => outcome?,
        };
        domain = domain.allow(place.as_fd(), grant)?;
    }
    Ok(domain)
}

fn open_place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
