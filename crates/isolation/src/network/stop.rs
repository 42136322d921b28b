//! The signal that ends everything a gate has started.
//!
//! Whoever waits, for a socket or for another thread, waits through [`Stop`], so that raising it
//! wakes them all at once. It is raised once and stays raised.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Raised when the gate closes.
#[derive(Debug)]
pub(super) struct Stop {
    /// Readable for ever once raised: for those who wait on sockets.
    event: OwnedFd,
    /// For those who wait on each other.
    raised: Mutex<bool>,
    changed: Condvar,
}

/// A lock, whatever became of the thread that held it: what we guard is whole between statements.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stop {
    pub(super) fn new() -> io::Result<Stop> {
        Ok(Stop {
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            raised: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Wakes everybody, now and from now on.
    pub(super) fn raise(&self) {
        *locked(&self.raised) = true;
        // It can only fail when the counter is full, and then it is readable already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        self.changed.notify_all();
    }

    /// Waits until one of `sockets` is ready, and tells what each is ready for. Fails when the gate
    /// closes or the deadline passes.
    pub(super) fn poll<const N: usize>(
        &self,
        sockets: [Option<(&OwnedFd, PollFlags)>; N],
        deadline: Option<Instant>,
    ) -> io::Result<[PollFlags; N]> {
        let mut set = vec![PollFd::new(&self.event, PollFlags::IN)];
        set.extend(
            sockets
                .iter()
                .flatten()
                .map(|(socket, flags)| PollFd::new(*socket, *flags)),
        );
        poll_until(&mut set, deadline)?;
        if !set[0].revents().is_empty() {
            return Err(closing());
        }
        let mut found = set[1..].iter();
        Ok(sockets.map(|socket| match socket {
            Some(_) => found.next().map_or(PollFlags::empty(), PollFd::revents),
            None => PollFlags::empty(),
        }))
    }

    /// Waits until one of `sockets` is ready, or the deadline passes, and tells what each is ready for. Fails
    /// when the gate closes.
    pub(super) fn poll_all(
        &self,
        sockets: &[(BorrowedFd<'_>, PollFlags)],
        deadline: Option<Instant>,
    ) -> io::Result<Vec<PollFlags>> {
        let mut set = vec![PollFd::new(&self.event, PollFlags::IN)];
        let wanted = sockets.iter();
        set.extend(wanted.map(|(socket, flags)| PollFd::from_borrowed_fd(*socket, *flags)));
        match poll_until(&mut set, deadline) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
            polled => polled?,
        }
        if !set[0].revents().is_empty() {
            return Err(closing());
        }
        Ok(set[1..].iter().map(PollFd::revents).collect())
    }

    /// Waits until `ready` has something, asked again at every [`Stop::stir`].
    pub(super) fn wait_for<T>(
        &self,
        deadline: Instant,
        mut ready: impl FnMut() -> Option<T>,
    ) -> io::Result<T> {
        let mut raised = locked(&self.raised);
        loop {
            if *raised {
                return Err(closing());
            }
            if let Some(found) = ready() {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            raised = match self.changed.wait_timeout(raised, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Makes everybody in [`Stop::wait_for`] look again.
    pub(super) fn stir(&self) {
        // Taken so that nobody is between looking and falling asleep.
        let _guard = locked(&self.raised);
        self.changed.notify_all();
    }
}

fn poll_until(set: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(set, timeout.as_ref()) {
            Ok(0) => return Err(late()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn closing() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the run is over")
}

fn late() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
