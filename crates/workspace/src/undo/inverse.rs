//! The inverse of a transaction, as far as what it left still stands.
//!
//! Whether something still stands is a matter of kind, mode, owner, contents and extended
//! attributes, not of times or inodes. What is found is what the undo's own journal speaks of.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use crate::alike::{Spot, alike, same_metadata};
use crate::layer::vanished;
use crate::promote::apply::keep_copies;
use crate::promote::area::{Area, SAVED, STAGE};
use crate::promote::conduct::Conduct;
use crate::promote::journal::{
    AttributeChange, Attributes, Below, Committed, Inode, Journal, Kind, Operation, Parent, Place,
    Standing,
};
use crate::promote::stage::Copies;
use crate::promote::{PromoteError, promotable, seal};
use crate::side::Side;
use crate::tree::{Dir, Tree};

/// Which paths of a transaction an undo is about.
pub(super) struct Wanted<'w> {
    /// At or below these; everywhere, if there are none.
    pub paths: &'w [RelPath],
    /// What no other undo has taken back.
    pub standing: BTreeSet<RelPath>,
}

/// What an undo will do.
pub(super) struct Inverse {
    pub operations: Vec<Operation>,
    pub attributes: Vec<AttributeChange>,
    /// Paths where neither of the two versions stands.
    pub changed: Vec<RelPath>,
    /// Paths that are already as the undo would make them.
    pub already: Vec<RelPath>,
    /// Selected paths that moved with a whole directory and cannot be taken back alone, each with
    /// that directory.
    pub parts: Vec<(RelPath, RelPath)>,
    parents: BTreeMap<RelPath, Parent>,
}

/// Inverts `of` where it is wanted.
pub(super) fn invert(
    area: &Area,
    source: &Tree,
    of: &Journal,
    committed: &Committed,
    wanted: &Wanted<'_>,
) -> io::Result<Inverse> {
    let mut inverse = Inverse {
        operations: Vec::new(),
        attributes: Vec::new(),
        changed: Vec::new(),
        already: Vec::new(),
        parts: Vec::new(),
        parents: BTreeMap::new(),
    };
    let preimages = displaced(area, of)?;
    let standing = |path: &RelPath| wanted.standing.contains(path);
    for operation in of.operations.iter().filter(|o| standing(&o.path)) {
        match wanted.selects(&operation.path) {
            true => inverse.add(source, &preimages, of, operation)?,
            false => inverse.parts.extend(
                wanted
                    .paths
                    .iter()
                    .filter(|at| at.starts_with(&operation.path))
                    .map(|at| (at.clone(), operation.path.clone())),
            ),
        }
    }
    let attributes = of.attributes.iter();
    for change in attributes.filter(|c| standing(&c.path) && wanted.selects(&c.path)) {
        inverse.add_attributes(source, change)?;
    }
    inverse.parents = inverse.find_parents(source, of, committed)?;
    Ok(inverse)
}

impl Wanted<'_> {
    fn selects(&self, path: &RelPath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|at| path.starts_with(at))
    }
}

/// Where the entries are that `of` took out of the source.
pub(super) fn displaced(area: &Area, of: &Journal) -> io::Result<Tree> {
    let dir = match &of.stage {
        Place::Inside => match area.transaction(&of.id)?.open_dir(SAVED) {
            // It took nothing out.
            Err(error) if vanished(&error) => area.transaction(&of.id)?,
            saved => saved?,
        },
        Place::Own => area.transaction(&of.id)?.open_dir(STAGE)?,
        Place::Shared(head) => area.transaction(head)?.open_dir(STAGE)?,
    };
    Tree::of(&dir)
}

impl Inverse {
    fn add(
        &mut self,
        source: &Tree,
        preimages: &Tree,
        of: &Journal,
        operation: &Operation,
    ) -> io::Result<()> {
        let path = &operation.path;
        let has_place = match source.parent(path) {
            Err(error) if vanished(&error) => false,
            parent => parent.map(|_| true)?,
        };
        let found = standing(source, path)?;
        let slot = RelPath::root().join(&operation.slot_name());
        if has_place
            && stands(source, of, operation, found.as_ref())?
            && has_preimage(preimages, &slot, operation)?
        {
            self.operations.push(Operation {
                path: path.clone(),
                slot: operation.slot,
                old: found,
                new: operation.old.clone(),
            });
        } else if has_place && is_back(source, preimages, &slot, operation)? {
            self.already.push(path.clone());
        } else {
            self.changed.push(path.clone());
        }
        Ok(())
    }

    fn add_attributes(&mut self, source: &Tree, change: &AttributeChange) -> io::Result<()> {
        let found = source.stat(&change.path)?;
        let found = found.filter(|found| found.entry.kind == change.inode.kind);
        let Some(found) = found else {
            self.changed.push(change.path.clone());
            return Ok(());
        };
        let now = Attributes::of(&found.entry, source.xattrs(&change.path)?);
        if now.same(&change.after) {
            self.attributes.push(AttributeChange {
                path: change.path.clone(),
                inode: Inode::of(&found),
                before: now,
                after: change.before.clone(),
            });
        } else if now.same(&change.before) {
            self.already.push(change.path.clone());
        } else {
            self.changed.push(change.path.clone());
        }
        Ok(())
    }

    /// The directories on the way. One that nothing else happened in since gets its time back.
    fn find_parents(
        &self,
        source: &Tree,
        of: &Journal,
        committed: &Committed,
    ) -> io::Result<BTreeMap<RelPath, Parent>> {
        let mut parents = BTreeMap::new();
        let operations = self.operations.iter().map(|operation| &operation.path);
        for path in operations.chain(self.attributes.iter().map(|change| &change.path)) {
            let mut above = path.parent().or_else(|| Some(RelPath::root()));
            while let Some(at) = above {
                above = at.parent();
                if parents.contains_key(&at) {
                    continue;
                }
                let now = source.dir(&at)?.stat_self()?;
                let is_in = |operation: &&Operation| operation.path.parent().as_ref() == Some(&at);
                let undone = self.operations.iter().filter(is_in).count();
                let all = undone == of.operations.iter().filter(is_in).count();
                let alone = committed.directories.get(&at) == Some(&now.entry.mtime);
                let before = of.parents.get(&at).filter(|_| all && alone);
                let parent = Parent {
                    inode: Inode::of(&now),
                    mode: now.entry.mode,
                    mtime: now.entry.mtime,
                    touched: undone > 0,
                    leave: before.map(|then| then.mtime),
                };
                parents.insert(at, parent);
            }
        }
        Ok(parents)
    }

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
        journal.left = [&self.changed[..], &self.already[..]].concat();
        let cannot = |source| PromoteError::Io {
            operation: "stage what was replaced by",
            path: conduct.area.path.join(&of.id),
            source,
        };
        if of.stage == Place::Inside {
            stage_copies(conduct, of, &mut journal.operations).map_err(cannot)?;
            keep_copies(conduct, &mut journal)?;
        }
        journal.seals = seal::staged(&conduct.stage, &mut journal.operations).map_err(cannot)?;
        Ok(journal)
    }
}

impl Attributes {
    /// Are they the same, but for what is not ours to give?
    pub(super) fn same(&self, other: &Attributes) -> bool {
        (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid)
            && promotable(self.xattrs.clone()) == promotable(other.xattrs.clone())
    }
}

/// What `source` has at `path`, with everything below it, sorted.
fn standing(source: &Tree, path: &RelPath) -> io::Result<Option<Standing>> {
    let Some(fingerprint) = source.stat(path)? else {
        return Ok(None);
    };
    let mut below = Vec::new();
    let mut pending = Vec::new();
    if fingerprint.entry.kind == EntryKind::Directory {
        pending.push(RelPath::root());
    }
    while let Some(at) = pending.pop() {
        let dir = source.dir(&path.join_path(&at))?;
        for entry in dir.entries()? {
            let at = at.join(&entry.name);
            // What goes while one looks is noticed when the directory is moved.
            let Some(fingerprint) = dir.stat(&entry.name)? else {
                continue;
            };
            if fingerprint.entry.kind == EntryKind::Directory {
                pending.push(at.clone());
            }
            below.push(Below {
                path: at,
                fingerprint,
                digest: None,
            });
        }
    }
    below.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(Standing {
        fingerprint,
        digest: None,
        below,
    }))
}

/// Does `found` hold what `operation` put there?
fn stands(
    source: &Tree,
    of: &Journal,
    operation: &Operation,
    found: Option<&Standing>,
) -> io::Result<bool> {
    let (new, found) = match (&operation.new, found) {
        (None, None) => return Ok(true),
        (Some(new), Some(found)) => (new, found),
        _ => return Ok(false),
    };
    if new.below.len() != found.below.len() {
        return Ok(false);
    }
    let path = &operation.path;
    if !entry_stands(source, of, path, &new.fingerprint, &found.fingerprint)? {
        return Ok(false);
    }
    let planned: BTreeMap<_, _> = new
        .below
        .iter()
        .map(|b| (&b.path, &b.fingerprint))
        .collect();
    for below in &found.below {
        let path = path.join_path(&below.path);
        let Some(planned) = planned.get(&below.path) else {
            return Ok(false);
        };
        if !entry_stands(source, of, &path, planned, &below.fingerprint)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn entry_stands(
    source: &Tree,
    of: &Journal,
    path: &RelPath,
    planned: &Fingerprint,
    found: &Fingerprint,
) -> io::Result<bool> {
    let is_file = found.entry.kind == EntryKind::File;
    let seal = of.seals.get(path);
    let sized = is_file && !seal.is_some_and(|seal| seal::is_of_index(seal));
    if !same_metadata(planned, found) || sized && planned.entry.size != found.entry.size {
        return Ok(false);
    }
    match seal {
        Some(seal) => Ok(*seal == seal::seal(source, path, found)?),
        // It could not be read, or an older version took no digests: the time has to do.
        None if found.entry.kind == EntryKind::Directory => Ok(true),
        None => Ok(planned.entry.mtime == found.entry.mtime),
    }
}

fn has_preimage(preimages: &Tree, slot: &RelPath, operation: &Operation) -> io::Result<bool> {
    match &operation.old {
        None => Ok(true),
        Some(old) => Ok(preimages
            .stat(slot)?
            .is_some_and(|found| found.entry.kind == old.fingerprint.entry.kind)),
    }
}

/// Has the source what stood there before `operation`?
fn is_back(
    source: &Tree,
    preimages: &Tree,
    slot: &RelPath,
    operation: &Operation,
) -> io::Result<bool> {
    let path = &operation.path;
    let Some(old) = &operation.old else {
        return Ok(source.stat(path)?.is_none());
    };
    let now = Spot {
        side: source,
        path,
        mode: None,
    };
    let before = Spot {
        side: preimages,
        path: slot,
        mode: Some(old.fingerprint.entry.mode),
    };
    alike(&now, &before)
}

fn stage_copies(
    conduct: &Conduct<'_>,
    of: &Journal,
    operations: &mut [Operation],
) -> io::Result<()> {
    let saved = displaced(conduct.area, of)?;
    let mut copies = Copies::in_dir(&conduct.stage);
    for operation in operations {
        let slot = operation.slot_name();
        if let Some(new) = &mut operation.new {
            let at = RelPath::root().join(&slot);
            copies.add(&saved, &at, new, &at)?;
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
