//! Looking bases up, and the tree the workspace started from as a [`Side`].

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath};

use super::contents::ContentStore;
use super::copied::Copied;
use super::index::{self, Record, Records};
use super::{Base, BaseContent};
use crate::backend;
use crate::content;
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// The bases of a sandbox.
#[derive(Debug)]
pub struct BaseStore {
    dir: PathBuf,
    records: Records,
    lower: Lower,
}

/// Where the base of a path is that has no record.
#[derive(Debug)]
enum Lower {
    /// As the source has it now.
    Live(Tree),
    /// In the snapshot. Inodes are compared on the source, which snapshots keep the numbers of.
    Frozen { snapshot: Tree, source: Tree },
    /// In the manifest.
    Copied(Box<Copied>),
}

impl BaseStore {
    /// Opens a sandbox's bases as recorded so far.
    pub fn open(sandbox: &Sandbox) -> io::Result<BaseStore> {
        let dir = store_dir(sandbox);
        let lower = match sandbox.meta.backend {
            BackendKind::Btrfs => Lower::Frozen {
                snapshot: Tree::open(&sandbox.dir.join(backend::btrfs::BASE))?,
                source: Tree::open(sandbox.source())?,
            },
            BackendKind::Overlay => Lower::Live(Tree::open(sandbox.source())?),
            BackendKind::Copy => Lower::Copied(Box::new(Copied::open(sandbox)?)),
        };
        let records = index::read(&index_path(&dir))?;
        Ok(BaseStore {
            dir,
            records,
            lower,
        })
    }

    /// The base of `path`. `None` when it was never touched: then the source is its own base.
    pub fn get(&self, path: &RelPath) -> Option<Base> {
        let recorded = recorded(&self.records, path);
        match &self.lower {
            Lower::Live(_) => recorded,
            Lower::Frozen { snapshot, .. } => {
                recorded.or_else(|| frozen(&self.records, snapshot, path).ok())
            }
            Lower::Copied(copied) => Some(copied.base(&self.records, path)),
        }
    }

    /// What stood at `path`, where that was recorded.
    pub(crate) fn recorded_entry(&self, path: &RelPath) -> Option<Option<Fingerprint>> {
        match &self.lower {
            Lower::Live(_) | Lower::Frozen { .. } => {
                recorded(&self.records, path).map(|base| base.entry)
            }
            Lower::Copied(_) => None,
        }
    }

    /// The paths that a workspace with a frozen lower layer has from the source as it was later:
    /// promoted to it, or taken from it.
    pub(crate) fn taken_since(&self) -> BTreeSet<RelPath> {
        let Lower::Frozen { .. } = &self.lower else {
            return BTreeSet::new();
        };
        let there = |(path, record): (&RelPath, &Record)| record.base.entry.map(|_| path.clone());
        self.records.iter().filter_map(there).collect()
    }

    /// Does `file` hold what `path` held at first? `None` when that can no longer be known.
    pub(crate) fn holds(&self, path: &RelPath, file: &File) -> io::Result<Option<bool>> {
        let recorded = match &self.lower {
            Lower::Copied(copied) => Some(copied.base(&self.records, path)),
            Lower::Live(_) | Lower::Frozen { .. } => recorded(&self.records, path),
        };
        if let Some(Base {
            content: BaseContent::Hash(hash),
            ..
        }) = recorded
        {
            return Ok(Some(content::digest(file)? == hash));
        }
        match self.open(path) {
            Ok(before) => content::same(&before, file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// From now on the base of `entries`, and of `trees` with all that is below them, is what the
    /// source has there: they were promoted, or the source's version was taken into the sandbox.
    /// What is still in the sandbox's layer is recorded anew by the next [`super::record`].
    pub fn forget(&mut self, entries: &[RelPath], trees: &[RelPath]) -> io::Result<()> {
        if self.records.is_empty() && !matches!(self.lower, Lower::Frozen { .. }) {
            return Ok(());
        }
        make_private_dir(&self.dir)?;
        let _lock = lock(&self.dir)?;
        self.records = index::read(&index_path(&self.dir))?;
        let mut contents = ContentStore::new(content_dir(&self.dir));
        let whole: BTreeSet<&RelPath> = trees.iter().collect();
        let in_a_tree = |path: &RelPath| {
            let above = std::iter::successors(Some(path.clone()), RelPath::parent);
            above.into_iter().any(|at| whole.contains(&at))
        };
        let mut gone: Vec<Record> = self
            .records
            .extract_if(|path, _| in_a_tree(path))
            .map(|(_, record)| record)
            .collect();
        gone.extend(entries.iter().filter_map(|path| self.records.remove(path)));
        if let Lower::Frozen { source, .. } = &self.lower {
            // The snapshot stays as it is, so the source's state has to be written over it.
            for path in entries {
                let base = as_it_is(source, path, &mut contents)?;
                let complete = !base.is_directory();
                self.records.insert(path.clone(), Record { base, complete });
            }
            for path in trees {
                write_tree(source, path, &mut contents, &mut self.records)?;
            }
        }
        index::rewrite(&index_path(&self.dir), &self.records)?;
        contents.remove(gone.into_iter().map(|record| record.base.content))
    }

    /// The tree that has what is not recorded.
    fn lower(&self) -> &Tree {
        match &self.lower {
            Lower::Live(source) => source,
            Lower::Frozen { snapshot, .. } => snapshot,
            Lower::Copied(copied) => &copied.source,
        }
    }

    /// The tree whose inodes records speak of.
    fn source(&self) -> &Tree {
        match &self.lower {
            Lower::Live(source) | Lower::Frozen { source, .. } => source,
            Lower::Copied(copied) => &copied.source,
        }
    }
}

/// The base of `path` in a snapshot, below directories that may have been taken from the source
/// since.
fn frozen(records: &Records, snapshot: &Tree, path: &RelPath) -> io::Result<Base> {
    let mut base = look(snapshot, path)?;
    let mut above = RelPath::root();
    for (ino, name) in base.chain.iter_mut().zip(path.components()) {
        if let Some(taken) = records.get(&above).and_then(|record| record.base.entry) {
            *ino = taken.ino;
        }
        above = above.join(name);
    }
    if base
        .entry
        .is_some_and(|found| found.entry.kind == EntryKind::File)
    {
        base.content = BaseContent::Frozen;
    }
    Ok(base)
}

/// What the source has at `path` now, its contents kept.
fn as_it_is(source: &Tree, path: &RelPath, contents: &mut ContentStore) -> io::Result<Base> {
    let mut base = look(source, path)?;
    if let Some(found) = base
        .entry
        .filter(|found| found.entry.kind == EntryKind::File)
    {
        base.content = contents.keep(&source.open(path)?, found.entry.size)?;
    }
    Ok(base)
}

/// Records what the source has at `path` and below it, and that there is nothing else.
fn write_tree(
    source: &Tree,
    path: &RelPath,
    contents: &mut ContentStore,
    records: &mut Records,
) -> io::Result<()> {
    let mut pending = vec![path.clone()];
    while let Some(path) = pending.pop() {
        let base = as_it_is(source, &path, contents)?;
        if base.is_directory() {
            pending.extend(source.list(&path)?.iter().map(|name| path.join(name)));
        }
        let complete = true;
        records.insert(path, Record { base, complete });
    }
    Ok(())
}

/// Everything about `path` in `tree` but contents.
fn look(tree: &Tree, path: &RelPath) -> io::Result<Base> {
    let mut chain = Vec::new();
    let mut above = RelPath::root();
    for name in path.components() {
        match tree.stat(&above)? {
            Some(found) if found.entry.kind == EntryKind::Directory => chain.push(found.ino),
            _ => break,
        }
        above = above.join(name);
    }
    let entry = tree.stat(path)?;
    let kind = entry.map(|found| found.entry.kind);
    Ok(Base {
        chain,
        entry,
        content: BaseContent::None,
        link: match kind {
            Some(EntryKind::Symlink) => Some(tree.read_link(path)?),
            _ => None,
        },
        xattrs: kind.map(|_| tree.xattrs(path)).transpose()?,
        uncertain: false,
    })
}

/// The base of `path`: its own record, or what the nearest record above it says.
pub(super) fn recorded(records: &Records, path: &RelPath) -> Option<Base> {
    if let Some(record) = records.get(path) {
        return Some(record.base.clone());
    }
    let record = nearest_above(records, path)?;
    record.complete.then(|| absent_below(&record.base))
}

/// The record nearest above `path`. A deep new tree has one record at its top, and asking every
/// directory on the way for one would make reading it cubic.
fn nearest_above<'r>(records: &'r Records, path: &RelPath) -> Option<&'r Record> {
    if records.len() < path.components().count() {
        let above = records.iter().filter(|(at, _)| path.starts_with(at));
        let nearest = above.max_by_key(|(at, _)| at.as_bytes().len());
        return nearest.map(|(_, record)| record);
    }
    std::iter::successors(path.parent(), RelPath::parent).find_map(|at| records.get(&at))
}

fn absent_below(ancestor: &Base) -> Base {
    let mut chain = ancestor.chain.clone();
    if let Some(found) = ancestor.entry.filter(|_| ancestor.is_directory()) {
        chain.push(found.ino);
    }
    Base {
        chain,
        entry: None,
        content: BaseContent::None,
        link: None,
        xattrs: None,
        uncertain: ancestor.uncertain,
    }
}

impl Side for BaseStore {
    fn stat(&self, path: &RelPath) -> io::Result<Option<Fingerprint>> {
        if let Lower::Copied(copied) = &self.lower {
            return Ok(copied.stat(path));
        }
        match recorded(&self.records, path) {
            Some(base) => Ok(base.entry),
            None => self.lower().stat(path),
        }
    }

    fn open(&self, path: &RelPath) -> io::Result<File> {
        if let Lower::Copied(copied) = &self.lower {
            return copied.open_file(&self.records, &content_dir(&self.dir), path);
        }
        let Some(base) = recorded(&self.records, path) else {
            return self.lower().open(path);
        };
        if let BaseContent::Saved(name) = &base.content {
            return File::open(content_dir(&self.dir).join(name));
        }
        if base.entry.is_some() && base.stands(self.source().stat(path)?.as_ref()) {
            return self.source().open(path);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "what it held at first was not kept",
        ))
    }

    fn read_link(&self, path: &RelPath) -> io::Result<Vec<u8>> {
        if let Lower::Copied(copied) = &self.lower {
            return copied.read_link(&self.records, path);
        }
        match recorded(&self.records, path) {
            None => self.lower().read_link(path),
            Some(Base {
                link: Some(link), ..
            }) => Ok(link),
            Some(base) if base.stands(self.source().stat(path)?.as_ref()) => {
                self.source().read_link(path)
            }
            Some(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn xattrs(&self, path: &RelPath) -> io::Result<Xattrs> {
        if let Lower::Copied(copied) = &self.lower {
            return copied.xattrs(&self.records, path);
        }
        match recorded(&self.records, path) {
            None => self.lower().xattrs(path),
            Some(Base {
                xattrs: Some(xattrs),
                ..
            }) => Ok(xattrs),
            Some(base) if base.stands(self.source().stat(path)?.as_ref()) => {
                self.source().xattrs(path)
            }
            Some(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &RelPath) -> io::Result<Vec<Vec<u8>>> {
        if let Lower::Copied(copied) = &self.lower {
            return copied.list(path);
        }
        let live = match recorded(&self.records, path) {
            Some(Base { entry: None, .. }) => return Err(io::ErrorKind::NotFound.into()),
            Some(_) if self.records.get(path).is_some_and(|record| record.complete) => Vec::new(),
            _ => match self.lower().list(path) {
                Err(error) if crate::layer::vanished(&error) => Vec::new(),
                names => names?,
            },
        };
        let mut names: BTreeSet<Vec<u8>> = live.into_iter().collect();
        for (name, record) in children(&self.records, path) {
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

/// Makes `dir`, and what is above it, for its owner alone.
pub(super) fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}
