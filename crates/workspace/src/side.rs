//! One version of a tree, wherever its parts are kept.
//!
//! Diff, merge, promote and sync are three-way: they look at what the sandbox has, what it started
//! from and what the source is now. Each of the three is a `Side`; only this trait knows that one is
//! an overlay's layers, one a record of fingerprints and saved copies, one a plain directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

/// Extended attributes by full name (`user.comment`), without an overlay's own marks.
pub type Xattrs = BTreeMap<Vec<u8>, Vec<u8>>;

/// A readable version of the workspace's tree. Paths never follow symlinks.
pub trait Side {
    /// What stands at `path`; `None` when nothing does, also below something that is no directory.
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>>;

    /// The contents of a regular file, ready to be read. Never blocks on a FIFO or device:
    /// anything but a regular file is `InvalidInput`.
    fn open(&self, path: &RelPath) -> io::Result<File>;

    /// A symlink's target.
    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>>;

    /// Extended attributes.
    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs>;

    /// Names in a directory, sorted.
    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>>;

    /// Everything about the entry at `path` that a copy of it takes; `None` when there is none. A
    /// side that has to look for each answer can here look once.
    fn whole(&self, path: &RelPath) -> io::Result<Option<Whole>> {
        let Some(fingerprint) = self.stat(path)? else {
            return Ok(None);
        };
        Ok(Some(Whole {
            contents: match fingerprint.entry.kind {
                EntryKind::File => Some(self.open(path)?),
                _ => None,
            },
            xattrs: self.xattrs(path)?,
            fingerprint,
        }))
    }
}

/// One entry, ready to be copied.
#[derive(Debug)]
pub struct Whole {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Its extended attributes.
    pub xattrs: Xattrs,
    /// A regular file's contents, as of [`Side::open`].
    pub contents: Option<File>,
}
