//! A full copy, read against the manifest made with it.
//!
//! Every entry of the copy is looked at, none is read: one whose fingerprint is still that of the
//! manifest is what was copied. O(tree) in looks, O(changes) in everything else.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

use sandbox_model::{Entry, EntryKind, Fingerprint, RelPath, Timestamp};

use super::{Below, Contents, Descent, Hidden, LayerError, Touched, Visit, last_touch, vanished};
use crate::backend::copy::{self, Manifest};
use crate::base::unchanged;
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// A copied tree.
#[derive(Debug)]
pub struct CopyLayer {
    work: Tree,
    manifest: Manifest,
    hidden: Hidden,
}

/// One look at the whole copy.
struct Look {
    /// Which of the manifest's entries still have something in their place.
    met: Vec<bool>,
    found: Vec<Touched>,
    /// When each directory that is still there last changed.
    directories: HashMap<RelPath, Timestamp>,
}

impl CopyLayer {
    /// Opens a sandbox's copy.
    pub fn open(sandbox: &Sandbox) -> io::Result<CopyLayer> {
        Ok(CopyLayer {
            work: Tree::open(&sandbox.dir.join(copy::WORK))?,
            manifest: Manifest::load(&sandbox.dir)?,
            hidden: Hidden::of(sandbox),
        })
    }

    /// See [`super::Layer::walk`].
    pub(super) fn walk(&self, visit: &mut Visit<'_>) -> Result<(), LayerError> {
        let mut look = Look {
            met: vec![false; self.manifest.len()],
            found: Vec::new(),
            directories: HashMap::new(),
        };
        self.look(&mut look)?;
        self.deletions(&mut look);
        look.found.sort_by(|a, b| a.path.cmp(&b.path));
        let mut passed_over: HashSet<RelPath> = HashSet::new();
        for touched in look.found {
            let mut above = std::iter::successors(touched.path.parent(), RelPath::parent);
            if !passed_over.is_empty() && above.any(|dir| passed_over.contains(&dir)) {
                continue;
            }
            let path = touched.path.clone();
            if visit(touched)? == Descent::Over {
                passed_over.insert(path);
            }
        }
        Ok(())
    }

    /// Finds what is new or no longer what was copied.
    fn look(&self, look: &mut Look) -> Result<(), LayerError> {
        let root = RelPath::root();
        let found = self.work.root_dir().and_then(|dir| dir.stat_self());
        self.meet(&root, found.map_err(LayerError::at(&root))?, look);
        let mut pending = vec![root];
        while let Some(path) = pending.pop() {
            let entries = match self
                .work
                .dir(&path)
                .and_then(|dir| Ok((dir.entries()?, dir)))
            {
                Err(error) if vanished(&error) => continue,
                entries => entries.map_err(LayerError::at(&path))?,
            };
            let (entries, dir) = entries;
            for entry in entries {
                let at = path.join(&entry.name);
                let found = dir.stat(&entry.name).map_err(LayerError::at(&at))?;
                let Some(found) = found.filter(|_| !self.hidden.hides(&at)) else {
                    continue;
                };
                self.meet(&at, found, look);
                if found.entry.kind == EntryKind::Directory {
                    pending.push(at);
                }
            }
        }
        Ok(())
    }

    fn meet(&self, path: &RelPath, now: Fingerprint, look: &mut Look) {
        if now.entry.kind == EntryKind::Directory {
            look.directories.insert(path.clone(), last_touch(&now));
        }
        let known = self.manifest.position(path);
        if let Some(at) = known {
            look.met[at] = true;
        }
        let known = known.map(|at| &self.manifest.entries()[at]);
        let is_as_copied = known
            .and_then(|known| known.copy.as_ref())
            .is_some_and(|copy| is_untouched(copy, &now));
        if !is_as_copied || path.is_root() {
            look.found.push(Touched {
                path: path.clone(),
                now: Some(now),
                was: known.map(as_seen),
                contents: Contents::Own,
                below: if known.is_some() {
                    Below::Live
                } else {
                    Below::Replaced
                },
                changed: last_touch(&now),
            });
        }
    }

    /// What was copied and has nothing in its place.
    fn deletions(&self, look: &mut Look) {
        for (entry, _) in self
            .manifest
            .entries()
            .iter()
            .zip(&look.met)
            .filter(|(_, met)| !**met)
        {
            let mut above = std::iter::successors(entry.path.parent(), RelPath::parent);
            let changed = above.find_map(|dir| look.directories.get(&dir).copied());
            look.found.push(Touched {
                path: entry.path.clone(),
                now: None,
                was: Some(as_seen(entry)),
                contents: Contents::Own,
                below: Below::Replaced,
                changed: changed.unwrap_or_default(),
            });
        }
    }
}

/// Is `now` still the copy as it was made? A directory's change time tells of its attributes, too, so
/// one whose names changed is looked at closer.
pub(crate) fn is_untouched(copy: &Fingerprint, now: &Fingerprint) -> bool {
    unchanged(copy, now) && copy.ctime == now.ctime
}

/// The original as the sandbox first saw it: an ordinary user's copy of another's file has another
/// owner, and that is nothing the sandbox did.
fn as_seen(known: &copy::Entry) -> Fingerprint {
    let Some(copy) = known.copy else {
        return known.source;
    };
    let Entry { mode, uid, gid, .. } = copy.entry;
    Fingerprint {
        entry: Entry {
            mode,
            uid,
            gid,
            ..known.source.entry
        },
        ..known.source
    }
}

impl Side for CopyLayer {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        self.work.stat(path)
    }
    fn open(&self, path: &RelPath) -> io::Result<File> {
        self.work.open(path)
    }
    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        self.work.read_link(path)
    }
    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        self.work.xattrs(path)
    }
    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        self.work.list(path)
    }
}
