//! The btrfs backend: a read-only snapshot of the source's subvolume is the lower layer.
//!
//! The snapshot never changes: it is the base of everything the sandbox does. What is promoted
//! therefore stays in the upper layer too; that it is no change any more is what the recorded
//! bases say. What the source has since comes in by copies above the snapshot: see `take`.

mod take;

use std::io;
use std::path::Path;

use rustix::process::geteuid;
use sandbox_linux::btrfs;
use sandbox_model::{BackendKind, OverlayXattr, RelPath, WorkspaceMount};

use super::{Backend, BackendError, mounts, overlay};
use crate::meta::Meta;
use crate::progress::Progress;
use crate::tree::{Dir, Tree};

pub(crate) use take::put;

/// The backend.
#[derive(Debug)]
pub struct Btrfs;

/// The frozen snapshot, in the sandbox's directory.
pub(crate) const BASE: &str = "base";

impl Backend for Btrfs {
    fn kind(&self) -> BackendKind {
        BackendKind::Btrfs
    }

    /// Deleting a snapshot can take an ordinary user as long as deleting its files, so the trial
    /// stops short of making one; `create` makes it in earnest.
    fn probe(&self, source: &Path, state: &Path) -> Result<(), String> {
        let open = |path: &Path| {
            Dir::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))
        };
        let (source_dir, state_dir) = (open(source)?, open(state)?);
        if !btrfs::is_subvolume(&source_dir).unwrap_or(false) {
            return Err("it is not a btrfs subvolume".to_owned());
        }
        let id = |dir: &Dir| btrfs::filesystem_id(dir).ok();
        if id(&source_dir) != id(&state_dir) {
            return Err(format!(
                "{} is not on the same btrfs filesystem",
                state.display()
            ));
        }
        let owner = source_dir.stat_self().map(|found| found.entry.uid);
        if !geteuid().is_root() && owner.ok() != Some(geteuid().as_raw()) {
            return Err("the subvolume belongs to another user".to_owned());
        }
        if let Some(reason) =
            mounts::refusal(source, state).or_else(|| nested(source, &source_dir, state))
        {
            return Err(reason);
        }
        overlay::Overlay.probe(source, state)
    }

    fn create(
        &self,
        meta: &mut Meta,
        dir: &Path,
        _state: &Path,
        _progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        snapshot(&meta.source, dir)?;
        let base = Tree::open(&dir.join(BASE)).map_err(BackendError::io("read", dir))?;
        let xattr = overlay::make_layer(&base, dir).map_err(BackendError::io("write to", dir))?;
        meta.xattr = Some(xattr);
        Ok(())
    }

    fn mount(&self, meta: &Meta, dir: &Path) -> WorkspaceMount {
        WorkspaceMount::Overlay {
            lower: dir.join(BASE),
            upper: dir.join(overlay::UPPER),
            work: dir.join(overlay::WORK),
            xattr: meta.xattr.unwrap_or(OverlayXattr::User),
        }
    }

    fn duplicate(
        &self,
        _meta: &Meta,
        from: &Path,
        to: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        overlay::duplicate_layer(from, to, progress)
    }

    fn share_base(&self, from: &Path, to: &Path) -> Result<(), BackendError> {
        snapshot(&from.join(BASE), to)
    }

    fn parts(&self) -> &'static [&'static str] {
        &[overlay::UPPER, overlay::WORK]
    }

    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        let base = Tree::open(&dir.join(BASE))?;
        overlay::absorb(meta, &dir.join(overlay::UPPER), &base, paths)
    }

    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<Vec<RelPath>> {
        take::take(meta, dir, paths)
    }

    fn take_attributes(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        take::take_attributes(meta, dir, paths)
    }

    fn prepare_delete(&self, dir: &Path) -> io::Result<()> {
        let dir = match Dir::open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            dir => dir?,
        };
        let base = match dir.open_dir(BASE.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            base => base?,
        };
        if !btrfs::is_subvolume(&base)? || btrfs::delete(&dir, BASE.as_bytes()).is_ok() {
            return Ok(());
        }
        // An ordinary user may empty it and remove it like a directory.
        btrfs::make_writable(&base)
    }
}

fn snapshot(source: &Path, dir: &Path) -> Result<(), BackendError> {
    let opened = Dir::open(source).map_err(BackendError::io("read", source))?;
    let target = Dir::open(dir).map_err(BackendError::io("write to", dir))?;
    btrfs::snapshot(&opened, &target, BASE.as_bytes()).map_err(BackendError::io("snapshot", source))
}

/// Names a subvolume below `source`: it would be an empty directory in the snapshot. Those that
/// sandboxes keep in their root are no part of the source.
fn nested(source: &Path, dir: &Dir, state: &Path) -> Option<String> {
    match btrfs::nested(dir) {
        Ok(found) => found
            .iter()
            .map(|path| source.join(path))
            .find(|path| !path.starts_with(state))
            .map(|path| {
                format!(
                    "{} is a subvolume of its own, and would be empty",
                    path.display()
                )
            }),
        Err(error) => Some(format!("its subvolumes cannot be listed ({error})")),
    }
}
