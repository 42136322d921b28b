//! A root of its own: the system's directories of the host or an image's, and nothing else.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use sandbox_linux::mount::{self, Depth, MountPoint};

use crate::facts::{System, TopLevel};

/// Makes a root that shows `system`, and makes it this mount namespace's. The host was sealed before, so
/// what is taken over from it is read-only. Gives the root back: it is writable still, for what is yet to
/// be mounted in it.
pub(crate) fn enter(system: &System) -> io::Result<OwnedFd> {
    let root = mount::tmpfs(0o755)?;
    let mut taken = Vec::new();
    for (name, entry) in &system.entries {
        let kind = match entry {
            TopLevel::Link(target) => {
                rustix::fs::symlinkat(target, &root, name)?;
                continue;
            }
            TopLevel::Directory => MountPoint::Directory,
            TopLevel::File => MountPoint::File,
        };
        mount::resolve_or_make(root.as_fd(), Path::new(name), kind)?;
        taken.push((name, mount::clone_at(&system.of.join(name), Depth::All)?));
    }
    mount::become_root(&root)?;
    for (name, mount) in taken {
        mount::attach(mount, mount::resolve(&root, Path::new(name))?)?;
    }
    Ok(root)
}
