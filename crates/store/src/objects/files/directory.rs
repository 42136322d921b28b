//! A directory of objects, as the kernel sees it.
//!
//! Every path is resolved by the kernel beneath the directory's descriptor, and no link is followed
//! anywhere in it: whatever someone plants there, nothing outside is read or written.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Where content waits until it is whole. No key starts like this.
pub(super) const INCOMING: &str = "incoming";

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// How many objects are looked up at once.
const PAGE: usize = 500;

/// A directory of objects.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    root: OwnedFd,
    incoming: OwnedFd,
}

/// An object that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Relative to where the walk began.
    pub(super) path: Vec<u8>,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

/// A walk through all objects below a directory, one page at a time.
#[derive(Debug)]
pub(super) struct Walk {
    start: Vec<u8>,
    /// Directories yet to be read, relative to the start.
    pending: Vec<Vec<u8>>,
    reading: Option<(Vec<u8>, Dir)>,
}

impl Directory {
    /// Opens it, makes it for ourselves alone where there is none, and removes what writers that
    /// died have left.
    pub(super) fn open(path: PathBuf) -> io::Result<Directory> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&path)?;
        let root = rustix::fs::open(&path, directory_flags(), Mode::empty())?;
        make(root.as_fd(), INCOMING.as_bytes())?;
        let incoming = beneath(root.as_fd(), INCOMING.as_bytes(), directory_flags())?;
        super::incoming::sweep(incoming.as_fd())?;
        Ok(Directory {
            path,
            root,
            incoming,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn incoming(&self) -> BorrowedFd<'_> {
        self.incoming.as_fd()
    }

    /// Is the directory that was opened still the one at its path?
    pub(super) fn check(&self) -> io::Result<()> {
        let (ours, there) = (
            rustix::fs::fstat(&self.root)?,
            std::fs::metadata(&self.path)?,
        );
        match (ours.st_dev, ours.st_ino) == (there.dev(), there.ino()) {
            true => Ok(()),
            false => Err(Errno::STALE.into()),
        }
    }

    /// Opens an object; gives its size and age too. Whatever is not a plain file is not there.
    pub(super) fn object(&self, path: &[u8]) -> io::Result<(File, u64, SystemTime)> {
        // A pipe that someone planted must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match beneath(self.root.as_fd(), path, flags) {
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Err(Errno::NOENT),
            outcome => outcome,
        };
        let file = File::from(file?);
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok((file, metadata.len(), metadata.modified()?)),
            false => Err(Errno::NOENT.into()),
        }
    }

    /// Opens the directory that `path` is in and makes it where it is missing, durably. Gives the
    /// last name too.
    pub(super) fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(OwnedFd, &'a [u8])> {
        let (above, name) = split(path);
        let mut parent = self.root.try_clone()?;
        for segment in above
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            let next = match beneath(parent.as_fd(), segment, directory_flags()) {
                Err(Errno::NOENT) => {
                    make(parent.as_fd(), segment)?;
                    rustix::fs::fsync(&parent)?;
                    beneath(parent.as_fd(), segment, directory_flags())
                }
                outcome => outcome,
            };
            parent = next?;
        }
        Ok((parent, name))
    }

    /// Removes an object, if there is one, and the directories that are empty without it.
    pub(super) fn remove(&self, path: &[u8]) -> io::Result<()> {
        let (mut above, mut name) = split(path);
        let mut flags = AtFlags::empty();
        loop {
            let removed = beneath(self.root.as_fd(), above, directory_flags())
                .and_then(|parent| rustix::fs::unlinkat(&parent, name, flags));
            match removed {
                Ok(()) => {}
                // There is no such object, or something that is none.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP)
                    if flags.is_empty() => {}
                // Others are in there, or came in between.
                Err(_) if !flags.is_empty() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if !above.contains(&b'/') {
                return Ok(());
            }
            (above, name) = split(above);
            flags = AtFlags::REMOVEDIR;
        }
    }
}

impl Walk {
    pub(super) fn new(start: Vec<u8>) -> Walk {
        Walk {
            start,
            pending: vec![Vec::new()],
            reading: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.reading.is_none()
    }

    /// The next objects; fewer than there is room for, or none, only at the end.
    pub(super) fn page(&mut self, directory: &Directory) -> io::Result<Vec<Found>> {
        let mut page = Vec::new();
        while page.len() < PAGE && !self.is_over() {
            let (place, mut entries) = match self.reading.take() {
                Some(reading) => reading,
                None => match self.open_next(directory)? {
                    Some(opened) => opened,
                    None => continue,
                },
            };
            let entry = match entries.next() {
                Some(Ok(entry)) => entry,
                // Read to its end, or removed while we read.
                None | Some(Err(Errno::NOENT)) => continue,
                Some(Err(error)) => return Err(error.into()),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                self.sort(&place, name, &entries, &mut page)?;
            }
            self.reading = Some((place, entries));
        }
        Ok(page)
    }

    /// Opens the next pending directory; none where it is gone by now.
    fn open_next(&mut self, directory: &Directory) -> io::Result<Option<(Vec<u8>, Dir)>> {
        let Some(place) = self.pending.pop() else {
            return Ok(None);
        };
        let path = join(&self.start, &place);
        match beneath(directory.root.as_fd(), &path, directory_flags()) {
            Ok(opened) => Ok(Some((place, Dir::new(opened)?))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn sort(
        &mut self,
        place: &[u8],
        name: &[u8],
        entries: &Dir,
        page: &mut Vec<Found>,
    ) -> io::Result<()> {
        let found = match rustix::fs::statat(entries.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => self.pending.push(join(place, name)),
            FileType::RegularFile => page.push(Found {
                path: join(place, name),
                size: u64::try_from(found.st_size).unwrap_or_default(),
                modified: time(found.st_mtime, found.st_mtime_nsec),
            }),
            _ => {}
        }
        Ok(())
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(root, path, flags, Mode::empty(), BENEATH)
}

/// Makes a directory for ourselves alone; it is no error when it is there.
fn make(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The directory part, `.` where there is none, and the last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b".", path),
    }
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    match (above, name) {
        ([], name) => name.to_owned(),
        (above, []) => above.to_owned(),
        (above, name) => [above, b"/", name].concat(),
    }
}

fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    SystemTime::UNIX_EPOCH + whole + Duration::from_nanos(nanoseconds)
}
