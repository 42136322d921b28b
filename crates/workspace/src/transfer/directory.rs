//! A directory and its copy, both open.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use sandbox_model::{Fingerprint, RelPath};

use super::attributes;
use crate::tree::Dir;

/// A directory and its copy.
#[derive(Debug)]
pub(super) struct Pair {
    pub path: RelPath,
    pub from: Dir,
    pub to: Dir,
    pub original: Fingerprint,
    /// Jobs in it that are not done.
    jobs: AtomicUsize,
    /// Something will be linked into it at the end.
    late: AtomicBool,
}

impl Pair {
    /// One job is under way: the one that opened it.
    pub(super) fn new(path: RelPath, from: Dir, to: Dir, original: Fingerprint) -> Pair {
        Pair {
            path,
            from,
            to,
            original,
            jobs: AtomicUsize::new(1),
            late: AtomicBool::new(false),
        }
    }

    /// One more job will work in it.
    pub(super) fn begin(&self) {
        self.jobs.fetch_add(1, Ordering::Relaxed);
    }

    /// A job is done; true for the last.
    pub(super) fn end(&self) -> bool {
        self.jobs.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Its attributes wait for the end.
    pub(super) fn make_late(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    /// Do they?
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Would its final mode keep its owner from working in it?
    pub(super) fn shuts_out(&self) -> bool {
        self.original.entry.mode & 0o700 != 0o700
    }
}

/// Gives the copy of a directory what the original has.
pub(super) fn finish_directory(from: &Dir, to: &Dir, original: &Fingerprint) -> io::Result<()> {
    give_owner(to.as_fd(), original)?;
    for (attribute, value) in from.all_xattrs(b".")? {
        let result = rustix::fs::fsetxattr(to.as_fd(), &*attribute, &value, XattrFlags::empty());
        attributes::set(&attribute, result)?;
    }
    to.set_mode_self(original.entry.mode)?;
    rustix::fs::futimens(to.as_fd(), &times(original))?;
    Ok(())
}

/// Gives an open file the owner and group of the original, where that is allowed.
pub(super) fn give_owner(file: impl AsFd, original: &Fingerprint) -> io::Result<()> {
    let owner = (original.entry.uid, original.entry.gid);
    if owner == attributes::own_ids() {
        return Ok(());
    }
    let (uid, gid) = (Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)));
    match rustix::fs::fchown(&file, uid, gid) {
        // Not ours to give, or not mapped in this user namespace. The group may still be one of
        // the user's own.
        Err(Errno::PERM | Errno::INVAL) => {
            let _ = rustix::fs::fchown(file, None, gid);
            Ok(())
        }
        given => Ok(given?),
    }
}

/// The modification time twice: a copy was last read when it was made.
pub(super) fn times(original: &Fingerprint) -> Timestamps {
    let modified = original.entry.mtime;
    let modified = Timespec {
        tv_sec: modified.0,
        tv_nsec: i64::from(modified.1),
    };
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: modified,
    }
}

/// The mode to create a file with, and whether it must be set again afterwards. Attributes need
/// the right to write, which the final mode may not give.
pub(super) fn creation_mode(original: &Fingerprint, umask: u32, with_xattrs: bool) -> (Mode, bool) {
    let mode = original.entry.mode;
    let plain = !with_xattrs && mode & (0o7000 | umask) == 0;
    if plain {
        (Mode::from_raw_mode(mode), false)
    } else {
        (Mode::RUSR | Mode::WUSR, true)
    }
}
