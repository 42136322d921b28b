//! Writing bases down at the end of a run.
//!
//! Nothing here is durable by fsync: a base that is lost in a power cut is recorded again at the
//! next look, with the mark of the run that was on, so that whatever the source changed since counts
//! as uncertain.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use sandbox_model::{BackendKind, EntryKind, Fingerprint, RelPath, Timestamp};

use super::index::{self, Record, Records};
use super::store::{content_dir, index_path, lock, store_dir};
use super::{Base, BaseContent, unchanged};
use crate::content;
use crate::layer::{Below, Contents, Descent, Layer, LayerError, Touched};
use crate::sandbox::Sandbox;
use crate::side::{Side, Xattrs};
use crate::tree::Tree;

/// The largest file that is copied where it cannot be reflinked.
const COPY_LIMIT: u64 = 1 << 20;

/// Marks the beginning of a run and tells the coarse clock, for [`record`] at its end. A mark that
/// its process left behind makes the next look record for it.
pub fn run_began(sandbox: &Sandbox) -> io::Result<Timestamp> {
    let began = coarse_now();
    if sandbox.meta.backend == BackendKind::Btrfs {
        return Ok(began);
    }
    let dir = store_dir(sandbox);
    let mark = Mark {
        pid: std::process::id(),
        began,
    };
    match File::create(mark.path(&dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_private_dir(&dir)?;
            File::create(mark.path(&dir))?;
        }
        made => drop(made?),
    }
    Ok(began)
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
        root: None,
        lines: String::new(),
    };
    let visited = layer.walk(&mut |touched| {
        let path = touched.path.clone();
        recorder
            .visit(touched)
            .map_err(|source| LayerError { path, source })
    });
    visited.map_err(|error| {
        io::Error::new(
            error.source.kind(),
            format!("{}: {}", error.path, error.source),
        )
    })?;
    if recorder.lines.is_empty() {
        Ok(())
    } else {
        index::append(&index_path(dir), &recorder.lines)
    }
}

/// One pass over a layer.
struct Recorder {
    known: Records,
    /// The source's directories on the way: inode, and whether one changed during the run.
    directories: HashMap<RelPath, (u64, Freshness)>,
    contents: ContentStore,
    source: Tree,
    horizon: Horizon,
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
    fn visit(&mut self, touched: Touched) -> io::Result<Descent> {
        if let Some(was) = touched
            .was
            .filter(|was| was.entry.kind == EntryKind::Directory)
        {
            let fresh = self.horizon.freshness(&was);
            self.directories
                .insert(touched.path.clone(), (was.ino, fresh));
        }
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
            xattrs: Xattrs::new(),
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
        base.xattrs = self.source.xattrs(path)?;
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

/// Saved contents, a file each.
struct ContentStore {
    dir: PathBuf,
    next: u64,
    reflink: Reflink,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reflink {
    Untried,
    Impossible,
}

impl ContentStore {
    fn new(dir: PathBuf) -> ContentStore {
        ContentStore {
            dir,
            next: 0,
            reflink: Reflink::Untried,
        }
    }

    fn keep(&mut self, file: &File, size: u64) -> io::Result<BaseContent> {
        if self.reflink == Reflink::Impossible && size > COPY_LIMIT {
            return content::digest(file).map(BaseContent::Hash);
        }
        let (name, mut saved) = self.create()?;
        if self.reflink != Reflink::Impossible {
            match rustix::fs::ioctl_ficlone(&saved, file) {
                Ok(()) => return Ok(BaseContent::Saved(name)),
                Err(_) => self.reflink = Reflink::Impossible,
            }
        }
        if size > COPY_LIMIT {
            std::fs::remove_file(self.dir.join(&name))?;
            return content::digest(file).map(BaseContent::Hash);
        }
        let mut bytes = Vec::new();
        file.take(COPY_LIMIT + 1).read_to_end(&mut bytes)?;
        saved.write_all(&bytes)?;
        Ok(BaseContent::Saved(name))
    }

    fn create(&mut self) -> io::Result<(String, File)> {
        if self.next == 0 {
            make_private_dir(&self.dir)?;
            self.next = 1 + highest(&self.dir)?;
        }
        let name = self.next.to_string();
        self.next += 1;
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.dir.join(&name))?;
        Ok((name, file))
    }
}

/// The highest number among a directory's names.
fn highest(dir: &Path) -> io::Result<u64> {
    let mut highest = 0;
    for entry in std::fs::read_dir(dir)? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        highest = highest.max(number.unwrap_or(0));
    }
    Ok(highest)
}

/// When a run was on.
struct Horizon {
    began: Timestamp,
    now: Timestamp,
}

impl Horizon {
    /// Whatever changed after the run began has a change time of at least the coarse clock read then:
    /// filesystems stamp with that clock or, multigrain, with a finer and later one. A change in the
    /// same tick before the run looks the same and counts as fresh too. A modification time is set at
    /// will, so one in the future says nothing.
    fn freshness(&self, found: &Fingerprint) -> Freshness {
        let mtime = found.entry.mtime;
        if found.ctime >= self.began || (mtime >= self.began && mtime <= self.now) {
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

fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// The clock filesystems stamp with.
fn coarse_now() -> Timestamp {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Timestamp(now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}
