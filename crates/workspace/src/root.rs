//! The sandbox root: the directory that holds every sandbox of a user.

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{BackendChoice, BackendKind, Class, Failure, SandboxName, Settings};
use thiserror::Error;

use crate::progress::Progress;
use crate::sandbox::Sandbox;

/// A sandbox root.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
}

/// What to create.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// Its name; `None` makes a memorable one.
    pub name: Option<SandboxName>,
    /// The directory to sandbox.
    pub source: PathBuf,
    /// Which backend.
    pub backend: BackendChoice,
    /// Isolation settings to store.
    pub settings: Settings,
}

/// Why a root cannot be used, or a sandbox not created or opened.
#[derive(Debug, Error)]
pub enum RootError {
    /// No such sandbox.
    #[error("no sandbox named '{name}'")]
    NotFound {
        /// As asked.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// The name is taken.
    #[error("a sandbox named '{0}' exists already")]
    Exists(SandboxName),
    /// The source is not there, or no directory.
    #[error("cannot sandbox {path}")]
    Source {
        /// The source.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The backend asked for does not work here.
    #[error("the {backend} backend cannot be used for {path}: {reason}")]
    Backend {
        /// Which.
        backend: BackendKind,
        /// The source.
        path: PathBuf,
        /// In words.
        reason: String,
    },
    /// Anything else.
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
}

impl Failure for RootError {
    fn class(&self) -> Class {
        todo!()
    }
}

impl Root {
    /// Opens (making it, mode 0700, where missing) the root at `path`, and finishes what an
    /// interrupted create or discard left.
    pub fn open(path: &Path) -> Result<Root, RootError> {
        todo!("{}", path.display())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a sandbox. All or nothing: on an error nothing is left behind.
    pub fn create(
        &self,
        request: &CreateRequest,
        progress: &mut dyn Progress,
    ) -> Result<Sandbox, RootError> {
        todo!("{request:?} {:p}", progress)
    }

    /// Opens a sandbox by name. Does not lock it, does not look at its source.
    pub fn sandbox(&self, name: &str) -> Result<Sandbox, RootError> {
        todo!("{name}")
    }

    /// Names of all sandboxes, sorted.
    pub fn names(&self) -> Result<Vec<SandboxName>, RootError> {
        todo!()
    }
}
