//! The copy backend: the whole source, copied at create.
//!
//! Beside the copy stands a [`Manifest`] of what was copied, original and copy, by which a later
//! look tells what changed on either side without reading contents.

use std::io;
use std::path::Path;

use sandbox_model::{BackendKind, RelPath, WorkspaceMount};

use super::manifest;
pub use super::manifest::{Entry, Manifest};
use super::{Backend, BackendError};
use crate::meta::Meta;
use crate::progress::Progress;
use crate::side::Side;
use crate::transfer::{self, Replaced};
use crate::tree::{Dir, Tree};

/// The backend.
#[derive(Debug)]
pub struct Copy;

/// The copy, in the sandbox's directory.
pub(crate) const WORK: &str = "work";

impl Backend for Copy {
    fn kind(&self) -> BackendKind {
        BackendKind::Copy
    }

    fn probe(&self, _source: &Path, _state: &Path) -> Result<(), String> {
        Ok(())
    }

    fn create(
        &self,
        meta: &mut Meta,
        dir: &Path,
        state: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        let source = Tree::open(&meta.source).map_err(BackendError::io("read", &meta.source))?;
        let copy = make_work(dir).map_err(BackendError::io("write to", dir))?;
        let skip: Vec<RelPath> = state
            .strip_prefix(&meta.source)
            .ok()
            .and_then(|below| RelPath::from_path(below).ok())
            .into_iter()
            .collect();
        let (_, records) = transfer::copy_tree_recorded(&source, &copy, &skip, progress)?;
        let entries = records.into_iter().map(|record| Entry {
            path: record.path,
            source: record.source,
            copy: Some(record.copy),
        });
        manifest::write(dir, entries).map_err(BackendError::io("write to", dir))
    }

    fn mount(&self, _meta: &Meta, dir: &Path) -> WorkspaceMount {
        WorkspaceMount::Bind {
            dir: dir.join(WORK),
        }
    }

    /// The new copy's inodes are others, so the manifest is written anew: what was unchanged in
    /// the old copy is unchanged in the new one, and the rest stays changed.
    fn duplicate(
        &self,
        _meta: &Meta,
        from: &Path,
        to: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        let known = Manifest::load(from).map_err(BackendError::io("read", from))?;
        let work = Tree::open_in(from, WORK).map_err(BackendError::io("read", from))?;
        let copy = make_work(to).map_err(BackendError::io("write to", to))?;
        let (_, records) = transfer::copy_tree_recorded(&work, &copy, &[], progress)?;
        let entries = known.iter().map(|entry| {
            let made = records
                .binary_search_by(|record| record.path.cmp(&entry.path))
                .ok();
            let record = made.map(|at| &records[at]);
            let same = record.filter(|record| {
                entry
                    .copy
                    .is_some_and(|copy| crate::base::unchanged(&copy, &record.source))
            });
            Entry {
                copy: same.map(|record| record.copy),
                ..entry
            }
        });
        manifest::write(to, entries).map_err(BackendError::io("write to", to))
    }

    fn parts(&self) -> &'static [&'static str] {
        &[WORK, manifest::FILE]
    }

    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        let mut known = Manifest::load(dir)?;
        self.refresh(meta, dir, &mut known, paths)?;
        known.save(dir)
    }

    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<Vec<RelPath>> {
        let (source, work) = (Tree::open(&meta.source)?, Tree::open(&dir.join(WORK))?);
        let mut known = Manifest::load(dir)?;
        let mut taken = Vec::new();
        for path in paths {
            if transfer::replace(&source, path, &work)? == Replaced::NoPlace {
                continue;
            }
            let mut touched: Vec<RelPath> = known.below(path).collect();
            below(&work, path, &mut touched)?;
            self.refresh(meta, dir, &mut known, &touched)?;
            taken.push(path.clone());
        }
        known.save(dir)?;
        Ok(taken)
    }

    /// Without a copy to compare with, what the workspace has is compared with the source's own.
    fn rebase(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        let source = Tree::open(&meta.source)?;
        let mut known = Manifest::load(dir)?;
        for path in paths {
            match source.stat(path)? {
                Some(found) => known.insert(Entry {
                    path: path.clone(),
                    source: found,
                    copy: None,
                }),
                None => known.remove(path),
            }
        }
        known.save(dir)
    }
}

impl Copy {
    /// From now on, what stands at `paths` in source and copy is what they are compared with.
    fn refresh(
        &self,
        meta: &Meta,
        dir: &Path,
        known: &mut Manifest,
        paths: &[RelPath],
    ) -> io::Result<()> {
        let (source, work) = (Tree::open(&meta.source)?, Tree::open(&dir.join(WORK))?);
        for path in paths {
            match source.stat(path)? {
                Some(found) => known.insert(Entry {
                    path: path.clone(),
                    source: found,
                    copy: work.stat(path)?,
                }),
                None => known.remove(path),
            }
        }
        Ok(())
    }
}

fn make_work(dir: &Path) -> io::Result<Tree> {
    Dir::open(dir)?.make_dir(WORK.as_bytes())?;
    Tree::open(&dir.join(WORK))
}

/// Adds `path` and every path below it in `tree`, where there is any.
fn below(tree: &Tree, path: &RelPath, paths: &mut Vec<RelPath>) -> io::Result<()> {
    let mut pending = vec![path.clone()];
    while let Some(path) = pending.pop() {
        if let Some(found) = tree.stat(&path)? {
            if found.entry.kind == sandbox_model::EntryKind::Directory {
                pending.extend(tree.list(&path)?.iter().map(|name| path.join(name)));
            }
            paths.push(path);
        }
    }
    Ok(())
}
