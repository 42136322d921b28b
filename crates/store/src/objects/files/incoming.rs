//! Content that is not an object yet.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::directory::Directory;

/// How often a put may find its directory removed under it, by deletes that emptied it.
const ATTEMPTS: usize = 100;

/// A file in `incoming`, locked while we write it and removed unless it is kept.
#[derive(Debug)]
pub(super) struct Incoming {
    place: OwnedFd,
    name: String,
    file: File,
    is_kept: bool,
}

impl Incoming {
    /// A new empty one.
    pub(super) fn new(directory: &Directory) -> io::Result<Incoming> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let place = directory.incoming().try_clone_to_owned()?;
        loop {
            let name = format!(
                "{}-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = match rustix::fs::openat(&place, &name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => File::from(file),
                // Left by a process that had our number.
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            // A store that is just being opened may sweep between these two steps.
            let is_ours =
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_ours && rustix::fs::fstat(&file)?.st_nlink > 0 {
                return Ok(Incoming {
                    place,
                    name,
                    file,
                    is_kept: false,
                });
            }
        }
    }

    /// Adds to it.
    pub(super) fn write(mut self, bytes: &[u8]) -> io::Result<Incoming> {
        self.file.write_all(bytes)?;
        Ok(self)
    }

    /// Adds as much of another file, without its passing through our memory where the kernel can.
    pub(super) fn copy(&mut self, other: &File, most: u64) -> io::Result<u64> {
        io::copy(&mut other.take(most), &mut self.file)
    }

    /// Makes it the object at `path`, durably.
    pub(super) fn keep(self, directory: &Directory, path: &[u8]) -> io::Result<()> {
        self.file.sync_all()?;
        let placed = self.place(directory, path)?;
        Ok(rustix::fs::fsync(&placed.parent)?)
    }

    /// Makes it the object at `path`, and leaves it to the caller to make that durable.
    pub(super) fn place(mut self, directory: &Directory, path: &[u8]) -> io::Result<Placed> {
        let file = self.file.try_clone()?;
        for _ in 0..ATTEMPTS {
            let placed = directory.parent(path).and_then(|(parent, name)| {
                rustix::fs::renameat(&self.place, &self.name, &parent, name)?;
                Ok(parent)
            });
            match placed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(parent) => {
                    self.is_kept = true;
                    return Ok(Placed { file, parent });
                }
            }
        }
        Err(Errno::BUSY.into())
    }
}

/// An object that is in its place, and not yet for certain on the disk.
#[derive(Debug)]
pub(super) struct Placed {
    file: File,
    parent: OwnedFd,
}

impl Placed {
    /// Waits until it is.
    pub(super) fn sync(self) -> io::Result<()> {
        self.file.sync_all()?;
        Ok(rustix::fs::fsync(&self.parent)?)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = rustix::fs::unlinkat(&self.place, &self.name, AtFlags::empty());
        }
    }
}

/// Removes what nobody writes any more.
pub(super) fn sweep(place: BorrowedFd<'_>) -> io::Result<()> {
    for entry in Dir::read_from(place)? {
        let entry = entry?;
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A directory, a link, or what a writer has just finished with.
        let Ok(file) = rustix::fs::openat(place, entry.file_name(), flags, Mode::empty()) else {
            continue;
        };
        if rustix::fs::flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = rustix::fs::unlinkat(place, entry.file_name(), AtFlags::empty());
        }
    }
    Ok(())
}
