//! Freezing, thawing and ending all processes of a sandbox.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, kill_process};
use sandbox_linux::clone::open_process;

use crate::processes::{Process, Stat, describe, tree};
use crate::runs::Runs;

impl Runs {
    /// Every process of every live run, without the inits.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        let mut processes = Vec::new();
        for run in self.live()? {
            processes.extend(tree(run.init).iter().skip(1).map(describe));
        }
        Ok(processes)
    }

    /// Stops all processes where they are. Returns how many.
    pub fn freeze(&self) -> io::Result<usize> {
        // A run that is being launched has no record yet: wait until it has one.
        let _none_is_launched = self.lock_launches()?;
        let mut frozen = 0;
        for run in self.live()? {
            frozen += freeze_tree(run.init, Duration::MAX)?;
        }
        Ok(frozen)
    }

    /// Lets them go on.
    pub fn thaw(&self) -> io::Result<usize> {
        let mut thawed = 0;
        for run in self.live()? {
            thawed += thaw_tree(run.init);
        }
        Ok(thawed)
    }

    /// Ends all processes: SIGTERM, then SIGKILL after `grace`. Returns how many there were.
    pub fn stop(&self, grace: Duration) -> io::Result<usize> {
        let _none_is_launched = self.lock_launches()?;
        let deadline = Instant::now() + grace;
        let mut stopped = 0;
        let mut inits: Vec<(i32, OwnedFd)> = Vec::new();
        for run in self.live()? {
            let Ok(pidfd) = open_process(run.init) else {
                continue;
            };
            let processes = tree(run.init);
            for stat in processes.iter().skip(1) {
                send(stat.pid, Signal::TERM);
            }
            for stat in processes.iter().rev() {
                send(stat.pid, Signal::CONT);
            }
            stopped += processes.len().saturating_sub(1);
            inits.push((run.init, pidfd));
        }
        for (init, pidfd) in &inits {
            if !ended(pidfd, deadline.saturating_duration_since(Instant::now()))? {
                send(*init, Signal::KILL);
                ended(pidfd, Duration::from_secs(10))?;
            }
        }
        Ok(stopped)
    }
}

/// Stops every process that descends from `init`, then `init`: how many. Those that fork faster than they
/// are stopped may take longer than `patience`; then they go on.
pub(crate) fn freeze_tree(init: i32, patience: Duration) -> io::Result<usize> {
    let begin = Instant::now();
    // Parents first, so that none of them sees its child stop; again until nobody was left, because
    // those that ran meanwhile may have forked. The init last: it must not miss that the command ended.
    while tree(init).iter().skip(1).filter(|stat| stop(stat)).count() > 0 {
        if begin.elapsed() > patience {
            thaw_tree(init);
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    let frozen = tree(init).len().saturating_sub(1);
    send(init, Signal::STOP);
    Ok(frozen)
}

/// Lets them go on: how many.
pub(crate) fn thaw_tree(init: i32) -> usize {
    let processes = tree(init);
    // Children first: a shell that woke earlier would see a stopped job.
    for stat in processes.iter().rev() {
        send(stat.pid, Signal::CONT);
    }
    processes.len().saturating_sub(1)
}

/// Sends SIGSTOP to a process that runs; `false` for one that is stopped or ended.
fn stop(stat: &Stat) -> bool {
    let running = !matches!(stat.state, 'T' | 't' | 'Z' | 'X');
    running && send(stat.pid, Signal::STOP)
}

fn send(pid: i32, signal: Signal) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Waits for a process to end.
fn ended(pidfd: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match rustix::event::poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
