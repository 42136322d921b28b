//! Letting promoted paths leave an overlay's upper layer.
//!
//! An entry of the upper may go when the lower now shows the same in its place, so that no process
//! inside notices. A directory that hides the lower (opaque) keeps its entries, unless that mark can
//! go first: when the lower has nothing there that the upper does not name itself. One that shows
//! another part of the lower in its place (redirected) keeps them too.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use sandbox_model::{EntryKind, Fingerprint, OverlayXattr, RelPath};

use crate::meta::Meta;
use crate::side::Side;
use crate::transfer;
use crate::tree::{Dir, Tree};

/// Removes from the layer at `upper` what `lower` shows as well, at `paths` and in the directories
/// above them.
pub(crate) fn absorb(meta: &Meta, upper: &Path, lower: &Tree, paths: &[RelPath]) -> io::Result<()> {
    let layer = Layer::open(meta, upper, lower)?;
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
    // Upwards: entries, then the directories that they leave empty.
    let mut entries: Vec<&RelPath> = paths.iter().copied().chain(&ancestors).collect();
    entries.sort_unstable();
    entries.dedup();
    for path in entries.into_iter().rev() {
        let parent_clear = path.parent().is_some_and(|parent| clear.contains(&parent));
        if parent_clear {
            layer.remove_if_shown_below(path, clear.contains(path))?;
        }
    }
    Ok(())
}

/// Gives up what the layer at `upper` has at `paths`, and below them, for what `lower` has.
pub(crate) fn take(meta: &Meta, upper: &Path, lower: &Tree, paths: &[RelPath]) -> io::Result<()> {
    let layer = Layer::open(meta, upper, lower)?;
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
        if layer.directory(&layer.upper, &parent)?.is_none() {
            continue; // It shows the lower already.
        }
        if clear.contains(&parent) {
            layer
                .upper
                .dir(&parent)?
                .while_writable(|dir| dir.remove_all(name))?;
        } else {
            // The directory does not show the lower one, so it needs a copy.
            transfer::replace(lower, path, &layer.upper)?;
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
    upper: Tree,
    lower: &'l Tree,
    prefix: &'static str,
}

impl<'l> Layer<'l> {
    fn open(meta: &Meta, upper: &Path, lower: &'l Tree) -> io::Result<Layer<'l>> {
        Ok(Layer {
            upper: Tree::open(upper)?,
            lower,
            prefix: meta.xattr.unwrap_or(OverlayXattr::User).prefix(),
        })
    }

    /// Is the directory `path` of the upper merged with the one at the same path of the lower,
    /// after its marks were taken away where that changes nothing? `clear` are directories above
    /// for which that holds.
    fn merges_with_lower(&self, path: &RelPath, clear: &BTreeSet<RelPath>) -> io::Result<bool> {
        if path.parent().is_some_and(|parent| !clear.contains(&parent)) {
            return Ok(false);
        }
        let Some(upper) = self.directory(&self.upper, path)? else {
            return Ok(false);
        };
        let Some(lower) = self.directory(self.lower, path)? else {
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
    fn shows(&self, path: &RelPath, target: &[u8]) -> io::Result<bool> {
        let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let target = match (target, path.parent()) {
            ([b'/', from_root @ ..], _) => RelPath::new(from_root).map_err(bad)?,
            (sibling, Some(parent)) => parent.join_path(&RelPath::new(sibling).map_err(bad)?),
            (_, None) => return Ok(false),
        };
        Ok(self.directory(self.lower, &target)?.is_some())
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

    fn directory(&self, tree: &Tree, path: &RelPath) -> io::Result<Option<Dir>> {
        match tree.stat(path)? {
            Some(found) if found.entry.kind == EntryKind::Directory => tree.dir(path).map(Some),
            _ => Ok(None),
        }
    }

    /// `merges` says that a directory there shows all of the lower one.
    fn remove_if_shown_below(&self, path: &RelPath, merges: bool) -> io::Result<()> {
        let Some(ours) = self.upper.stat(path)? else {
            return Ok(());
        };
        let (dir, name) = self.upper.parent(path)?;
        let theirs = self.lower.stat(path)?;
        let whiteout = ours.entry.kind == EntryKind::CharDevice && ours.entry.rdev == 0;
        match theirs {
            None if whiteout => dir.while_writable(|dir| dir.unlink(name)),
            Some(theirs) if !whiteout && self.same(path, &ours, &theirs)? => {
                if ours.entry.kind == EntryKind::Directory {
                    if !merges {
                        return Ok(());
                    }
                    return match dir.while_writable(|dir| dir.remove_dir(name)) {
                        // It holds other changes still.
                        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                        removed => removed,
                    };
                }
                dir.while_writable(|dir| dir.unlink(name))
            }
            _ => Ok(()),
        }
    }

    /// Would a process inside see the same? Contents are told by size and time: the caller put
    /// them there with their times, and an edit since then has moved one of the two.
    fn same(&self, path: &RelPath, ours: &Fingerprint, theirs: &Fingerprint) -> io::Result<bool> {
        let (a, b) = (&ours.entry, &theirs.entry);
        if (a.kind, a.mode, a.uid, a.gid, a.rdev) != (b.kind, b.mode, b.uid, b.gid, b.rdev) {
            return Ok(false);
        }
        let same_contents = match a.kind {
            EntryKind::Directory => true,
            EntryKind::Symlink => self.upper.read_link(path)? == self.lower.read_link(path)?,
            _ => (a.size, a.mtime) == (b.size, b.mtime),
        };
        Ok(same_contents && self.upper.xattrs(path)? == self.lower.xattrs(path)?)
    }
}
