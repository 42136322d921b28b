//! Comparing one path's three sides: what the sandbox has, what it started from, what the source is.
//!
//! A path is a conflict when the directories above it, its fingerprint or its bytes are not those of
//! the base, or when the base is uncertain and the two sides differ. No single time stamp decides:
//! multigrain clocks, swapped directories and writes through a mapping all fool one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use sandbox_model::{Change, EntryKind, Fingerprint, RelPath};

use super::conflict::ConflictKind;
use super::ground::is_not_there;
use super::journal::Below;
use super::stage::promotable;
use crate::base::{Base, BaseContent};
use crate::content;
use crate::merge::{Merged, merge};
use crate::side::Side;
use crate::tree::{Dir, Near};
use crate::view::View;

/// The largest file that is merged line by line.
const MERGE_LIMIT: u64 = 16 << 20;

/// What the comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The source has what the sandbox started from.
    Clean,
    /// The source has what the sandbox has.
    Same,
    /// Both sides changed.
    Conflict(ConflictKind),
}

/// Where the way to a path leads in the source.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// Inodes from the root down, as far as there are directories.
    pub chain: Vec<u64>,
    /// The mount the last of them is on.
    pub mount: u64,
    /// The way does not go down to the parent: something on it is missing or no directory.
    pub broken: bool,
}

pub(crate) struct Examiner<'v> {
    view: &'v View<'v>,
    ways: BTreeMap<RelPath, Way>,
    source: Near<'v>,
    /// Every directory passed, as it is.
    pub directories: BTreeMap<RelPath, Fingerprint>,
    pub root_mount: u64,
}

impl<'v> Examiner<'v> {
    pub fn new(view: &'v View<'v>) -> io::Result<Self> {
        let root = view.source.root_dir()?;
        Ok(Examiner {
            view,
            ways: BTreeMap::new(),
            source: Near::new(&view.source),
            directories: BTreeMap::from([(RelPath::root(), root.stat_self()?)]),
            root_mount: mount_of(&root)?,
        })
    }

    /// What the source has at `path`.
    pub fn theirs(&mut self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        self.source.stat(path)
    }

    /// The way to the directory that holds `path`.
    pub fn way(&mut self, path: &RelPath) -> io::Result<Way> {
        let parent = path.parent().unwrap_or_default();
        if let Some(way) = self.ways.get(&parent) {
            return Ok(way.clone());
        }
        let mut dir = self.view.source.root_dir()?;
        let mut way = Way {
            chain: vec![dir.stat_self()?.ino],
            mount: self.root_mount,
            broken: false,
        };
        let mut at = RelPath::root();
        for name in parent.components() {
            at = at.join(name);
            dir = match dir.open_dir(name) {
                Ok(dir) => dir,
                Err(error) if is_not_there(&error) => {
                    way.broken = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            let found = dir.stat_self()?;
            way.chain.push(found.ino);
            way.mount = mount_of(&dir)?;
            self.directories.insert(at.clone(), found);
        }
        self.ways.insert(parent, way.clone());
        Ok(way)
    }

    /// The verdict on `change`, where the sandbox has `ours` and the source `theirs`.
    pub fn verdict(
        &mut self,
        change: &Change,
        ours: Option<&Fingerprint>,
        theirs: Option<&Fingerprint>,
    ) -> io::Result<Verdict> {
        let found = self.suspicion(change, theirs)?;
        let Some(kind) = found else {
            return Ok(Verdict::Clean);
        };
        let same = match (ours, theirs) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => self.is_same(&change.path, ours, theirs)?,
            _ => false,
        };
        Ok(if same {
            Verdict::Same
        } else {
            Verdict::Conflict(kind)
        })
    }

    /// How the source differs from the base, if it does.
    fn suspicion(
        &mut self,
        change: &Change,
        theirs: Option<&Fingerprint>,
    ) -> io::Result<Option<ConflictKind>> {
        let path = &change.path;
        let Some(base) = self.view.base.get(path) else {
            return Ok(self.by_the_clock(change, theirs));
        };
        let way = self.way(path)?;
        let moved = way
            .chain
            .iter()
            .zip(&base.chain)
            .any(|(now, then)| now != then)
            || way.chain.len() < base.chain.len();
        match (&base.entry, theirs) {
            (Some(_), None) => return Ok(Some(ConflictKind::Deleted)),
            _ if moved => return Ok(Some(ConflictKind::DirectoryMoved)),
            (None, None) => return Ok(None),
            (None, Some(_)) => return Ok(Some(ConflictKind::BothCreated)),
            (Some(then), Some(now)) if then.entry.kind != now.entry.kind => {
                return Ok(Some(ConflictKind::Type));
            }
            (Some(then), Some(now)) => {
                if !self.is_unchanged(path, &base, then, now)? {
                    return Ok(Some(ConflictKind::Changed));
                }
            }
        }
        Ok(base.uncertain.then_some(ConflictKind::Uncertain))
    }

    /// Without a base, what is older than the sandbox was there when it was made.
    fn by_the_clock(&self, change: &Change, theirs: Option<&Fingerprint>) -> Option<ConflictKind> {
        let created = self.view.sandbox.meta.created_coarse;
        match (&change.before, theirs) {
            (None, None) => None,
            (Some(_), None) => Some(ConflictKind::Deleted),
            (None, Some(_)) => Some(ConflictKind::BothCreated),
            (Some(_), Some(now)) if now.ctime >= created => Some(ConflictKind::Uncertain),
            (Some(then), Some(now)) => (then != &now.entry).then_some(ConflictKind::Changed),
        }
    }

    fn is_unchanged(
        &mut self,
        path: &RelPath,
        base: &Base,
        then: &Fingerprint,
        now: &Fingerprint,
    ) -> io::Result<bool> {
        let (mut before, mut after) = (then.entry, now.entry);
        if now.entry.kind == EntryKind::Directory {
            // What is in a directory is compared by itself.
            (before.mtime, before.size) = (after.mtime, after.size);
            (before.rdev, after.rdev) = (0, 0);
            return Ok(then.ino == now.ino && before == after);
        }
        if then.ino != now.ino || then.btime != now.btime || before != after {
            return Ok(false);
        }
        let bytes = self.has_bytes(path, base, now)?;
        if then.ctime == now.ctime {
            return Ok(bytes != Some(false));
        }
        // Only the ctime moved: by a second name, a rename there and back, or an extended attribute.
        // Nothing can be lost if the bytes and the attributes are known to be the same.
        let untouched = bytes == Some(true) || now.entry.kind != EntryKind::File;
        Ok(untouched && base.xattrs == Some(self.view.source.xattrs(path)?))
    }

    /// Has the source the base's bytes? `None` where they were not kept.
    fn has_bytes(
        &mut self,
        path: &RelPath,
        base: &Base,
        now: &Fingerprint,
    ) -> io::Result<Option<bool>> {
        match &base.content {
            BaseContent::None => Ok(None),
            BaseContent::Hash(_) | BaseContent::Saved(_) | BaseContent::Frozen => {
                let (dir, name) = self.source.parent(path)?.ok_or(Errno::NOENT)?;
                let file = dir.open_found_file(name, now)?;
                self.view.base.holds(path, &file)
            }
        }
    }

    /// Would promoting `path` change nothing?
    fn is_same(
        &self,
        path: &RelPath,
        ours: &Fingerprint,
        theirs: &Fingerprint,
    ) -> io::Result<bool> {
        let (workspace, source) = (self.view.workspace(), &self.view.source);
        let (a, b) = (&ours.entry, &theirs.entry);
        let set_id = if a.kind == EntryKind::File { 0o6000 } else { 0 };
        let alike = a.kind == b.kind
            && (a.kind == EntryKind::Symlink || a.mode & !set_id == b.mode & !set_id)
            && (a.uid, a.gid, a.rdev) == (b.uid, b.gid, b.rdev);
        if !alike || promotable(workspace.xattrs(path)?) != promotable(source.xattrs(path)?) {
            return Ok(false);
        }
        match a.kind {
            EntryKind::File if a.size != b.size => Ok(false),
            EntryKind::File => content::same(&workspace.open(path)?, &source.open(path)?),
            EntryKind::Symlink => Ok(workspace.read_link(path)? == source.read_link(path)?),
            _ => Ok(true),
        }
    }

    /// Both edits of a text in one, with the mode both agree on; `None` if they do not fit together.
    pub fn merged(
        &self,
        path: &RelPath,
        ours: Option<&Fingerprint>,
        theirs: Option<&Fingerprint>,
    ) -> io::Result<Option<(Vec<u8>, u32)>> {
        let base = self.view.before().stat(path)?;
        let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else {
            return Ok(None);
        };
        let sides = [&base, ours, theirs];
        if sides
            .iter()
            .any(|side| side.entry.kind != EntryKind::File || side.entry.size > MERGE_LIMIT)
        {
            return Ok(None);
        }
        let [base_mode, our_mode, their_mode] = sides.map(|side| side.entry.mode & !0o6000);
        let mode = match () {
            () if our_mode == base_mode || our_mode == their_mode => their_mode,
            () if their_mode == base_mode => our_mode,
            () => return Ok(None),
        };
        // A base whose bytes were not kept cannot be opened.
        let Ok(base) = self.view.before().open(path) else {
            return Ok(None);
        };
        let (base, ours, theirs) = (
            read(base)?,
            read(self.view.workspace().open(path)?)?,
            read(self.view.source.open(path)?)?,
        );
        match merge(&base, &ours, &theirs) {
            Merged::Clean(bytes) => Ok(Some((bytes, mode))),
            Merged::Conflicted(_) | Merged::Binary => Ok(None),
        }
    }

    /// Everything below the directory `path` of the source, parents first.
    pub fn below(&self, path: &RelPath) -> io::Result<Descent> {
        let mut below = Vec::new();
        let mut open = vec![(RelPath::root(), self.view.source.dir(path)?)];
        while let Some((at, dir)) = open.pop() {
            if mount_of(&dir)? != self.root_mount {
                return Ok(Descent::Mounted(path.join_path(&at)));
            }
            for entry in dir.entries()? {
                let at = at.join(&entry.name);
                let Some(fingerprint) = dir.stat(&entry.name)? else {
                    continue;
                };
                if fingerprint.entry.kind == EntryKind::Directory {
                    open.push((at.clone(), dir.open_dir(&entry.name)?));
                }
                below.push(Below {
                    path: at,
                    fingerprint,
                    digest: None,
                });
            }
        }
        below.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Descent::Below(below))
    }
}

/// What is below a directory.
pub(crate) enum Descent {
    Below(Vec<Below>),
    /// Another filesystem is mounted here.
    Mounted(RelPath),
}

/// The mount a directory is on: a bind mount of the same filesystem cannot be renamed across.
pub(crate) fn mount_of(dir: &Dir) -> io::Result<u64> {
    let statx = rustix::fs::statx(dir.fd(), "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    Ok(statx.stx_mnt_id)
}

fn read(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
