//! Copying the bytes of one regular file to another, by the cheapest way that works.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Up to here a read and a write are cheaper than a copy in the kernel. Sharing blocks is tried
/// first all the same: on btrfs and xfs it took less time for files of a few hundred bytes, too.
const SMALL: u64 = 64 * 1024;
/// The buffer for what has to go through memory.
const BUFFER: usize = 128 * 1024;

/// Which ways have been found not to work between two filesystems, so that they are asked for
/// once and not for each file.
#[derive(Debug, Default)]
pub(super) struct Ways {
    no_clone: AtomicBool,
    no_range: AtomicBool,
}

/// How contents came across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// The blocks are shared.
    Cloned,
    /// The bytes were copied.
    Bytes,
}

/// Copies the contents of `from` (of `size` bytes in `blocks` blocks of 512) to the empty `to`.
pub(super) fn copy(
    from: &File,
    to: &File,
    size: u64,
    blocks: u64,
    ways: &Ways,
    buffer: &mut Vec<u8>,
) -> io::Result<Copied> {
    if size == 0 {
        return Ok(Copied::Bytes);
    }
    if clone(from, to, ways)? {
        return Ok(Copied::Cloned);
    }
    let sparse = blocks * 512 < size;
    match (sparse, size <= SMALL) {
        (true, _) => copy_data(from, to, size, ways, buffer)?,
        (false, true) => copy_through(from, to, 0, size, buffer)?,
        (false, false) => copy_range(from, to, 0, u64::MAX, ways, buffer)?,
    }
    Ok(Copied::Bytes)
}

/// Shares the blocks; false where the filesystems cannot.
fn clone(from: &File, to: &File, ways: &Ways) -> io::Result<bool> {
    if ways.no_clone.load(Ordering::Relaxed) {
        return Ok(false);
    }
    match rustix::fs::ioctl_ficlone(to, from) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
            ways.no_clone.store(true, Ordering::Relaxed);
            Ok(false)
        }
        // This file cannot (it is swapped to, or has other checksum settings); others may.
        Err(Errno::INVAL | Errno::TXTBSY | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Copies only what is no hole.
fn copy_data(
    from: &File,
    to: &File,
    size: u64,
    ways: &Ways,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            // No data after `at`.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => return copy_range(from, to, 0, u64::MAX, ways, buffer),
            Err(errno) => return Err(errno.into()),
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(start))?;
        if end <= start {
            break;
        }
        copy_range(from, to, start, end - start, ways, buffer)?;
        at = end;
    }
    to.set_len(size.max(to.metadata()?.len()))
}

/// Copies up to `length` bytes at `start`, in the kernel where it can, up to the end of file.
fn copy_range(
    from: &File,
    to: &File,
    start: u64,
    length: u64,
    ways: &Ways,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length && !ways.no_range.load(Ordering::Relaxed) {
        let (mut read, mut write) = (start + done, start + done);
        let step = usize::try_from(length - done)
            .unwrap_or(usize::MAX)
            .min(1 << 30);
        match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), step) {
            // The end, or a file that only `read` knows how to read.
            Ok(0) => break,
            Ok(count) => done += count as u64,
            Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP) => {
                ways.no_range.store(true, Ordering::Relaxed);
            }
            Err(Errno::INVAL | Errno::PERM | Errno::TXTBSY) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    copy_through(from, to, start + done, length - done, buffer)
}

/// Copies up to `length` bytes at `start` through memory.
fn copy_through(
    from: &File,
    to: &File,
    start: u64,
    length: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    let wanted = usize::try_from(length).map_or(BUFFER, |length| length.min(BUFFER));
    if buffer.len() < wanted {
        buffer.resize(wanted, 0);
    }
    let mut done = 0;
    while done < length {
        let room = buffer
            .len()
            .min(usize::try_from(length - done).unwrap_or(usize::MAX));
        let count = match rustix::io::pread(from, &mut buffer[..room], start + done) {
            Ok(0) => break,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        write_all(to, &buffer[..count], start + done)?;
        done += count as u64;
    }
    Ok(())
}

fn write_all(to: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(to.as_fd(), bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
