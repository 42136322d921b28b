//! The minimal `/dev`: the harmless nodes of the host, and terminals of its own.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use sandbox_linux::mount::{self, Access, Depth};

/// The nodes let in.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Names that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// The host's nodes, cloned; an ordinary user cannot make device nodes, only lend existing ones.
pub fn nodes() -> io::Result<Vec<OwnedFd>> {
    NODES.iter().map(|name| node(name)).collect()
}

/// One of them.
pub fn node(name: &str) -> io::Result<OwnedFd> {
    let node = mount::clone_at(&Path::new("/dev").join(name), Depth::One)?;
    match mount::restrict(&node, Access::Devices) {
        // Without mount_setattr the node stays as the host has it: its mode is all that protects it.
        Err(error) if mount::missing(&error) => Ok(node),
        outcome => outcome.map(|()| node),
    }
}

/// Fills `directory`, the root of an attached tmpfs.
pub fn fill(directory: BorrowedFd<'_>, nodes: &[OwnedFd]) -> io::Result<()> {
    for (name, node) in NODES.iter().zip(nodes) {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
        let place = rustix::fs::openat(directory, *name, flags, Mode::from_raw_mode(0o666))?;
        mount::attach(node, place)?;
    }
    for (target, name) in LINKS {
        rustix::fs::symlinkat(target, directory, name)?;
    }
    rustix::fs::mkdirat(directory, "shm", Mode::from_raw_mode(0o1777))?;
    rustix::fs::mkdirat(directory, "pts", Mode::from_raw_mode(0o755))?;
    mount::attach(
        mount::devpts()?,
        mount::resolve(directory, Path::new("pts"))?,
    )
}
