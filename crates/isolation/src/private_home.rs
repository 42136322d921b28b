//! Mounting the home: one overlay of the real one, of which only the listed entries are attached.
//!
//! An overlay costs about as much as all other mounts together, so there is one for all entries. It
//! is attached for a moment, so that its directories can be cloned one by one, and then covered
//! by the private home for good; nothing leads back to it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sandbox_linux::mount::{self, Access, Depth, Layers, MountPoint, OverlayKind};

use crate::scratch;

/// The home, as the plan has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home<'p> {
    pub(crate) root: &'p Path,
    pub(crate) lower: &'p Path,
    pub(crate) upper: &'p Path,
    pub(crate) work: &'p Path,
    pub(crate) kind: OverlayKind,
    pub(crate) entries: &'p [PathBuf],
}

/// What was made for it.
#[derive(Debug)]
pub(crate) struct Made {
    /// The private directory.
    pub(crate) root: OwnedFd,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// All in one overlay.
    One(OwnedFd),
    /// One overlay each, in the order of the names; and none at all.
    Each(Vec<OwnedFd>),
}

/// Makes the mounts; the host must still be open.
pub(crate) fn make(home: Home<'_>) -> io::Result<Made> {
    let root = mount::clone_at(home.root, Depth::One)?;
    match mount::restrict(&root, Access::Writable) {
        Err(error) if mount::missing(&error) => {}
        outcome => outcome?,
    }
    let entries = if home.entries.is_empty() {
        Entries::Each(Vec::new())
    } else {
        let Home {
            lower,
            upper,
            work,
            kind,
            ..
        } = home;
        scratch::make(work)?;
        match mount::overlay(Layers { lower, upper, work }, kind) {
            // Something is mounted below the home, which an ordinary user's overlay cannot have
            // below it; below the single entries there may be nothing.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => each(home)?,
            outcome => Entries::One(outcome?),
        }
    };
    Ok(Made { root, entries })
}

fn each(home: Home<'_>) -> io::Result<Entries> {
    let mut overlays = Vec::new();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let layer = rustix::fs::open(home.upper, flags, Mode::empty())?;
    for (index, name) in home.entries.iter().enumerate() {
        // Beneath the layer and by descriptor: commands write to it, and may leave links there.
        let upper = mount::resolve_or_make(layer.as_fd(), name, MountPoint::Directory)?;
        let upper = PathBuf::from(mount::descriptor_path(upper.as_fd()));
        let work = home.work.join(scratch::BOOKKEEPING).join(index.to_string());
        std::fs::create_dir_all(&work)?;
        let lower = home.lower.join(name);
        let layers = Layers {
            lower: &lower,
            upper: &upper,
            work: &work,
        };
        overlays.push(mount::overlay(layers, home.kind)?);
    }
    Ok(Entries::Each(overlays))
}

/// Puts them in place at `target`.
pub(crate) fn attach(home: Home<'_>, made: &Made, target: &OwnedFd) -> io::Result<()> {
    let clones = match &made.entries {
        Entries::Each(_) => Vec::new(),
        Entries::One(overlay) => {
            mount::attach(overlay, target)?;
            let entry = |name: &PathBuf| mount::clone_of(mount::resolve(overlay, name)?);
            home.entries
                .iter()
                .map(entry)
                .collect::<io::Result<Vec<_>>>()?
        }
    };
    let entries = match &made.entries {
        Entries::Each(overlays) => overlays,
        Entries::One(_) => &clones,
    };
    // On top of the overlay, if there is one: the kernel takes the topmost mount for the target.
    mount::attach(&made.root, target)?;
    for (name, entry) in home.entries.iter().zip(entries) {
        let place = mount::resolve_or_make(made.root.as_fd(), name, MountPoint::Directory)?;
        mount::attach(entry, place)?;
    }
    Ok(())
}
