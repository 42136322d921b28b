//! Pseudo-terminals from the sandbox's own devpts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;

/// Both ends of a new pseudo-terminal of the devpts mounted at `/dev/pts`.
#[derive(Debug)]
pub struct Terminal {
    /// The caller's end.
    pub master: OwnedFd,
    /// The command's end.
    pub slave: OwnedFd,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// How many characters are beside each other.
    pub columns: u16,
    /// How many lines are below each other.
    pub rows: u16,
}

/// Tells the terminal whose end `end` is how large it is. Whoever is in the foreground there hears of it.
pub fn resize(end: impl AsFd, size: Size) -> io::Result<()> {
    let size = rustix::termios::Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(end, size)?)
}

/// Opens one.
pub fn open() -> io::Result<Terminal> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    // By ioctl, not by name: a name could be looked up in another devpts.
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    Ok(Terminal { master, slave })
}

/// Makes `slave` the controlling terminal of a new session and the three standard streams.
pub fn take_over(slave: impl AsFd) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    rustix::stdio::dup2_stdin(&slave)?;
    rustix::stdio::dup2_stdout(&slave)?;
    rustix::stdio::dup2_stderr(&slave)?;
    debug_assert!(slave.as_fd().as_raw_fd() > 2);
    Ok(())
}
