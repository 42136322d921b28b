//! What takes longer than everybody else should wait: done in a process of its own.
//!
//! What is read there was written by a session, which may have made it as large and as winding as it could.
//! An errand has an end all the same: of memory, of work, and of time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use rustix::process::{Resource, Rlimit, Signal};
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};
use sandbox_linux::powers::{self, Powers};
use serde::Serialize;

use super::{Done, Refusal};

/// The most memory, in bytes of address space, and seconds of a processor.
const LIMITS: [(Resource, u64); 2] = [(Resource::As, 4 << 30), (Resource::Cpu, 120)];

/// The most memory of its own that an errand may have that looks at a workspace for a client.
pub(super) const LOOKERS_MEMORY: u64 = 512 << 20;

/// One that is under way.
pub(super) struct Errand {
    number: u64,
    process: Child,
    /// A file in memory.
    report: OwnedFd,
    /// When it is given up: it may wait for something that never comes, without working.
    deadline: Instant,
}

impl Errand {
    /// Has `work` done within `patience`, for who ordered it under `number`. It keeps no more than `powers` of
    /// the supervisor's capabilities.
    pub(super) fn start<T: Serialize>(
        number: u64,
        patience: Duration,
        powers: Powers,
        work: impl FnOnce() -> Result<T, Refusal>,
    ) -> io::Result<Errand> {
        let report = rustix::fs::memfd_create("report", MemfdFlags::CLOEXEC)?;
        let sender = rustix::process::getpid();
        let (process, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let run = || -> io::Result<()> {
                close_others(&[report.as_fd()])?;
                powers::drop_all_but(powers)?;
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if rustix::process::getppid() != Some(sender) {
                    leave(1);
                }
                for (resource, most) in LIMITS {
                    let limit = Rlimit {
                        current: Some(most),
                        maximum: Some(most),
                    };
                    rustix::process::setrlimit(resource, limit)?;
                }
                // Piece by piece: as text, a report may be as large as what it was made of.
                let mut report = BufWriter::new(File::from(report.try_clone()?));
                serde_json::to_writer(&mut report, &work())?;
                report.flush()
            };
            i32::from(run().is_err())
        })?;
        Ok(Errand {
            number,
            process,
            report,
            deadline: Instant::now() + patience,
        })
    }

    /// When it should be back.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Ends it, if it should have been back. It comes back for that.
    pub(super) fn end_if_late(&self) {
        if Instant::now() >= self.deadline {
            self.process.kill();
        }
    }

    /// Becomes readable when it is done.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.process.pidfd.as_fd()
    }

    /// What became of it, and for whom.
    pub(super) fn back(self) -> (u64, Result<Done, Refusal>, Option<OwnedFd>) {
        let status = self.process.wait().ok();
        match status.and_then(|status| status.exit_status()) {
            Some(0) => (self.number, Ok(Done::Apart), Some(self.report)),
            _ => {
                let reason = "it took too much memory or too long".to_owned();
                (self.number, Err(reason.into()), None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn what_it_found_comes_back() {
        let found: Result<u32, Refusal> = Ok(42);
        let errand = Errand::start(7, Duration::from_secs(10), Powers::None, || found).unwrap();
        let (number, done, report) = errand.back();
        assert!(number == 7 && matches!(done, Ok(Done::Apart)));
        let mut report = File::from(report.unwrap());
        report.rewind().unwrap();
        let mut text = String::new();
        report.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{\"Ok\":42}");
    }

    #[test]
    fn one_that_is_late_or_takes_too_much_is_told_of() {
        let wait = || -> Result<(), Refusal> {
            loop {
                rustix::event::pause();
            }
        };
        let late = Errand::start(1, Duration::ZERO, Powers::None, wait).unwrap();
        late.end_if_late();
        let eat = || Ok(vec![1u8; 5 << 30].len());
        let greedy = Errand::start(2, Duration::from_secs(60), Powers::None, eat).unwrap();
        greedy.end_if_late();
        for errand in [late, greedy] {
            let (_, done, report) = errand.back();
            assert!(done.is_err() && report.is_none());
        }
    }
}
