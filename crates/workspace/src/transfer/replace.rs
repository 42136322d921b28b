//! Making one path of a tree what it is in another.

use std::io;

use sandbox_model::{EntryKind, RelPath};

use super::entry::{give_owner, give_xattrs};
use super::{Privileges, copy_entry};
use crate::side::Side;
use crate::tree::{Dir, Tree};

/// What [`replace`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// The path is now what it was to be.
    Done,
    /// There is no directory to hold it.
    NoPlace,
}

/// Makes `path` of `to`, and everything below it, what it is in `from`, which may be nothing. Does
/// nothing where `to` has no directory to hold it.
pub fn replace(from: &Tree, path: &RelPath, to: &Tree) -> io::Result<Replaced> {
    let (dir, name) = match to.parent(path) {
        Err(error) if crate::layer::vanished(&error) => return Ok(Replaced::NoPlace),
        parent => parent?,
    };
    dir.while_writable(|dir| {
        dir.remove_all(name)?;
        copy_below(from, path, dir, name)
    })?;
    Ok(Replaced::Done)
}

/// Copies `path` of `from`, with everything below it, to `name` in `to`, where nothing is yet.
/// Nothing is copied where `from` has nothing.
pub(crate) fn copy_below(from: &dyn Side, path: &RelPath, to: &Dir, name: &[u8]) -> io::Result<()> {
    let Some(found) = from.stat(path)? else {
        return Ok(());
    };
    copy_entry(from, path, to, name, Privileges::Keep)?;
    if found.entry.kind == EntryKind::Directory {
        to.set_mode(name, found.entry.mode | 0o700)?;
        let dir = to.open_dir(name)?;
        for below in from.list(path)? {
            copy_below(from, &path.join(&below), &dir, &below)?;
        }
        dir.set_mode_self(found.entry.mode)?;
        dir.set_times_self(found.entry.mtime)?;
    }
    Ok(())
}

/// Gives the directory `path` of `to`, which may be its root, the mode, owner, extended attributes
/// and times that it has in `from`. Does nothing where either has no directory.
pub(crate) fn take_attributes(from: &Tree, path: &RelPath, to: &Tree) -> io::Result<()> {
    let found = match from.dir(path).and_then(|dir| dir.stat_self()) {
        Err(error) if crate::layer::vanished(&error) => return Ok(()),
        found => found?,
    };
    let dir = match to.dir(path) {
        Err(error) if crate::layer::vanished(&error) => return Ok(()),
        dir => dir?,
    };
    give_owner(&dir, b".", &found)?;
    let wanted = from.xattrs(path)?;
    for attribute in dir.xattrs(b".")?.keys() {
        if attribute.starts_with(b"user.") && !wanted.contains_key(attribute) {
            dir.remove_xattr(b".", attribute)?;
        }
    }
    give_xattrs(&wanted, &dir, b".", Privileges::Keep)?;
    dir.set_mode_self(found.entry.mode)?;
    dir.set_times_self(found.entry.mtime)
}
