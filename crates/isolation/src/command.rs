//! The last steps of the command's own process, from its fork to its exec.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::{Resource, Rlimit, Signal};
use sandbox_linux::landlock::{Domain, Grant};
use sandbox_linux::seccomp::{self, Instruction};
use sandbox_linux::signal::{self, Mask};
use sandbox_linux::{capabilities, exec, message, terminal};

use crate::step::{Failed, Step};

/// All that the command's process needs, made ready before the fork.
#[derive(Debug)]
pub struct Prepared {
    /// The program.
    pub command: exec::Command,
    /// The system-call filter.
    pub filter: Vec<Instruction>,
    /// Working directories, the best first.
    pub directories: Vec<PathBuf>,
    /// Where writing is allowed.
    pub writable: Vec<PathBuf>,
    /// Where reading is allowed.
    pub readable: Vec<PathBuf>,
    /// The signals that were blocked before the launch.
    pub mask: Mask,
    /// The file mode mask before the launch.
    pub umask: Mode,
    /// Limits that the process puts on itself.
    pub limits: Vec<(Resource, u64)>,
}

/// Becomes the command. `channel` leads to the init and closes when exec succeeds.
pub fn become_it(prepared: &Prepared, channel: BorrowedFd<'_>) -> Result<Infallible, Failed> {
    // What takes longest, and wants nothing that the init is still making; all that follows the
    // filter lets through.
    rustix::thread::set_no_new_privs(true)
        .map_err(|error| Step::Privileges.failed()(error.into()))?;
    seccomp::attach(&prepared.filter).map_err(Step::Filter.failed())?;
    if let Some(slave) = await_init(channel)? {
        terminal::take_over(slave.as_fd()).map_err(Step::Terminal.failed())?;
    }
    rustix::process::umask(prepared.umask);
    enter_directory(&prepared.directories).map_err(Step::Directory.failed())?;
    limit(&prepared.limits).map_err(Step::Limits.failed())?;
    own_devices().map_err(Step::Privileges.failed())?;
    let domain = domain(prepared).map_err(Step::Landlock.failed())?;
    capabilities::drop_all().map_err(Step::Privileges.failed())?;
    domain.enter().map_err(Step::Landlock.failed())?;
    exec::close_on_exec_from(3).map_err(Step::Privileges.failed())?;
    // Where there is no PID namespace, this is what ends the command with its init.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Step::Lifeline.failed()(error.into()))?;
    signal::default_action(Signal::PIPE.as_raw());
    signal::restore(&prepared.mask).map_err(Step::Privileges.failed())?;
    prepared.command.exec().map_err(Step::Exec.failed())
}

/// Waits for the init's word: everything is made, the maps are written, and the exec is watched.
/// With it comes the terminal, where there is a new one.
fn await_init(channel: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Failed> {
    match message::receive(channel, &mut [0; 1]) {
        Ok((1, mut descriptors)) => Ok(descriptors.pop()),
        Ok(_) => Err(Step::Fork.failed()(io::ErrorKind::BrokenPipe.into())),
        Err(error) => Err(Step::Fork.failed()(error)),
    }
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
fn enter_directory(directories: &[PathBuf]) -> io::Result<()> {
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for directory in directories {
        outcome = rustix::process::chdir(directory).map_err(io::Error::from);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn limit(limits: &[(Resource, u64)]) -> io::Result<()> {
    for (resource, most) in limits {
        let before = rustix::process::getrlimit(*resource);
        let most = before.maximum.map_or(*most, |before| before.min(*most));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        rustix::process::setrlimit(*resource, limit)?;
    }
    Ok(())
}

fn domain(prepared: &Prepared) -> io::Result<Domain> {
    let mut domain = Domain::new()?;
    let places = prepared.readable.iter().map(|path| (path, Grant::Read));
    let places = places.chain(prepared.writable.iter().map(|path| (path, Grant::Write)));
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
