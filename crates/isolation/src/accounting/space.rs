//! How much disk space a tree takes, however its owner tries to hide it.
//!
//! The tree is written by the sandboxed side. It is walked by descriptors, so no path is too long;
//! modes that forbid looking are overcome by an authority, and changed by nobody. Of each directory
//! on the way down only those with something still to be looked at beside it are held open. What
//! cannot be looked at all the same is an error, never nothing.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use sandbox_linux::authority;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What every file and directory counts for at least, be it empty: filesystems have a number of inodes, too, each takes
/// some of the kernel's memory, and to count many takes long. It is what a small file takes on most disks.
pub(super) const LEAST: u64 = 4 << 10;

/// The most directories that are held open at once.
const HELD: usize = 400;

/// A directory still to be looked into: its name, in one that is open.
struct Waiting {
    above: Rc<Open>,
    name: CString,
}

/// An open directory, and its share in the number of those.
struct Open {
    fd: OwnedFd,
    _counted: Rc<()>,
}

/// Disk space of the tree at `place`, hard links counted once. What is not there, or vanishes
/// meanwhile, counts for nothing. Beyond `enough` nothing more is counted: what is too much must not take
/// ever longer to be found so.
pub(crate) fn space(place: &Path, enough: u64) -> io::Result<u64> {
    let top = match rustix::fs::openat(CWD, place, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(0),
        top => top?,
    };
    let mut count = Count::default();
    count.look_into(top, enough)?;
    while count.total <= enough
        && let Some(Waiting { above, name }) = count.waiting.pop()
    {
        let opened = open(&above.fd, &name, DIRECTORY);
        drop(above);
        match opened {
            Err(error) if is_gone(&error) => {}
            opened => count.look_into(opened?, enough)?,
        }
    }
    Ok(count.total)
}

#[derive(Default)]
struct Count {
    total: u64,
    /// Files with several names that were met.
    seen: HashSet<(u64, u64)>,
    waiting: Vec<Waiting>,
    /// As often shared as directories are open.
    open: Rc<()>,
}

impl Count {
    fn look_into(&mut self, fd: OwnedFd, enough: u64) -> io::Result<()> {
        if Rc::strong_count(&self.open) > HELD {
            return Err(io::Error::other("its directories are nested too deep"));
        }
        let directory = Rc::new(Open {
            fd,
            _counted: self.open.clone(),
        });
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut entries = RawDir::new(&directory.fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_owned();
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            let found = match stat(&directory.fd, &name) {
                Err(error) if is_gone(&error) => continue,
                found => found?,
            };
            let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            let again = found.st_nlink > 1
                && !is_directory
                && !self.seen.insert((found.st_dev, found.st_ino));
            if !again {
                self.total += (found.st_blocks as u64 * 512).max(LEAST);
                if self.total > enough {
                    return Ok(());
                }
            }
            if is_directory {
                let above = directory.clone();
                self.waiting.push(Waiting { above, name });
            }
        }
        Ok(())
    }
}

fn open(directory: &OwnedFd, name: &CString, flags: OFlags) -> io::Result<OwnedFd> {
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => authority::open(directory.as_fd(), name.as_bytes(), flags),
        opened => Ok(opened?),
    }
}

fn stat(directory: &OwnedFd, name: &CString) -> io::Result<Stat> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::ACCESS) => {
            let held = authority::open(directory.as_fd(), name.as_bytes(), OFlags::PATH)?;
            Ok(rustix::fs::fstat(held)?)
        }
        found => Ok(found?),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn blocks_are_counted_and_links_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        let once = space(directory.path(), u64::MAX).unwrap();
        assert!((1 << 20..2 << 20).contains(&once), "{once}");
        fs::hard_link(&file, directory.path().join("b")).unwrap();
        fs::File::create(directory.path().join("sparse"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert!(space(directory.path(), u64::MAX).unwrap() < 2 << 20);
    }

    #[test]
    fn empty_files_are_not_for_nothing() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::write(directory.path().join(number.to_string()), "").unwrap();
        }
        assert!(space(directory.path(), u64::MAX).unwrap() >= 100 * LEAST);
    }

    #[test]
    fn counting_ends_where_there_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..100 {
            fs::create_dir(directory.path().join(number.to_string())).unwrap();
        }
        assert_eq!(space(directory.path(), 5 * LEAST).unwrap(), 6 * LEAST);
    }

    #[test]
    fn what_is_deeper_than_a_path_may_be_long_counts() {
        let top = tempfile::tempdir().unwrap();
        let name = "n".repeat(200);
        let mut at = rustix::fs::open(top.path(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..600 {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, &name, DIRECTORY, Mode::empty()).unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = rustix::fs::openat(&at, "large", flags, Mode::RUSR).unwrap();
        rustix::io::write(&file, &vec![1; 1 << 20]).unwrap();
        assert!(space(top.path(), u64::MAX).unwrap() > 1 << 20);
    }

    #[test]
    fn what_is_nested_too_deep_to_be_counted_is_an_error() {
        let top = tempfile::tempdir().unwrap();
        let mut at = rustix::fs::open(top.path(), DIRECTORY, Mode::empty()).unwrap();
        // In whatever order they come, most levels have one waiting beside the one gone into.
        for _ in 0..3 * HELD {
            for name in ["a", "b", "c", "d", "down"] {
                rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
            }
            at = rustix::fs::openat(&at, "down", DIRECTORY, Mode::empty()).unwrap();
        }
        assert!(space(top.path(), u64::MAX).is_err());
    }

    #[test]
    fn directories_that_nobody_may_read_count_for_an_ordinary_user() {
        let top = tempfile::tempdir().unwrap();
        let (shut, blind) = (top.path().join("shut"), top.path().join("blind"));
        for directory in [&shut, &blind] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("large"), vec![1; 1 << 20]).unwrap();
        }
        let mode = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        mode(&shut, 0o000).unwrap();
        // Its names can be read, what they are cannot.
        mode(&blind, 0o400).unwrap();
        assert!(space(top.path(), u64::MAX).unwrap() > 2 << 20);
        assert_eq!(fs::metadata(&shut).unwrap().permissions().mode() & 0o777, 0);
    }

    /// The tests above as a user to whom modes mean something.
    #[test]
    fn all_of_it_as_an_ordinary_user() {
        use std::os::unix::process::CommandExt;
        let passwd = fs::read_to_string("/etc/passwd").unwrap();
        let line = passwd.lines().find(|line| line.starts_with("tester:"));
        let line = line.expect("the tests need an ordinary user: useradd -m tester");
        let ids: Vec<u32> = line.split(':').skip(2).flat_map(str::parse).collect();
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let program = home.path().join("tests");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let status = std::process::Command::new(program)
            .args(["accounting::space", "--skip", "all_of_it"])
            .env("TMPDIR", home.path())
            .current_dir(home.path())
            .uid(ids[0])
            .gid(ids[1])
            .status()
            .unwrap();
        assert!(status.success());
    }
}
