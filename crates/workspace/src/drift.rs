//! What moved in a source since its sandbox was made.
//!
//! A look for people, over the whole source: it tells how far the two have grown apart. Whether one
//! path conflicts is decided by its base, not here.

use std::io;

use sandbox_model::{EntryKind, RelPath};
use serde::Serialize;

use crate::sandbox::Sandbox;
use crate::tree::Tree;

/// How many paths are named.
pub const NAMED: usize = 10;

/// Entries of the source that changed since create.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Drift {
    /// How many. A directory counts when something was added to it or removed from it.
    pub count: u64,
    /// The first of them, by path.
    pub first: Vec<RelPath>,
}

/// Walks the source. What cannot be read counts as unchanged.
pub fn drift(sandbox: &Sandbox) -> io::Result<Drift> {
    let tree = Tree::open(sandbox.source())?;
    let own = sandbox.root_in_source();
    let created = sandbox.meta.created_coarse;
    let mut changed = Vec::new();
    let mut pending = vec![RelPath::root()];
    while let Some(path) = pending.pop() {
        let Ok(dir) = tree.dir(&path) else { continue };
        for entry in dir.entries().unwrap_or_default() {
            let below = path.join(&entry.name);
            if own.as_ref() == Some(&below) {
                continue;
            }
            let Ok(Some(found)) = dir.stat(&entry.name) else {
                continue;
            };
            let is_directory = found.entry.kind == EntryKind::Directory;
            let touched = if is_directory {
                found.entry.mtime
            } else {
                found.ctime
            };
            if touched > created {
                changed.push(below.clone());
            }
            if is_directory {
                pending.push(below);
            }
        }
    }
    let count = changed.len() as u64;
    changed.sort();
    changed.truncate(NAMED);
    Ok(Drift {
        count,
        first: changed,
    })
}
