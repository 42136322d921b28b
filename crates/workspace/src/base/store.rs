//! Looking bases up, and the tree the workspace started from as a [`Side`].

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath};

use super::index::{self, Record, Records};
use super::{Base, BaseContent};
use crate::content;
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// The bases of a sandbox.
#[derive(Debug)]
pub struct BaseStore {
    dir: PathBuf,
    /// Where an untouched path's base is: the live source, or the frozen snapshot.
    lower: Tree,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Recorded at first touch; what is not recorded is as the source has it.
    Recorded(Records),
    /// The lower layer never changes. Holds the source's device, which inodes are compared on.
    Frozen { dev: u64 },
}

impl BaseStore {
    /// Opens a sandbox's bases as recorded so far.
    pub fn open(sandbox: &Sandbox) -> io::Result<BaseStore> {
        let dir = store_dir(sandbox);
        let (lower, kind) = match sandbox.meta.backend {
            BackendKind::Btrfs => {
                let lower = Tree::open(&sandbox.dir.join("base"))?;
                (
                    lower,
                    Kind::Frozen {
                        dev: sandbox.meta.source_root.dev,
                    },
                )
            }
            BackendKind::Overlay | BackendKind::Copy => {
                let records = index::read(&index_path(&dir))?;
                (Tree::open(sandbox.source())?, Kind::Recorded(records))
            }
        };
        Ok(BaseStore { dir, lower, kind })
    }

    /// The base of `path`. `None` when it was never touched: then the source is its own base.
    pub fn get(&self, path: &RelPath) -> Option<Base> {
        match &self.kind {
            Kind::Recorded(records) => recorded(records, path),
            Kind::Frozen { dev } => self.frozen(path, *dev).ok(),
        }
    }

    /// What stood at `path`, where that was recorded rather than frozen.
    pub(crate) fn recorded_entry(&self, path: &RelPath) -> Option<Option<Fingerprint>> {
        self.known(path).map(|base| base.entry)
    }

    /// Does `file` hold what `path` held at first? `None` when that can no longer be known.
    pub(crate) fn holds(&self, path: &RelPath, file: &File) -> io::Result<Option<bool>> {
        if let Some(Base {
            content: BaseContent::Hash(hash),
            ..
        }) = self.get(path)
        {
            return Ok(Some(content::digest(file)? == hash));
        }
        match self.open(path) {
            Ok(before) => content::same(&before, file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The recorded bases of `paths` no longer hold: they were promoted, or the source's version was
    /// taken. The next [`super::record`] sees them as touched for the first time.
    pub fn forget(&mut self, paths: &[RelPath]) -> io::Result<()> {
        let Kind::Recorded(records) = &mut self.kind else {
            return Ok(());
        };
        if records.is_empty() {
            return Ok(());
        }
        let _lock = lock(&self.dir)?;
        *records = index::read(&index_path(&self.dir))?;
        let mut gone = Vec::new();
        for path in paths {
            if let Some(Record {
                base:
                    Base {
                        content: BaseContent::Saved(name),
                        ..
                    },
                ..
            }) = records.remove(path)
            {
                gone.push(name);
            }
        }
        index::rewrite(&index_path(&self.dir), records)?;
        for name in gone {
            match std::fs::remove_file(content_dir(&self.dir).join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn frozen(&self, path: &RelPath, dev: u64) -> io::Result<Base> {
        let mut chain = Vec::new();
        let mut above = RelPath::root();
        for name in path.components() {
            match self.lower.stat(&above)? {
                Some(found) if found.entry.kind == EntryKind::Directory => chain.push(found.ino),
                _ => break,
            }
            above = above.join(name);
        }
        let entry = self
            .lower
            .stat(path)?
            .map(|found| Fingerprint { dev, ..found });
        let kind = entry.map(|found| found.entry.kind);
        Ok(Base {
            chain,
            entry,
            content: match kind {
                Some(EntryKind::File) => BaseContent::Frozen,
                _ => BaseContent::None,
            },
            link: match kind {
                Some(EntryKind::Symlink) => Some(self.lower.read_link(path)?),
                _ => None,
            },
            xattrs: if kind.is_some() {
                self.lower.xattrs(path)?
            } else {
                Xattrs::new()
            },
            uncertain: false,
        })
    }

    /// What is recorded of `path`; `None` where the lower layer itself tells.
    fn known(&self, path: &RelPath) -> Option<Base> {
        match &self.kind {
            Kind::Recorded(records) => recorded(records, path),
            Kind::Frozen { .. } => None,
        }
    }
}

/// The base of `path`: its own record, or what the nearest record above it says.
fn recorded(records: &Records, path: &RelPath) -> Option<Base> {
    if let Some(record) = records.get(path) {
        return Some(record.base.clone());
    }
    let mut above = path.parent();
    while let Some(ancestor) = above {
        if let Some(record) = records.get(&ancestor) {
            return record.complete.then(|| absent_below(&record.base));
        }
        above = ancestor.parent();
    }
    None
}

fn absent_below(ancestor: &Base) -> Base {
    let mut chain = ancestor.chain.clone();
    if let Some(found) = ancestor
        .entry
        .filter(|found| found.entry.kind == EntryKind::Directory)
    {
        chain.push(found.ino);
    }
    Base {
        chain,
        entry: None,
        content: BaseContent::None,
        link: None,
        xattrs: Xattrs::new(),
        uncertain: ancestor.uncertain,
    }
}

impl Side for BaseStore {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        match self.known(path) {
            Some(base) => Ok(base.entry),
            None => self.lower.stat(path),
        }
    }

    fn open(&self, path: &RelPath) -> io::Result<File> {
        let Some(base) = self.known(path) else {
            return self.lower.open(path);
        };
        if let BaseContent::Saved(name) = &base.content {
            return File::open(content_dir(&self.dir).join(name));
        }
        if base.entry.is_some() && base.stands(self.lower.stat(path)?.as_ref()) {
            return self.lower.open(path);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "what it held at first was not kept",
        ))
    }

    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        match self.known(path) {
            Some(Base {
                link: Some(link), ..
            }) => Ok(link),
            Some(base) if !base.stands(self.lower.stat(path)?.as_ref()) => {
                Err(io::ErrorKind::NotFound.into())
            }
            _ => self.lower.read_link(path),
        }
    }

    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        match self.known(path) {
            Some(base) => Ok(base.xattrs),
            None => self.lower.xattrs(path),
        }
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        let Kind::Recorded(records) = &self.kind else {
            return self.lower.list(path);
        };
        let live = match recorded(records, path) {
            Some(Base { entry: None, .. }) => return Err(io::ErrorKind::NotFound.into()),
            Some(_) if records.get(path).is_some_and(|record| record.complete) => Vec::new(),
            _ => match self.lower.list(path) {
                Err(error) if crate::layer::vanished(&error) => Vec::new(),
                names => names?,
            },
        };
        let mut names: BTreeSet<Vec<u8>> = live.into_iter().collect();
        for (name, record) in children(records, path) {
            match record.base.entry {
                Some(_) => names.insert(name.to_vec()),
                None => names.remove(name),
            };
        }
        Ok(names.into_iter().collect())
    }
}

fn children<'r>(
    records: &'r HashMap<RelPath, Record>,
    path: &'r RelPath,
) -> impl Iterator<Item = (&'r [u8], &'r Record)> {
    records.iter().filter_map(move |(at, record)| {
        (at.parent().as_ref() == Some(path)).then_some((at.name()?, record))
    })
}

/// `ROOT/NAME/bases`.
pub(super) fn store_dir(sandbox: &Sandbox) -> PathBuf {
    sandbox.dir.join("bases")
}

pub(super) fn index_path(dir: &Path) -> PathBuf {
    dir.join("index")
}

/// Where saved contents are.
pub(super) fn content_dir(dir: &Path) -> PathBuf {
    dir.join("contents")
}

/// Two runs of one sandbox can end at once; one records, then the other.
pub(super) fn lock(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir.join("lock"), flags, Mode::RUSR | Mode::WUSR)?;
    loop {
        match rustix::fs::flock(&fd, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            locked => return locked.map(|()| fd).map_err(Into::into),
        }
    }
}
