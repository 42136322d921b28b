//! The ways to make a private copy. A backend is one file below and passes one conformance suite.

pub mod btrfs;
pub mod copy;
pub mod manifest;
pub mod mounts;
pub mod overlay;

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{BackendKind, Class, Failure, RelPath, WorkspaceMount};
use thiserror::Error;

use crate::meta::Meta;
use crate::progress::Progress;
use crate::sandbox::Note;
use crate::transfer::{self, TransferError};
use crate::tree::{Dir, Tree};

/// What a backend does; the overlay-like ones share the reading of changes in [`crate::layer`].
pub trait Backend: Sync {
    /// Which one.
    fn kind(&self) -> BackendKind;

    /// Would it work for `source`, with state below `state`? Tries it for real; the error says
    /// what is missing in words a person can act on.
    fn probe(&self, source: &Path, state: &Path) -> Result<(), String>;

    /// Makes the workspace's files in the new directory `dir` (not yet visible under its name).
    /// `state` is the sandbox root: where it lies inside the source it is left out.
    fn create(
        &self,
        meta: &mut Meta,
        dir: &Path,
        state: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), BackendError>;

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
    ) -> Result<(), BackendError>;

    /// Gives the fork in `to` what `from` was made from and never changes, where there is such.
    fn share_base(&self, _from: &Path, _to: &Path) -> Result<(), BackendError> {
        Ok(())
    }

    /// The names in a sandbox's directory that [`Backend::duplicate`] makes. Rolling back swaps
    /// exactly these.
    fn parts(&self) -> &'static [&'static str];

    /// The source is about to change at `changing`: whatever the workspace shows from there under
    /// other names gets a copy of its own, so that it stays. What is at or below `handed_over` is
    /// the source's afterwards and needs none. Returns the paths that got one.
    fn detach(
        &self,
        _meta: &Meta,
        _dir: &Path,
        _changing: &[RelPath],
        _handed_over: &[RelPath],
    ) -> io::Result<Vec<RelPath>> {
        Ok(Vec::new())
    }

    /// These paths now stand in the source as they do in the workspace: they leave the change set,
    /// and nothing else that the workspace shows changes.
    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()>;

    /// What the workspace has at these paths, and below them, is given up for what the source has;
    /// they leave the change set. May be repeated. Returns the paths for which that is done now;
    /// below something that the workspace has no directory for, nothing can be.
    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<Vec<RelPath>>;

    /// The directories at these paths get the source's mode, owner and extended attributes; what is
    /// in them stays. [`Backend::absorb`] then lets them leave the change set. May be repeated.
    fn take_attributes(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        let layer = match self.mount(meta, dir) {
            WorkspaceMount::Overlay { upper, .. } => upper,
            WorkspaceMount::Bind { dir } => dir,
        };
        let (source, layer) = (Tree::open(&meta.source)?, Tree::open(&layer)?);
        paths
            .iter()
            .try_for_each(|path| transfer::take_attributes(&source, path, &layer))
    }

    /// Puts `entry` at `path`, as writing inside would, where the workspace shows the source's own.
    /// By one rename: a crash leaves the path as it was or as it shall be. False where nothing can
    /// be put there, or where a workspace that is promoted from keeps what it had: then there is
    /// nothing to put.
    fn put(
        &self,
        _meta: &Meta,
        _dir: &Path,
        _path: &RelPath,
        _entry: &Entry<'_>,
    ) -> io::Result<bool> {
        Ok(false)
    }

    /// What the source has at these paths is what the workspace is compared with from now on, where
    /// that is kept outside of the bases.
    fn rebase(&self, _meta: &Meta, _dir: &Path, _paths: &[RelPath]) -> io::Result<()> {
        Ok(())
    }

    /// Undoes in `dir` what only this backend can, before the directory is deleted. Called for
    /// every backend, whichever made it: the record may be damaged.
    fn prepare_delete(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    /// What will not work inside.
    fn notes(&self, _meta: &Meta) -> io::Result<Vec<Note>> {
        Ok(Vec::new())
    }
}

/// What is put at a path of a workspace.
pub enum Entry<'e> {
    /// What `tree` has at `at`, with everything below it; nothing, where it has nothing.
    From {
        /// Where it comes from.
        tree: &'e Tree,
        /// Its path there.
        at: RelPath,
        /// Its mode, where it is another than there.
        mode: Option<u32>,
    },
    /// What is there already, with other attributes, which this gives to a name in a directory.
    Attributes(&'e dyn Fn(&Dir, &[u8]) -> io::Result<()>),
}

/// The backend of a kind.
pub fn backend(kind: BackendKind) -> &'static dyn Backend {
    match kind {
        BackendKind::Btrfs => &btrfs::Btrfs,
        BackendKind::Overlay => &overlay::Overlay,
        BackendKind::Copy => &copy::Copy,
    }
}

/// Why a workspace's files could not be made or copied.
#[derive(Debug, Error)]
pub enum BackendError {
    /// A file operation failed.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An entry could not be copied.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

impl BackendError {
    /// For `map_err`: names the operation and its object.
    pub(crate) fn io(
        operation: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> BackendError {
        let path = path.to_owned();
        move |source| BackendError::Io {
            operation,
            path,
            source,
        }
    }
}

impl Failure for BackendError {
    fn class(&self) -> Class {
        match self {
            BackendError::Io { source, .. } => Class::of_io(source),
            BackendError::Transfer(error) => Class::of_io(&error.source),
        }
    }

    fn hint(&self) -> Option<String> {
        (self.class() == Class::DiskFull)
            .then(|| "nothing was kept; `sandbox gc` shows what could be cleaned".to_owned())
    }
}
