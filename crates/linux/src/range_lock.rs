//! Locks ranges of numbers, so that no two processes of a machine use the same number.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks `count` numbers from `first` on, as bytes of `file`, which may be empty. The lock lasts until the file is
/// closed. Returns `false` if another process has one of them.
pub fn try_lock(file: &File, first: u32, count: u32) -> io::Result<bool> {
    // SAFETY: a flock is plain numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = libc::off_t::from(first);
    lock.l_len = libc::off_t::from(count);
    // SAFETY: the descriptor is open, and `lock` is a flock that outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_exclude_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ranges");
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap()
        };
        let first = open();
        assert!(try_lock(&first, 1000, 100).unwrap());
        let second = open();
        assert!(!try_lock(&second, 1099, 10).unwrap());
        assert!(try_lock(&second, 1100, 10).unwrap());
        drop(first);
        assert!(try_lock(&second, 1000, 100).unwrap());
    }
}
