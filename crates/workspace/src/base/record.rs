//! Writing bases down at the end of a run.
//!
//! Nothing here is durable by fsync: a base that is lost in a power cut is recorded again at the
//! next look, with the mark of the run that was on, so that whatever the source changed since counts
//! as uncertain.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath, Timestamp};

use super::contents::ContentStore;
use super::index::{self, Record, Records};
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
    let dir = store_dir(sandbox);
    let unnamed = dir.join(format!("{MARK}.{}", std::process::id()));
    let file = match File::create(&unnamed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_private_dir(&dir)?;
            File::create(&unnamed)?
        }
        file => file?,
    };
    let mark = Mark {
        pid: std::process::id(),
        began: stamp(&file)?,
    };
    std::fs::rename(&unnamed, mark.path(&dir))?;
    Ok(mark.began)
}

/// A time that no change made so far was stamped with and no later one will be below of. The coarse
/// clock is not that: multigrain timestamps (Linux 6.13) run ahead of it by several milliseconds. But a
/// change to an inode whose time was looked at is stamped finely, and that stamp is from then on the
/// least that any filesystem of the machine gives out. Before 6.13 this is the coarse clock.
fn stamp(file: &File) -> io::Result<Timestamp> {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;
    file.metadata()?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    let found = file.metadata()?;
    Ok(Timestamp(
        found.ctime(),
        u32::try_from(found.ctime_nsec()).unwrap_or(0),
    ))
}

/// Records the base of every path touched for the first time since `began`, which [`run_began`] told.
/// O(changes). Called at the end of every run; [`crate::View::open`] does it after a crash.
pub fn record(sandbox: &Sandbox, began: Timestamp) -> io::Result<()> {
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(());
    }
    let dir = store_dir(sandbox);
    let mark = Mark {
        pid: std::process::id(),
        began,
    };
    record_since(sandbox, &dir, began)?;
    remove_mark(&mark.path(&dir))
}

/// Records for runs whose process did not live to do it. A run that is still on is helped along.
pub(crate) fn recover(sandbox: &Sandbox) -> io::Result<()> {
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(());
    }
    let dir = store_dir(sandbox);
    let marks = marks(&dir)?;
    let Some(began) = marks.iter().map(|mark| mark.began).min() else {
        return Ok(());
    };
    record_since(sandbox, &dir, began)?;
    for mark in marks.iter().filter(|mark| !mark.is_live()) {
        remove_mark(&mark.path(&dir))?;
    }
    Ok(())
}

fn record_since(sandbox: &Sandbox, dir: &Path, began: Timestamp) -> io::Result<()> {
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
    /// The source's directories on the way: inode, and whether one changed during the run.
    directories: HashMap<RelPath, (u64, Freshness)>,
    contents: ContentStore,
    source: Tree,
    horizon: Horizon,
    /// Paths of the layer: which were met, and whether the source shows through below them.
    met: HashMap<RelPath, Below>,
    /// The root's own record, written once there is anything else to write.
    root: Option<Record>,
    lines: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            let fresh = self.horizon.freshness(&was);
            self.directories
                .insert(touched.path.clone(), (was.ino, fresh));
        }
        self.met.insert(touched.path.clone(), touched.below);
        let complete = touched.below == Below::Replaced;
        if let Some(known) = self.known.get(&touched.path) {
            return Ok(match (known.complete, complete) {
                (true, _) => Descent::Over,
                (false, false) => Descent::Into,
                (false, true) => {
                    let record = Record {
                        complete,
                        ..known.clone()
                    };
                    self.write(&touched.path, &record);
                    Descent::Into
                }
            });
        }
        let record = Record {
            base: self.first_look(&touched)?,
            complete,
        };
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

    fn first_look(&mut self, touched: &Touched) -> io::Result<Base> {
        let (chain, above) = self.chain(&touched.path);
        let mut base = Base {
            chain,
            entry: touched.was,
            content: BaseContent::None,
            link: None,
            xattrs: None,
            uncertain: above == Freshness::Fresh,
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
        let (mut chain, mut freshness) = (Vec::new(), Freshness::Settled);
        let mut above = RelPath::root();
        for name in path.components() {
            let Some((ino, fresh)) = self.directories.get(&above) else {
                break;
            };
            chain.push(*ino);
            if *fresh == Freshness::Fresh {
                freshness = Freshness::Fresh;
            }
            above = above.join(name);
        }
        (chain, freshness)
    }
}

/// When a run was on.
struct Horizon {
    began: Timestamp,
    now: Timestamp,
}

impl Horizon {
    /// Whatever changed after the run began has a change time of at least its [`stamp`]. Filesystems
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

/// A run that began and has not been recorded.
struct Mark {
    pid: u32,
    began: Timestamp,
}

const MARK: &str = "run";

impl Mark {
    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!(
            "{MARK}.{}.{}.{}",
            self.pid, self.began.0, self.began.1
        ))
    }

    fn parse(name: &str) -> Option<Mark> {
        let mut parts = name.strip_prefix(MARK)?.strip_prefix('.')?.splitn(3, '.');
        let mut part = || parts.next();
        let pid = part()?.parse().ok()?;
        let began = Timestamp(part()?.parse().ok()?, part()?.parse().ok()?);
        Some(Mark { pid, began })
    }

    /// Is the process that began it still there (and not a later one with its number)?
    fn is_live(&self) -> bool {
        const TICKS_PER_SECOND: i64 = 100;
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return false;
        };
        let fields = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace());
        let started = fields.and_then(|mut fields| fields.nth(19)?.parse::<i64>().ok());
        let booted = coarse_now().0 - clock_gettime(ClockId::Boottime).tv_sec;
        started.is_some_and(|ticks| booted + ticks / TICKS_PER_SECOND <= self.began.0 + 1)
    }
}

fn marks(dir: &Path) -> io::Result<Vec<Mark>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut marks = Vec::new();
    for entry in entries {
        marks.extend(entry?.file_name().to_str().and_then(Mark::parse));
    }
    Ok(marks)
}

fn remove_mark(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
