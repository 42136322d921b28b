//! One version of a tree, wherever its parts are kept.
//!
//! Diff, merge, promote and sync are three-way: they look at what the sandbox has, what it started
//! from and what the source is now. Each of the three is a `Side`; only this trait knows that one is
//! an overlay's layers, one a record of fingerprints and saved copies, one a plain directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use sandbox_model::{Fingerprint, RelPath};

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
}
