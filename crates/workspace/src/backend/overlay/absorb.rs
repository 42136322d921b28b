//! Letting promoted paths leave an overlay's upper layer.
//!
//! An entry of the upper may go when the lower now shows the same in its place, so that no process
//! inside notices. A directory that hides the lower (opaque) keeps its entries, unless that mark can
//! go first: when the lower has nothing there that the upper does not name itself. One that shows
//! another part of the lower in its place (redirected) keeps them too.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use sandbox_model::{EntryKind, Fingerprint, OverlayXattr, RelPath};

use crate::meta::Meta;
use crate::transfer;
use crate::tree::{Dir, Near, Tree, Unlinker, unlinking};

/// Removes from the layer at `upper` what `lower` shows as well, at `paths` and in the directories
/// above them.
pub(crate) fn absorb(meta: &Meta, upper: &Path, lower: &Tree, paths: &[RelPath]) -> io::Result<()> {
    let upper = Tree::open(upper)?;
    let mut layer = Layer::of(meta, &upper, lower);
    let mut clear = BTreeSet::new();
    let ancestors = ancestors(paths);
    let mut paths: Vec<&RelPath> = paths.iter().collect();
    paths.sort_unstable();
    // Downwards: marks that can go, so that what is below them can.
    for dir in ancestors.iter().chain(paths.iter().copied()) {
        if layer.merges_with_lower(dir, &clear)? {
            clear.insert(dir.clone());
        }
    }
    // Entries, then, upwards, the directories that they leave empty.
    let mut entries: Vec<&RelPath> = paths.iter().copied().chain(&ancestors).collect();
    entries.sort_unstable();
    entries.dedup();
    entries.retain(|path| path.parent().is_some_and(|parent| clear.contains(&parent)));
    let directories = unlinking(|unlinker| layer.unlink_shown_below(&entries, unlinker))?;
    for path in directories.into_iter().rev() {
        if clear.contains(path) {
            layer.remove_if_shown_below(path)?;
        }
    }
    Ok(())
}

/// Gives up what the layer at `upper` has at `paths`, and below them, for what `lower` has.
pub(crate) fn take(meta: &Meta, upper: &Path, lower: &Tree, paths: &[RelPath]) -> io::Result<()> {
    let upper = Tree::open(upper)?;
    let mut layer = Layer::of(meta, &upper, lower);
    let mut clear = BTreeSet::new();
    for dir in ancestors(paths) {
        if layer.merges_with_lower(&dir, &clear)? {
            clear.insert(dir);
        }
    }
    for path in paths {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            continue;
        };
        let Some(dir) = layer.upper.dir(&parent)? else {
            continue; // It shows the lower already.
        };
        if clear.contains(&parent) {
            dir.while_writable(|dir| dir.remove_all(name))?;
        } else {
            // The directory does not show the lower one, so it needs a copy.
            transfer::replace(lower, path, &upper)?;
        }
    }
    Ok(())
}

/// Every directory above `paths`, parents first.
fn ancestors(paths: &[RelPath]) -> BTreeSet<RelPath> {
    paths
        .iter()
        .flat_map(|path| std::iter::successors(path.parent(), RelPath::parent))
        .collect()
}

struct Layer<'l> {
    upper: Near<'l>,
    lower: Near<'l>,
    prefix: &'static str,
}

impl<'l> Layer<'l> {
    fn of(meta: &Meta, upper: &'l Tree, lower: &'l Tree) -> Layer<'l> {
        Layer {
            upper: Near::new(upper),
            lower: Near::new(lower),
            prefix: meta.xattr.unwrap_or(OverlayXattr::User).prefix(),
        }
    }

    /// Is the directory `path` of the upper merged with the one at the same path of the lower,
    /// after its marks were taken away where that changes nothing? `clear` are directories above
    /// for which that holds.
    fn merges_with_lower(&mut self, path: &RelPath, clear: &BTreeSet<RelPath>) -> io::Result<bool> {
        if path.parent().is_some_and(|parent| !clear.contains(&parent)) {
            return Ok(false);
        }
        let Some(upper) = directory(&mut self.upper, path)? else {
            return Ok(false);
        };
        let Some(lower) = directory(&mut self.lower, path)? else {
            return Ok(false);
        };
        let [opaque, redirect] = self.marks();
        let hides = upper.xattr(b".", &opaque)?.as_deref() == Some(b"y");
        let elsewhere = upper.xattr(b".", &redirect)?;
        if let Some(target) = &elsewhere
            && self.shows(path, target)?
        {
            return Ok(false);
        }
        if hides || elsewhere.is_some() {
            let names = |dir: &Dir| -> io::Result<BTreeSet<Vec<u8>>> {
                Ok(dir.entries()?.into_iter().map(|entry| entry.name).collect())
            };
            if !names(&lower)?.is_subset(&names(&upper)?) {
                return Ok(false);
            }
            self.hide_below(&upper, &lower)?;
            upper.remove_xattr(b".", opaque.as_bytes())?;
            upper.remove_xattr(b".", redirect.as_bytes())?;
        }
        Ok(true)
    }

    /// Does the redirect `target` of the directory at `path`, whose parents are where they are in
    /// the lower, still lead to a directory?
    fn shows(&mut self, path: &RelPath, target: &[u8]) -> io::Result<bool> {
        let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let target = match (target, path.parent()) {
            ([b'/', from_root @ ..], _) => RelPath::new(from_root).map_err(bad)?,
            (sibling, Some(parent)) => parent.join_path(&RelPath::new(sibling).map_err(bad)?),
            (_, None) => return Ok(false),
        };
        Ok(directory(&mut self.lower, &target)?.is_some())
    }

    fn marks(&self) -> [String; 2] {
        ["opaque", "redirect"].map(|mark| format!("{}{mark}", self.prefix))
    }

    /// Lets the directories in `upper` go on hiding what `lower` has below them when `upper` itself
    /// stops hiding it. Each may be absorbed in its turn.
    fn hide_below(&self, upper: &Dir, lower: &Dir) -> io::Result<()> {
        let [opaque, redirect] = self.marks();
        for entry in upper.entries()? {
            let moved_here = upper.xattr(&entry.name, &redirect)?.is_some();
            if entry.kind == Some(EntryKind::Directory)
                && !moved_here
                && lower.stat(&entry.name)?.is_some()
            {
                upper.set_xattr(&entry.name, opaque.as_bytes(), b"y")?;
            }
        }
        Ok(())
    }

    /// Removes those of `entries` that are no directories and that the lower shows as well. Returns
    /// the others.
    fn unlink_shown_below<'p>(
        &mut self,
        entries: &[&'p RelPath],
        unlinker: &mut Unlinker<'_, '_>,
    ) -> io::Result<Vec<&'p RelPath>> {
        let mut directories = Vec::new();
        // Each directory once: two threads must not open and close one that forbids it.
        let mut shown: BTreeMap<RelPath, Vec<Vec<u8>>> = BTreeMap::new();
        for path in entries {
            let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
                continue;
            };
            let Some(ours) = self.upper.stat(path)? else {
                continue;
            };
            if ours.entry.kind == EntryKind::Directory {
                directories.push(*path);
            } else if self.is_shown_below(path, &ours)? {
                shown.entry(parent).or_default().push(name.to_vec());
            }
        }
        for (parent, names) in shown {
            if let Some(dir) = directory(&mut self.upper, &parent)? {
                unlinker.unlink(dir, names)?;
            }
        }
        Ok(directories)
    }

    /// Removes the directory at `path`, which merges with the lower one, if nothing is left in it.
    fn remove_if_shown_below(&mut self, path: &RelPath) -> io::Result<()> {
        let Some(ours) = self.upper.stat(path)? else {
            return Ok(());
        };
        if !self.is_shown_below(path, &ours)? {
            return Ok(());
        }
        let Some((dir, name)) = self.upper.parent(path)? else {
            return Ok(());
        };
        match dir.while_writable(|dir| dir.remove_dir(name)) {
            // It holds other changes still.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        }
    }

    /// Would a process inside see the same at `path` without the upper's entry, `ours`?
    fn is_shown_below(&mut self, path: &RelPath, ours: &Fingerprint) -> io::Result<bool> {
        let whiteout = ours.entry.kind == EntryKind::CharDevice && ours.entry.rdev == 0;
        match self.lower.stat(path)? {
            None => Ok(whiteout),
            Some(theirs) => Ok(!whiteout && self.same(path, ours, &theirs)?),
        }
    }

    /// Are both entries alike? Contents are told by size and time: the caller put them there with
    /// their times, and an edit since then has moved one of the two.
    fn same(
        &mut self,
        path: &RelPath,
        ours: &Fingerprint,
        theirs: &Fingerprint,
    ) -> io::Result<bool> {
        let (a, b) = (&ours.entry, &theirs.entry);
        if (a.kind, a.mode, a.uid, a.gid, a.rdev) != (b.kind, b.mode, b.uid, b.gid, b.rdev) {
            return Ok(false);
        }
        let (Some((upper, name)), Some((lower, _))) =
            (self.upper.parent(path)?, self.lower.parent(path)?)
        else {
            return Ok(false);
        };
        let same_contents = match a.kind {
            EntryKind::Directory => true,
            EntryKind::Symlink => upper.read_link(name)? == lower.read_link(name)?,
            _ => (a.size, a.mtime) == (b.size, b.mtime),
        };
        Ok(same_contents && upper.xattrs(name)? == lower.xattrs(name)?)
    }
}

/// The directory at `path`, opened, if there is one.
fn directory(tree: &mut Near<'_>, path: &RelPath) -> io::Result<Option<Dir>> {
    let Some((dir, name)) = tree.parent(path)? else {
        return Ok(None);
    };
    match dir.stat(name)? {
        Some(found) if found.entry.kind == EntryKind::Directory => dir.open_dir(name).map(Some),
        _ => Ok(None),
    }
}
