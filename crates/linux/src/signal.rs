//! Signals as events: blocked, read from a descriptor, passed on.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A set of blocked signals, to be put back later.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Mask")
    }
}

/// Signals that wait to be read.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

/// One signal received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Which.
    pub number: i32,
    /// Another process sent it; `false` when it came from the terminal or the kernel itself.
    pub sent: bool,
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initializes the whole set; sigaddset then works on an initialized one.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Blocks `signals` in this thread; gives back what was blocked before.
pub fn block(signals: &[i32]) -> io::Result<Mask> {
    let set = set_of(signals);
    let mut before = set_of(&[]);
    // SAFETY: both sets are initialized and outlive the call.
    let result = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(Mask(before))
    }
}

/// Puts back a mask that [`block`] gave.
pub fn restore(mask: &Mask) -> io::Result<()> {
    // SAFETY: the mask came from the kernel; no old set is asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut()) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The first of `signals` that is blocked and waits to be delivered.
pub fn pending(signals: &[i32]) -> Option<i32> {
    let mut set = set_of(&[]);
    // SAFETY: the set is initialized and outlives the call.
    if unsafe { libc::sigpending(&mut set) } < 0 {
        return None;
    }
    let is_pending = |signal: &&i32| {
        // SAFETY: the set was filled by the kernel.
        unsafe { libc::sigismember(&set, **signal) == 1 }
    };
    signals.iter().find(is_pending).copied()
}

/// Whether `signal` is ignored, as nohup and shells in the background have it. A signal that is ignored
/// waits all the same while it is blocked.
pub fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given; the old one is written to a buffer of its type.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
    if result < 0 {
        return false;
    }
    // SAFETY: zeroed at first and filled by the kernel; every bit pattern is valid.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Gives `signal` its default action. Rust ignores SIGPIPE; a command must not inherit that.
pub fn default_action(signal: i32) {
    // SAFETY: SIG_DFL installs no handler, so there is nothing that could run wrongly.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Kills every process of the caller's PID namespace but the caller, which must be its process 1:
/// anywhere else this would be everything the caller may kill.
pub fn kill_all_others() {
    if rustix::process::getpid() == rustix::process::Pid::INIT {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Sends a signal to a process by descriptor.
pub fn send(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let null = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed and means what kill() would send.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            null,
            0,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

impl Signals {
    /// Reads `signals`, which the caller has blocked. Never blocks itself.
    pub fn open(signals: &[i32]) -> io::Result<Signals> {
        let set = set_of(signals);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialized; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor for us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Signals { fd })
    }

    /// The next one that waits.
    pub fn next(&self) -> io::Result<Option<Received>> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is valid for `size` bytes.
        let length = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        // SAFETY: zeroed at first and filled by the kernel; every bit pattern is valid.
        let info = unsafe { info.assume_init() };
        let sent = info.ssi_code != libc::SI_KERNEL;
        Ok(Some(Received {
            number: info.ssi_signo as i32,
            sent,
        }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_read_as_an_event() {
        let before = block(&[libc::SIGUSR1]).unwrap();
        let signals = Signals::open(&[libc::SIGUSR1]).unwrap();
        assert_eq!(signals.next().unwrap(), None);
        // SAFETY: raise has no preconditions.
        unsafe { libc::raise(libc::SIGUSR1) };
        let expected = Received {
            number: libc::SIGUSR1,
            sent: true,
        };
        assert_eq!(signals.next().unwrap(), Some(expected));
        restore(&before).unwrap();
    }

    #[test]
    fn a_blocked_signal_is_pending_until_it_is_read() {
        let before = block(&[libc::SIGUSR2]).unwrap();
        assert_eq!(pending(&[libc::SIGUSR2]), None);
        // SAFETY: raise has no preconditions.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!(
            pending(&[libc::SIGUSR1, libc::SIGUSR2]),
            Some(libc::SIGUSR2)
        );
        Signals::open(&[libc::SIGUSR2]).unwrap().next().unwrap();
        assert_eq!(pending(&[libc::SIGUSR2]), None);
        restore(&before).unwrap();
        assert!(!is_ignored(libc::SIGUSR2));
        // Rust's runtime ignores it.
        assert!(is_ignored(libc::SIGPIPE));
    }
}
