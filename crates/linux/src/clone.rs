//! New processes, in new namespaces where asked for.
//!
//! A clone here is a fork: the child has a copy of this process's memory and continues in the
//! closure it is given. It must be called while the process has a single thread; another thread's
//! locks would stay locked in the copy for ever.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, WaitIdOptions, WaitIdStatus};
pub use rustix::thread::UnshareFlags as Namespaces;

/// What `clone3` takes, as of kernel 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// `CLONE_INTO_CGROUP`, for which libc's type is too narrow.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// Whose child the new process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The caller's.
    Caller,
    /// The caller's parent's: the caller only made the namespaces and goes away.
    Grandparent,
}

/// A process that we started, and may wait for.
#[derive(Debug)]
pub struct Child {
    /// Its number here. Stays its own until it has been waited for.
    pub pid: Pid,
    /// Its descriptor.
    pub pidfd: OwnedFd,
}

/// Starts a process in `namespaces` that runs `body` and exits with its result. `kept` comes back
/// to the caller and is dropped in the child: descriptors that only the caller is to have.
pub fn clone<Kept>(
    namespaces: Namespaces,
    parent: Parent,
    kept: Kept,
    body: impl FnOnce() -> i32,
) -> io::Result<(Child, Kept)> {
    clone_into(None, namespaces, parent, kept, |_| body())
}

/// The same, in the control group of version 2 whose directory `group` is. `body` is told whether that is so:
/// not every kernel lets us.
pub fn clone_into<Kept>(
    group: Option<BorrowedFd<'_>>,
    namespaces: Namespaces,
    parent: Parent,
    kept: Kept,
    body: impl FnOnce(bool) -> i32,
) -> io::Result<(Child, Kept)> {
    let mut pidfd: libc::c_int = -1;
    let mut flags = u64::from(namespaces.bits()) | libc::CLONE_PIDFD as u64;
    if parent == Parent::Grandparent {
        flags |= libc::CLONE_PARENT as u64;
    }
    let (pid, is_in) = match clone3(flags, group, &mut pidfd) {
        // Containers filter clone3 away because its flags cannot be inspected.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            (old_clone(flags, &mut pidfd)?, false)
        }
        outcome => (outcome?, group.is_some()),
    };
    if pid == 0 {
        drop(kept);
        leave(body(is_in));
    }
    // SAFETY: on success the kernel stored a new descriptor, owned by nobody else, in `pidfd`.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match Pid::from_raw(pid) {
        Some(pid) => Ok((Child { pid, pidfd }, kept)),
        None => Err(io::Error::from_raw_os_error(libc::ECHILD)),
    }
}

fn clone3(flags: u64, group: Option<BorrowedFd<'_>>, pidfd: &mut libc::c_int) -> io::Result<i32> {
    let sibling = flags & libc::CLONE_PARENT as u64 != 0;
    let into = group.map_or(0, |_| INTO_CGROUP);
    let args = CloneArgs {
        flags: flags | into,
        cgroup: group.map_or(0, |group| group.as_raw_fd() as u64),
        pidfd: std::ptr::from_mut(pidfd) as u64,
        // A sibling's exit signal is its new parent's business; the kernel wants zero here.
        exit_signal: if sibling { 0 } else { libc::SIGCHLD as u64 },
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid clone_args of the size given and `pidfd` outlives the call. Without
    // CLONE_VM and with no stack given the child returns here on a copy of this stack.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &args, size_of::<CloneArgs>()) };
    outcome(result)
}

fn old_clone(flags: u64, pidfd: &mut libc::c_int) -> io::Result<i32> {
    let flags = flags | libc::SIGCHLD as u64;
    let pidfd = std::ptr::from_mut(pidfd);
    // SAFETY: as in `clone3`; the argument order is that of x86_64 and aarch64, where flags and
    // stack come first and the pidfd goes through the parent_tid argument.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, pidfd, 0usize, 0usize) };
    outcome(result)
}

fn outcome(result: libc::c_long) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result as i32)
    }
}

/// Closes every descriptor but the three usual ones and `kept`. For a child that shares nothing of what
/// its maker was doing, and outlives it: a duplicate in it would keep pipes of others open.
///
/// Only a process that a [`clone`] made may call this, in its body: whoever owned what is closed here is
/// in the maker's copy of memory, and never runs in this one.
pub fn close_others(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<u32> = kept
        .iter()
        .filter_map(|descriptor| u32::try_from(descriptor.as_raw_fd()).ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    kept.sort_unstable();
    let mut first = 3;
    for descriptor in kept.into_iter().chain([u32::MAX]) {
        if first < descriptor {
            // SAFETY: the owners of these descriptors do not run in this process, by the contract
            // above, so nobody uses or closes them afterwards.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, descriptor - 1, 0) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        first = descriptor.saturating_add(1);
    }
    Ok(())
}

/// Ends this process now: no destructors, no flushing of what the parent buffered.
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(status) }
}

impl Child {
    /// Waits until it has ended. A second call gives an error.
    pub fn wait(&self) -> io::Result<WaitIdStatus> {
        loop {
            let id = rustix::process::WaitId::PidFd(self.pidfd.as_fd());
            match rustix::process::waitid(id, WaitIdOptions::EXITED) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Kills it; nothing happens when it has ended already.
    pub fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
    }
}

/// Opens a descriptor for a process by number.
pub fn open_process(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// The size of a page of memory, the unit in which `/proc` counts it.
pub fn page_size() -> u64 {
    // SAFETY: sysconf takes a number and returns one.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Moves this process into `namespaces` of the process behind `pidfd`, all or none.
pub fn enter(pidfd: BorrowedFd<'_>, namespaces: Namespaces) -> io::Result<()> {
    // SAFETY: setns takes two numbers. No descriptor table is changed, so no owner is surprised.
    let result = unsafe { libc::setns(pidfd.as_raw_fd(), namespaces.bits() as libc::c_int) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Leaves the shared `namespaces` for new ones; a new PID namespace is for children only.
pub fn unshare(namespaces: Namespaces) -> io::Result<()> {
    debug_assert!(!namespaces.contains(Namespaces::FILES));
    // SAFETY: only namespaces are asked for, never CLONE_FILES: descriptors keep their owners.
    let result = unsafe { libc::unshare(namespaces.bits() as libc::c_int) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_runs_its_body_and_its_status_comes_back() {
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || 42).unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(42));
    }

    #[test]
    fn the_old_call_serves_where_clone3_is_filtered() {
        let mut pidfd = -1;
        let flags = libc::CLONE_PIDFD as u64;
        let pid = old_clone(flags, &mut pidfd).unwrap();
        if pid == 0 {
            leave(7);
        }
        assert!(pidfd >= 0);
        // SAFETY: the descriptor was just made by the kernel for us.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let child = Child {
            pid: Pid::from_raw(pid).unwrap(),
            pidfd,
        };
        assert_eq!(child.wait().unwrap().exit_status(), Some(7));
    }
}
