//! Removing a tree.
//!
//! The tree may be deeper than there are descriptors, hold directories that forbid their own
//! removal, and change while it goes. Nothing is ever followed: each directory is entered by
//! descriptor, and left either by a descriptor that was kept or by `..`, which is then checked to
//! be the directory that was left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use sandbox_model::EntryKind;

use super::dir::{Dir, DirEntry, proc_path};

/// How many directories on the way down are kept open.
const KEPT_OPEN: usize = 64;
/// How often one starts again because the tree was moved about meanwhile.
const ATTEMPTS: usize = 16;

/// A directory on the way down, with what is left to do in it.
struct Level {
    name: Vec<u8>,
    /// `None` when it had to be closed to save descriptors.
    dir: Option<Dir>,
    /// Device and inode, to know it again.
    identity: (u64, u64),
    left: Vec<DirEntry>,
    rounds: usize,
}

pub(super) fn remove_all(parent: &Dir, name: &[u8]) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match remove_once(parent, name) {
            Err(Errno::STALE) => {}
            done => return Ok(done?),
        }
    }
    Err(io::Error::other(
        "it keeps changing while it is being removed",
    ))
}

/// One attempt. `STALE` when a directory moved from under it.
fn remove_once(parent: &Dir, name: &[u8]) -> rustix::io::Result<()> {
    if unlink(parent, name)? != Unlinked::IsDirectory {
        return Ok(());
    }
    let Some(top) = enter(parent, name)? else {
        return Ok(());
    };
    let mut levels = vec![top];
    while let Some(level) = levels.last_mut() {
        let Some(dir) = &level.dir else {
            return Err(Errno::STALE);
        };
        match level.left.pop() {
            Some(entry) => {
                let plain = entry.kind.is_some_and(|kind| kind != EntryKind::Directory);
                if (plain || entry.kind.is_none())
                    && unlink(dir, &entry.name)? != Unlinked::IsDirectory
                {
                    continue;
                }
                if let Some(below) = enter(dir, &entry.name)? {
                    levels.push(below);
                    close_far_ancestor(&mut levels);
                }
            }
            None => leave(parent, &mut levels)?,
        }
    }
    Ok(())
}

fn close_far_ancestor(levels: &mut [Level]) {
    if let Some(far) = levels.len().checked_sub(KEPT_OPEN + 1) {
        levels[far].dir = None;
    }
}

/// Opens the directory `name` for emptying; `None` when it is gone or was something else.
fn enter(parent: &Dir, name: &[u8]) -> rustix::io::Result<Option<Level>> {
    let fd = match open(parent, name) {
        Err(Errno::NOENT) => return Ok(None),
        // Swapped for something else since it was listed.
        Err(Errno::NOTDIR | Errno::LOOP) => return unlink(parent, name).map(|_| None),
        opened => opened?,
    };
    let dir = Dir::from_fd(fd);
    let identity = identity(&dir)?;
    let left = list(&dir)?;
    Ok(Some(Level {
        name: name.to_vec(),
        dir: Some(dir),
        identity,
        left,
        rounds: 0,
    }))
}

fn open(parent: &Dir, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(parent.fd(), name, super::DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // Its own mode forbids it, or the parent's does.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let beheld = match rustix::fs::openat(parent.fd(), name, flags, Mode::empty()) {
                Err(Errno::ACCESS) => {
                    rustix::fs::fchmod(parent.fd(), Mode::RWXU)?;
                    rustix::fs::openat(parent.fd(), name, flags, Mode::empty())?
                }
                beheld => beheld?,
            };
            rustix::fs::chmod(proc_path(beheld.as_fd(), b""), Mode::RWXU)?;
            rustix::fs::openat(parent.fd(), name, super::DIRECTORY, Mode::empty())
        }
        opened => opened,
    }
}

/// Removes the innermost directory, now empty, and goes up.
fn leave(parent: &Dir, levels: &mut Vec<Level>) -> rustix::io::Result<()> {
    let Some(mut done) = levels.pop() else {
        return Ok(());
    };
    reopen_parent(&done, levels)?;
    let above = match levels.last() {
        None => parent,
        Some(level) => level.dir.as_ref().ok_or(Errno::STALE)?,
    };
    match remove_dir(above, &done.name) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Something was put into it meanwhile.
        Err(Errno::NOTEMPTY | Errno::EXIST) if done.rounds < ATTEMPTS => {
            done.rounds += 1;
            if let Some(dir) = &done.dir {
                done.left = list(dir)?;
            }
            levels.push(done);
            Ok(())
        }
        // Something else stands at its name now: look again.
        Err(Errno::NOTDIR) => Err(Errno::STALE),
        Err(errno) => Err(errno),
    }
}

/// Opens the level above `done` again where it was closed on the way down.
fn reopen_parent(done: &Level, levels: &mut [Level]) -> rustix::io::Result<()> {
    let (Some(above), Some(dir)) = (levels.last_mut(), &done.dir) else {
        return Ok(());
    };
    if above.dir.is_none() {
        let up = match rustix::fs::openat(dir.fd(), "..", super::DIRECTORY, Mode::empty()) {
            Err(Errno::ACCESS) => {
                rustix::fs::fchmod(dir.fd(), Mode::RWXU)?;
                rustix::fs::openat(dir.fd(), "..", super::DIRECTORY, Mode::empty())?
            }
            up => up?,
        };
        let up = Dir::from_fd(up);
        if identity(&up)? != above.identity {
            return Err(Errno::STALE);
        }
        above.dir = Some(up);
    }
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Unlinked {
    Gone,
    IsDirectory,
}

fn unlink(dir: &Dir, name: &[u8]) -> rustix::io::Result<Unlinked> {
    let attempt = || rustix::fs::unlinkat(dir.fd(), name, AtFlags::empty());
    let result = match attempt() {
        // The directory's mode forbids it; a refusal to change that is the better answer.
        Err(Errno::ACCESS) => rustix::fs::fchmod(dir.fd(), Mode::RWXU).and_then(|()| attempt()),
        result => result,
    };
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(Unlinked::Gone),
        Err(Errno::ISDIR) => Ok(Unlinked::IsDirectory),
        Err(errno) => Err(errno),
    }
}

fn remove_dir(dir: &Dir, name: &[u8]) -> rustix::io::Result<()> {
    let attempt = || rustix::fs::unlinkat(dir.fd(), name, AtFlags::REMOVEDIR);
    match attempt() {
        Err(Errno::ACCESS) => rustix::fs::fchmod(dir.fd(), Mode::RWXU).and_then(|()| attempt()),
        result => result,
    }
}

fn identity(dir: &Dir) -> rustix::io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(dir.fd())?;
    Ok((stat.st_dev, stat.st_ino))
}

fn list(dir: &Dir) -> rustix::io::Result<Vec<DirEntry>> {
    dir.entries().map_err(|error| {
        error
            .raw_os_error()
            .map_or(Errno::IO, Errno::from_raw_os_error)
    })
}
