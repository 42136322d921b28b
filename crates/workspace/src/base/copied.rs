//! The base of a copied workspace: its manifest, the contents saved since, and whatever the source or
//! the copy still has of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::index::{Record, Records};
use super::{Base, BaseContent, unchanged};
use crate::backend::copy::{self, Manifest};
use crate::layer::is_untouched;
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// What a copy was made from.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) source: Tree,
    work: Tree,
    manifest: Manifest,
}

impl Copied {
    pub(super) fn open(sandbox: &Sandbox) -> io::Result<Copied> {
        Ok(Copied {
            source: Tree::open(sandbox.source())?,
            work: Tree::open(&sandbox.dir.join(copy::WORK))?,
            manifest: Manifest::load(&sandbox.dir)?,
        })
    }

    /// What the source had at `path` when it was copied.
    pub(super) fn stat(&self, path: &RelPath) -> Option<Fingerprint> {
        self.manifest.get(path).map(|known| known.source)
    }

    /// The base of `path`, with what was saved of it.
    pub(super) fn base(&self, records: &Records, path: &RelPath) -> Base {
        let mut chain = Vec::new();
        let mut above = RelPath::root();
        for name in path.components() {
            match self.stat(&above) {
                Some(found) if found.entry.kind == EntryKind::Directory => chain.push(found.ino),
                _ => break,
            }
            above = above.join(name);
        }
        let saved = self.saved(records, path);
        Base {
            chain,
            entry: self.stat(path),
            content: saved.map_or(BaseContent::None, |base| base.content.clone()),
            link: saved.and_then(|base| base.link.clone()),
            xattrs: saved.and_then(|base| base.xattrs.clone()),
            uncertain: false,
        }
    }

    /// What was saved of `path`, if it is still of what the manifest speaks of.
    fn saved<'r>(&self, records: &'r Records, path: &RelPath) -> Option<&'r Base> {
        let record: &Record = records.get(path)?;
        (record.base.entry == self.stat(path)).then_some(&record.base)
    }

    pub(super) fn open_file(
        &self,
        records: &Records,
        contents: &Path,
        path: &RelPath,
    ) -> io::Result<File> {
        if let Some(Base {
            content: BaseContent::Saved(name),
            ..
        }) = self.saved(records, path)
        {
            return File::open(contents.join(name));
        }
        self.keeper(path)?.open(path)
    }

    pub(super) fn read_link(&self, records: &Records, path: &RelPath) -> io::Result<Vec<u8>> {
        match self.saved(records, path) {
            Some(Base {
                link: Some(link), ..
            }) => Ok(link.clone()),
            _ => self.keeper(path)?.read_link(path),
        }
    }

    pub(super) fn xattrs(&self, records: &Records, path: &RelPath) -> io::Result<Xattrs> {
        match self.saved(records, path) {
            Some(Base {
                xattrs: Some(xattrs),
                ..
            }) => Ok(xattrs.clone()),
            _ => self.keeper(path)?.xattrs(path),
        }
    }

    pub(super) fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        match self.stat(path) {
            Some(found) if found.entry.kind == EntryKind::Directory => {}
            Some(_) => return Err(io::ErrorKind::NotADirectory.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        }
        let paths = self.manifest.entries().iter().map(|entry| &entry.path);
        let below = paths.filter(|at| at.parent().as_ref() == Some(path));
        let names: BTreeSet<_> = below.filter_map(|at| Some(at.name()?.to_vec())).collect();
        Ok(names.into_iter().collect())
    }

    /// The tree that still has `path` as it was copied.
    fn keeper(&self, path: &RelPath) -> io::Result<&Tree> {
        let known = self.manifest.get(path).ok_or(io::ErrorKind::NotFound)?;
        let source = self.source.stat(path)?;
        if source.is_some_and(|now| unchanged(&known.source, &now)) {
            return Ok(&self.source);
        }
        let work = self.work.stat(path)?;
        match (&known.copy, work) {
            (Some(copy), Some(now)) if is_untouched(copy, &now) => Ok(&self.work),
            _ => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "what it held at first was not kept",
            )),
        }
    }
}
