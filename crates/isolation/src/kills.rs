//! Telling a keeper why what it started was killed.
//!
//! The kernel kills for memory, and counts that in the control group; the accountant kills for disk space,
//! and counts that in a file in memory that the keeper has, too. A keeper who looks before and after
//! knows why something ended that did not end by itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};

/// How often something in a kept sandbox was killed for what was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kills {
    /// Memory.
    pub memory: u64,
    /// Disk space.
    pub disk: u64,
}

/// A number that one process raises and others read, and whether the disk is full beyond all measure.
#[derive(Debug)]
pub(crate) struct Tally(OwnedFd);

/// Where it is said that the disk is full.
const FULL: u64 = 8;

impl Tally {
    pub(crate) fn new() -> io::Result<Tally> {
        Ok(Tally(memfd_create("tally", MemfdFlags::CLOEXEC)?))
    }

    /// The same one, as it came from another process.
    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> Tally {
        Tally(descriptor)
    }

    pub(crate) fn try_clone(&self) -> io::Result<Tally> {
        Ok(Tally(self.0.try_clone()?))
    }

    pub(crate) fn count(&self) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::pread(&self.0, &mut bytes, 0) {
            Ok(8) => u64::from_ne_bytes(bytes),
            _ => 0,
        }
    }

    /// Is there so much more than there may be that nothing is to be started?
    pub(crate) fn is_full(&self) -> bool {
        let mut byte = [0];
        matches!(rustix::io::pread(&self.0, &mut byte, FULL), Ok(1)) && byte == [1]
    }

    /// Says whether there is.
    pub(crate) fn set_full(&self, is_full: bool) {
        let _ = rustix::io::pwrite(&self.0, &[u8::from(is_full)], FULL);
    }

    /// Raises it. What two processes count at the same moment may count once.
    pub(crate) fn add(&self) {
        let next = self.count() + 1;
        // A file in memory takes eight bytes, or the machine has none left for anything.
        let _ = rustix::io::pwrite(&self.0, &next.to_ne_bytes(), 0);
    }
}

impl AsFd for Tally {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_counts_another_reads() {
        let tally = Tally::new().unwrap();
        let other = tally.try_clone().unwrap();
        assert_eq!(other.count(), 0);
        tally.add();
        tally.add();
        assert_eq!(other.count(), 2);
        assert!(!other.is_full());
        for is_full in [true, false] {
            tally.set_full(is_full);
            assert_eq!((other.is_full(), other.count()), (is_full, 2));
        }
    }
}
