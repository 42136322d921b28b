//! A tree of which the directory last asked for stays open.
//!
//! Paths mostly come in order, so the next one is mostly in the same directory: looking at it costs
//! one call instead of three. What is moved away meanwhile is still reached through the descriptor,
//! never something else in its place.

use std::io;

use sandbox_model::{Fingerprint, RelPath};

use super::{Dir, Tree, leads_nowhere};

/// A tree and the directory last asked for; `None` where there was none.
#[derive(Debug)]
pub(crate) struct Near<'t> {
    tree: &'t Tree,
    last: Option<(RelPath, Option<Dir>)>,
}

impl<'t> Near<'t> {
    pub fn new(tree: &'t Tree) -> Near<'t> {
        Near { tree, last: None }
    }

    /// The directory at `path`, if there is one.
    pub fn dir(&mut self, path: &RelPath) -> io::Result<Option<&Dir>> {
        if self.last.as_ref().is_none_or(|(at, _)| at != path) {
            let dir = match self.tree.dir(path) {
                Err(error) if leads_nowhere(&error) => None,
                dir => Some(dir?),
            };
            self.last = Some((path.clone(), dir));
        }
        Ok(self.last.as_ref().and_then(|(_, dir)| dir.as_ref()))
    }

    /// The directory that holds `path`, if there is one, and the name there. The root holds itself,
    /// as `.`.
    pub fn parent<'p>(&mut self, path: &'p RelPath) -> io::Result<Option<(&Dir, &'p [u8])>> {
        let (parent, name) = match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => (parent, name),
            _ => (RelPath::root(), &b"."[..]),
        };
        Ok(self.dir(&parent)?.map(|dir| (dir, name)))
    }

    /// What stands at `path`.
    pub fn stat(&mut self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        match self.parent(path)? {
            Some((dir, name)) => dir.stat(name),
            None => Ok(None),
        }
    }
}
