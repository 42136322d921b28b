//! Both sides of a workspace at once: what it has now, and what it started from.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure};
use thiserror::Error;

use crate::base::BaseStore;
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::Tree;

/// A workspace opened for reading.
pub struct View<'s> {
    /// The sandbox.
    pub sandbox: &'s Sandbox,
    /// The source as it is now.
    pub source: Tree,
    /// What the sandbox started from, path by path.
    pub base: BaseStore,
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
        todo!()
    }
}

impl<'s> View<'s> {
    /// Opens both sides. Records the base of what a crashed run left unrecorded.
    pub fn open(sandbox: &'s Sandbox) -> Result<View<'s>, ViewError> {
        todo!("{sandbox:?}")
    }

    /// What the workspace shows now (what a process inside would see at the source's path).
    pub fn workspace(&self) -> &dyn Side {
        todo!()
    }

    /// What the workspace was made from: the recorded base where a path was touched, the source
    /// where it was not.
    pub fn before(&self) -> &dyn Side {
        todo!()
    }
}
