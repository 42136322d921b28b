//! The minimal `/dev`: the harmless nodes, and terminals and shared memory of its own.
//!
//! Nothing in it can be replaced or changed from inside: later runs trust it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, makedev};
use sandbox_linux::mount::{self, Access, Depth};

/// The nodes let in, with their numbers.
const NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Names that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// A filled `/dev`, attached nowhere yet.
#[derive(Debug)]
pub struct Devices {
    directory: OwnedFd,
    /// To be attached in it, by name.
    lent: Vec<(&'static str, OwnedFd)>,
}

/// Makes it; the host's must still be open.
pub fn make() -> io::Result<Devices> {
    let directory = mount::tmpfs_with_devices(0o755)?;
    let mut lent = Vec::new();
    if !make_nodes(&directory)? {
        for (name, ..) in NODES {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o666))?;
            lent.push((name, node(name)?));
        }
    }
    for (target, name) in LINKS {
        rustix::fs::symlinkat(target, &directory, name)?;
    }
    for name in ["shm", "pts"] {
        rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755))?;
    }
    lent.push(("pts", mount::devpts()?));
    Ok(Devices { directory, lent })
}

/// Makes the nodes themselves. `false` where they have to be lent by the host: for an ordinary user,
/// and in containers.
fn make_nodes(directory: &OwnedFd) -> io::Result<bool> {
    for (name, major, minor) in NODES {
        let device = makedev(major, minor);
        let mode = Mode::from_raw_mode(0o666);
        match rustix::fs::mknodat(directory, name, FileType::CharacterDevice, mode, device) {
            Ok(()) => {}
            Err(rustix::io::Errno::PERM) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// One of the host's nodes, cloned.
pub fn node(name: &str) -> io::Result<OwnedFd> {
    let node = mount::clone_at(&Path::new("/dev").join(name), Depth::One)?;
    match mount::restrict(&node, Access::Devices) {
        // Without mount_setattr the node stays as the host has it: its mode is all that protects it.
        Err(error) if mount::missing(&error) => Ok(node),
        outcome => outcome.map(|()| node),
    }
}

impl Devices {
    /// Puts it in place; gives back where shared memory is to be.
    pub fn attach(&self, target: &OwnedFd) -> io::Result<OwnedFd> {
        mount::attach(&self.directory, target)?;
        // Before anything is in it that is to stay writable.
        match mount::restrict(&self.directory, Access::Devices) {
            Err(error) if mount::missing(&error) => {
                mount::restrict_attached(self.directory.as_fd(), Access::Devices)?;
            }
            outcome => outcome?,
        }
        for (name, mount) in &self.lent {
            mount::attach(mount, mount::resolve(&self.directory, Path::new(name))?)?;
        }
        mount::resolve(&self.directory, Path::new("shm"))
    }
}
