//! Who may touch a sandbox now.
//!
//! Runs and readers share; promote, sync, snapshot, rollback, fork and discard exclude. The lock is
//! a `flock` on the sandbox's `lock` file, so it dies with its holders, also by kill -9.

use std::os::fd::OwnedFd;

/// A lock held; released when dropped (and when every process that inherited it is gone).
#[derive(Debug)]
pub struct Lock {
    /// The locked file. A launcher hands a duplicate to the sandbox's init, so that the sandbox stays
    /// busy until its last process is gone.
    pub fd: OwnedFd,
}
