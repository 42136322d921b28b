//! One sandbox, opened: its record, its directories, its locks.

use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{Class, Failure, SandboxName, WorkspaceMount};
use thiserror::Error;

use crate::lock::Lock;
use crate::meta::Meta;
use crate::root::Root;

/// A sandbox. Cheap to open: one small file is read.
#[derive(Debug)]
pub struct Sandbox {
    /// The root it lives in.
    pub root: Root,
    /// `ROOT/NAME`.
    pub dir: PathBuf,
    /// Its record.
    pub meta: Meta,
}

/// Why a sandbox cannot be used now.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// A run, or another exclusive operation, holds it.
    #[error("sandbox '{name}' is busy")]
    Busy {
        /// Which.
        name: SandboxName,
    },
    /// The source is gone, or is not the directory it was.
    #[error("the source {path} of sandbox '{name}' is gone")]
    SourceGone {
        /// Which.
        name: SandboxName,
        /// Where it was.
        path: PathBuf,
    },
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
}

impl Failure for SandboxError {
    fn class(&self) -> Class {
        todo!()
    }
}

impl Sandbox {
    /// Its name.
    pub fn name(&self) -> &SandboxName {
        &self.meta.name
    }

    /// The source's path.
    pub fn source(&self) -> &Path {
        &self.meta.source
    }

    /// For a run or a reader. Waits for nobody: busy if an exclusive operation is under way.
    pub fn lock_shared(&self) -> Result<Lock, SandboxError> {
        todo!()
    }

    /// For what must be alone. Busy if anything runs in it.
    pub fn lock_exclusive(&self) -> Result<Lock, SandboxError> {
        todo!()
    }

    /// What to mount at the source's path inside.
    pub fn mount(&self) -> WorkspaceMount {
        todo!()
    }

    /// Where the launcher keeps its records of live runs (`ROOT/NAME/runs`).
    pub fn runs_dir(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// The home layer (`ROOT/NAME/home`): what is written to `$HOME` inside, kept, never promoted.
    pub fn home_dir(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Disk space used by the sandbox's own files, in bytes.
    pub fn disk_use(&self) -> io::Result<u64> {
        todo!()
    }
}
