//! The inverse of a transaction, as far as what it left still stands.

use std::collections::BTreeMap;
use std::io;

use sandbox_model::{EntryKind, RelPath};

use crate::promote::PromoteError;
use crate::promote::apply::keep_copies;
use crate::promote::area::{Area, SAVED};
use crate::promote::conduct::Conduct;
use crate::promote::ground::{Ground, is_untouched};
use crate::promote::journal::{
    AttributeChange, Below, Committed, Inode, Journal, Kind, Operation, Parent, Place, Standing,
};
use crate::promote::stage::copy_standing;
use crate::promote::transaction::is_intact;
use crate::tree::{Dir, Tree};

/// What an undo will do.
pub(super) struct Inverse {
    pub operations: Vec<Operation>,
    pub attributes: Vec<AttributeChange>,
    pub left: Vec<RelPath>,
    parents: BTreeMap<RelPath, Parent>,
}

/// Inverts `of` at or below `paths` (everywhere, if there are none).
pub(super) fn invert(
    area: &Area,
    source: &Tree,
    of: &Journal,
    committed: &Committed,
    paths: &[RelPath],
) -> io::Result<Inverse> {
    let mut ground = Ground::new(source, of);
    let (mut operations, mut attributes, mut left) = (Vec::new(), Vec::new(), Vec::new());
    let preimages = preimages(area, of)?;
    let wanted = |path: &RelPath| paths.is_empty() || paths.iter().any(|at| path.starts_with(at));
    for operation in &of.operations {
        if !wanted(&operation.path) {
            // Part of a directory that moved as a whole cannot be taken back alone.
            left.extend(
                paths
                    .iter()
                    .filter(|at| at.starts_with(&operation.path))
                    .cloned(),
            );
        } else if still_stands(&mut ground, operation)? && has_preimage(&preimages, operation)? {
            operations.push(Operation {
                path: operation.path.clone(),
                slot: operation.slot,
                old: operation.new.clone(),
                new: operation.old.clone(),
            });
        } else {
            left.push(operation.path.clone());
        }
    }
    for change in of.attributes.iter().filter(|change| wanted(&change.path)) {
        if attributes_stand(&mut ground, change)? {
            let (before, after) = (change.after.clone(), change.before.clone());
            attributes.push(AttributeChange {
                before,
                after,
                ..change.clone()
            });
        } else {
            left.push(change.path.clone());
        }
    }
    let parents = parents(source, of, committed, &operations, &attributes)?;
    Ok(Inverse {
        operations,
        attributes,
        left,
        parents,
    })
}

/// Where the pre-images of `of` are.
fn preimages(area: &Area, of: &Journal) -> io::Result<Dir> {
    let name = match of.stage {
        Place::Inside => SAVED,
        Place::Own | Place::Shared(_) => crate::promote::area::STAGE,
    };
    let id = match &of.stage {
        Place::Shared(head) => head,
        Place::Own | Place::Inside => &of.id,
    };
    area.transaction(id)?.open_dir(name)
}

fn still_stands(ground: &mut Ground<'_>, operation: &Operation) -> io::Result<bool> {
    let Some((dir, name)) = ground.parent(&operation.path)? else {
        return Ok(false);
    };
    let found = dir.stat(name)?;
    match (&operation.new, found) {
        (None, None) => Ok(true),
        (Some(new), Some(found)) if is_untouched(&new.fingerprint, &found) => {
            if found.entry.mode != new.fingerprint.entry.mode {
                return Ok(false);
            }
            match found.entry.kind {
                EntryKind::Directory => is_intact(&dir.open_dir(name)?, new),
                _ => Ok(true),
            }
        }
        _ => Ok(false),
    }
}

fn has_preimage(preimages: &Dir, operation: &Operation) -> io::Result<bool> {
    match &operation.old {
        None => Ok(true),
        Some(old) => Ok(preimages
            .stat(&operation.slot_name())?
            .is_some_and(|found| found.entry.kind == old.fingerprint.entry.kind)),
    }
}

fn attributes_stand(ground: &mut Ground<'_>, change: &AttributeChange) -> io::Result<bool> {
    let Some((dir, name)) = ground.parent(&change.path)? else {
        return Ok(false);
    };
    let Some(found) = dir.stat(name)? else {
        return Ok(false);
    };
    let after = &change.after;
    Ok(Inode::of(&found) == change.inode
        && (found.entry.mode, found.entry.uid, found.entry.gid)
            == (after.mode, after.uid, after.gid)
        && dir.xattrs(name)? == after.xattrs)
}

/// The directories on the way. One that nothing else happened in since gets its time back.
fn parents(
    source: &Tree,
    of: &Journal,
    committed: &Committed,
    operations: &[Operation],
    attributes: &[AttributeChange],
) -> io::Result<BTreeMap<RelPath, Parent>> {
    let mut parents = BTreeMap::new();
    let paths = operations
        .iter()
        .map(|operation| &operation.path)
        .chain(attributes.iter().map(|change| &change.path));
    for path in paths {
        let mut above = path.parent().or_else(|| Some(RelPath::root()));
        while let Some(at) = above {
            above = at.parent();
            let (Some(then), false) = (of.parents.get(&at), parents.contains_key(&at)) else {
                continue;
            };
            let now = source.dir(&at)?.stat_self()?;
            let is_in = |operation: &&Operation| operation.path.parent().as_ref() == Some(&at);
            let undone = operations.iter().filter(is_in).count();
            let all = undone == of.operations.iter().filter(is_in).count();
            let alone = committed.directories.get(&at) == Some(&now.entry.mtime);
            let parent = Parent {
                inode: Inode::of(&now),
                mode: now.entry.mode,
                mtime: now.entry.mtime,
                touched: undone > 0,
                leave: (all && alone).then_some(then.mtime),
            };
            parents.insert(at, parent);
        }
    }
    Ok(parents)
}

impl Inverse {
    /// The journal of the undo. Where pre-images are copies, they are staged now.
    pub fn journal(&self, conduct: &Conduct<'_>, of: &Journal) -> Result<Journal, PromoteError> {
        let mut journal = Journal::new(
            conduct.id.clone(),
            Kind::Undo(of.id.clone()),
            of.sandbox.clone(),
            of.root,
            conduct.place.clone(),
        );
        journal.parents = self.parents.clone();
        journal.operations = self.operations.clone();
        journal.attributes = self.attributes.clone();
        if of.stage == Place::Inside {
            let staged = stage_copies(conduct, of, &mut journal.operations);
            staged.map_err(|source| PromoteError::Io {
                operation: "stage what was replaced by",
                path: conduct.area.path.join(&of.id),
                source,
            })?;
            keep_copies(conduct, &mut journal)?;
        }
        Ok(journal)
    }
}

fn stage_copies(
    conduct: &Conduct<'_>,
    of: &Journal,
    operations: &mut [Operation],
) -> io::Result<()> {
    let saved = Tree::open(&conduct.area.path.join(&of.id).join("saved"))?;
    for operation in operations {
        let slot = operation.slot_name();
        if let Some(new) = &mut operation.new {
            let from = RelPath::root().join(&slot);
            copy_standing(&saved, &from, new, &conduct.stage, &slot)?;
            look_again(&conduct.stage, &slot, new)?;
        }
    }
    conduct.stage.sync_filesystem()
}

/// The copies have inodes of their own.
fn look_again(stage: &Dir, slot: &[u8], standing: &mut Standing) -> io::Result<()> {
    let mode = standing.fingerprint.entry.mode;
    standing.fingerprint = stage.stat(slot)?.ok_or(io::ErrorKind::NotFound)?;
    standing.fingerprint.entry.mode = mode;
    for Below {
        path, fingerprint, ..
    } in &mut standing.below
    {
        let mut dir = stage.open_dir(slot)?;
        let (parent, name) = (
            path.parent().unwrap_or_default(),
            path.name().unwrap_or_default(),
        );
        for component in parent.components() {
            dir = dir.open_dir(component)?;
        }
        *fingerprint = dir.stat(name)?.ok_or(io::ErrorKind::NotFound)?;
    }
    Ok(())
}
