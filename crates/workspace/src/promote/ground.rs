//! The source's directories during a transaction, each held by descriptor and known by its inode.
//!
//! A path of the journal is reached step by step from the source's root, every directory on the way
//! compared with the one the plan was made on. A symlink, a moved or a replaced directory is
//! therefore never entered.

use std::io;

use sandbox_model::{Fingerprint, RelPath};

use super::journal::{Inode, Journal};
use crate::tree::{Dir, Tree};

/// The way to the paths of one journal.
pub(crate) struct Ground<'a> {
    source: &'a Tree,
    journal: &'a Journal,
    /// The directory last asked for: paths come sorted, so the next one is often in it too.
    last: Option<(RelPath, Dir)>,
}

impl<'a> Ground<'a> {
    pub fn new(source: &'a Tree, journal: &'a Journal) -> Self {
        Ground {
            source,
            journal,
            last: None,
        }
    }

    /// The directory at `path`; `None` where it, or one above it, is not the planned one.
    pub fn dir(&mut self, path: &RelPath) -> io::Result<Option<&Dir>> {
        if self.last.as_ref().is_none_or(|(at, _)| at != path) {
            let Some(dir) = self.walk(path)? else {
                self.last = None;
                return Ok(None);
            };
            self.last = Some((path.clone(), dir));
        }
        Ok(self.last.as_ref().map(|(_, dir)| dir))
    }

    /// The directory that holds `path`. The root holds itself, as `.`.
    pub fn parent<'p>(&mut self, path: &'p RelPath) -> io::Result<Option<(&Dir, &'p [u8])>> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => Ok(self.dir(&parent)?.map(|dir| (dir, name))),
            _ => Ok(self.dir(&RelPath::root())?.map(|dir| (dir, &b"."[..]))),
        }
    }

    fn walk(&self, path: &RelPath) -> io::Result<Option<Dir>> {
        let mut dir = self.source.root_dir()?;
        let mut at = RelPath::root();
        if !self.is_planned(&at, &dir)? {
            return Ok(None);
        }
        for name in path.components() {
            at = at.join(name);
            dir = match dir.open_dir(name) {
                Ok(dir) => dir,
                Err(error) if is_not_there(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            if !self.is_planned(&at, &dir)? {
                return Ok(None);
            }
        }
        Ok(Some(dir))
    }

    fn is_planned(&self, path: &RelPath, dir: &Dir) -> io::Result<bool> {
        let found = Inode::of(&dir.stat_self()?);
        Ok(self
            .journal
            .parents
            .get(path)
            .is_some_and(|parent| parent.inode == found))
    }
}

/// Does `error` say that a name is missing, or no directory?
pub(crate) fn is_not_there(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

/// Is `found` the inode `planned`, untouched? A rename changes the ctime, so that does not count,
/// and neither do other names of the inode. A directory's own mode may have been opened.
pub(crate) fn is_untouched(planned: &Fingerprint, found: &Fingerprint) -> bool {
    use sandbox_model::EntryKind;
    let (mut before, mut now) = (planned.entry, found.entry);
    if before.kind == EntryKind::Directory {
        before.mode |= 0o700;
        now.mode |= 0o700;
    }
    Inode::of(planned) == Inode::of(found) && before == now
}
