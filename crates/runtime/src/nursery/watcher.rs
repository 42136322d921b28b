//! Starts the supervisor, and starts it again when it ends.
//!
//! The supervisor is the process that hostile code is closest to, and all sessions end with it. A server
//! cannot fork another one, because it has threads by then. So this process does: it reads nothing, is told
//! nothing, and does nothing but wait. Both of its children in turn have the same end of the socket to the
//! server, so nothing has to be handed over.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitIdStatus};
use sandbox_isolation::limits::Ground;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};
use sandbox_linux::{identity, message, powers};

use super::owners::Owners;
use super::work::At;
use super::{Notice, ground_of};
use crate::descriptors;
use crate::users::Users;

/// A supervisor that ended sooner is started again only after a pause, which doubles each time.
const SOON: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Keeps a supervisor running at the other end of `socket` until the server closes the `lifeline`.
pub(super) fn watch(
    root: &Path,
    users: Option<Users>,
    socket: &OwnedFd,
    lifeline: &OwnedFd,
) -> io::Result<()> {
    let mut pause = Duration::ZERO;
    for number in 1.. {
        let begin = Instant::now();
        let reason = match start(number, root, users, socket) {
            Ok(supervisor) => {
                let ended = wait(lifeline, Some(&supervisor), None);
                if ended != Ok(Woken::Child) {
                    supervisor.kill();
                }
                let status = supervisor.wait();
                // Its sessions end with it, each in its own time.
                Ground::give_up(&ground_of(supervisor.pid));
                if ended != Ok(Woken::Child) {
                    return ended.map(drop).map_err(io::Error::from);
                }
                describe(status)
            }
            Err(error) => format!("it cannot be started: {error}"),
        };
        pause = match begin.elapsed() < SOON {
            true => (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE),
            false => Duration::ZERO,
        };
        // A server that is not told learns it from the next one that is ready.
        if let Ok(text) = serde_json::to_vec(&Notice::Down(reason)) {
            let _ = message::send(socket, &text, &[]);
        }
        if wait(lifeline, None, Some(pause)) == Ok(Woken::Lifeline) {
            return Ok(());
        }
    }
    Ok(())
}

/// Forks a supervisor, which is one of `users` if there are any.
fn start(number: u64, root: &Path, users: Option<Users>, socket: &OwnedFd) -> io::Result<Child> {
    let watcher = rustix::process::getpid();
    let (supervisor, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
        let run = || -> io::Result<()> {
            close_others(&[socket.as_fd()])?;
            let owner = users.map(|users| users.user);
            let mut ground = Ground::take(&ground_of(rustix::process::getpid()), owner);
            ground.enter();
            match users {
                None => {}
                Some(Users { user, each: None }) => identity::become_user(user)?,
                Some(Users {
                    each: Some(range), ..
                }) => powers::become_supervisor(range.supervisor())?,
            }
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(watcher) || message::abandoned(socket) {
                leave(1);
            }
            descriptors::allow_all();
            let socket = socket.try_clone()?;
            let owners = Owners::open(root, users)?;
            At::new(number, root.to_owned(), socket, ground, owners)?.work()
        };
        match run() {
            Ok(()) => 0,
            Err(error) => {
                if let Ok(text) = serde_json::to_vec(&Notice::Down(error.to_string())) {
                    let _ = message::send(socket, &text, &[]);
                }
                1
            }
        }
    })?;
    Ok(supervisor)
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// The server is gone, or wants this to end.
    Lifeline,
    /// The process that was waited for ended.
    Child,
    /// It took too long.
    Timeout,
}

fn wait(
    lifeline: &OwnedFd,
    child: Option<&Child>,
    patience: Option<Duration>,
) -> rustix::io::Result<Woken> {
    let timeout = patience.map(|patience| Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    });
    loop {
        let mut watched = vec![PollFd::new(lifeline, PollFlags::IN)];
        watched.extend(child.map(|child| PollFd::new(&child.pidfd, PollFlags::IN)));
        match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(0) => return Ok(Woken::Timeout),
            Ok(_) if !watched[0].revents().is_empty() => return Ok(Woken::Lifeline),
            Ok(_) => return Ok(Woken::Child),
            // There is memory for it again before long.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::NOMEM) => {}
            Err(error) => return Err(error),
        }
    }
}

fn describe(status: io::Result<WaitIdStatus>) -> String {
    match status {
        Err(error) => format!("it ended: {error}"),
        Ok(status) => match (status.exit_status(), status.terminating_signal()) {
            (_, Some(signal)) => format!("it was killed by signal {signal}"),
            (code, None) => format!("it ended with status {}", code.unwrap_or(0)),
        },
    }
}
