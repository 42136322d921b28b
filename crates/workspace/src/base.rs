//! The base: what the sandbox saw at first touch.

use std::io;

use sandbox_model::{Fingerprint, RelPath, Timestamp};
use serde::{Deserialize, Serialize};

use crate::sandbox::Sandbox;

/// What is known of one path's state when the sandbox first touched it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Inode numbers from the source's root down to the parent directory.
    pub chain: Vec<u64>,
    /// What stood there; `None` for nothing.
    pub entry: Option<Fingerprint>,
    /// Its contents, as far as they were kept.
    pub content: BaseContent,
    /// It, or a directory above it, changed in the source while the run was on.
    pub uncertain: bool,
}

/// What was kept of a base's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseContent {
    /// Nothing to keep (not a regular file), or nothing needed (a deletion).
    None,
    /// A whole copy, in the store under this name.
    Saved(String),
    /// Too large: its blake3.
    Hash(String),
    /// It is in the frozen lower layer (btrfs).
    Frozen,
}

/// The recorded bases of a sandbox.
#[derive(Debug)]
pub struct BaseStore {}

impl BaseStore {
    /// The base of `path`, if it, or a directory above it that did not exist, was touched.
    pub fn get(&self, path: &RelPath) -> Option<Base> {
        todo!("{path}")
    }
}

/// Records the base of every path touched for the first time since `began` (by the coarse clock).
/// O(changes). Called at the end of every run, and by [`crate::View::open`] after a crash.
pub fn record(sandbox: &Sandbox, began: Timestamp) -> io::Result<()> {
    todo!("{sandbox:?} {began:?}")
}
