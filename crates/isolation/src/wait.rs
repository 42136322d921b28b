//! A command that runs: signals for it, and how it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use sandbox_linux::clone::Child;
use sandbox_linux::message;
use sandbox_linux::signal::{self, Received, Signals};

use crate::control::{self, Report};
use crate::launch::{Blocked, SIGNALS};
use crate::limits::Enforcer;
use crate::network::{Gate, Refused};
use crate::runs::Record;
use crate::scratch::Leftovers;

/// A command that runs. Dropping it kills everything it started.
#[derive(Debug)]
pub struct Run {
    /// The other end of its terminal, for [`crate::policy::Terminal::New`].
    pub master: Option<OwnedFd>,
    init: Child,
    control: OwnedFd,
    command: Option<OwnedFd>,
    /// A second handle of the terminal, to pass on changes of its size.
    window: Option<OwnedFd>,
    gate: Option<Gate>,
    record: Record,
    enforcer: Enforcer,
    leftovers: Leftovers,
    mask: Blocked,
    /// The init has nothing left to do but to end.
    ends: bool,
    reaped: bool,
}

/// What a run is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) init: Child,
    pub(crate) control: OwnedFd,
    pub(crate) command: Option<OwnedFd>,
    pub(crate) master: Option<OwnedFd>,
    pub(crate) gate: Option<Gate>,
    pub(crate) record: Record,
    pub(crate) enforcer: Enforcer,
    pub(crate) leftovers: Leftovers,
    pub(crate) mask: Blocked,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status or signal.
    pub status: Status,
    /// The size limit stopped it: bytes used when it was stopped.
    pub over_size: Option<u64>,
    /// The memory limit killed something inside.
    pub out_of_memory: bool,
    /// Connections that the proxy refused.
    pub refused: Vec<Refused>,
}

/// An exit status or a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// `exit(n)`.
    Exited(i32),
    /// Killed by this signal.
    Signalled(i32),
}

impl Run {
    pub(crate) fn new(parts: Parts) -> Run {
        let Parts {
            init,
            control,
            command,
            master,
            gate,
            record,
            ..
        } = parts;
        let Parts {
            enforcer,
            leftovers,
            mask,
            ..
        } = parts;
        let window = master.as_ref().and_then(|master| master.try_clone().ok());
        Run {
            master,
            init,
            control,
            command,
            window,
            gate,
            record,
            enforcer,
            leftovers,
            mask,
            ends: false,
            reaped: false,
        }
    }

    /// Passes a signal on to the command.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match &self.command {
            Some(command) => signal::send(command.as_fd(), signal),
            None => Err(io::Error::from_raw_os_error(
                rustix::io::Errno::SRCH.raw_os_error(),
            )),
        }
    }

    /// Waits for the command to end and everything of the sandbox to be gone: [`Run::ended`], and
    /// what the kernel does after it.
    pub fn wait(mut self) -> io::Result<Ended> {
        self.ended()
    }

    /// Waits for the command to end and every process it started to be gone. The kernel may still
    /// be taking the mounts down: whoever has something to do meanwhile does it before dropping this.
    ///
    /// Meanwhile serves the network gate and the size limit, and passes on the signals the caller
    /// got (SIGTERM, SIGHUP, SIGUSR1, SIGUSR2; SIGINT and SIGQUIT from the terminal reach the
    /// command by themselves and are passed on only when another process sent them). SIGWINCH takes
    /// the size of the caller's terminal over to the new one.
    pub fn ended(&mut self) -> io::Result<Ended> {
        let signals = Signals::open(&SIGNALS)?;
        let mut over_size = None;
        // A command takes a moment at least.
        let control = &self.control;
        self.leftovers
            .quick_steps_while(|| !message::waiting(control));
        let status = loop {
            let due = [self.enforcer.next_check(), self.leftovers.due()];
            if self.wake(&signals, due.into_iter().flatten().min())? {
                match control::receive(&self.control)? {
                    Report::Ended(status, _) => {
                        self.ends = true;
                        break status;
                    }
                    // Killed from outside, or by a stop; so are the others, but who knows when.
                    Report::Gone => {
                        self.reap();
                        break Status::Signalled(Signal::KILL.as_raw());
                    }
                    _ => continue,
                }
            }
            while let Some(received) = signals.next()? {
                self.pass_on(received);
            }
            if is_due(self.leftovers.due()) {
                self.leftovers.step();
            }
            if is_due(self.enforcer.next_check()) {
                over_size = self.enforcer.over_size();
                if over_size.is_some() {
                    self.init.kill();
                }
            }
        };
        // Ctrl-C reached us as well as the command; unblocked, it would end us before our caller has
        // recorded anything.
        while signals.next()?.is_some() {}
        let over_size = over_size.or_else(|| self.enforcer.over_size_now());
        let out_of_memory = self.enforcer.out_of_memory();
        let refused = self.gate.take().map(Gate::close).unwrap_or_default();
        Ok(Ended {
            status,
            over_size,
            out_of_memory,
            refused,
        })
    }

    /// Sleeps until something happens; `true` when the init has something to say.
    fn wake(&self, signals: &Signals, until: Option<Instant>) -> io::Result<bool> {
        let timeout = until.map(|until| remaining(until.saturating_duration_since(Instant::now())));
        let mut watched = [
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn pass_on(&self, received: Received) {
        let from_terminal = [
            Signal::INT.as_raw(),
            Signal::QUIT.as_raw(),
            Signal::WINCH.as_raw(),
        ];
        if received.number == Signal::WINCH.as_raw() && self.window.is_some() {
            self.take_over_size();
        } else if received.sent || !from_terminal.contains(&received.number) {
            // It may have ended this very moment.
            let _ = self.signal(received.number);
        }
    }

    fn take_over_size(&self) {
        let ours = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        let size = ours
            .iter()
            .find_map(|fd| rustix::termios::tcgetwinsize(fd).ok());
        if let (Some(size), Some(window)) = (size, &self.window) {
            let _ = rustix::termios::tcsetwinsize(window, size);
        }
    }

    fn reap(&mut self) {
        if !self.reaped {
            self.reaped = true;
            let _ = self.init.wait();
            self.record.remove();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ends {
            self.init.kill();
        }
        self.reap();
        self.enforcer.release();
        let _ = &self.mask;
    }
}

fn is_due(time: Option<Instant>) -> bool {
    time.is_some_and(|time| Instant::now() >= time)
}

fn remaining(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
