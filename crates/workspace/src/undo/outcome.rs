//! What the source will be after an undo or a redo, and what of it steers git.
//!
//! A redo brings what a sandbox made, so it is judged as a promote is. An undo brings back what the source
//! had; but what was no part of a repository then may complete one now, which another promote began. What
//! was known to steer git when it was promoted, and allowed, may go and come.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use sandbox_model::{Change, Entry, Fingerprint, RelPath};

use super::Direction;
use super::inverse::{Inverse, displaced};
use crate::changes::{self, Arrival};
use crate::promote::area::Area;
use crate::promote::journal::{Journal, Operation};
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// The paths that steer git once `inverse`, of `of`, is performed, and were not allowed to.
pub(super) fn steering_git(
    area: &Area,
    source: &Tree,
    of: &Journal,
    inverse: &Inverse,
    direction: Direction,
) -> io::Result<Vec<RelPath>> {
    let stage = displaced(area, of)?;
    let outcome = Outcome {
        source,
        stage: &stage,
        operations: inverse
            .operations
            .iter()
            .map(|operation| (&operation.path, operation))
            .collect(),
    };
    let mut changes = Vec::new();
    for operation in &inverse.operations {
        add(operation, &mut changes);
    }
    for change in &inverse.attributes {
        let before = source.stat(&change.path)?.map(|found| found.entry);
        let after = before.map(|entry| Entry {
            mode: change.after.mode,
            ..entry
        });
        changes.push(Change::between(change.path.clone(), before, after));
    }
    let arrival = match direction {
        Direction::Apply => Arrival::Own,
        Direction::TakeBack => Arrival::Sandbox,
    };
    let mut steering = changes::steering_git(source, &outcome, &changes, arrival)?;
    steering.retain(|path| !of.git_control.contains(path));
    Ok(steering)
}

/// Adds a change for every path of `operation`.
fn add(operation: &Operation, changes: &mut Vec<Change>) {
    let mut paths: BTreeMap<RelPath, [Option<Entry>; 2]> = BTreeMap::new();
    for (at, standing) in [&operation.old, &operation.new].into_iter().enumerate() {
        let Some(standing) = standing else {
            continue;
        };
        let own = (RelPath::root(), standing.fingerprint.entry);
        let below = standing.below.iter();
        let below = below.map(|below| (below.path.clone(), below.fingerprint.entry));
        for (path, entry) in below.chain([own]) {
            paths.entry(path).or_default()[at] = Some(entry);
        }
    }
    for (path, [before, after]) in paths {
        let path = operation.path.join_path(&path);
        changes.push(Change::between(path, before, after));
    }
}

/// The source with the operations of a transaction performed.
struct Outcome<'o> {
    source: &'o Tree,
    /// Where what they bring waits.
    stage: &'o Tree,
    /// None below another.
    operations: BTreeMap<&'o RelPath, &'o Operation>,
}

impl Outcome<'_> {
    /// Where `path` is; `None` if nothing will stand there.
    fn place(&self, path: &RelPath) -> Option<(&Tree, RelPath)> {
        let mut above = std::iter::successors(Some(path.clone()), RelPath::parent);
        let Some(operation) = above.find_map(|above| self.operations.get(&above)) else {
            return Some((self.source, path.clone()));
        };
        operation.new.as_ref()?;
        let above = operation.path.components().count();
        let slot = RelPath::root().join(&operation.slot_name());
        let below = path.components().skip(above);
        Some((self.stage, below.fold(slot, |at, name| at.join(name))))
    }

    fn standing(&self, path: &RelPath) -> io::Result<(&Tree, RelPath)> {
        let place = self.place(path);
        place.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Side for Outcome<'_> {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        match self.place(path) {
            Some((tree, at)) => tree.stat(&at),
            None => Ok(None),
        }
    }

    fn open(&self, path: &RelPath) -> io::Result<File> {
        let (tree, at) = self.standing(path)?;
        tree.open(&at)
    }

    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        let (tree, at) = self.standing(path)?;
        tree.read_link(&at)
    }

    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        let (tree, at) = self.standing(path)?;
        tree.xattrs(&at)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        let (tree, at) = self.standing(path)?;
        let mut names: BTreeSet<_> = tree.list(&at)?.into_iter().collect();
        for operation in self.operations.values() {
            if operation.path.parent().as_ref() == Some(path)
                && let Some(name) = operation.path.name()
            {
                match operation.new {
                    Some(_) => names.insert(name.to_vec()),
                    None => names.remove(name),
                };
            }
        }
        Ok(names.into_iter().collect())
    }
}
