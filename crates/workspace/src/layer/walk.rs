//! Visiting what an overlay's upper directory changed.
//!
//! Where a directory still lies over the lower one of the same path, only the names in the upper
//! layer can differ. Where it does not (opaque, moved here from elsewhere, new, or gone) everything
//! the merged view has and everything the lower layer has at that path is visited: the one is
//! created, the other deleted. A few directories on the way down are held, so each is one step from
//! the one above it, and depth costs no descriptors; what is not held is resolved anew, without
//! symlinks.

use std::collections::BTreeSet;

use sandbox_model::{EntryKind, Fingerprint, RelPath, Timestamp};

use super::overlay::{Found, Half, Node, Overlay, Place, is_null_device};
use super::{Below, Contents, Descent, LayerError, Touched, Visit, last_touch, vanished};
use crate::tree::Dir;

/// A directory still to be looked into.
struct Pending {
    path: RelPath,
    half: Half,
    /// The lower directory it merges with.
    lower: Option<RelPath>,
    /// Whether the lower layer has a directory at this very path.
    was: Was,
    /// What is below and has no time of its own changed when this did.
    changed: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Was {
    Directory,
    Other,
}

impl Pending {
    /// Does the lower layer show through, name by name?
    fn in_place(&self) -> bool {
        self.half != Half::Absent && self.lower.as_ref() == Some(&self.path)
    }
}

impl Overlay {
    /// See [`super::Layer::walk`].
    pub(super) fn walk(&self, visit: &mut Visit<'_>) -> Result<(), LayerError> {
        let mut pending = Vec::new();
        if self.visit_root(visit, &mut pending)? == Descent::Over {
            return Ok(());
        }
        while let Some(directory) = pending.pop() {
            self.walk_directory(&directory, visit, &mut pending)?;
        }
        Ok(())
    }

    fn visit_root(
        &self,
        visit: &mut Visit<'_>,
        pending: &mut Vec<Pending>,
    ) -> Result<Descent, LayerError> {
        let path = RelPath::root();
        let stat = |tree: &crate::tree::Tree| {
            tree.dir(&path)
                .and_then(|dir| dir.stat_self())
                .map_err(LayerError::at(&path))
        };
        let (now, was) = (stat(&self.upper)?, stat(&self.lower)?);
        let changed = last_touch(&now);
        pending.push(Pending {
            path: path.clone(),
            half: Half::Present,
            lower: Some(path.clone()),
            was: Was::Directory,
            changed,
        });
        visit(Touched {
            path,
            now: Some(now),
            was: Some(was),
            contents: Contents::Own,
            below: Below::Live,
            changed,
        })
    }

    fn walk_directory(
        &self,
        directory: &Pending,
        visit: &mut Visit<'_>,
        pending: &mut Vec<Pending>,
    ) -> Result<(), LayerError> {
        let at = || LayerError::at(&directory.path);
        let place = match self.walked(&directory.path, directory.half, directory.lower.as_ref()) {
            Err(error) if vanished(&error) => return Ok(()),
            place => place.map_err(at())?,
        };
        let was = self.was(directory).map_err(at())?;
        for name in self
            .candidates(directory, &place, was.as_ref())
            .map_err(at())?
        {
            let path = directory.path.join(&name);
            if self.hidden.hides(&path) {
                continue;
            }
            let found = self.find(&place, &name).map_err(LayerError::at(&path))?;
            let was = match &was {
                Some(was) => was.stat(&name).map_err(LayerError::at(&path))?,
                None => None,
            };
            let was = was.filter(|was| !is_null_device(was));
            visit_name(path, found, was, directory.changed, visit, pending)?;
        }
        Ok(())
    }

    /// The lower layer's directory at this very path.
    fn was(&self, directory: &Pending) -> std::io::Result<Option<Dir>> {
        match directory.was {
            Was::Other => Ok(None),
            Was::Directory => match self.lower.dir(&directory.path) {
                Err(error) if vanished(&error) => Ok(None),
                dir => dir.map(Some),
            },
        }
    }

    /// The names that can differ.
    fn candidates(
        &self,
        directory: &Pending,
        place: &Place,
        was: Option<&Dir>,
    ) -> std::io::Result<BTreeSet<Vec<u8>>> {
        if directory.in_place() {
            let upper = place
                .upper
                .as_ref()
                .map(|upper| upper.dir.entries())
                .transpose()?;
            return Ok(upper
                .into_iter()
                .flatten()
                .map(|entry| entry.name)
                .collect());
        }
        let mut names = self.names(place)?;
        if let Some(was) = was {
            names.extend(was.entries()?.into_iter().map(|entry| entry.name));
        }
        Ok(names)
    }
}

fn visit_name(
    path: RelPath,
    found: Found,
    was: Option<Fingerprint>,
    inherited: Timestamp,
    visit: &mut Visit<'_>,
    pending: &mut Vec<Pending>,
) -> Result<(), LayerError> {
    let (node, changed) = match found {
        Found::Nothing if was.is_none() => return Ok(()),
        Found::Nothing => (None, inherited),
        // The kernel gives many names to one whiteout, so its change time says too late a time and
        // its modification time too early; the directory's times bound it as well.
        Found::Whiteout(mark) => (None, last_touch(&mark).min(inherited)),
        Found::Node(node) if node.half == Half::Absent => (Some(node), inherited),
        Found::Node(node) => {
            let changed = last_touch(&node.fingerprint);
            (Some(node), changed)
        }
    };
    let is_directory = |found: &Fingerprint| found.entry.kind == EntryKind::Directory;
    let below = Pending {
        half: node.as_ref().map_or(Half::Absent, |node| node.half),
        lower: node
            .as_ref()
            .filter(|node| is_directory(&node.fingerprint))
            .and_then(|node| node.lower.clone()),
        was: if was.as_ref().is_some_and(is_directory) {
            Was::Directory
        } else {
            Was::Other
        },
        path: path.clone(),
        changed,
    };
    let now_directory = node
        .as_ref()
        .is_some_and(|node| is_directory(&node.fingerprint));
    let below = if now_directory {
        below
    } else {
        Pending {
            half: Half::Absent,
            ..below
        }
    };
    let something_below = now_directory || below.was == Was::Directory;
    let touched = touched(path, node, was, &below);
    if visit(touched)? == Descent::Into && something_below {
        pending.push(below);
    }
    Ok(())
}

fn touched(
    path: RelPath,
    node: Option<Node>,
    was: Option<Fingerprint>,
    below: &Pending,
) -> Touched {
    let contents = match node.as_ref().and_then(|node| node.lower.clone()) {
        Some(lower) => Contents::Lower(lower),
        None => Contents::Own,
    };
    Touched {
        path,
        now: node.map(|node| node.fingerprint),
        was,
        contents,
        below: if below.in_place() && below.was == Was::Directory {
            Below::Live
        } else {
            Below::Replaced
        },
        changed: below.changed,
    }
}
