//! Who may touch a sandbox now.
//!
//! Runs and readers share; promote, sync, snapshot, rollback, fork and discard exclude. The lock is
//! a `flock` on the sandbox's `lock` file, so it dies with its holders, also by kill -9. The file
//! holds the last exclusive holder's pid, only to tell people whom they are waiting for; its
//! modification time is when the sandbox was last used, its access time when a run last began in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, StatxFlags, Timespec, Timestamps, UTIME_NOW,
    UTIME_OMIT,
};
use rustix::io::Errno;

/// The lock's file in the sandbox's directory.
pub(crate) const FILE: &str = "lock";

/// A lock held; released when dropped (and when every process that inherited it is gone).
#[derive(Debug)]
pub struct Lock {
    /// The locked file. A launcher hands a duplicate to the sandbox's init, so that the sandbox stays
    /// busy until its last process is gone.
    pub fd: OwnedFd,
    sharing: Sharing,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that another thread is just starting has a duplicate until it execs. A shared
        // lock is meant to live on in such a duplicate; an exclusive one is over now.
        if self.sharing == Sharing::Exclusive {
            let _ = rustix::fs::flock(&self.fd, FlockOperation::Unlock);
        }
    }
}

/// With whom a lock is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// With every other sharer.
    Shared,
    /// With nobody.
    Exclusive,
}

/// Whether taking the lock counts as using the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It does: the sandbox is not stale.
    Marked,
    /// It does, and a command is going to run in it.
    Run,
    /// A look that leaves no trace.
    Unmarked,
}

impl Lock {
    /// Locks the sandbox in `dir`. `WouldBlock` when somebody holds it otherwise, `NotFound` when
    /// the sandbox went away while it was being locked.
    pub fn take(dir: &Path, sharing: Sharing, usage: Use) -> io::Result<Lock> {
        let path = dir.join(FILE);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(CWD, &path, flags, Mode::RUSR | Mode::WUSR)?;
        let operation = match sharing {
            Sharing::Shared => FlockOperation::NonBlockingLockShared,
            Sharing::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        rustix::io::retry_on_intr(|| rustix::fs::flock(&fd, operation))?;
        // A discard may have moved the directory away between the open and the lock.
        let (held, named) = (
            rustix::fs::fstat(&fd)?,
            rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)?,
        );
        if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino) {
            return Err(Errno::NOENT.into());
        }
        if sharing == Sharing::Exclusive {
            // Cut off after it is written: a file that is never empty keeps its block.
            let written =
                rustix::io::pwrite(&fd, format!("{}\n", std::process::id()).as_bytes(), 0)?;
            rustix::fs::ftruncate(&fd, written as u64)?;
        } else if usage != Use::Unmarked {
            let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
            let times = Timestamps {
                last_access: special(if usage == Use::Run {
                    UTIME_NOW
                } else {
                    UTIME_OMIT
                }),
                last_modification: special(UTIME_NOW),
            };
            rustix::fs::futimens(fd.as_fd(), &times)?;
        }
        Ok(Lock { fd, sharing })
    }

    /// Shares an exclusive lock from now on. `WouldBlock` when another excluder was faster.
    pub(crate) fn share(&mut self) -> io::Result<()> {
        self.sharing = Sharing::Shared;
        let shared = FlockOperation::NonBlockingLockShared;
        Ok(rustix::io::retry_on_intr(|| {
            rustix::fs::flock(&self.fd, shared)
        })?)
    }

    /// When a run last began: a value that the next run changes.
    pub(crate) fn last_run(&self) -> io::Result<LastRun> {
        let flags = AtFlags::EMPTY_PATH;
        let found = rustix::fs::statx(&self.fd, "", flags, StatxFlags::ATIME)?;
        Ok(LastRun(found.stx_atime.tv_sec, found.stx_atime.tv_nsec))
    }

    /// Sets [`Lock::last_run`] to a value that it never had, so that a run is noticed also within one
    /// tick of the clock.
    pub(crate) fn mark_last_run(&self, random: u64) -> io::Result<LastRun> {
        let times = Timestamps {
            last_access: Timespec {
                // Some time in the first thirty years after 1970: no run is of that time.
                tv_sec: i64::try_from(random % 1_000_000_000).unwrap_or_default(),
                tv_nsec: i64::try_from((random >> 32) % 1_000_000_000).unwrap_or_default(),
            },
            last_modification: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
        };
        rustix::fs::futimens(&self.fd, &times)?;
        self.last_run()
    }
}

/// When a run last began in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastRun(i64, u32);

/// The process that last held the sandbox in `dir` exclusively, if it is alive: `promote (pid 71)`.
pub(crate) fn holder(dir: &Path) -> Option<String> {
    // A plain read could change the access time, which tells when a run began.
    let quietly = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOATIME;
    let file = rustix::fs::openat(CWD, dir.join(FILE), quietly, Mode::empty()).ok()?;
    let mut text = String::new();
    io::Read::read_to_string(&mut std::fs::File::from(file), &mut text).ok()?;
    let pid: u32 = text.trim().parse().ok()?;
    let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!(
        "{} (pid {pid})",
        sandbox_model::path::escape(command.trim_end().as_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharers_share_and_an_excluder_excludes() {
        let dir = tempfile::tempdir().unwrap();
        let take = |sharing| Lock::take(dir.path(), sharing, Use::Marked);
        let first = take(Sharing::Shared).unwrap();
        let second = take(Sharing::Shared).unwrap();
        let refused = take(Sharing::Exclusive).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop((first, second));
        let alone = take(Sharing::Exclusive).unwrap();
        assert_eq!(
            take(Sharing::Shared).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert!(
            holder(dir.path())
                .unwrap()
                .contains(&format!("pid {}", std::process::id()))
        );
        drop(alone);
        take(Sharing::Shared).unwrap();
    }

    #[test]
    fn a_duplicate_keeps_a_shared_lock_but_no_exclusive_one() {
        let dir = tempfile::tempdir().unwrap();
        let take = |sharing| Lock::take(dir.path(), sharing, Use::Marked);
        let lock = take(Sharing::Shared).unwrap();
        let kept = lock.fd.try_clone().unwrap();
        drop(lock);
        assert!(take(Sharing::Exclusive).is_err());
        drop(kept);
        let alone = take(Sharing::Exclusive).unwrap();
        let _inherited = alone.fd.try_clone().unwrap();
        drop(alone);
        take(Sharing::Shared).unwrap();
    }
}
