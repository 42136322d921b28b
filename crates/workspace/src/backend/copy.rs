//! The copy backend: the whole source, copied at create.

use std::io;
use std::path::Path;

use sandbox_model::{BackendKind, RelPath, WorkspaceMount};

use super::{Backend, BackendError};
use crate::meta::Meta;
use crate::progress::Progress;
use crate::transfer;
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
        let made = Dir::open(dir).and_then(|opened| opened.make_dir(WORK.as_bytes()));
        made.map_err(BackendError::io("write to", dir))?;
        let copy = Tree::open(&dir.join(WORK)).map_err(BackendError::io("write to", dir))?;
        let skip: Vec<RelPath> = state
            .strip_prefix(&meta.source)
            .ok()
            .and_then(|below| RelPath::from_path(below).ok())
            .into_iter()
            .collect();
        transfer::copy_tree(&source, &copy, &skip, progress)?;
        Ok(())
    }

    fn mount(&self, _meta: &Meta, dir: &Path) -> WorkspaceMount {
        WorkspaceMount::Bind {
            dir: dir.join(WORK),
        }
    }

    fn duplicate(
        &self,
        _meta: &Meta,
        _from: &Path,
        _to: &Path,
        _progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        todo!()
    }

    fn parts(&self) -> &'static [&'static str] {
        &[WORK]
    }

    fn absorb(&self, _meta: &Meta, _dir: &Path, _paths: &[RelPath]) -> io::Result<()> {
        todo!()
    }

    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        let (source, work) = (Tree::open(&meta.source)?, Tree::open(&dir.join(WORK))?);
        for path in paths {
            transfer::replace(&source, path, &work)?;
        }
        self.absorb(meta, dir, paths)
    }
}
