//! Whether an entry that is still of the same kind changed.

use std::io;

use sandbox_model::{BackendKind, ChangeKind, EntryKind, Fingerprint, OverlayXattr, RelPath};

use crate::base::unchanged;
use crate::layer::{Contents, Touched};
use crate::side::Xattrs;
use crate::view::View;

/// What changed between `was` and `now`, and whether extended attributes did. Cheap looks first:
/// contents are read only when the sizes agree.
pub(super) fn compare(
    view: &View<'_>,
    touched: &Touched,
    was: &Fingerprint,
    now: &Fingerprint,
    xattrs: &Xattrs,
) -> io::Result<Option<(ChangeKind, bool)>> {
    let path = &touched.path;
    let xattrs_changed = xattrs_differ(view, path, xattrs)?;
    let kind = match now.entry.kind {
        EntryKind::File if contents_differ(view, touched, was, now)? => Some(ChangeKind::Modified),
        EntryKind::Symlink if link_differs(view, path)? => Some(ChangeKind::Symlink),
        EntryKind::CharDevice | EntryKind::BlockDevice if was.entry.rdev != now.entry.rdev => {
            Some(ChangeKind::Modified)
        }
        _ if attributes_differ(view, path, was, now) || xattrs_changed => Some(ChangeKind::Mode),
        _ => None,
    };
    Ok(kind.map(|kind| (kind, xattrs_changed)))
}

/// Does the mode or the owner differ? The root's owner in an ordinary user's overlay or copy is that of the
/// layer's directory, which cannot be given to another's group; nobody inside can change it either.
fn attributes_differ(
    view: &View<'_>,
    path: &RelPath,
    was: &Fingerprint,
    now: &Fingerprint,
) -> bool {
    let (mode, uid, gid) = attributes(was);
    let meta = &view.sandbox.meta;
    let is_users = match meta.backend {
        BackendKind::Copy => !rustix::process::geteuid().is_root(),
        BackendKind::Overlay | BackendKind::Btrfs => meta.xattr == Some(OverlayXattr::User),
    };
    let owned_by_layer = path.is_root() && is_users;
    let was = match owned_by_layer {
        true => (mode, now.entry.uid, now.entry.gid),
        false => (mode, uid, gid),
    };
    was != attributes(now)
}

/// Mode and owner; a symlink's mode means nothing.
fn attributes(found: &Fingerprint) -> (u32, u32, u32) {
    let mode = if found.entry.kind == EntryKind::Symlink {
        0
    } else {
        found.entry.mode
    };
    (mode, found.entry.uid, found.entry.gid)
}

fn contents_differ(
    view: &View<'_>,
    touched: &Touched,
    was: &Fingerprint,
    now: &Fingerprint,
) -> io::Result<bool> {
    if was.entry.size != now.entry.size {
        return Ok(true);
    }
    let path = &touched.path;
    let shows_lower = touched.contents == Contents::Lower(path.clone());
    if shows_lower && touched.was.is_some_and(|lower| unchanged(was, &lower)) {
        return Ok(false);
    }
    if now.entry.size == 0 {
        return Ok(false);
    }
    let file = match view.workspace().open(path) {
        // It went, or became something else, since the walk saw it.
        Err(error) if crate::layer::vanished(&error) => return Ok(true),
        file => file?,
    };
    Ok(!view.base.holds(path, &file)?.unwrap_or(false))
}

fn link_differs(view: &View<'_>, path: &RelPath) -> io::Result<bool> {
    match view.before().read_link(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        before => Ok(before? != view.workspace().read_link(path)?),
    }
}

/// Do the extended attributes that travel with an entry differ between `from` before and `now`?
pub(super) fn xattrs_differ(view: &View<'_>, from: &RelPath, now: &Xattrs) -> io::Result<bool> {
    match view.before().xattrs(from) {
        Err(error) if crate::layer::vanished(&error) => Ok(false),
        before => Ok(&travelling(before?) != now),
    }
}

/// The extended attributes that travel with `path`, as they are now.
pub(super) fn xattrs_now(view: &View<'_>, path: &RelPath) -> io::Result<Xattrs> {
    match view.workspace().xattrs(path) {
        Err(error) if crate::layer::vanished(&error) => Ok(Xattrs::new()),
        now => Ok(travelling(now?)),
    }
}

/// Without the labels that a security module or the kernel puts on by itself.
fn travelling(mut xattrs: Xattrs) -> Xattrs {
    xattrs.retain(|name, _| {
        name.starts_with(b"user.")
            || name.starts_with(b"trusted.")
            || name.starts_with(b"system.posix_acl_")
            || name == b"security.capability"
    });
    xattrs
}
