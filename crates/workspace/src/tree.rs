//! Directories held by descriptor.
//!
//! Everything this crate does to a filesystem goes through a [`Dir`]: one open directory and the
//! names in it. A path of several components is resolved by [`Tree::dir`] beneath the tree's root
//! with no symlink followed, so nothing that is swapped on disk meanwhile can lead elsewhere.
//! Mounts below the root are entered: they are part of what the user sees there.
//!
//! Things of one's own whose modes forbid reading are read all the same, unchanged, through
//! [`sandbox_linux::authority`].

mod dir;
mod near;
mod remove;
mod unlink;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use sandbox_model::{Fingerprint, RelPath};

pub use dir::{Dir, DirEntry, Replace};
#[allow(unused_imports, reason = "the copy of trees, next to come, uses them")]
pub(crate) use dir::{fingerprint, is_overlay_mark, proc_path};
pub(crate) use near::Near;
pub(crate) use unlink::{Unlinker, unlinking};

use crate::side::{Side, Xattrs};

/// A directory tree, held by its root's descriptor.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    path: PathBuf,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);

impl Tree {
    /// Opens the tree at `path` (symlinks in `path` itself are followed; it is the user's own).
    pub fn open(path: &Path) -> io::Result<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
            Err(Errno::ACCESS) => {
                let beheld = rustix::fs::openat(
                    CWD,
                    path,
                    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                sandbox_linux::authority::open(beheld.as_fd(), b".", DIRECTORY)
                    .map_err(|_| Errno::ACCESS)?
            }
            opened => opened?,
        };
        Ok(Tree {
            root,
            path: path.to_owned(),
        })
    }

    /// Opens the directory `name` of `dir`, which is not followed if it is a symlink.
    pub(crate) fn open_in(dir: &Path, name: &str) -> io::Result<Tree> {
        let opened = Dir::open(dir)?.open_dir(name.as_bytes())?;
        Ok(Tree {
            path: dir.join(name),
            ..Tree::of(&opened)?
        })
    }

    /// The tree below a directory that is open already.
    pub(crate) fn of(dir: &Dir) -> io::Result<Tree> {
        Ok(Tree {
            root: dir.fd().try_clone_to_owned()?,
            path: PathBuf::new(),
        })
    }

    /// Where it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root's descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The root as a directory.
    pub fn root_dir(&self) -> io::Result<Dir> {
        Ok(Dir::from_fd(self.root.try_clone()?))
    }

    /// The directory at `path`, resolved beneath the root, no symlinks, no mount magic.
    pub fn dir(&self, path: &RelPath) -> io::Result<Dir> {
        if path.is_root() {
            return self.root_dir();
        }
        match open_beneath(self.fd(), path, DIRECTORY) {
            Ok(fd) => Ok(Dir::from_fd(fd)),
            // A kernel or a container's filter without openat2, or a directory on the way that
            // only an authority opens: go step by step.
            Err(Errno::NOSYS | Errno::ACCESS) => self.walk(path),
            Err(Errno::NAMETOOLONG) => self.leap(path),
            Err(errno) => Err(errno.into()),
        }
    }

    /// As [`Tree::dir`] for a path longer than the kernel takes at once: in pieces that it does.
    fn leap(&self, path: &RelPath) -> io::Result<Dir> {
        const PIECE: usize = 3800;
        let mut tree = Tree {
            root: self.root.try_clone()?,
            path: PathBuf::new(),
        };
        let mut piece = RelPath::root();
        for name in path.components() {
            if !piece.is_root() && piece.as_bytes().len() + name.len() > PIECE {
                tree.root = tree.dir(&piece)?.into_fd();
                piece = RelPath::root();
            }
            piece = piece.join(name);
        }
        match open_beneath(tree.fd(), &piece, DIRECTORY) {
            // One name by itself is too long, or the kernel has another reason.
            Err(Errno::NAMETOOLONG) => Err(Errno::NAMETOOLONG.into()),
            _ => tree.dir(&piece),
        }
    }

    fn walk(&self, path: &RelPath) -> io::Result<Dir> {
        let mut dir = self.root_dir()?;
        for name in path.components() {
            dir = dir.open_dir(name)?;
        }
        Ok(dir)
    }

    /// The parent directory of `path` and its last component. The root has none: `InvalidInput`.
    pub fn parent<'p>(&self, path: &'p RelPath) -> io::Result<(Dir, &'p [u8])> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => Ok((self.dir(&parent)?, name)),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the root has no parent here",
            )),
        }
    }

    /// Makes the directory at `path` and those above it where missing, each with mode 0700.
    pub fn make_dirs(&self, path: &RelPath) -> io::Result<Dir> {
        let mut dir = self.root_dir()?;
        for name in path.components() {
            dir = match dir.make_dir(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => dir.open_dir(name)?,
                made => made?,
            };
        }
        Ok(dir)
    }
}

/// `openat2` beneath `root`; `NOSYS` at once where it was found missing before.
fn open_beneath(
    root: BorrowedFd<'_>,
    path: &RelPath,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    static MISSING: AtomicBool = AtomicBool::new(false);
    if MISSING.load(Ordering::Relaxed) {
        return Err(Errno::NOSYS);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    loop {
        match rustix::fs::openat2(root, path.as_bytes(), flags, Mode::empty(), resolve) {
            // Something was renamed meanwhile and the kernel wants to be asked again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => {
                MISSING.store(true, Ordering::Relaxed);
                return Err(Errno::NOSYS);
            }
            opened => return opened,
        }
    }
}

/// Is `error` what a path gives below something that is missing or no directory?
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

impl Side for Tree {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        if path.is_root() {
            return self.root_dir()?.stat_self().map(Some);
        }
        match self.parent(path) {
            Ok((dir, name)) => dir.stat(name),
            Err(error) if leads_nowhere(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open(&self, path: &RelPath) -> io::Result<File> {
        let (dir, name) = self.parent(path)?;
        dir.open_file(name)
    }

    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        let (dir, name) = self.parent(path)?;
        dir.read_link(name)
    }

    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        if path.is_root() {
            return self.root_dir()?.xattrs(b".");
        }
        let (dir, name) = self.parent(path)?;
        dir.xattrs(name)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        let mut names: Vec<_> = self
            .dir(path)?
            .entries()?
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        names.sort_unstable();
        Ok(names)
    }
}

#[cfg(test)]
mod tests;
