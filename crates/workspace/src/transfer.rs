//! Copying entries and trees with everything that belongs to them: contents (reflinked where the
//! filesystem can, holes kept), modes, times, owners where allowed, symlinks, hard links, FIFOs,
//! extended attributes and ACLs.
//!
//! [`copy_entry`] copies one entry between any two places; [`copy_tree`] a whole tree, by several
//! threads. Neither follows a symlink. Sockets are names without content and stay behind.

mod attributes;
mod content;
mod directory;
mod entry;
mod links;
mod replace;
mod tree;
mod worker;

use std::io;
use std::ops::AddAssign;

use sandbox_model::RelPath;
use thiserror::Error;

pub(crate) use entry::Copier;
pub use entry::copy_entry;
pub use replace::{Replaced, replace};
pub(crate) use replace::{copy_below, take_attributes};
pub use tree::Record;
use tree::Recording;

use crate::progress::Progress;
use crate::tree::Tree;

/// How a tree copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Entries made.
    pub entries: u64,
    /// Bytes of contents (apparent).
    pub bytes: u64,
    /// Of the files, how many share their blocks with the original.
    pub reflinked: u64,
    /// Sockets left behind.
    pub sockets: u64,
}

impl AddAssign for Copied {
    fn add_assign(&mut self, other: Copied) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.reflinked += other.reflinked;
        self.sockets += other.sockets;
    }
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

/// Whether set-id bits and file capabilities survive a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileges {
    /// An exact copy.
    Keep,
    /// On the way to the user's own machine.
    Strip,
}

/// Copies everything below `from` into the empty directory `to`, in parallel, and gives `to` the
/// attributes of `from`. `skip` are paths left out (the sandbox root, when it lies inside the
/// source).
pub fn copy_tree(
    from: &Tree,
    to: &Tree,
    skip: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<Copied, TransferError> {
    tree::copy(from, to, skip, Recording::Off, progress).map(|(copied, _)| copied)
}

/// As [`copy_tree`]; also tells what stood where, sorted by path.
pub fn copy_tree_recorded(
    from: &Tree,
    to: &Tree,
    skip: &[RelPath],
    progress: &mut dyn Progress,
) -> Result<(Copied, Vec<Record>), TransferError> {
    let (copied, mut records) = tree::copy(from, to, skip, Recording::On, progress)?;
    records.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok((copied, records))
}

#[cfg(test)]
mod tests;
