//! One open directory and the names in it.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, SeekFrom, Statx, StatxFlags,
    Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use sandbox_linux::authority;
use sandbox_model::{Entry, EntryKind, Fingerprint, Timestamp};

use super::DIRECTORY;
use crate::side::Xattrs;

/// One open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

/// A name in a directory, with its kind where the filesystem tells it for free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: Option<EntryKind>,
}

/// What a rename does when something stands at the new name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Replace it, as rename always did.
    Yes,
    /// Fail with `AlreadyExists`.
    No,
    /// Swap the two, in one step.
    Exchange,
}

impl Dir {
    /// Wraps an open directory's descriptor.
    pub fn from_fd(fd: OwnedFd) -> Dir {
        Dir { fd }
    }

    /// The descriptor, given away.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }

    /// Opens the directory at `path`, the user's own words: symlinks are followed.
    pub fn open(path: &std::path::Path) -> io::Result<Dir> {
        super::Tree::open(path)?.root_dir()
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Entries but `.` and `..`, in the order the filesystem gives.
    pub fn entries(&self) -> io::Result<Vec<DirEntry>> {
        // An own descriptor has an own position; the shared one serves where only an authority
        // could open the directory.
        let fresh = rustix::fs::openat(&self.fd, ".", DIRECTORY, Mode::empty());
        let fd = match &fresh {
            Ok(fd) => fd.as_fd(),
            Err(Errno::ACCESS) => {
                rustix::fs::seek(&self.fd, SeekFrom::Start(0)).map_err(|_| Errno::ACCESS)?;
                self.fd.as_fd()
            }
            Err(errno) => return Err((*errno).into()),
        };
        let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
        let mut raw = RawDir::new(fd, &mut buffer);
        let mut entries = Vec::new();
        while let Some(entry) = raw.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                entries.push(DirEntry {
                    name: name.to_vec(),
                    kind: kind_of(entry.file_type()),
                });
            }
        }
        Ok(entries)
    }

    /// What stands at `name`.
    pub fn stat(&self, name: &[u8]) -> io::Result<Option<Fingerprint>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(&self.fd, name, flags, FINGERPRINT) {
            Ok(statx) => Ok(Some(fingerprint(&statx))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS) => match authority::open(self.fd(), name, OFlags::PATH) {
                Ok(fd) => Dir::from_fd(fd).stat_self().map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(_) => Err(Errno::ACCESS.into()),
            },
            Err(errno) => Err(errno.into()),
        }
    }

    /// What this directory is.
    pub fn stat_self(&self) -> io::Result<Fingerprint> {
        let statx = rustix::fs::statx(&self.fd, "", AtFlags::EMPTY_PATH, FINGERPRINT)?;
        Ok(fingerprint(&statx))
    }

    /// The directory `name`, which must not be a symlink.
    pub fn open_dir(&self, name: &[u8]) -> io::Result<Dir> {
        self.open_at(name, DIRECTORY).map(Dir::from_fd)
    }

    /// The regular file `name` for reading; never follows, never blocks.
    pub fn open_file(&self, name: &[u8]) -> io::Result<File> {
        // A device's mere opening can act (a tape rewinds), so look before, and again after.
        let found = self.stat(name)?.ok_or(Errno::NOENT)?;
        self.open_found_file(name, &found)
    }

    /// As [`Dir::open_file`], where one has just looked and found `found`.
    pub(crate) fn open_found_file(&self, name: &[u8], found: &Fingerprint) -> io::Result<File> {
        if found.entry.kind != EntryKind::File {
            return Err(not_a_file());
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_at(name, flags)?;
        let mode = rustix::fs::fstat(&file)?.st_mode;
        if EntryKind::from_mode(mode) != Some(EntryKind::File) {
            return Err(not_a_file());
        }
        Ok(File::from(file))
    }

    /// Opens `name` without following it, by an authority where only its mode forbids it.
    fn open_at(&self, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => authority::open(self.fd(), name, flags).map_err(|error| {
                let telling = matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                );
                if telling { error } else { Errno::ACCESS.into() }
            }),
            opened => Ok(opened?),
        }
    }

    /// A descriptor of `name` itself, whatever it is, that can be looked at but not read.
    pub fn behold(&self, name: &[u8]) -> io::Result<OwnedFd> {
        self.open_at(name, OFlags::PATH)
    }

    /// A symlink's target.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        match rustix::fs::readlinkat(&self.fd, name, Vec::new()) {
            Err(Errno::ACCESS) => {
                let link = self.behold(name)?;
                Ok(rustix::fs::readlinkat(&link, "", Vec::new())?.into_bytes())
            }
            target => Ok(target?.into_bytes()),
        }
    }

    /// All extended attributes of `name`, not following; `overlay.*` marks left out.
    pub fn xattrs(&self, name: &[u8]) -> io::Result<Xattrs> {
        self.xattrs_where(name, |attribute| !is_overlay_mark(attribute))
    }

    /// All extended attributes of `name`, `overlay.*` marks included.
    pub fn all_xattrs(&self, name: &[u8]) -> io::Result<Xattrs> {
        self.xattrs_where(name, |_| true)
    }

    fn xattrs_where(&self, name: &[u8], wanted: impl Fn(&[u8]) -> bool) -> io::Result<Xattrs> {
        let listed = match read_growing(|buffer| rustix::fs::llistxattr(self.at(name), buffer)) {
            Err(Errno::ACCESS) => {
                let held = self.behold(name)?;
                read_growing(|buffer| rustix::fs::listxattr(proc_path(held.as_fd(), b""), buffer))
            }
            listed => listed,
        };
        let names = match listed {
            Err(Errno::OPNOTSUPP) => return Ok(Xattrs::new()),
            names => names?,
        };
        let mut found = Xattrs::new();
        for attribute in names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty() && wanted(name))
        {
            // An attribute can go between the list and the look.
            if let Some(value) = self.xattr_bytes(name, attribute)? {
                found.insert(attribute.to_vec(), value);
            }
        }
        Ok(found)
    }

    /// One extended attribute by its full name, `overlay.*` marks included.
    pub fn xattr(&self, name: &[u8], attribute: &str) -> io::Result<Option<Vec<u8>>> {
        self.xattr_bytes(name, attribute.as_bytes())
    }

    fn xattr_bytes(&self, name: &[u8], attribute: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match read_growing(|buffer| rustix::fs::lgetxattr(self.at(name), attribute, buffer)) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            // A user attribute needs the right to read the file, also on an open descriptor.
            Err(Errno::ACCESS) => {
                let file =
                    self.open_at(name, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
                match authority::xattr(file.as_fd(), attribute) {
                    Ok(value) => Ok(Some(value)),
                    Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => {
                        Ok(None)
                    }
                    Err(_) => Err(Errno::ACCESS.into()),
                }
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sets an extended attribute of `name`, not following.
    pub fn set_xattr(&self, name: &[u8], attribute: &[u8], value: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::lsetxattr(
            self.at(name),
            attribute,
            value,
            XattrFlags::empty(),
        )?)
    }

    /// Removes an extended attribute of `name`, not following; a missing one is fine.
    pub fn remove_xattr(&self, name: &[u8], attribute: &[u8]) -> io::Result<()> {
        match rustix::fs::lremovexattr(self.at(name), attribute) {
            Err(Errno::NODATA) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// `name` as a path that the calls without an `at` form take.
    fn at(&self, name: &[u8]) -> Vec<u8> {
        proc_path(self.fd(), name)
    }

    /// Creates directory `name` with mode 0700 (the caller sets the final mode later).
    pub fn make_dir(&self, name: &[u8]) -> io::Result<Dir> {
        rustix::fs::mkdirat(&self.fd, name, Mode::RWXU)?;
        self.open_dir(name)
    }

    /// Creates the regular file `name` for reading and writing, mode 0600; it must not exist.
    pub fn create_file(&self, name: &[u8]) -> io::Result<File> {
        self.file_for_writing(name, OFlags::EXCL)
    }

    /// The regular file `name` for reading and writing, created with mode 0600 if need be.
    pub fn open_or_create_file(&self, name: &[u8]) -> io::Result<File> {
        self.file_for_writing(name, OFlags::empty())
    }

    fn file_for_writing(&self, name: &[u8], more: OFlags) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(rustix::fs::openat(&self.fd, name, flags, mode)?))
    }

    /// Creates a symlink.
    pub fn make_symlink(&self, name: &[u8], target: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.fd, name)?)
    }

    /// Creates a FIFO, socket or device of mode 0600.
    pub fn make_node(&self, name: &[u8], kind: EntryKind, rdev: u64) -> io::Result<()> {
        let file_type = FileType::from_raw_mode(kind.mode_bits());
        Ok(rustix::fs::mknodat(
            &self.fd,
            name,
            file_type,
            Mode::RUSR | Mode::WUSR,
            rdev,
        )?)
    }

    /// Gives `name` a second name in `to`.
    pub fn link(&self, name: &[u8], to: &Dir, new: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::linkat(
            &self.fd,
            name,
            &to.fd,
            new,
            AtFlags::empty(),
        )?)
    }

    /// Renames `name` to `new` in `to`.
    pub fn rename(&self, name: &[u8], to: &Dir, new: &[u8], replace: Replace) -> io::Result<()> {
        let flags = match replace {
            Replace::Yes => return Ok(rustix::fs::renameat(&self.fd, name, &to.fd, new)?),
            Replace::No => RenameFlags::NOREPLACE,
            Replace::Exchange => RenameFlags::EXCHANGE,
        };
        Ok(rustix::fs::renameat_with(
            &self.fd, name, &to.fd, new, flags,
        )?)
    }

    /// Sets the permission bits of `name`, which must not be a symlink (`Unsupported`).
    pub fn set_mode(&self, name: &[u8], mode: u32) -> io::Result<()> {
        let held = self.behold(name)?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        Ok(rustix::fs::chmod(proc_path(held.as_fd(), b""), mode)?)
    }

    /// Changes the names in this directory, also where its mode forbids that to its owner; the mode
    /// is the same afterwards.
    pub fn while_writable(&self, change: impl FnOnce(&Dir) -> io::Result<()>) -> io::Result<()> {
        let mode = self.stat_self()?.entry.mode;
        if mode & 0o300 == 0o300 {
            return change(self);
        }
        self.set_mode_self(mode | 0o700)?;
        let changed = change(self);
        self.set_mode_self(mode)?;
        changed
    }

    /// Sets this directory's own permission bits.
    pub fn set_mode_self(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(
            &self.fd,
            Mode::from_raw_mode(mode & 0o7777),
        )?)
    }

    /// Sets the modification time of `name`, not following; the access time is left alone.
    pub fn set_times(&self, name: &[u8], modified: Timestamp) -> io::Result<()> {
        let times = modification(modified);
        Ok(rustix::fs::utimensat(
            &self.fd,
            name,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Sets this directory's own modification time.
    pub fn set_times_self(&self, modified: Timestamp) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.fd, &modification(modified))?)
    }

    /// Gives `name` to another owner and group, not following.
    pub fn set_owner(&self, name: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        Ok(rustix::fs::chownat(
            &self.fd,
            name,
            uid,
            gid,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Removes a non-directory.
    pub fn unlink(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes `name` and all below it, whatever its modes, never following a symlink. Nothing
    /// there is fine.
    pub fn remove_all(&self, name: &[u8]) -> io::Result<()> {
        super::remove::remove_all(self, name)
    }

    /// Makes the directory's names durable.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    /// Makes everything on the directory's filesystem durable.
    pub fn sync_filesystem(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.fd)?)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What of `statx` makes a fingerprint.
const FINGERPRINT: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn modification(at: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: at.0,
            tv_nsec: i64::from(at.1),
        },
    }
}

/// `/proc/self/fd/N/NAME`: the magic link leads to the descriptor's own directory, wherever it is
/// now. An empty name is the descriptor's file itself.
pub(crate) fn proc_path(fd: BorrowedFd<'_>, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}", fd.as_raw_fd()).into_bytes();
    if !name.is_empty() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    path
}

/// Marks that overlayfs keeps for itself.
pub(crate) fn is_overlay_mark(attribute: &[u8]) -> bool {
    attribute.starts_with(b"user.overlay.") || attribute.starts_with(b"trusted.overlay.")
}

/// Calls `read` with ever larger buffers until the value fits.
fn read_growing(
    mut read: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 64 * 1024 => buffer.resize(64 * 1024, 0),
            Err(errno) => return Err(errno),
        }
    }
}

fn kind_of(file_type: FileType) -> Option<EntryKind> {
    EntryKind::from_mode(file_type.as_raw_mode())
}

/// A fingerprint from what `statx` said.
pub(crate) fn fingerprint(statx: &Statx) -> Fingerprint {
    let time = |at: rustix::fs::StatxTimestamp| Timestamp(at.tv_sec, at.tv_nsec);
    let mode = u32::from(statx.stx_mode);
    let kind = EntryKind::from_mode(mode).unwrap_or(EntryKind::File);
    let device = matches!(kind, EntryKind::CharDevice | EntryKind::BlockDevice);
    let born = StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::BTIME);
    Fingerprint {
        dev: rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor),
        ino: statx.stx_ino,
        nlink: statx.stx_nlink,
        entry: Entry {
            kind,
            mode: mode & 0o7777,
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            size: statx.stx_size,
            mtime: time(statx.stx_mtime),
            rdev: if device {
                rustix::fs::makedev(statx.stx_rdev_major, statx.stx_rdev_minor)
            } else {
                0
            },
        },
        ctime: time(statx.stx_ctime),
        btime: born.then(|| time(statx.stx_btime)),
    }
}
