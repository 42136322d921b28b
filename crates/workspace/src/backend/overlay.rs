//! The overlay backend: the source is the lower layer, live; changes go to `upper`.
//!
//! Making one is two directories. Whether the kernel will mount them is found by trying, once per
//! boot for each pair of filesystems: a success is remembered in the sandbox root, a failure never
//! is, since the user may be about to mend it.

mod absorb;
mod detach;
mod verdict;

use std::io;
use std::path::Path;

use rustix::process::geteuid;
use sandbox_linux::placement;
use sandbox_linux::trial::{self, OverlayTrial, TrialError};
use sandbox_model::{BackendKind, OverlayXattr, RelPath, WorkspaceMount};

use super::{Backend, BackendError, Entry, mounts};
use crate::meta::Meta;
use crate::progress::Progress;
use crate::root::random;
use crate::sandbox::Note;
use crate::transfer::{self, Privileges};
use crate::tree::{Dir, Tree};

pub(crate) use absorb::{absorb, take};

/// The backend.
#[derive(Debug)]
pub struct Overlay;

/// Where changes go, in the sandbox's directory.
pub(crate) const UPPER: &str = "upper";
/// The overlay's scratch directory.
pub(crate) const WORK: &str = "workdir";
/// How many of the source's top-level entries are looked at for owners.
const LOOKED_AT: usize = 1000;

impl Backend for Overlay {
    fn kind(&self) -> BackendKind {
        BackendKind::Overlay
    }

    fn probe(&self, source: &Path, state: &Path) -> Result<(), String> {
        if let Some(reason) = mounts::refusal(source, state) {
            return Err(reason);
        }
        verdict::remembered(source, state, || attempt(source, state))
    }

    fn create(
        &self,
        meta: &mut Meta,
        dir: &Path,
        _state: &Path,
        _progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        let source = Tree::open(&meta.source).map_err(BackendError::io("read", &meta.source))?;
        meta.xattr = Some(make_layer(&source, dir).map_err(BackendError::io("write to", dir))?);
        Ok(())
    }

    fn mount(&self, meta: &Meta, dir: &Path) -> WorkspaceMount {
        WorkspaceMount::Overlay {
            lower: meta.source.clone(),
            upper: dir.join(UPPER),
            work: dir.join(WORK),
            xattr: meta.xattr.unwrap_or(OverlayXattr::User),
        }
    }

    fn duplicate(
        &self,
        _meta: &Meta,
        from: &Path,
        to: &Path,
        progress: &mut dyn Progress,
    ) -> Result<(), BackendError> {
        duplicate_layer(from, to, progress)
    }

    fn parts(&self) -> &'static [&'static str] {
        &[UPPER, WORK]
    }

    fn detach(
        &self,
        meta: &Meta,
        dir: &Path,
        changing: &[RelPath],
        handed_over: &[RelPath],
    ) -> io::Result<Vec<RelPath>> {
        match meta.xattr {
            Some(OverlayXattr::Trusted) => {
                detach::detach(&dir.join(UPPER), &meta.source, changing, handed_over)
            }
            // Without redirects everything is shown under its own name.
            _ => Ok(Vec::new()),
        }
    }

    fn absorb(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<()> {
        absorb(meta, &dir.join(UPPER), &Tree::open(&meta.source)?, paths)
    }

    fn take_source(&self, meta: &Meta, dir: &Path, paths: &[RelPath]) -> io::Result<Vec<RelPath>> {
        take(meta, &dir.join(UPPER), &Tree::open(&meta.source)?, paths)?;
        Ok(paths.to_vec())
    }

    fn put(&self, meta: &Meta, dir: &Path, path: &RelPath, entry: &Entry<'_>) -> io::Result<bool> {
        super::btrfs::put(meta, dir, &meta.source, path, entry)
    }

    fn notes(&self, meta: &Meta) -> io::Result<Vec<Note>> {
        let count = match meta.xattr {
            Some(OverlayXattr::User) => owned_by_others(&Tree::open(&meta.source)?)?,
            _ => 0,
        };
        Ok(if count == 0 {
            Vec::new()
        } else {
            vec![Note::OwnedByOthers { count }]
        })
    }
}

/// Makes `upper` and `workdir` in `dir`, where they are not there to be used again. The merged root
/// shows the upper's own attributes, so it gets those of the lower's root.
pub(crate) fn make_layer(lower: &Tree, dir: &Path) -> io::Result<OverlayXattr> {
    let (root, upper) = (RelPath::root(), dir.join(UPPER));
    let dir = Dir::open(dir)?;
    if dir.stat(UPPER.as_bytes())?.is_some() {
        transfer::take_attributes(lower, &root, &Tree::open(&upper)?)?;
    } else {
        transfer::copy_entry(lower, &root, &dir, UPPER.as_bytes(), Privileges::Keep)?;
        make_work(&dir)?;
    }
    Ok(marks(&dir))
}

/// Makes the place of the scratch directories.
fn make_work(dir: &Dir) -> io::Result<()> {
    placement::spread(dir.make_dir(WORK.as_bytes())?);
    Ok(())
}

/// Which marks an overlay mounted by this process keeps: real root's are out of users' reach.
fn marks(dir: &Dir) -> OverlayXattr {
    let attribute = b"trusted.overlay.trial";
    if geteuid().is_root() && dir.set_xattr(WORK.as_bytes(), attribute, b"y").is_ok() {
        let _ = dir.remove_xattr(WORK.as_bytes(), attribute);
        return OverlayXattr::Trusted;
    }
    OverlayXattr::User
}

/// Copies the upper layer with all its marks; the scratch directory starts empty.
pub(crate) fn duplicate_layer(
    from: &Path,
    to: &Path,
    progress: &mut dyn Progress,
) -> Result<(), BackendError> {
    let upper = Tree::open_in(from, UPPER).map_err(BackendError::io("read", from))?;
    let made = (|| {
        let dir = Dir::open(to)?;
        dir.make_dir(UPPER.as_bytes())?;
        make_work(&dir)?;
        Tree::open(&to.join(UPPER))
    })();
    let copy = made.map_err(BackendError::io("write to", to))?;
    transfer::copy_tree(&upper, &copy, &[], progress)?;
    Ok(())
}

fn owned_by_others(source: &Tree) -> io::Result<usize> {
    let ours = (geteuid().as_raw(), rustix::process::getegid().as_raw());
    let dir = source.root_dir()?;
    let mut count = 0;
    for entry in dir.entries()?.iter().take(LOOKED_AT) {
        if let Some(found) = dir.stat(&entry.name)? {
            // A supplementary group is not mapped either.
            count += usize::from((found.entry.uid, found.entry.gid) != ours);
        }
    }
    Ok(count)
}

/// Mounts an overlay over `source` with its layers below `state`, and writes to it.
fn attempt(source: &Path, state: &Path) -> Result<(), String> {
    let name = format!(".probe-{:x}-{:x}", std::process::id(), random());
    let root =
        Dir::open(state).map_err(|error| format!("cannot open {}: {error}", state.display()))?;
    let result = (|| {
        let dir = root
            .make_dir(name.as_bytes())
            .map_err(|e| unusable(state, &e))?;
        dir.make_dir(UPPER.as_bytes())
            .map_err(|e| unusable(state, &e))?;
        dir.make_dir(WORK.as_bytes())
            .map_err(|e| unusable(state, &e))?;
        let path = state.join(&name);
        let layers = OverlayTrial {
            lower: source,
            upper: &path.join(UPPER),
            work: &path.join(WORK),
            xattr: marks(&dir),
        };
        let tried = trial::overlay(&layers, |mount| {
            let merged = Dir::from_fd(mount.try_clone_to_owned()?);
            let name = format!(".sandbox-trial-{:x}", random());
            merged.create_file(name.as_bytes())?;
            merged.unlink(name.as_bytes())
        });
        tried.map_err(|error| reason(&error, source, state))
    })();
    // What cannot be removed now is nobody's work: the next sweep of the root finds it.
    let _ = root.remove_all(name.as_bytes());
    result
}

fn unusable(state: &Path, error: &io::Error) -> String {
    format!("cannot write to {}: {error}", state.display())
}

/// Why the trial failed, in words a person can act on.
fn reason(error: &TrialError, source: &Path, state: &Path) -> String {
    match error {
        TrialError::Namespace(cause) => {
            format!("user namespaces are off ({cause}); `sandbox doctor` shows how to turn them on")
        }
        TrialError::Mount(cause) if on_overlay(state) => format!(
            "{} is itself on an overlay, which takes no upper layer ({cause}); put SANDBOX_ROOT on a volume",
            state.display()
        ),
        TrialError::Mount(cause) => format!(
            "the kernel will not mount an overlay of {} with its changes in {} ({cause})",
            source.display(),
            state.display()
        ),
        TrialError::Use(cause) => format!("an overlay of it cannot be written to ({cause})"),
        TrialError::Start(cause) => format!("a trial process cannot be started ({cause})"),
    }
}

fn on_overlay(path: &Path) -> bool {
    const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;
    crate::meta::filesystem_type(path).is_ok_and(|found| found == OVERLAYFS_SUPER_MAGIC)
}

#[cfg(test)]
mod tests;
