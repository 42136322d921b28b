//! Copying entries and trees with everything that belongs to them: contents (reflinked where the
//! filesystem can, holes kept), modes, times, owners where allowed, symlinks, hard links, FIFOs,
//! extended attributes and ACLs.

use std::io;

use sandbox_model::RelPath;
use thiserror::Error;

use crate::progress::Progress;
use crate::side::Side;
use crate::tree::{Dir, Tree};

/// How a tree copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Entries made.
    pub entries: u64,
    /// Bytes of contents (apparent).
    pub bytes: u64,
    /// Of the files, how many share their blocks with the original.
    pub reflinked: u64,
}

/// A copy that failed.
#[derive(Debug, Error)]
#[error("cannot copy {path}")]
pub struct TransferError {
    /// The entry it failed on.
    pub path: RelPath,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Copies everything below `from` into the empty directory `to`, in parallel. `skip` are paths
/// left out (the sandbox root, when it lies inside the source).
pub fn copy_tree(
    from: &Tree,
    to: &Tree,
    skip: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<Copied, TransferError> {
    todo!("{from:?} {to:?} {skip:?} {:p}", progress)
}

/// Copies the one entry at `path` of `from` (not what is below it, if it is a directory) to `name`
/// in `to`, contents, mode, times, xattrs and, where permitted, owner included. Set-id bits and
/// file capabilities are kept only when `privileges` says so. `to/name` must not exist.
pub fn copy_entry(
    from: &dyn Side,
    path: &RelPath,
    to: &Dir,
    name: &[u8],
    privileges: Privileges,
) -> io::Result<()> {
    todo!("{path} {to:?} {name:?} {privileges:?} {:p}", from)
}

/// Whether set-id bits and file capabilities survive a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// An exact copy.
    Keep,
    /// On the way to the user's own machine.
    Strip,
}
