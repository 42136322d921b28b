//! Directories held by descriptor.
//!
//! Everything this crate does to a filesystem goes through a [`Dir`]: one open directory and the
//! names in it. A path of several components is resolved by [`Tree::dir`] beneath the tree's root
//! with no symlink followed, so nothing that is swapped on disk meanwhile can lead elsewhere.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use crate::side::{Side, Xattrs};

/// A directory tree, held by its root's descriptor.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

/// One open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

/// A name in a directory, with its kind where the filesystem tells it for free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: Option<EntryKind>,
}

impl Tree {
    /// Opens the tree at `path` (symlinks in `path` itself are followed; it is the user's own).
    pub fn open(path: &Path) -> io::Result<Tree> {
        todo!("{}", path.display())
    }

    /// Where it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root's descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.root.as_fd()
    }

    /// The directory at `path`, resolved beneath the root, no symlinks, no mount magic.
    pub fn dir(&self, path: &RelPath) -> io::Result<Dir> {
        todo!("{path}")
    }

    /// The parent directory of `path` and its last component. The root has none: `InvalidInput`.
    pub fn parent<'p>(&self, path: &'p RelPath) -> io::Result<(Dir, &'p [u8])> {
        todo!("{path}")
    }
}

impl Side for Tree {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        todo!("{path}")
    }
    fn open(&self, path: &RelPath) -> io::Result<File> {
        todo!("{path}")
    }
    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        todo!("{path}")
    }
    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        todo!("{path}")
    }
    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        todo!("{path}")
    }
}

impl Dir {
    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }
    /// Entries but `.` and `..`, in the order the filesystem gives.
    pub fn entries(&self) -> io::Result<Vec<DirEntry>> {
        todo!()
    }
    /// What stands at `name`.
    pub fn stat(&self, name: &[u8]) -> io::Result<Option<Fingerprint>> {
        todo!("{name:?}")
    }
    /// What this directory is.
    pub fn stat_self(&self) -> io::Result<Fingerprint> {
        todo!()
    }
    /// The directory `name`, which must not be a symlink.
    pub fn open_dir(&self, name: &[u8]) -> io::Result<Dir> {
        todo!("{name:?}")
    }
    /// The regular file `name` for reading; never follows, never blocks.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        todo!("{name:?}")
    }
    /// A symlink's target.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        todo!("{name:?}")
    }
    /// All extended attributes of `name`, not following; `overlay.*` marks left out.
    pub fn xattrs(&self, name: &[u8]) -> io::Result<Xattrs> {
        todo!("{name:?}")
    }
    /// One extended attribute by its full name, `overlay.*` marks included.
    pub fn xattr(&self, name: &[u8], attribute: &str) -> io::Result<Option<Vec<u8>>> {
        todo!("{name:?} {attribute}")
    }
    /// Creates directory `name` with mode 0700 (the caller sets the final mode later).
    pub fn make_dir(&self, name: &[u8]) -> io::Result<Dir> {
        todo!("{name:?}")
    }
    /// Removes a non-directory.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        todo!("{name:?}")
    }
    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &[u8]) -> io::Result<()> {
        todo!("{name:?}")
    }
    /// Removes `name` and all below it, whatever its modes, never following a symlink.
    pub fn remove_all(&self, name: &[u8]) -> io::Result<()> {
        todo!("{name:?}")
    }
}
