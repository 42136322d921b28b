//! Putting entries into an overlay's upper layer, as writing inside would: what the source has now
//! into a sandbox whose lower layer is frozen, and what an undo takes out of the source.
//!
//! The lower layer goes on showing what it has, so everything that differs is said above it: a copy
//! for what the source has, a whiteout for what it no longer has, and a directory hides all that
//! the lower one holds. Each path changes by one rename, so a crash leaves it as it was or as it
//! shall be; what it leaves in the scratch place goes at the next take.

use std::io;
use std::path::Path;

use sandbox_model::{EntryKind, OverlayXattr, RelPath};

use super::BASE;
use crate::backend::Entry;
use crate::backend::overlay::UPPER;
use crate::layer::{Hidden, Overlay};
use crate::meta::Meta;
use crate::side::Side;
use crate::transfer::{self, Privileges};
use crate::tree::{Dir, Replace, Tree};

/// Where a path is made before it takes its place, and goes when it has lost it.
const SCRATCH: &[u8] = b"take.new";

/// Takes `paths` from the source. Returns those that the sandbox has a directory to hold.
pub(super) fn take(meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<Vec<RelPath>> {
    let source = Tree::open(&meta.source)?;
    let taker = Taker::open(meta, dir, &dir.join(BASE))?;
    let mut taken = Vec::new();
    for path in paths {
        if let Some(parent) = path.parent()
            && taker.copy_up(&parent)?
        {
            taker.take(&source, path, path, |_, _| Ok(()))?;
            taken.push(path.clone());
        }
    }
    taker.own.remove_all(SCRATCH)?;
    Ok(taken)
}

/// Puts `entry` at `path` of the sandbox in `dir`, over the lower layer at `lower`. False where the
/// sandbox has no directory to hold it.
pub(crate) fn put(
    meta: &Meta,
    dir: &Path,
    lower: &Path,
    path: &RelPath,
    entry: &Entry<'_>,
) -> io::Result<bool> {
    let taker = Taker::open(meta, dir, lower)?;
    match entry {
        Entry::From { tree, at, mode } => {
            let Some(parent) = path.parent() else {
                return Ok(false);
            };
            if !taker.copy_up(&parent)? {
                return Ok(false);
            }
            taker.take(*tree, at, path, |own, name| match mode {
                Some(mode) => own.set_mode(name, *mode),
                None => Ok(()),
            })?;
        }
        Entry::Attributes(give) => {
            let merged = taker.merged()?;
            let kind = merged.stat(path)?.map(|found| found.entry.kind);
            match (kind, path.parent()) {
                (Some(EntryKind::Directory), _) => {
                    if !taker.copy_up(path)? {
                        return Ok(false);
                    }
                    match taker.upper.parent(path) {
                        Ok((dir, name)) => give(&dir, name)?,
                        Err(_) => give(&taker.upper.root_dir()?, b".")?,
                    }
                }
                (Some(_), Some(parent)) if taker.copy_up(&parent)? => {
                    taker.take(&merged, path, path, give)?;
                }
                _ => return Ok(false),
            }
        }
    }
    taker.own.remove_all(SCRATCH)?;
    Ok(true)
}

/// Gives the directories at `paths` the source's attributes.
pub(super) fn take_attributes(meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
    let source = Tree::open(&meta.source)?;
    let taker = Taker::open(meta, dir, &dir.join(BASE))?;
    for path in paths {
        if taker.copy_up(path)? {
            transfer::take_attributes(&source, path, &taker.upper)?;
        }
    }
    Ok(())
}

struct Taker {
    upper: Tree,
    lower: Tree,
    /// The sandbox's own directory, on the upper layer's filesystem.
    own: Dir,
    marks: OverlayXattr,
}

impl Taker {
    fn open(meta: &Meta, dir: &Path, lower: &Path) -> io::Result<Taker> {
        Ok(Taker {
            upper: Tree::open(&dir.join(UPPER))?,
            lower: Tree::open(lower)?,
            own: Dir::open(dir)?,
            marks: meta.xattr.unwrap_or(OverlayXattr::User),
        })
    }

    /// What the sandbox shows at this moment; a view remembers directories that a take replaces.
    fn merged(&self) -> io::Result<Overlay> {
        let open = |tree: &Tree| Tree::open(tree.path());
        Ok(Overlay::of(
            open(&self.upper)?,
            open(&self.lower)?,
            self.marks,
            Hidden::default(),
        ))
    }

    /// Brings the directory `path` that the sandbox shows into the upper layer, with those above
    /// it, as writing to it inside would. False where it shows none.
    fn copy_up(&self, path: &RelPath) -> io::Result<bool> {
        let merged = self.merged()?;
        match merged.stat(path)? {
            Some(found) if found.entry.kind == EntryKind::Directory => {}
            _ => return Ok(false),
        }
        let mut dir = self.upper.root_dir()?;
        let mut at = RelPath::root();
        for name in path.components() {
            at = at.join(name);
            if dir.stat(name)?.is_none() {
                dir.while_writable(|dir| {
                    transfer::copy_entry(&merged, &at, dir, name, Privileges::Keep)
                })?;
            }
            dir = dir.open_dir(name)?;
        }
        Ok(true)
    }

    /// Makes `path`, whose directory is in the upper layer, what `from` has at `at`, after `finish`
    /// gave it what it is to have besides.
    fn take(
        &self,
        from: &dyn Side,
        at: &RelPath,
        path: &RelPath,
        finish: impl Fn(&Dir, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.own.remove_all(SCRATCH)?;
        let hides = self.merged()?.lower_has(path)?;
        let found = from.stat(at)?;
        match found {
            Some(_) => {
                transfer::copy_below(from, at, &self.own, SCRATCH)?;
                finish(&self.own, SCRATCH)?;
            }
            None if hides => self.own.make_node(SCRATCH, EntryKind::CharDevice, 0)?,
            None => {}
        }
        let directory = match found {
            Some(found) if found.entry.kind == EntryKind::Directory => self.own.stat(SCRATCH)?,
            _ => None,
        };
        if directory.is_some() {
            if hides {
                let opaque = format!("{}opaque", self.marks.prefix());
                self.own.set_xattr(SCRATCH, opaque.as_bytes(), b"y")?;
            }
            // A directory that its owner may not write to cannot be moved by him either.
            self.own.set_mode(SCRATCH, 0o700)?;
        }
        let (dir, name) = self.upper.parent(path)?;
        dir.while_writable(|dir| self.put(dir, name))?;
        match directory {
            Some(found) => dir.set_mode(name, found.entry.mode),
            None => Ok(()),
        }
    }

    /// Puts what the scratch place has, which may be nothing, in place of `name`.
    fn put(&self, dir: &Dir, name: &[u8]) -> io::Result<()> {
        let made = self.own.stat(SCRATCH)?.is_some();
        let Some(old) = dir.stat(name)? else {
            return match made {
                true => self.own.rename(SCRATCH, dir, name, Replace::No),
                false => Ok(()),
            };
        };
        if old.entry.kind == EntryKind::Directory {
            dir.set_mode(name, old.entry.mode | 0o700)?;
        }
        match made {
            true => self.own.rename(SCRATCH, dir, name, Replace::Exchange),
            false => dir.rename(name, &self.own, SCRATCH, Replace::No),
        }
    }
}
