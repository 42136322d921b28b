//! Who may touch a sandbox now.
//!
//! Runs and readers share; promote, sync, snapshot, rollback, fork and discard exclude. The lock is
//! a `flock` on the sandbox's `lock` file, so it dies with its holders, also by kill -9. The file
//! holds the last exclusive holder's pid, only to tell people whom they are waiting for; its
//! modification time is when the sandbox was last used.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
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
        } else if usage == Use::Marked {
            let now = Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_NOW,
            };
            let times = Timestamps {
                last_access: now,
                last_modification: now,
            };
            rustix::fs::futimens(fd.as_fd(), &times)?;
        }
        Ok(Lock { fd, sharing })
    }
}

/// The process that last held the sandbox in `dir` exclusively, if it is alive: `promote (pid 71)`.
pub(crate) fn holder(dir: &Path) -> Option<String> {
    let pid: u32 = std::fs::read_to_string(dir.join(FILE))
        .ok()?
        .trim()
        .parse()
        .ok()?;
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
