//! What was edited in the source since an interrupted transaction put it there.
//!
//! Between an interrupted promote and its recovery the user may go on working. A file is taken back
//! only if it still has the contents that the journal recorded; an inode number proves nothing, since an
//! edit in place keeps it. What differs stays where the user left it.

use std::collections::BTreeMap;
use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::ground::is_not_there;
use super::journal::{AttributeChange, Inode, Standing};
use crate::content;
use crate::tree::Dir;

/// The paths at and below `name` of `dir`, relative to it, that are not as `new` was put there.
/// What was deleted since is no edit: there is nothing to keep.
pub(super) fn since(
    dir: &Dir,
    name: &[u8],
    found: &Fingerprint,
    new: &Standing,
) -> io::Result<Vec<RelPath>> {
    if found.entry.kind != EntryKind::Directory {
        let ours = is_ours(dir, name, found, &new.fingerprint, new.digest.as_deref())?;
        return Ok(match ours {
            true => Vec::new(),
            false => vec![RelPath::root()],
        });
    }
    let planned: BTreeMap<&RelPath, _> =
        new.below.iter().map(|below| (&below.path, below)).collect();
    let mut edited = Vec::new();
    let mut open = vec![(RelPath::root(), dir.open_dir(name)?)];
    while let Some((at, dir)) = open.pop() {
        for entry in dir.entries()? {
            let path = at.join(&entry.name);
            let Some(found) = dir.stat(&entry.name)? else {
                continue;
            };
            let planned = planned
                .get(&path)
                .filter(|below| Inode::of(&below.fingerprint) == Inode::of(&found));
            match planned {
                Some(_) if found.entry.kind == EntryKind::Directory => {
                    open.push((path, dir.open_dir(&entry.name)?));
                }
                Some(below)
                    if is_ours(
                        &dir,
                        &entry.name,
                        &found,
                        &below.fingerprint,
                        below.digest.as_deref(),
                    )? => {}
                _ => edited.push(path),
            }
        }
    }
    edited.sort();
    Ok(edited)
}

/// Removes from the directory `name` of `dir` what a promote put there and nobody edited since: the
/// sandbox has all of it. Of what an undo or a redo puts into the source there may be no other copy, so
/// this is not for them. Directories that hold something else stay.
pub(super) fn remove_promoted(
    dir: &Dir,
    name: &[u8],
    found: &Fingerprint,
    new: &Standing,
) -> io::Result<()> {
    if found.entry.kind != EntryKind::Directory {
        return Ok(());
    }
    for below in new.below.iter().rev() {
        let Some(dir) = open_parent(dir.open_dir(name)?, &below.path)? else {
            continue;
        };
        let name = below.path.name().unwrap_or_default();
        let Some(found) = dir.stat(name)? else {
            continue;
        };
        if Inode::of(&found) != Inode::of(&below.fingerprint) {
            continue;
        }
        if found.entry.kind == EntryKind::Directory {
            match dir.while_writable(|dir| dir.remove_dir(name)) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                removed => removed?,
            }
        } else if is_ours(
            &dir,
            name,
            &found,
            &below.fingerprint,
            below.digest.as_deref(),
        )? {
            dir.while_writable(|dir| dir.unlink(name))?;
        }
    }
    Ok(())
}

fn open_parent(top: Dir, path: &RelPath) -> io::Result<Option<Dir>> {
    let mut dir = top;
    for name in path.parent().unwrap_or_default().components() {
        dir = match dir.open_dir(name) {
            Err(error) if is_not_there(&error) => return Ok(None),
            opened => opened?,
        };
    }
    Ok(Some(dir))
}

/// Is the entry `found`, which has the planned inode and is no directory, as it was put there? A
/// modification time alone is no edit where the contents can be compared.
fn is_ours(
    dir: &Dir,
    name: &[u8],
    found: &Fingerprint,
    planned: &Fingerprint,
    digest: Option<&str>,
) -> io::Result<bool> {
    let (mut before, now) = (planned.entry, found.entry);
    if before.kind == EntryKind::File
        && let Some(digest) = digest
    {
        before.mtime = now.mtime;
        if before != now {
            return Ok(false);
        }
        match dir.open_found_file(name, found) {
            Ok(file) => return Ok(content::digest(&file)? == digest),
            // Not readable for us, so not compared by its contents.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(planned.entry == now)
}

/// Are the attributes of `found` those of before or after `change`, or between the two? Anything else
/// was set since.
pub(super) fn are_attributes_ours(
    dir: &Dir,
    name: &[u8],
    found: &Fingerprint,
    change: &AttributeChange,
) -> io::Result<bool> {
    let sides = [&change.before, &change.after];
    let mode = found.entry.mode;
    // While attributes are set, the owner may write; a directory may be opened for its names.
    let mode_is_ours = sides
        .iter()
        .any(|side| [side.mode, side.mode | 0o600, side.mode | 0o700].contains(&mode));
    let owner_is_ours = sides.iter().any(|side| side.uid == found.entry.uid)
        && sides.iter().any(|side| side.gid == found.entry.gid);
    if !mode_is_ours || !owner_is_ours {
        return Ok(false);
    }
    let now = dir.xattrs(name)?;
    let mut names: Vec<_> = sides.iter().flat_map(|side| side.xattrs.keys()).collect();
    names.extend(now.keys());
    Ok(names.iter().all(|attribute| {
        sides
            .iter()
            .any(|side| side.xattrs.get(*attribute) == now.get(*attribute))
    }))
}
