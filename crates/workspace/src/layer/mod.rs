//! Reading a workspace's raw files: an overlay's upper directory with its marks, or a full copy
//! against its manifest.
//!
//! A [`Layer`] is a [`Side`]: any path of the workspace can be looked at as a process inside would
//! see it, without mounting anything. And it can be walked: [`Layer::walk`] visits every path that
//! may differ from what the workspace was made from, in O(changes) for an overlay. Whether such a
//! path really differs is for `changes` to say.

mod copy;
mod overlay;
mod recent;
mod walk;

use std::fs::File;
use std::io;

use sandbox_model::{BackendKind, Fingerprint, RelPath, Timestamp};
use thiserror::Error;

use crate::promote::STAGE_PREFIX;
use crate::sandbox::Sandbox;
use crate::side::{Side, Whole, Xattrs};

pub use copy::CopyLayer;
pub(crate) use copy::is_untouched;
pub use overlay::Overlay;

/// A workspace's own files.
#[derive(Debug)]
pub enum Layer {
    /// Changes above the live source, or above its frozen snapshot.
    Overlay(Overlay),
    /// A full copy.
    Copy(CopyLayer),
}

/// A path that may have changed.
#[derive(Debug, Clone)]
pub struct Touched {
    /// Which.
    pub path: RelPath,
    /// What the workspace shows there.
    pub now: Option<Fingerprint>,
    /// What the lower layer has there: the source as it is now, its snapshot, or the manifest.
    pub was: Option<Fingerprint>,
    /// Where a file's contents are kept.
    pub contents: Contents,
    /// What the workspace shows below it.
    pub below: Below,
    /// When the layer's entry was last modified or changed.
    pub changed: Timestamp,
}

/// Where the contents of a file of the workspace are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// In the workspace's own files.
    Own,
    /// They are those of this file of the lower layer.
    Lower(RelPath),
}

/// How a touched path relates to what the lower layer has below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// It shows through, except for what the walk goes on to visit.
    Live,
    /// None of it shows: what is below in the workspace is the workspace's own.
    Replaced,
}

/// Whether the walk goes on below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descent {
    /// It does.
    Into,
    /// It does not.
    Over,
}

/// A path of a layer that cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {path}")]
pub struct LayerError {
    /// Which.
    pub path: RelPath,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Called for every path visited.
pub type Visit<'v> = dyn FnMut(Touched) -> Result<Descent, LayerError> + 'v;

impl Layer {
    /// Opens a sandbox's layer.
    pub fn open(sandbox: &Sandbox) -> io::Result<Layer> {
        match sandbox.meta.backend {
            BackendKind::Overlay | BackendKind::Btrfs => Overlay::open(sandbox).map(Layer::Overlay),
            BackendKind::Copy => CopyLayer::open(sandbox).map(Layer::Copy),
        }
    }

    /// Visits every path that may have changed, a directory before what is below it.
    pub fn walk(&self, visit: &mut Visit<'_>) -> Result<(), LayerError> {
        match self {
            Layer::Overlay(overlay) => overlay.walk(visit),
            Layer::Copy(copy) => copy.walk(visit),
        }
    }

    fn side(&self) -> &dyn Side {
        match self {
            Layer::Overlay(overlay) => overlay,
            Layer::Copy(copy) => copy,
        }
    }
}

impl Side for Layer {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        self.side().stat(path)
    }
    fn open(&self, path: &RelPath) -> io::Result<File> {
        self.side().open(path)
    }
    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        self.side().read_link(path)
    }
    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        self.side().xattrs(path)
    }
    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        self.side().list(path)
    }
    fn whole(&self, path: &RelPath) -> io::Result<Option<Whole>> {
        self.side().whole(path)
    }
}

impl LayerError {
    /// Names the path in an error.
    pub fn at(path: &RelPath) -> impl FnOnce(io::Error) -> LayerError + '_ {
        |source| LayerError {
            path: path.clone(),
            source,
        }
    }
}

/// What of the source's tree is none of the workspace's business.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    root: Option<RelPath>,
}

impl Hidden {
    /// For a sandbox: its root, where that lies inside the source, and stages of promotes.
    pub fn of(sandbox: &Sandbox) -> Hidden {
        let inside = sandbox.root.path().strip_prefix(sandbox.source());
        Hidden {
            root: inside.ok().and_then(|path| RelPath::from_path(path).ok()),
        }
    }

    /// Is `path` left out?
    pub fn hides(&self, path: &RelPath) -> bool {
        self.root
            .as_ref()
            .is_some_and(|root| path.starts_with(root))
            || path
                .components()
                .next()
                .is_some_and(|name| name.starts_with(STAGE_PREFIX.as_bytes()))
    }
}

/// Was this entry gone, or no longer what it was, when we came to it? A live workspace changes
/// under the reader; what is gone is not shown.
pub(crate) fn vanished(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    ) || matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::STALE)
    )
}

#[cfg(test)]
mod tests;

/// The later of an inode's two times.
pub(crate) fn last_touch(fingerprint: &Fingerprint) -> Timestamp {
    fingerprint.ctime.max(fingerprint.entry.mtime)
}
