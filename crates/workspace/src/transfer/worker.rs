//! What one thread of a tree copy does.
//!
//! Small files are what costs, so a file takes as few calls as can be: open, statx, list of
//! attributes, read; create with the final mode, write, set times, statx; two closes.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, Statx, StatxFlags, XattrFlags};
use rustix::io::Errno;
use sandbox_model::{EntryKind, Fingerprint, RelPath};

use super::directory::{Pair, creation_mode, finish_directory, give_owner, times};
use super::links::Met;
use super::tree::{Job, Record, Recording, Shared, failed_on, lock};
use super::{Copied, TransferError, attributes, content};
use crate::tree::fingerprint;

/// Files of one directory that make a job of their own.
const BATCH: usize = 128;
/// Directories held open at once, at most.
const OPEN_MAX: u64 = 200;

/// One thread's state.
pub(super) struct Worker<'s> {
    shared: &'s Shared<'s>,
    pub copied: Copied,
    pub records: Vec<Record>,
    umask: u32,
    listing: Vec<MaybeUninit<u8>>,
    buffer: Vec<u8>,
    attributes: Vec<u8>,
}

impl<'s> Worker<'s> {
    pub(super) fn new(shared: &'s Shared<'_>) -> Worker<'s> {
        Worker {
            shared,
            copied: Copied::default(),
            records: Vec::new(),
            umask: attributes::umask(),
            listing: vec![MaybeUninit::uninit(); 64 * 1024],
            buffer: Vec::new(),
            attributes: vec![0; 4096],
        }
    }

    pub(super) fn perform(&mut self, job: Job) -> Result<(), TransferError> {
        match job {
            Job::Enter { path, above } => self.enter(path, above),
            Job::Entries { pair, names } => self.copy_entries(&pair, &names),
        }
    }

    /// Lists a directory, makes its directories, and leaves its other entries to further jobs but
    /// for the last batch.
    fn enter(&mut self, path: RelPath, above: Option<Arc<Pair>>) -> Result<(), TransferError> {
        let pair = self.open(path.clone(), above).map_err(failed_on(&path))?;
        let pair = Arc::new(pair);
        self.shared.open.fetch_add(1, Ordering::Relaxed);
        let (directories, mut entries) = self.list(&pair).map_err(failed_on(&path))?;
        let mut jobs = Vec::new();
        for name in directories {
            let below = path.join(&name);
            if self.shared.skip.contains(&below) {
                continue;
            }
            rustix::fs::mkdirat(pair.to.as_fd(), &*name, Mode::RWXU)
                .map_err(|errno| failed_on(&below)(errno.into()))?;
            let crowded = self.shared.open.load(Ordering::Relaxed) > OPEN_MAX;
            let above = if crowded {
                None
            } else {
                pair.begin();
                Some(pair.clone())
            };
            jobs.push(Job::Enter { path: below, above });
        }
        while entries.len() > BATCH {
            let names = entries.split_off(entries.len() - BATCH);
            pair.begin();
            jobs.push(Job::Entries {
                pair: pair.clone(),
                names,
            });
        }
        if !jobs.is_empty() {
            self.shared.push(jobs);
        }
        self.copy_entries(&pair, &entries)
    }

    /// Opens both sides of a directory.
    fn open(&mut self, path: RelPath, above: Option<Arc<Pair>>) -> io::Result<Pair> {
        let (from, to) = match (&above, path.name()) {
            (Some(above), Some(name)) => (above.from.open_dir(name)?, above.to.open_dir(name)?),
            _ => (self.shared.from.dir(&path)?, self.shared.to.dir(&path)?),
        };
        if let Some(above) = above {
            self.leave(&above)?;
        }
        let original = from.stat_self()?;
        Ok(Pair::new(path, from, to, original))
    }

    /// The names in a directory: directories, and everything else.
    #[allow(clippy::type_complexity, reason = "two lists, used at once")]
    fn list(
        &mut self,
        pair: &Pair,
    ) -> io::Result<(Vec<Vec<u8>>, Vec<(Vec<u8>, Option<EntryKind>)>)> {
        let (mut directories, mut entries) = (Vec::new(), Vec::new());
        let entered = pair.original.dev != self.shared.device;
        if entered && attributes::is_pseudo_filesystem(&pair.from)? {
            return Ok((directories, entries));
        }
        let mut raw = RawDir::new(pair.from.as_fd(), &mut self.listing);
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let mut kind = EntryKind::from_mode(entry.file_type().as_raw_mode());
            if kind.is_none() {
                kind = pair.from.stat(name)?.map(|found| found.entry.kind);
            }
            match kind {
                Some(EntryKind::Directory) => directories.push(name.to_vec()),
                // Gone since it was listed.
                None => {}
                kind => entries.push((name.to_vec(), kind)),
            }
        }
        Ok((directories, entries))
    }

    fn copy_entries(
        &mut self,
        pair: &Arc<Pair>,
        names: &[(Vec<u8>, Option<EntryKind>)],
    ) -> Result<(), TransferError> {
        for (name, kind) in names {
            let copied = match kind {
                Some(EntryKind::File) => self.copy_file(pair, name),
                _ => self.copy_other(pair, name),
            };
            copied.map_err(|source| TransferError {
                path: pair.path.join(name),
                source,
            })?;
        }
        self.shared
            .entries
            .fetch_add(names.len() as u64, Ordering::Relaxed);
        self.leave(pair).map_err(failed_on(&pair.path))
    }

    /// One job in the directory is done; the last gives it its attributes.
    fn leave(&mut self, pair: &Pair) -> io::Result<()> {
        if !pair.end() {
            return Ok(());
        }
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        self.copied.entries += u64::from(!pair.path.is_root());
        if pair.shuts_out() || pair.is_late() {
            lock(&self.shared.late).push((pair.path.clone(), pair.original));
            return Ok(());
        }
        finish_directory(&pair.from, &pair.to, &pair.original)?;
        if self.shared.recording == Recording::On {
            let copy = pair.to.stat_self()?;
            self.record(pair.path.clone(), pair.original, copy);
        }
        Ok(())
    }

    fn record(&mut self, path: RelPath, source: Fingerprint, copy: Fingerprint) {
        self.records.push(Record { path, source, copy });
    }

    fn copy_file(&mut self, pair: &Pair, name: &[u8]) -> io::Result<()> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source = match rustix::fs::openat(pair.from.as_fd(), name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::ACCESS) => pair.from.open_file(name)?,
            // Gone, or swapped for a symlink, since it was listed.
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::LOOP | Errno::NXIO) => return self.copy_other(pair, name),
            Err(errno) => return Err(errno.into()),
        };
        let statx = look(&source)?;
        let original = fingerprint(&statx);
        if original.entry.kind != EntryKind::File {
            return self.copy_other(pair, name);
        }
        if original.nlink > 1 && self.meet(pair, name, &original) == Met::Again {
            return Ok(());
        }
        let with_xattrs = self.has_xattrs(&source)?;
        let (mode, set_mode) = creation_mode(&original, self.umask, with_xattrs);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = File::from(rustix::fs::openat(pair.to.as_fd(), name, flags, mode)?);
        let (size, blocks) = (statx.stx_size, statx.stx_blocks);
        let way = content::copy(
            &source,
            &target,
            size,
            blocks,
            &self.shared.ways,
            &mut self.buffer,
        )?;
        self.copied.reflinked += u64::from(way == content::Copied::Cloned);
        self.copied.bytes += size;
        self.copied.entries += 1;
        give_owner(&target, &original)?;
        if with_xattrs {
            copy_xattrs(pair, name, &target)?;
        }
        if set_mode {
            rustix::fs::fchmod(&target, Mode::from_raw_mode(original.entry.mode))?;
        }
        rustix::fs::futimens(&target, &times(&original))?;
        if self.shared.recording == Recording::On && original.nlink == 1 {
            let copy = fingerprint(&look(&target)?);
            self.record(pair.path.join(name), original, copy);
        }
        Ok(())
    }

    /// Usually there are none, which one call tells.
    fn has_xattrs(&mut self, source: &File) -> io::Result<bool> {
        match rustix::fs::flistxattr(source, &mut self.attributes[..]) {
            Ok(0) | Err(Errno::OPNOTSUPP) => Ok(false),
            Ok(_) | Err(Errno::RANGE) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }

    fn meet(&mut self, pair: &Pair, name: &[u8], original: &Fingerprint) -> Met {
        let met = lock(&self.shared.links).meet(original, pair.path.join(name));
        if met == Met::Again {
            pair.make_late();
        }
        met
    }

    /// Symlinks, FIFOs, devices; sockets are passed over.
    fn copy_other(&mut self, pair: &Pair, name: &[u8]) -> io::Result<()> {
        let Some(original) = pair.from.stat(name)? else {
            return Ok(());
        };
        let kind = original.entry.kind;
        if kind == EntryKind::Socket {
            self.copied.sockets += 1;
            return Ok(());
        }
        if kind == EntryKind::Directory {
            // Swapped since it was listed. A source that changes this much is no base for a copy.
            return Err(io::Error::other(
                "it became a directory while it was being copied",
            ));
        }
        if original.nlink > 1 && self.meet(pair, name, &original) == Met::Again {
            return Ok(());
        }
        if kind == EntryKind::Symlink {
            pair.to.make_symlink(name, &pair.from.read_link(name)?)?;
        } else {
            pair.to.make_node(name, kind, original.entry.rdev)?;
        }
        self.finish_other(pair, name, &original)?;
        self.copied.entries += 1;
        if self.shared.recording == Recording::On
            && original.nlink == 1
            && let Some(copy) = pair.to.stat(name)?
        {
            self.record(pair.path.join(name), original, copy);
        }
        Ok(())
    }

    fn finish_other(&self, pair: &Pair, name: &[u8], original: &Fingerprint) -> io::Result<()> {
        let entry = &original.entry;
        if (entry.uid, entry.gid) != attributes::own_ids() {
            match pair.to.set_owner(name, entry.uid, entry.gid) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
                    ) => {}
                given => given?,
            }
        }
        if entry.kind != EntryKind::Symlink {
            for (attribute, value) in pair.from.all_xattrs(name)? {
                pair.to.set_xattr(name, &attribute, &value)?;
            }
            pair.to.set_mode(name, entry.mode)?;
        }
        pair.to.set_times(name, entry.mtime)
    }
}

fn copy_xattrs(pair: &Pair, name: &[u8], target: &File) -> io::Result<()> {
    for (attribute, value) in pair.from.all_xattrs(name)? {
        let result = rustix::fs::fsetxattr(target, &*attribute, &value, XattrFlags::empty());
        attributes::set(&attribute, result)?;
    }
    Ok(())
}

fn look(file: impl AsFd) -> io::Result<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted)?)
}
