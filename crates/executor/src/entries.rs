//! Reading directories that others write to.
//!
//! A directory may have a million names, so it is read in portions, between which whoever reads can let
//! others have their turn. What a name stands for may have changed by the time it is used, so nothing
//! here follows a link.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

/// How much the kernel is asked for at once: some three hundred names at most.
const PORTION: usize = 8 << 10;

/// A name in a directory, and what it stood for; unknown on some filesystems.
pub(crate) type Name = (OsString, FileType);

/// The next names of `directory`; none at its end. Where it was read before, it is read on.
pub(crate) fn portion(directory: impl AsFd) -> io::Result<Option<Vec<Name>>> {
    let mut buffer = Vec::with_capacity(PORTION);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    loop {
        let Some(entry) = entries.next() else {
            return Ok((!names.is_empty()).then_some(names));
        };
        let entry = match entry {
            // It was removed.
            Err(Errno::NOENT) => return Ok(None),
            entry => entry?,
        };
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push((name.to_owned(), entry.file_type()));
        }
        // Another portion would be read by the next call.
        if entries.is_buffer_empty() && !names.is_empty() {
            return Ok(Some(names));
        }
    }
}

/// Opens the directory at `path` below `root`; no part of the path may be a link.
pub(crate) fn open_directory(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(root, path, flags)
}

/// Opens the file at `path` below `root`, without waiting should it be a pipe; no part of the path may be
/// a link.
pub(crate) fn open_file(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open(
        root,
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
    )
}

fn open(root: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(
        root,
        path,
        flags,
        Mode::empty(),
        within,
    )?)
}

/// What is at `path` below `directory`; the directory itself where there is no path.
pub(crate) fn look(directory: impl AsFd, path: impl AsRef<Path>) -> io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(rustix::fs::statx(directory, path.as_ref(), flags, wanted)?)
}

/// What that is.
pub(crate) fn kind(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

/// Is there nothing of the kind, or not on this way? What is moved out of the workspace at that very moment is
/// another filesystem's to the kernel.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs::File;

    #[test]
    fn every_name_comes_once_in_portions() {
        let directory = tempfile::tempdir().unwrap();
        let names: BTreeSet<OsString> = (0..2_000).map(|n| format!("{n:0100}").into()).collect();
        for name in &names {
            File::create(directory.path().join(name)).unwrap();
        }
        let opened = File::open(directory.path()).unwrap();
        let mut portions = 0;
        let mut seen = Vec::new();
        while let Some(names) = portion(&opened).unwrap() {
            portions += 1;
            seen.extend(names.into_iter().map(|(name, _)| name));
        }
        assert!(portions > 10);
        assert_eq!(seen.len(), names.len());
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), names);
    }

    #[test]
    fn an_empty_directory_ends_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let opened = File::open(directory.path()).unwrap();
        assert!(portion(&opened).unwrap().is_none());
    }

    #[test]
    fn no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        std::fs::create_dir(at.join("real")).unwrap();
        std::fs::write(at.join("real/file"), "").unwrap();
        std::os::unix::fs::symlink("real", at.join("link")).unwrap();
        std::os::unix::fs::symlink("file", at.join("real/last")).unwrap();
        let root = File::open(at).unwrap();
        assert!(open_directory(&root, Path::new("real")).is_ok());
        assert!(open_directory(&root, Path::new("")).is_ok());
        assert!(open_file(&root, Path::new("real/file")).is_ok());
        for path in ["link", "link/file", "real/last", "../x"] {
            assert!(open_directory(&root, Path::new(path)).is_err(), "{path}");
            let refused = open_file(&root, Path::new(path)).unwrap_err();
            assert!(is_gone(&refused), "{path}: {refused}");
        }
    }
}
