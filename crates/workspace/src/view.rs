//! The three sides of a workspace at once: what it has now, what it started from, and what the
//! source is now.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure, RelPath};
use thiserror::Error;

use crate::base::{self, BaseStore};
use crate::layer::{Layer, LayerError};
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::Tree;

/// A workspace opened for reading.
#[derive(Debug)]
pub struct View<'s> {
    /// The sandbox.
    pub sandbox: &'s Sandbox,
    /// The source as it is now.
    pub source: Tree,
    /// What the sandbox started from, path by path.
    pub base: BaseStore,
    /// The workspace's own files.
    pub layer: Layer,
}

/// Why a workspace cannot be read.
#[derive(Debug, Error)]
pub enum ViewError {
    /// The source is gone.
    #[error("the source {0} is gone")]
    SourceGone(PathBuf),
    /// A path could not be read.
    #[error("cannot read {path}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Failure for ViewError {
    fn class(&self) -> Class {
        match self {
            ViewError::SourceGone(_) => Class::SourceNotFound,
            ViewError::Io { source, .. } => Class::of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ViewError::SourceGone(_) => Some(
                "put the directory back to promote or diff; `sandbox path` tells where the \
                 sandbox's own files are"
                    .into(),
            ),
            ViewError::Io { .. } => None,
        }
    }
}

impl<'s> View<'s> {
    /// Opens all sides. Records the base of what a crashed run left unrecorded.
    pub fn open(sandbox: &'s Sandbox) -> Result<View<'s>, ViewError> {
        let source = match Tree::open(sandbox.source()) {
            Err(error) if crate::layer::vanished(&error) => {
                return Err(ViewError::SourceGone(sandbox.source().to_owned()));
            }
            source => source.map_err(ViewError::at(sandbox.source().to_owned()))?,
        };
        let own = || ViewError::at(sandbox.dir.clone());
        base::recover(sandbox).map_err(own())?;
        Ok(View {
            sandbox,
            source,
            base: BaseStore::open(sandbox).map_err(own())?,
            layer: Layer::open(sandbox).map_err(own())?,
        })
    }

    /// What the workspace shows now (what a process inside would see at the source's path).
    pub fn workspace(&self) -> &dyn Side {
        &self.layer
    }

    /// What the workspace was made from: the recorded base where a path was touched, the source
    /// where it was not.
    pub fn before(&self) -> &dyn Side {
        &self.base
    }

    /// Names `path` of the workspace in an error.
    pub(crate) fn failed(&self, path: &RelPath) -> impl FnOnce(io::Error) -> ViewError {
        ViewError::at(path.under(self.sandbox.source()))
    }

    /// Names the path of a layer's error in full.
    pub(crate) fn layer_failed(&self, error: LayerError) -> ViewError {
        self.failed(&error.path)(error.source)
    }
}

impl ViewError {
    fn at(path: PathBuf) -> impl FnOnce(io::Error) -> ViewError {
        move |source| ViewError::Io { path, source }
    }
}
