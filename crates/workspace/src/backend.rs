//! The ways to make a private copy. A backend is one file below and passes one conformance suite.

use std::io;
use std::path::Path;

use sandbox_model::{BackendKind, RelPath, WorkspaceMount};

use crate::meta::Meta;
use crate::progress::Progress;

/// What a backend does; the overlay-like ones share the reading of changes in [`crate::layer`].
pub trait Backend {
    /// Which one.
    fn kind(&self) -> BackendKind;

    /// Would it work for `source`, with state below `state`? Tries it for real; the error says
    /// what is missing in words a person can act on.
    fn probe(&self, source: &Path, state: &Path) -> Result<(), String>;

    /// Makes the workspace's files in the new directory `dir` (not yet visible under its name).
    fn create(&self, meta: &mut Meta, dir: &Path, progress: &mut dyn Progress) -> io::Result<()>;

    /// What to mount.
    fn mount(&self, meta: &Meta, dir: &Path) -> WorkspaceMount;

    /// Copies the workspace's changes (not its history or runs) from `from` to the new directory
    /// `to`: fork, snapshot and rollback are this.
    fn duplicate(
        &self,
        meta: &Meta,
        from: &Path,
        to: &Path,
        progress: &mut dyn Progress,
    ) -> io::Result<()>;

    /// These paths now stand in the source as they do in the workspace: they leave the change set,
    /// and nothing else that the workspace shows changes.
    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()>;
}

/// The backend of a kind.
pub fn backend(kind: BackendKind) -> &'static dyn Backend {
    todo!("{kind}")
}
