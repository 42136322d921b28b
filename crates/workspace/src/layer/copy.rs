//! A full copy, read against the manifest made with it.

use std::fs::File;
use std::io;

use sandbox_model::{Fingerprint, RelPath};

use super::{Hidden, LayerError, Visit};
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// A copied tree.
#[derive(Debug)]
pub struct CopyLayer {
    work: Tree,
    hidden: Hidden,
}

impl CopyLayer {
    /// Opens a sandbox's copy.
    pub fn open(sandbox: &Sandbox) -> io::Result<CopyLayer> {
        let work = Tree::open(&sandbox.dir.join("work"))?;
        Ok(CopyLayer {
            work,
            hidden: Hidden::of(sandbox),
        })
    }

    /// See [`super::Layer::walk`].
    pub(super) fn walk(&self, visit: &mut Visit<'_>) -> Result<(), LayerError> {
        todo!("{:p} {:?}", visit, self.hidden)
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
