//! Copying one entry.

use std::io;

use rustix::io::Errno;
use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::content::{self, Ways};
use super::{Privileges, attributes};
use crate::side::Side;
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
    let found = from.stat(path)?.ok_or(Errno::NOENT)?;
    make(from, path, &found, to, name)?;
    give_attributes(from, path, &found, to, name, privileges)
}

/// Gives the entry `name` of `to`, which has no attributes of its own worth keeping, those of `path`
/// of `from`.
pub fn copy_attributes(
    from: &dyn Side,
    path: &RelPath,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    let found = from.stat(path)?.ok_or(Errno::NOENT)?;
    give_attributes(from, path, &found, to, name, privileges)
}

fn give_attributes(
    from: &dyn Side,
    path: &RelPath,
    found: &Fingerprint,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    give_owner(to, name, found)?;
    give_xattrs(from, path, to, name, privileges)?;
    if found.entry.kind != EntryKind::Symlink {
        let is_directory = found.entry.kind == EntryKind::Directory;
        to.set_mode(
            name,
            attributes::mode(found.entry.mode, is_directory, privileges),
        )?;
    }
    to.set_times(name, found.entry.mtime)
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
        EntryKind::File => {
            let source = from.open(path)?;
            let metadata = source.metadata()?;
            let target = to.create_file(name)?;
            let blocks = std::os::unix::fs::MetadataExt::blocks(&metadata);
            let mut buffer = Vec::new();
            content::copy(
                &source,
                &target,
                metadata.len(),
                blocks,
                &Ways::default(),
                &mut buffer,
            )
            .map(drop)
        }
    }
}

/// Only root may give files away; and a copy that belongs to the copier is what others expect.
fn give_owner(to: &Dir, name: &[u8], found: &Fingerprint) -> io::Result<()> {
    let Some(made) = to.stat(name)? else {
        return Err(Errno::NOENT.into());
    };
    if (made.entry.uid, made.entry.gid) == (found.entry.uid, found.entry.gid) {
        return Ok(());
    }
    match to.set_owner(name, found.entry.uid, found.entry.gid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        // The id is not mapped in this user namespace.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        given => given,
    }
}

fn give_xattrs(
    from: &dyn Side,
    path: &RelPath,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    let wanted = from.xattrs(path)?;
    for attribute in to.xattrs(name)?.keys() {
        if attributes::is_inherited(attribute) && !wanted.contains_key(attribute) {
            to.remove_xattr(name, attribute)?;
        }
    }
    for (attribute, value) in &wanted {
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
