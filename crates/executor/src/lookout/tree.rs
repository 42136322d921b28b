//! What is known of the workspace.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Moment;

/// How many directories are known.
const MOST_DIRECTORIES: usize = 20_000;

/// How long their paths may be, together.
const MOST_BYTES: usize = 2 << 20;

/// How deep the deepest of them is.
const DEEPEST: usize = 64;

/// How many names are known of what was there at the beginning.
const MOST_FIRST: usize = 100_000;

/// Its directories, and what was in them at the beginning.
#[derive(Debug)]
pub(super) struct Tree {
    /// By their path, with their inode's number.
    pub(super) directories: BTreeMap<PathBuf, u64>,
    bytes: usize,
    /// They were as they are known here at this time. Before there was a look, nothing is known.
    pub(super) known: Option<Moment>,
    /// There are more than are known.
    pub(super) truncated: bool,
    pub(super) first: First,
}

/// The files that were there at the beginning. In an overlay, one of those is born again when it is first
/// written to, so there what was at their paths is never new.
#[derive(Debug)]
pub(super) enum First {
    /// It is no overlay.
    Unimportant,
    /// Their paths, hashed, in order.
    Known(RandomState, Vec<u64>),
}

impl Tree {
    /// One of which nothing is known.
    pub(super) fn new(first: First) -> Tree {
        Tree {
            directories: BTreeMap::new(),
            bytes: 0,
            known: None,
            truncated: false,
            first,
        }
    }

    /// Can this directory be known, beside as many others?
    pub(super) fn has_room(&self, path: &Path, others: usize) -> bool {
        self.directories.len() + others < MOST_DIRECTORIES
            && self.bytes + path.as_os_str().len() <= MOST_BYTES
            && path.components().count() <= DEEPEST
    }

    /// There is a directory at `path`.
    pub(super) fn learn(&mut self, path: &Path, number: u64) {
        if self.directories.insert(path.to_owned(), number).is_none() {
            self.bytes += path.as_os_str().len();
        }
    }

    /// Forgets a directory and all below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let below = (Bound::Included(path), Bound::Unbounded);
        let below = self.directories.range::<Path, _>(below);
        let below = below.take_while(|(other, _)| other.starts_with(path));
        let below: Vec<PathBuf> = below.map(|(other, _)| other.clone()).collect();
        for path in below {
            self.bytes -= path.as_os_str().len();
            self.directories.remove(&path);
        }
    }
}

impl First {
    /// No more will be learnt.
    pub(super) fn sort(&mut self) {
        if let First::Known(_, known) = self {
            known.sort_unstable();
            known.shrink_to_fit();
        }
    }

    /// There was a file at `path`.
    pub(super) fn learn(&mut self, path: &Path) {
        if let First::Known(state, known) = self
            && known.len() < MOST_FIRST
        {
            known.push(state.hash_one(path.as_os_str().as_bytes()));
        }
    }

    /// Was there one? When all are [sorted](First::sort).
    pub(super) fn knows(&self, path: &Path) -> bool {
        match self {
            First::Unimportant => false,
            First::Known(state, known) => {
                let hash = state.hash_one(path.as_os_str().as_bytes());
                known.binary_search(&hash).is_ok()
            }
        }
    }
}
