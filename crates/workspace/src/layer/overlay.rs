//! An overlay's two layers, read as the kernel would merge them.
//!
//! The upper directory is plain files with a few marks. A whiteout (a character device 0:0, or an
//! empty file with `overlay.whiteout` in a directory marked `x`) hides a name. A directory with
//! `overlay.opaque` hides everything the lower layer has below it. Where real root mounted,
//! `overlay.redirect` says under which other name the lower part of an entry is, and
//! `overlay.metacopy` that a file's contents are still the lower one's.
//!
//! Kernel: fs/overlayfs/namei.c, `ovl_lookup_single` and `ovl_check_redirect`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use sandbox_model::{BackendKind, EntryKind, Fingerprint, OverlayXattr, RelPath};

use super::Hidden;
use super::recent::Recent;
use crate::sandbox::Sandbox;
use crate::side::{Side, Whole, Xattrs};
use crate::tree::{Dir, Tree};

/// An upper directory over its lower one.
#[derive(Debug)]
pub struct Overlay {
    pub(super) upper: Tree,
    pub(super) lower: Tree,
    pub(super) hidden: Hidden,
    marks: Marks,
    recent: Recent<Place>,
    /// How often a name was looked up.
    #[cfg(test)]
    pub(super) looks: std::sync::atomic::AtomicUsize,
}

/// The names of the attributes that the layer's marks are kept in.
#[derive(Debug)]
struct Marks {
    opaque: String,
    whiteout: String,
    /// Redirect and metacopy, which only real root's overlays have.
    moved: Option<(String, String)>,
}

/// One directory of the merged view: its two halves, opened.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) upper: Option<UpperDir>,
    pub(super) lower: Option<LowerDir>,
}

#[derive(Debug)]
pub(super) struct UpperDir {
    pub(super) dir: Dir,
    /// Whether empty files here may be whiteouts.
    attribute_whiteouts: bool,
}

#[derive(Debug)]
pub(super) struct LowerDir {
    pub(super) dir: Dir,
    pub(super) path: RelPath,
}

/// What the merged view has under one name.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    Whiteout(Fingerprint),
    Node(Node),
}

/// One entry of the merged view.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) fingerprint: Fingerprint,
    /// Whether the upper layer has it.
    pub(super) half: Half,
    /// Where the lower layer's part is: the rest of a directory, the contents of a metacopied file,
    /// or, for what is not in the upper layer, all of it.
    pub(super) lower: Option<RelPath>,
}

/// An entry with the directory it is in and its name there.
type Located<'p> = (Arc<Place>, &'p [u8], Node);

/// The upper layer's half of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Absent,
    Present,
    /// A directory in which empty files may be whiteouts.
    WithAttributeWhiteouts,
}

enum Opaque {
    No,
    Yes,
    AttributeWhiteouts,
}

impl Overlay {
    /// Opens a sandbox's layers.
    pub fn open(sandbox: &Sandbox) -> io::Result<Overlay> {
        let lower = match sandbox.meta.backend {
            BackendKind::Btrfs => Tree::open(&sandbox.dir.join("base"))?,
            BackendKind::Overlay | BackendKind::Copy => Tree::open(sandbox.source())?,
        };
        let upper = Tree::open(&sandbox.dir.join("upper"))?;
        let xattr = sandbox.meta.xattr.unwrap_or(OverlayXattr::User);
        Ok(Overlay::of(upper, lower, xattr, Hidden::of(sandbox)))
    }

    /// The overlay of two trees.
    pub fn of(upper: Tree, lower: Tree, xattr: OverlayXattr, hidden: Hidden) -> Overlay {
        Overlay {
            upper,
            lower,
            hidden,
            marks: Marks::of(xattr),
            recent: Recent::default(),
            #[cfg(test)]
            looks: Default::default(),
        }
    }

    /// The lower layer.
    pub fn lower(&self) -> &Tree {
        &self.lower
    }

    /// The merged root.
    pub(super) fn root(&self) -> io::Result<Place> {
        let root = RelPath::root();
        Ok(Place {
            upper: Some(UpperDir {
                dir: self.upper.dir(&root)?,
                attribute_whiteouts: false,
            }),
            lower: Some(LowerDir {
                dir: self.lower.dir(&root)?,
                path: root,
            }),
        })
    }

    /// The merged directory at `path`, whose halves are known.
    pub(super) fn place(
        &self,
        path: &RelPath,
        half: Half,
        lower: Option<&RelPath>,
    ) -> io::Result<Place> {
        let upper = match half {
            Half::Absent => None,
            Half::Present | Half::WithAttributeWhiteouts => Some(UpperDir {
                dir: self.upper.dir(path)?,
                attribute_whiteouts: half == Half::WithAttributeWhiteouts,
            }),
        };
        let lower = match lower {
            Some(path) => Some(LowerDir {
                dir: self.lower.dir(path)?,
                path: path.clone(),
            }),
            None => None,
        };
        Ok(Place { upper, lower })
    }

    /// The merged directory `name` in `above`, whose halves are known: one step, however deep.
    fn place_in(
        &self,
        above: &Place,
        name: &[u8],
        half: Half,
        lower: Option<&RelPath>,
    ) -> io::Result<Place> {
        let upper = match (half, &above.upper) {
            (Half::Absent, _) | (_, None) => None,
            (_, Some(upper)) => Some(UpperDir {
                dir: upper.dir.open_dir(name)?,
                attribute_whiteouts: half == Half::WithAttributeWhiteouts,
            }),
        };
        let lower = match (lower, &above.lower) {
            (None, _) => None,
            (Some(path), Some(beside)) if *path == beside.path.join(name) => Some(LowerDir {
                dir: beside.dir.open_dir(name)?,
                path: path.clone(),
            }),
            (Some(path), _) => Some(LowerDir {
                dir: self.lower.dir(path)?,
                path: path.clone(),
            }),
        };
        Ok(Place { upper, lower })
    }

    /// What is under `name` in `place`.
    pub(super) fn find(&self, place: &Place, name: &[u8]) -> io::Result<Found> {
        #[cfg(test)]
        self.looks
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Some(upper) = &place.upper
            && let Some(fingerprint) = upper.dir.stat(name)?
        {
            return if self.is_whiteout(upper, name, &fingerprint)? {
                Ok(Found::Whiteout(fingerprint))
            } else {
                self.upper_node(upper, place.lower.as_ref(), name, fingerprint)
                    .map(Found::Node)
            };
        }
        if let Some(lower) = &place.lower
            && let Some(fingerprint) = lower.dir.stat(name)?
            && !is_null_device(&fingerprint)
        {
            let lower = Some(lower.path.join(name));
            return Ok(Found::Node(Node {
                fingerprint,
                half: Half::Absent,
                lower,
            }));
        }
        Ok(Found::Nothing)
    }

    fn is_whiteout(
        &self,
        upper: &UpperDir,
        name: &[u8],
        fingerprint: &Fingerprint,
    ) -> io::Result<bool> {
        if is_null_device(fingerprint) {
            return Ok(true);
        }
        let candidate = upper.attribute_whiteouts
            && fingerprint.entry.kind == EntryKind::File
            && fingerprint.entry.size == 0;
        Ok(candidate && upper.dir.xattr(name, &self.marks.whiteout)?.is_some())
    }

    fn upper_node(
        &self,
        upper: &UpperDir,
        lower: Option<&LowerDir>,
        name: &[u8],
        fingerprint: Fingerprint,
    ) -> io::Result<Node> {
        let node = |half, lower| Node {
            fingerprint,
            half,
            lower,
        };
        match fingerprint.entry.kind {
            EntryKind::Directory => {
                let half = match self.opaque(&upper.dir, name)? {
                    Opaque::Yes => return Ok(node(Half::Present, None)),
                    Opaque::No => Half::Present,
                    Opaque::AttributeWhiteouts => Half::WithAttributeWhiteouts,
                };
                let below = self.lower_part(upper, lower, name)?;
                Ok(node(half, self.directory_only(lower, below)?))
            }
            EntryKind::File if self.is_metacopy(&upper.dir, name)? => {
                Ok(node(Half::Present, self.lower_part(upper, lower, name)?))
            }
            _ => Ok(node(Half::Present, None)),
        }
    }

    fn opaque(&self, dir: &Dir, name: &[u8]) -> io::Result<Opaque> {
        Ok(match dir.xattr(name, &self.marks.opaque)?.as_deref() {
            Some(b"y") => Opaque::Yes,
            Some(b"x") => Opaque::AttributeWhiteouts,
            _ => Opaque::No,
        })
    }

    fn is_metacopy(&self, dir: &Dir, name: &[u8]) -> io::Result<bool> {
        match &self.marks.moved {
            Some((_, metacopy)) => Ok(dir.xattr(name, metacopy)?.is_some()),
            None => Ok(false),
        }
    }

    /// Where the lower part of the upper entry `name` is: where a redirect says, else in place.
    fn lower_part(
        &self,
        upper: &UpperDir,
        lower: Option<&LowerDir>,
        name: &[u8],
    ) -> io::Result<Option<RelPath>> {
        let redirect = match &self.marks.moved {
            Some((redirect, _)) => upper.dir.xattr(name, redirect)?,
            None => None,
        };
        let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        match redirect.as_deref() {
            Some([b'/', from_root @ ..]) => RelPath::new(from_root).map(Some).map_err(bad),
            Some(sibling) => {
                let sibling = RelPath::new(sibling).map_err(bad)?;
                Ok(lower.map(|lower| lower.path.join_path(&sibling)))
            }
            None => Ok(lower.map(|lower| lower.path.join(name))),
        }
    }

    /// An upper directory merges with a lower one only where that is a directory too.
    fn directory_only(
        &self,
        parent: Option<&LowerDir>,
        path: Option<RelPath>,
    ) -> io::Result<Option<RelPath>> {
        let Some(path) = path else { return Ok(None) };
        let found = match (parent, path.name()) {
            (Some(parent), Some(name)) if path.parent().as_ref() == Some(&parent.path) => {
                parent.dir.stat(name)?
            }
            _ => self.lower.stat(&path)?,
        };
        Ok(found
            .filter(|found| found.entry.kind == EntryKind::Directory)
            .map(|_| path))
    }

    /// The merged directory at `path`, if there is one.
    fn directory(&self, path: &RelPath) -> io::Result<Option<Arc<Place>>> {
        let (mut at, mut place) = match self.recent.nearest(path) {
            Some(known) => known,
            None => (RelPath::root(), Arc::new(self.root()?)),
        };
        for name in path.components().skip(at.components().count()) {
            let Found::Node(node) = self.find(&place, name)? else {
                return Ok(None);
            };
            if node.fingerprint.entry.kind != EntryKind::Directory {
                return Ok(None);
            }
            at = at.join(name);
            let inner = self.place_in(&place, name, node.half, node.lower.as_ref());
            place = match inner {
                Err(error) if super::vanished(&error) => return Ok(None),
                inner => Arc::new(inner?),
            };
            self.recent.remember(&at, &place);
        }
        Ok(Some(place))
    }

    /// The merged directory at `path`, whose halves are known, as the walk comes by.
    pub(super) fn walked(
        &self,
        path: &RelPath,
        half: Half,
        lower: Option<&RelPath>,
    ) -> io::Result<Arc<Place>> {
        let place = match (path.parent(), path.name(), self.recent.nearest(path)) {
            (Some(parent), Some(name), Some((at, above))) if at == parent => {
                self.place_in(&above, name, half, lower)
            }
            _ => self.place(path, half, lower),
        };
        let place = Arc::new(place?);
        self.recent.remember(path, &place);
        Ok(place)
    }

    /// Has the lower layer something at `path`, whether it shows or the upper layer has something
    /// else there? Below a directory that hides the lower layer, it has not.
    pub(crate) fn lower_has(&self, path: &RelPath) -> io::Result<bool> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(true);
        };
        let place = self.directory(&parent)?;
        match place.as_ref().and_then(|place| place.lower.as_ref()) {
            Some(lower) => Ok(lower.dir.stat(name)?.is_some()),
            None => Ok(false),
        }
    }

    /// Is what shows at `path` the lower layer's at the same path, with nothing of the upper
    /// layer's there, not even a mark that hides it?
    pub(crate) fn shows_lower(&self, path: &RelPath) -> io::Result<bool> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(false);
        };
        let Some(place) = self.directory(&parent)? else {
            return Ok(false);
        };
        let in_place = place
            .lower
            .as_ref()
            .is_some_and(|lower| lower.path == parent);
        match &place.upper {
            _ if !in_place => Ok(false),
            Some(upper) => Ok(upper.dir.stat(name)?.is_none()),
            None => Ok(true),
        }
    }

    /// Has the upper layer anything at `path`, were it a mark that hides it?
    pub(crate) fn upper_has(&self, path: &RelPath) -> io::Result<bool> {
        Ok(self.upper.stat(path)?.is_some())
    }

    /// Has the upper layer a directory at `path` that neither hides what the lower layer has there
    /// nor shows another one?
    pub(crate) fn has_open_directory(&self, path: &RelPath) -> io::Result<bool> {
        let (dir, name) = match self.upper.parent(path) {
            Err(error) if super::vanished(&error) => return Ok(false),
            parent => parent?,
        };
        let found = dir.stat(name)?;
        if !found.is_some_and(|found| found.entry.kind == EntryKind::Directory) {
            return Ok(false);
        }
        let moved = match &self.marks.moved {
            Some((redirect, _)) => dir.xattr(name, redirect)?.is_some(),
            None => false,
        };
        Ok(!moved && !matches!(self.opaque(&dir, name)?, Opaque::Yes))
    }

    /// The entry at `path` and the directory it is in; `None` for the name of the root.
    fn entry<'p>(&self, path: &'p RelPath) -> io::Result<Option<Located<'p>>> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Ok(None);
        };
        if self.hidden.hides(path) {
            return Ok(None);
        }
        let Some(place) = self.directory(&parent)? else {
            return Ok(None);
        };
        match self.find(&place, name)? {
            Found::Node(node) => Ok(Some((place, name, node))),
            Found::Nothing | Found::Whiteout(_) => Ok(None),
        }
    }

    fn open_located(&self, path: &RelPath, located: &Located<'_>) -> io::Result<File> {
        let (place, name, node) = located;
        match (&node.lower, &place.upper) {
            (Some(lower), _) if node.fingerprint.entry.kind == EntryKind::File => {
                self.lower.open(lower)
            }
            (_, Some(upper)) => upper.dir.open_found_file(name, &node.fingerprint),
            _ => self.lower.open(path),
        }
    }

    /// Calls `read` with the directory and name that have the inode of the entry at `path`.
    fn with_home<T>(
        &self,
        path: &RelPath,
        read: impl FnOnce(&Dir, &[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        if path.is_root() {
            return read(&self.upper.root_dir()?, b".");
        }
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else {
            return Err(Errno::NOENT.into());
        };
        let place = self
            .directory(&parent)?
            .filter(|_| !self.hidden.hides(path));
        let place = place.ok_or(Errno::NOENT)?;
        if let Some(upper) = &place.upper
            && let Some(found) = upper.dir.stat(name)?
        {
            return match self.is_whiteout(upper, name, &found)? {
                true => Err(Errno::NOENT.into()),
                false => read(&upper.dir, name),
            };
        }
        match &place.lower {
            Some(lower) => read(&lower.dir, name),
            None => Err(Errno::NOENT.into()),
        }
    }

    /// Every name in a merged directory, whiteouts and what they hide left out.
    pub(super) fn names(&self, place: &Place) -> io::Result<BTreeSet<Vec<u8>>> {
        let mut names = BTreeSet::new();
        if let Some(lower) = &place.lower {
            names.extend(lower.dir.entries()?.into_iter().map(|entry| entry.name));
        }
        if let Some(upper) = &place.upper {
            names.extend(upper.dir.entries()?.into_iter().map(|entry| entry.name));
        }
        Ok(names)
    }
}

impl Side for Overlay {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        if path.is_root() {
            return self.upper.root_dir()?.stat_self().map(Some);
        }
        Ok(self.entry(path)?.map(|(_, _, node)| node.fingerprint))
    }

    fn open(&self, path: &RelPath) -> io::Result<File> {
        let located = self.entry(path)?.ok_or(Errno::NOENT)?;
        self.open_located(path, &located)
    }

    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        self.with_home(path, Dir::read_link)
    }

    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        self.with_home(path, Dir::xattrs)
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        let place = self.directory(path)?.ok_or(Errno::NOENT)?;
        let mut shown = Vec::new();
        for name in self.names(&place)? {
            let visible = matches!(self.find(&place, &name)?, Found::Node(_));
            if visible && !self.hidden.hides(&path.join(&name)) {
                shown.push(name);
            }
        }
        Ok(shown)
    }

    fn whole(&self, path: &RelPath) -> io::Result<Option<Whole>> {
        if path.is_root() {
            let root = self.upper.root_dir()?;
            return Ok(Some(Whole {
                fingerprint: root.stat_self()?,
                xattrs: root.xattrs(b".")?,
                contents: None,
            }));
        }
        let Some(located) = self.entry(path)? else {
            return Ok(None);
        };
        let (place, name, node) = &located;
        let xattrs = match (node.half, &place.upper, &place.lower) {
            (Half::Absent, _, Some(lower)) => lower.dir.xattrs(name)?,
            (_, Some(upper), _) => upper.dir.xattrs(name)?,
            _ => return Ok(None),
        };
        Ok(Some(Whole {
            fingerprint: node.fingerprint,
            xattrs,
            contents: match node.fingerprint.entry.kind {
                EntryKind::File => Some(self.open_located(path, &located)?),
                _ => None,
            },
        }))
    }
}

impl Marks {
    fn of(xattr: OverlayXattr) -> Marks {
        let mark = |name| format!("{}{name}", xattr.prefix());
        Marks {
            opaque: mark("opaque"),
            whiteout: mark("whiteout"),
            moved: match xattr {
                OverlayXattr::Trusted => Some((mark("redirect"), mark("metacopy"))),
                OverlayXattr::User => None,
            },
        }
    }
}

/// A character device 0:0: a whiteout, in either layer.
pub(super) fn is_null_device(fingerprint: &Fingerprint) -> bool {
    fingerprint.entry.kind == EntryKind::CharDevice && fingerprint.entry.rdev == 0
}
