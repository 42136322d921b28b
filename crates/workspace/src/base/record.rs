//! Writing bases down at the end of a run.
//!
//! Nothing here is durable by fsync: a base that is lost in a power cut is recorded again at the
//! next look, with the mark of the run that was on, so that whatever the source changed since counts
//! as uncertain.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath, Timestamp};

use super::contents::ContentStore;
use super::index::{self, Record, Records};
use super::mark::{self, Mark};
use super::store::{content_dir, index_path, lock, make_private_dir, store_dir};
use super::{Base, BaseContent, unchanged};
use crate::backend::copy::Manifest;
use crate::layer::{Below, Contents, Descent, Layer, LayerError, Touched};
use crate::meta::coarse_now;
use crate::sandbox::Sandbox;
use crate::side::Side;
use crate::tree::Tree;

/// Marks the beginning of a run and tells when that was, by the filesystem's clock, for [`record`] at
/// its end. A mark that its process left behind makes the next look record for it.
pub fn run_began(sandbox: &Sandbox) -> io::Result<Timestamp> {
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(coarse_now());
    }
    Mark::make(&store_dir(sandbox))
}

/// Records the base of every path touched for the first time since `began`, which [`run_began`] told.
/// O(changes). Called at the end of every run; [`crate::View::open`] does it after a crash.
pub fn record(sandbox: &Sandbox, began: Timestamp) -> io::Result<()> {
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(());
    }
    let dir = store_dir(sandbox);
    record_since(sandbox, &dir, began, None)?;
    Mark::ours(began).remove(&dir)
}

/// Records anew what [`super::BaseStore::forget`] forgot. Nothing runs in the sandbox, so what the
/// source has now is certain; and what the layer hides, was not forgotten and has no record, came to
/// the source later: the sandbox did not delete it, it never saw it.
pub(crate) fn record_anew(sandbox: &Sandbox, forgotten: &[RelPath]) -> io::Result<()> {
    const NO_RUN: Timestamp = Timestamp(i64::MAX, 0);
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(());
    }
    let forgotten = forgotten.iter().cloned().collect();
    record_since(sandbox, &store_dir(sandbox), NO_RUN, Some(forgotten))
}

/// Records for runs whose process did not live to do it. A run that is still on is helped along.
pub(crate) fn recover(sandbox: &Sandbox) -> io::Result<()> {
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(());
    }
    let dir = store_dir(sandbox);
    let marks = mark::all(&dir)?;
    let Some(began) = marks.iter().map(|mark| mark.began).min() else {
        return Ok(());
    };
    record_since(sandbox, &dir, began, None)?;
    for mark in marks.iter().filter(|mark| !mark.is_live()) {
        mark.remove(&dir)?;
    }
    Ok(())
}

fn record_since(
    sandbox: &Sandbox,
    dir: &Path,
    began: Timestamp,
    forgotten: Option<HashSet<RelPath>>,
) -> io::Result<()> {
    make_private_dir(dir)?;
    let _lock = lock(dir)?;
    let layer = Layer::open(sandbox)?;
    let mut recorder = Recorder {
        known: index::read(&index_path(dir))?,
        directories: HashMap::new(),
        contents: ContentStore::new(content_dir(dir)),
        source: Tree::open(sandbox.source())?,
        horizon: Horizon {
            began: margin(sandbox.meta.source_fs, began),
            now: coarse_now(),
        },
        forgotten,
        met: HashMap::new(),
        root: None,
        lines: String::new(),
    };
    let manifest = match sandbox.meta.backend {
        BackendKind::Copy => Some(Manifest::load(&sandbox.dir)?),
        BackendKind::Overlay | BackendKind::Btrfs => None,
    };
    let visited = layer.walk(&mut |touched| {
        let path = touched.path.clone();
        let visited = match &manifest {
            Some(manifest) => recorder
                .visit_copied(manifest, touched)
                .map(|()| Descent::Into),
            None => recorder.visit(touched),
        };
        visited.map_err(|source| LayerError { path, source })
    });
    visited.map_err(|error| {
        io::Error::new(
            error.source.kind(),
            format!("{}: {}", error.path, error.source),
        )
    })?;
    let stale = recorder.drop_stale(manifest.as_ref());
    if !stale.is_empty() {
        index::rewrite(&index_path(dir), &recorder.known)?;
        recorder
            .contents
            .remove(stale.into_iter().map(|record| record.base.content))?;
    }
    if recorder.lines.is_empty() {
        return Ok(());
    }
    index::append(&index_path(dir), &recorder.lines)
}

/// One pass over a layer.
struct Recorder {
    known: Records,
    /// The source's directories on the way: the inodes down to each, and whether one of them
    /// changed during the run.
    directories: HashMap<RelPath, (Vec<u64>, Freshness)>,
    contents: ContentStore,
    source: Tree,
    horizon: Horizon,
    /// Set when no run went before: then only these are looked at for the first time.
    forgotten: Option<HashSet<RelPath>>,
    /// Paths of the layer: which were met, and whether the source shows through below them.
    met: HashMap<RelPath, Below>,
    /// The root's own record, written once there is anything else to write.
    root: Option<Record>,
    lines: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Freshness {
    Settled,
    /// Changed during the run.
    Fresh,
}

impl Recorder {
    /// Of a copy only contents are kept, and only while the source still has them; the rest is in
    /// the manifest.
    fn visit_copied(&mut self, manifest: &Manifest, touched: Touched) -> io::Result<()> {
        let path = touched.path.clone();
        let Some(copied) = manifest.get(&path).map(|known| known.source) else {
            return Ok(());
        };
        let saved = self.known.get(&path).and_then(|known| known.base.entry);
        if touched.now.is_none() || saved == Some(copied) {
            return Ok(());
        }
        if self
            .source
            .stat(&path)?
            .is_some_and(|now| unchanged(&copied, &now))
        {
            let base = self.first_look(&Touched {
                was: Some(copied),
                ..touched
            })?;
            self.write(
                &path,
                &Record {
                    base,
                    complete: false,
                },
            );
        }
        Ok(())
    }

    fn visit(&mut self, touched: Touched) -> io::Result<Descent> {
        if let Some(was) = touched
            .was
            .filter(|was| was.entry.kind == EntryKind::Directory)
        {
            let (mut chain, above) = self.chain(&touched.path);
            chain.push(was.ino);
            let fresh = above.max(self.horizon.freshness(&was));
            self.directories
                .insert(touched.path.clone(), (chain, fresh));
        }
        self.met.insert(touched.path.clone(), touched.below);
        let complete = touched.below == Below::Replaced;
        if let Some(known) = self.known.get(&touched.path) {
            return Ok(match (known.complete, complete) {
                (true, true) => Descent::Over,
                (false, false) => Descent::Into,
                // It came to hide the source, or shows it again after a promote.
                (false, true) | (true, false) => {
                    let record = Record {
                        complete,
                        ..known.clone()
                    };
                    self.write(&touched.path, &record);
                    Descent::Into
                }
            });
        }
        // Below a directory that hid the source until now, nothing was there at first.
        let base = match super::store::recorded(&self.known, &touched.path) {
            Some(base) => base,
            None if self.never_saw(&touched) => self.absent(&touched.path),
            None => self.first_look(&touched)?,
        };
        let record = Record { base, complete };
        if touched.path.is_root() {
            self.root = Some(record);
            return Ok(Descent::Into);
        }
        if let Some(root) = self.root.take() {
            self.write(&RelPath::root(), &root);
        }
        self.write(&touched.path, &record);
        Ok(if touched.was.is_some() {
            Descent::Into
        } else {
            Descent::Over
        })
    }

    /// Forgets what is no longer in the layer: there the sandbox shows the live source again, and a
    /// later touch is a first one.
    fn drop_stale(&mut self, manifest: Option<&Manifest>) -> Vec<Record> {
        let met = &self.met;
        let left_layer = |path: &RelPath| {
            let mut above = std::iter::successors(path.parent(), RelPath::parent);
            !met.contains_key(path) && above.find_map(|dir| met.get(&dir)) == Some(&Below::Live)
        };
        let is_stale = |path: &RelPath, record: &mut Record| match manifest {
            Some(manifest) => manifest.get(path).map(|known| known.source) != record.base.entry,
            None => left_layer(path),
        };
        self.known
            .extract_if(is_stale)
            .map(|(_, record)| record)
            .collect()
    }

    fn write(&mut self, path: &RelPath, record: &Record) {
        index::line(&mut self.lines, path, record);
    }

    /// Is it hidden without ever having been deleted?
    fn never_saw(&self, touched: &Touched) -> bool {
        let forgotten = self.forgotten.as_ref();
        touched.now.is_none() && forgotten.is_some_and(|paths| !paths.contains(&touched.path))
    }

    fn absent(&self, path: &RelPath) -> Base {
        Base {
            chain: self.chain(path).0,
            entry: None,
            content: BaseContent::None,
            link: None,
            xattrs: None,
            uncertain: false,
        }
    }

    fn first_look(&mut self, touched: &Touched) -> io::Result<Base> {
        let (chain, above) = self.chain(&touched.path);
        let mut base = Base {
            chain,
            entry: touched.was,
            uncertain: above == Freshness::Fresh,
            ..self.absent(&touched.path)
        };
        let Some(was) = touched.was else {
            return Ok(base);
        };
        base.uncertain |= self.horizon.freshness(&was) == Freshness::Fresh;
        // Of what is deleted, and of a file whose contents are still the source's own, the
        // fingerprint tells enough.
        if touched.now.is_none() || touched.contents == Contents::Lower(touched.path.clone()) {
            return Ok(base);
        }
        match self.keep(&touched.path, &was, &mut base) {
            // It went while we looked; what we have is not what the run saw.
            Err(error) if crate::layer::vanished(&error) => base.uncertain = true,
            kept => kept?,
        }
        Ok(base)
    }

    fn keep(&mut self, path: &RelPath, was: &Fingerprint, base: &mut Base) -> io::Result<()> {
        base.xattrs = Some(self.source.xattrs(path)?);
        match was.entry.kind {
            EntryKind::Symlink => base.link = Some(self.source.read_link(path)?),
            EntryKind::File => {
                base.content = self
                    .contents
                    .keep(&self.source.open(path)?, was.entry.size)?;
                let after = self.source.stat(path)?;
                base.uncertain |= !after.is_some_and(|after| unchanged(was, &after));
            }
            _ => {}
        }
        Ok(())
    }

    /// Inodes from the root to the nearest directory above `path`, and whether one is fresh.
    fn chain(&self, path: &RelPath) -> (Vec<u64>, Freshness) {
        let mut above = std::iter::successors(path.parent(), RelPath::parent);
        let known = above.find_map(|dir| self.directories.get(&dir));
        known.cloned().unwrap_or((Vec::new(), Freshness::Settled))
    }
}

/// When a run was on.
struct Horizon {
    began: Timestamp,
    now: Timestamp,
}

impl Horizon {
    /// Whatever changed after the run began has a change time of at least its mark's. Filesystems
    /// that keep whole seconds cut theirs short. A modification time is set at will, so one in the
    /// future says nothing.
    fn freshness(&self, found: &Fingerprint) -> Freshness {
        let (mtime, ctime) = (found.entry.mtime, found.ctime);
        let began = if (mtime.1, ctime.1) == (0, 0) {
            Timestamp(self.began.0 - 1, 0)
        } else {
            self.began
        };
        if ctime >= began || (mtime >= began && mtime <= self.now) {
            Freshness::Fresh
        } else {
            Freshness::Settled
        }
    }
}

/// Network and user-space filesystems stamp with another machine's or program's clock, so there the
/// run counts as having begun earlier.
fn margin(filesystem: i64, began: Timestamp) -> Timestamp {
    const FOREIGN_CLOCKS: [i64; 7] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x6573_5546, // FUSE
        0x0102_1997, // 9P
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
    ];
    const MARGIN_SECONDS: i64 = 5;
    if FOREIGN_CLOCKS.contains(&filesystem) {
        Timestamp(began.0 - MARGIN_SECONDS, began.1)
    } else {
        began
    }
}
