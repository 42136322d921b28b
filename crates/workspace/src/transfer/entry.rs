//! Copying one entry.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Gid, Mode, Uid, XattrFlags};
use rustix::io::Errno;
use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::content::{self, Ways};
use super::directory::times;
use super::{Privileges, attributes};
use crate::side::{Side, Whole, Xattrs};
use crate::tree::Dir;

/// Copies the one entry at `path` of `from` (not what is below it, if it is a directory) to `name`
/// in `to`, contents, mode, times, xattrs and, where permitted, owner included. Set-id bits and
/// file capabilities are kept only when `privileges` says so. `to/name` must not exist; a copy
/// that fails may leave a part of itself there.
pub fn copy_entry(
    from: &dyn Side,
    path: &RelPath,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    let whole = from.whole(path)?.ok_or(Errno::NOENT)?;
    Copier::default().copy(from, path, whole, to, name, privileges)
}

/// Copies entries one after another into one filesystem, and remembers what the first ones showed of
/// it.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    /// By the filesystem that contents come from.
    ways: HashMap<u64, Ways>,
    buffer: Vec<u8>,
}

impl Copier {
    /// As [`copy_entry`], where the entry has been looked up as `whole`.
    pub fn copy(
        &mut self,
        from: &dyn Side,
        path: &RelPath,
        whole: Whole,
        to: &Dir,
        name: &[u8],
        privileges: Privileges,
    ) -> io::Result<()> {
        let found = &whole.fingerprint;
        if let (EntryKind::File, Some(contents)) = (found.entry.kind, &whole.contents) {
            let target = self.copy_contents(contents, to, name)?;
            return finish_file(&target, found, &whole.xattrs, privileges);
        }
        Copier::copy_other(from, path, whole, to, name, privileges)
    }

    /// As [`Copier::copy`]; also returns the digest of a file's contents, read from the copy.
    pub fn copy_digested(
        &mut self,
        from: &dyn Side,
        path: &RelPath,
        whole: Whole,
        to: &Dir,
        name: &[u8],
        privileges: Privileges,
    ) -> io::Result<Option<String>> {
        let found = &whole.fingerprint;
        if let (EntryKind::File, Some(contents)) = (found.entry.kind, &whole.contents) {
            let target = self.copy_contents(contents, to, name)?;
            let digest = crate::content::digest(&target)?;
            finish_file(&target, found, &whole.xattrs, privileges)?;
            return Ok(Some(digest));
        }
        Copier::copy_other(from, path, whole, to, name, privileges)?;
        Ok(None)
    }

    /// Copies what is no regular file.
    fn copy_other(
        from: &dyn Side,
        path: &RelPath,
        whole: Whole,
        to: &Dir,
        name: &[u8],
        privileges: Privileges,
    ) -> io::Result<()> {
        let found = &whole.fingerprint;
        make(from, path, found, to, name)?;
        give_owner(to, name, found)?;
        give_xattrs(&whole.xattrs, to, name, privileges)?;
        if found.entry.kind != EntryKind::Symlink {
            let is_directory = found.entry.kind == EntryKind::Directory;
            let mode = attributes::mode(found.entry.mode, is_directory, privileges);
            to.set_mode(name, mode)?;
        }
        to.set_times(name, found.entry.mtime)
    }

    fn copy_contents(&mut self, source: &File, to: &Dir, name: &[u8]) -> io::Result<File> {
        let metadata = source.metadata()?;
        let target = to.create_file(name)?;
        content::copy(
            source,
            &target,
            metadata.len(),
            metadata.blocks(),
            self.ways.entry(metadata.dev()).or_default(),
            &mut self.buffer,
        )?;
        Ok(target)
    }
}

fn make(
    from: &dyn Side,
    path: &RelPath,
    found: &Fingerprint,
    to: &Dir,
    name: &[u8],
) -> io::Result<()> {
    match found.entry.kind {
        EntryKind::Directory => to.make_dir(name).map(drop),
        EntryKind::Symlink => to.make_symlink(name, &from.read_link(path)?),
        EntryKind::Fifo | EntryKind::CharDevice | EntryKind::BlockDevice => {
            to.make_node(name, found.entry.kind, found.entry.rdev)
        }
        EntryKind::Socket => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a socket cannot be copied",
        )),
        // It has contents, and is copied with them.
        EntryKind::File => Err(Errno::NOENT.into()),
    }
}

/// Gives the new file `target` what belongs to `found`, through its descriptor. Attributes need a
/// writable file, so its mode comes after them.
fn finish_file(
    target: &File,
    found: &Fingerprint,
    xattrs: &Xattrs,
    privileges: Privileges,
) -> io::Result<()> {
    let made = target.metadata()?;
    if (made.uid(), made.gid()) != (found.entry.uid, found.entry.gid) {
        let owner = Some(Uid::from_raw(found.entry.uid));
        let group = Some(Gid::from_raw(found.entry.gid));
        may_fail(rustix::fs::fchown(target, owner, group).map_err(Into::into))?;
    }
    for attribute in attributes::of(target)? {
        if attributes::is_inherited(&attribute) && !xattrs.contains_key(&attribute) {
            rustix::fs::fremovexattr(target, &*attribute)?;
        }
    }
    for (attribute, value) in xattrs {
        if attributes::goes_along(attribute, privileges) {
            let result = rustix::fs::fsetxattr(target, &**attribute, value, XattrFlags::empty());
            attributes::set(attribute, result)?;
        }
    }
    let mode = attributes::mode(found.entry.mode, false, privileges);
    rustix::fs::fchmod(target, Mode::from_raw_mode(mode))?;
    Ok(rustix::fs::futimens(target, &times(found))?)
}

pub(super) fn give_owner(to: &Dir, name: &[u8], found: &Fingerprint) -> io::Result<()> {
    let Some(made) = to.stat(name)? else {
        return Err(Errno::NOENT.into());
    };
    if (made.entry.uid, made.entry.gid) == (found.entry.uid, found.entry.gid) {
        return Ok(());
    }
    may_fail(to.set_owner(name, found.entry.uid, found.entry.gid))
}

/// Only root may give files away; and a copy that belongs to the copier is what others expect.
fn may_fail(given: io::Result<()>) -> io::Result<()> {
    match given {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        // The id is not mapped in this user namespace.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        given => given,
    }
}

pub(super) fn give_xattrs(
    wanted: &Xattrs,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    for attribute in to.xattrs(name)?.keys() {
        if attributes::is_inherited(attribute) && !wanted.contains_key(attribute) {
            to.remove_xattr(name, attribute)?;
        }
    }
    for (attribute, value) in wanted {
        if attributes::goes_along(attribute, privileges) {
            let result = to.set_xattr(name, attribute, value).map_err(|error| {
                error
                    .raw_os_error()
                    .map_or(Errno::IO, Errno::from_raw_os_error)
            });
            attributes::set(attribute, result)?;
        }
    }
    Ok(())
}
