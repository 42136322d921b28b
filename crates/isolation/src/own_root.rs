//! A root of its own: the system's directories of the host, and nothing else of it.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::Mode;
use sandbox_linux::mount::{self, Depth};

use crate::facts::TopLevel;

/// Makes a root with `entries` of the host's `/` in it, and makes it this mount namespace's. The host
/// was sealed before, so what is taken over from it is read-only. Gives the root back: it is writable
/// still, for what is yet to be mounted in it.
pub(crate) fn enter(entries: &[(OsString, TopLevel)]) -> io::Result<OwnedFd> {
    let root = mount::tmpfs(0o755)?;
    let mut directories = Vec::new();
    for (name, entry) in entries {
        match entry {
            TopLevel::Link(target) => rustix::fs::symlinkat(target, &root, name)?,
            TopLevel::Directory => {
                rustix::fs::mkdirat(&root, name, Mode::from_raw_mode(0o755))?;
                let clone = mount::clone_at(&Path::new("/").join(name), Depth::All)?;
                directories.push((name, clone));
            }
        }
    }
    mount::become_root(&root)?;
    for (name, directory) in directories {
        mount::attach(directory, mount::resolve(&root, Path::new(name))?)?;
    }
    Ok(root)
}
