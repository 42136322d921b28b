//! The btrfs backend: a read-only snapshot of the source's subvolume is the lower layer.

use std::io;
use std::path::Path;

use sandbox_model::{BackendKind, OverlayXattr, RelPath, WorkspaceMount};

use super::{Backend, BackendError, overlay};
use crate::meta::Meta;
use crate::progress::Progress;
use crate::transfer;
use crate::tree::Tree;

/// The backend.
#[derive(Debug)]
pub struct Btrfs;

/// The frozen snapshot, in the sandbox's directory.
pub(crate) const BASE: &str = "base";

impl Backend for Btrfs {
    fn kind(&self) -> BackendKind {
        BackendKind::Btrfs
    }

    fn probe(&self, _source: &Path, _state: &Path) -> Result<(), String> {
        Err("snapshots are not made yet".to_owned())
    }

    fn create(
        &self,
        meta: &mut Meta,
        dir: &Path,
        _state: &Path,
        _progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        let base = Tree::open(&dir.join(BASE)).map_err(BackendError::io("read", dir))?;
        meta.xattr =
            Some(overlay::make_layer(&base, dir).map_err(BackendError::io("write to", dir))?);
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

    fn parts(&self) -> &'static [&'static str] {
        &[BASE, overlay::UPPER, overlay::WORK]
    }

    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        overlay::absorb(
            meta,
            &dir.join(overlay::UPPER),
            &Tree::open(&dir.join(BASE))?,
            paths,
        )
    }

    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        // The lower layer is frozen, so what the source has now needs a copy above it.
        let source = Tree::open(&meta.source)?;
        let upper = Tree::open(&dir.join(overlay::UPPER))?;
        for path in paths {
            transfer::replace(&source, path, &upper)?;
        }
        Ok(())
    }
}
