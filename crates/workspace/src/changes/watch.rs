//! Paths of the tree that something on the host reads by name, and the places that their links lead to.
//!
//! What a change puts at such a path, at what a link there leads to, or at a link on the way, reaches the
//! reader. A link in place of a directory above such a path leads the reader elsewhere. Case is folded:
//! a filesystem may do so, too.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sandbox_model::{Change, EntryKind, RelPath};

use super::follow::{End, follow};
use crate::side::Side;

/// How much is read at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// What stands there.
    Entry,
    /// Everything below it, too.
    Tree,
}

/// Paths that are read by name.
#[derive(Debug)]
pub(super) struct Watched {
    /// Where the tree stands.
    root: PathBuf,
    entries: BTreeSet<RelPath>,
    trees: BTreeSet<RelPath>,
}

impl Watched {
    pub(super) fn new(root: &Path) -> Watched {
        Watched {
            root: root.to_owned(),
            entries: BTreeSet::new(),
            trees: BTreeSet::new(),
        }
    }

    /// Adds a path of the host, as far as it is in the tree or leads into it.
    pub(super) fn add(&mut self, side: &dyn Side, at: &Path, extent: Extent) -> io::Result<()> {
        let end = self.add_from(side, &RelPath::root(), at.as_os_str().as_bytes(), extent)?;
        if end == End::Outside
            && let Some(at) = existing(at).filter(|at| at.starts_with(&self.root))
        {
            self.add_from(side, &RelPath::root(), at.as_os_str().as_bytes(), extent)?;
        }
        Ok(())
    }

    /// Adds what `target` means in the directory `from` of the tree.
    pub(super) fn add_from(
        &mut self,
        side: &dyn Side,
        from: &RelPath,
        target: &[u8],
        extent: Extent,
    ) -> io::Result<End> {
        let root = self.root.as_os_str().as_bytes().to_vec();
        let mut met = Vec::new();
        let end = follow(&root, from.clone(), target, side, &mut |link, left| {
            met.push((link.clone(), None));
            let is_plain = |name: &&Vec<u8>| !matches!(&name[..], b"" | b".");
            let left: Vec<_> = left.iter().filter(is_plain).collect();
            // A directory may take the link's place.
            if !left.is_empty() && left.iter().all(|name| name[..] != b".."[..]) {
                let at = left.iter().fold(link.clone(), |at, name| at.join(name));
                met.push((at, Some(extent)));
            }
        })?;
        if let End::Inside(at) = &end {
            met.push((at.clone(), Some(extent)));
        }
        for (at, extent) in met {
            let set = match extent {
                Some(Extent::Tree) => &mut self.trees,
                _ => &mut self.entries,
            };
            set.insert(folded(&at));
        }
        Ok(end)
    }

    /// Does `change` reach the reader of a path?
    pub(super) fn covers(&self, change: &Change) -> bool {
        if self.entries.is_empty() && self.trees.is_empty() {
            return false;
        }
        let path = folded(&change.path);
        let kind = change.after.or(change.before).map(|entry| entry.kind);
        if kind != Some(EntryKind::Directory) && self.entries.contains(&path) {
            return true;
        }
        let mut above = std::iter::successors(Some(path.clone()), RelPath::parent);
        if above.any(|above| self.trees.contains(&above)) {
            return true;
        }
        let is_link = change
            .after
            .is_some_and(|after| after.kind == EntryKind::Symlink);
        is_link && (is_above(&path, &self.entries) || is_above(&path, &self.trees))
    }
}

/// Is something in `set` at or below `path`?
fn is_above(path: &RelPath, set: &BTreeSet<RelPath>) -> bool {
    let mut from = set
        .range::<RelPath, _>(path..)
        .take_while(|at| at.as_bytes().starts_with(path.as_bytes()));
    from.any(|at| at.starts_with(path))
}

fn folded(path: &RelPath) -> RelPath {
    RelPath::new(&path.as_bytes().to_ascii_lowercase()).unwrap_or_else(|_| path.clone())
}

/// `at` with its links resolved, as far as it exists.
fn existing(at: &Path) -> Option<PathBuf> {
    for above in at.ancestors() {
        if let Ok(found) = std::fs::canonicalize(above) {
            return Some(found.join(at.strip_prefix(above).ok()?));
        }
    }
    None
}
