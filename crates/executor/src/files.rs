//! The files of a workspace, for those outside.
//!
//! Paths come from outside and the directories they lead through belong to code that nobody trusts, so
//! every path is resolved by the kernel beneath the workspace, whatever links were planted and however
//! they change meanwhile. What is handed out is an open descriptor, of regular files only.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::entries;
use crate::lookout::Birth;

/// What is seen of a file from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in its directory; what is not UTF-8 is replaced.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How long it is.
    pub size: u64,
    /// When it was last written, in seconds since 1970.
    pub modified: i64,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is what it is called")]
pub enum Kind {
    File,
    Directory,
    Link,
    Other,
}

/// The workspace, and what is being put into it.
#[derive(Debug)]
pub struct Files {
    workspace: OwnedFd,
    uploads: BTreeMap<u64, Upload>,
    next: u64,
}

/// A file that is written under another name until it is whole.
#[derive(Debug)]
struct Upload {
    directory: OwnedFd,
    hidden: OsString,
    name: OsString,
}

/// Links may be followed as long as they stay inside.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// How often a path is resolved again that was changed while it was resolved.
const PATIENCE: usize = 100;

impl Files {
    /// Those below `workspace`.
    pub fn open(workspace: &Path) -> io::Result<Files> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Files {
            workspace: rustix::fs::open(workspace, flags, Mode::empty())?,
            uploads: BTreeMap::new(),
            next: 0,
        })
    }

    /// Opens the file at `path` for reading.
    pub fn read(&self, path: &Path) -> io::Result<(OwnedFd, u64)> {
        // Without waiting for somebody at the other end, should it be a pipe.
        let file = self.resolve(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok((file, size_of(&found))),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            )),
        }
    }

    /// Begins to write the file at `path`, making its directories. It is there, whole, when it is
    /// committed by the number given back.
    pub fn begin(&mut self, path: &Path) -> io::Result<(OwnedFd, u64)> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.make_directories(parent)?;
        match rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                return Err(Errno::ISDIR.into());
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.next += 1;
        let hidden = OsString::from(format!(".sandbox-upload-{}", self.next));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &hidden, flags, Mode::from_raw_mode(0o644))?;
        let upload = Upload {
            directory,
            hidden,
            name,
        };
        self.uploads.insert(self.next, upload);
        Ok((file, self.next))
    }

    /// Puts what was written in its place.
    pub(crate) fn commit(&mut self, upload: u64) -> io::Result<Birth> {
        let upload = self.uploads.remove(&upload).ok_or(Errno::NOENT)?;
        let Upload {
            directory,
            hidden,
            name,
        } = &upload;
        let put = || -> io::Result<Birth> {
            let found = entries::look(directory, hidden)?;
            rustix::fs::renameat(directory, hidden, directory, name)?;
            Ok(Birth::of(&found))
        };
        put().inspect_err(|_| upload.remove())
    }

    /// Throws away what was written.
    pub fn abandon(&mut self, upload: u64) {
        if let Some(upload) = self.uploads.remove(&upload) {
            upload.remove();
        }
    }

    /// What is in the directory at `path`, by name.
    pub fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            match rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => entries.push(describe(&name, &found)),
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Removes the file or link at `path`, or the empty directory.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.resolve(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => Ok(rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?),
            outcome => Ok(outcome?),
        }
    }

    fn make_directories(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match self.resolve(path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => return outcome,
        }
        let name = path.file_name().ok_or(Errno::NOENT)?;
        let parent = self.make_directories(path.parent().unwrap_or(Path::new("")))?;
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => self.resolve(path, flags),
            Err(error) => Err(error.into()),
        }
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let flags = flags | OFlags::CLOEXEC;
        for _ in 0..PATIENCE {
            match rustix::fs::openat2(&self.workspace, path, flags, Mode::empty(), BENEATH) {
                Err(Errno::AGAIN) => {}
                // It leads out: for those outside there is nothing at such a path.
                Err(Errno::XDEV | Errno::LOOP) => return Err(Errno::NOENT.into()),
                outcome => return Ok(outcome?),
            }
        }
        Err(Errno::AGAIN.into())
    }
}

impl Upload {
    fn remove(&self) {
        let _ = rustix::fs::unlinkat(&self.directory, &self.hidden, AtFlags::empty());
    }
}

fn size_of(found: &Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or(0)
}

fn describe(name: &OsStr, found: &Stat) -> Entry {
    Entry {
        name: name.to_string_lossy().into_owned(),
        kind: match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Other,
        },
        size: size_of(found),
        modified: found.st_mtime,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    struct Place {
        directory: tempfile::TempDir,
        files: Files,
    }

    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("workspace");
        std::fs::create_dir_all(workspace.join("sub")).unwrap();
        std::fs::write(directory.path().join("secret"), "secret").unwrap();
        std::fs::write(workspace.join("sub/file"), "text").unwrap();
        let files = Files::open(&workspace).unwrap();
        Place { directory, files }
    }

    fn read(files: &Files, path: &str) -> io::Result<String> {
        let (file, size) = files.read(Path::new(path))?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        assert_eq!(text.len() as u64, size);
        Ok(text)
    }

    fn write(files: &mut Files, path: &str, text: &str) -> io::Result<()> {
        let (file, upload) = files.begin(Path::new(path))?;
        File::from(file).write_all(text.as_bytes())?;
        files.commit(upload).map(drop)
    }

    #[test]
    fn what_is_written_is_read_and_listed() {
        let Place {
            directory: _directory,
            mut files,
        } = place();
        write(&mut files, "new/deep/file", "one").unwrap();
        write(&mut files, "new/deep/file", "two").unwrap();
        assert_eq!(read(&files, "new/deep/file").unwrap(), "two");
        assert_eq!(read(&files, "./sub/../sub/file").unwrap(), "text");
        let names: Vec<_> = files.list(Path::new("")).unwrap();
        let names: Vec<_> = names
            .iter()
            .map(|entry| (entry.name.as_str(), entry.kind))
            .collect();
        assert_eq!(names, [("new", Kind::Directory), ("sub", Kind::Directory)]);
        let [file] = &files.list(Path::new("new/deep")).unwrap()[..] else {
            panic!("nothing is left beside the file");
        };
        assert_eq!((file.kind, file.size), (Kind::File, 3));
        files.remove(Path::new("new/deep/file")).unwrap();
        files.remove(Path::new("new/deep")).unwrap();
        assert!(read(&files, "new/deep/file").is_err());
    }

    #[test]
    fn no_path_leads_out() {
        let Place {
            directory,
            mut files,
        } = place();
        let workspace = directory.path().join("workspace");
        symlink(directory.path(), workspace.join("out")).unwrap();
        symlink("../secret", workspace.join("up")).unwrap();
        symlink("/etc/passwd", workspace.join("absolute")).unwrap();
        symlink("self", workspace.join("self")).unwrap();
        symlink("/proc/self/root", workspace.join("magic")).unwrap();
        for path in [
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "out/secret",
            "up",
            "absolute",
            "self",
            "magic/etc/passwd",
        ] {
            let error = read(&files, path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{path}");
            assert!(files.list(Path::new(path)).is_err(), "{path}");
        }
        for path in [
            "../made",
            "out/made",
            "/made",
            "magic/made",
            "sub/../../made",
        ] {
            assert!(write(&mut files, path, "x").is_err(), "{path}");
        }
        assert!(files.remove(Path::new("out/secret")).is_err());
        assert!(!directory.path().join("made").exists() && !Path::new("/made").exists());
        assert!(directory.path().join("secret").exists());
    }

    #[test]
    fn writing_replaces_a_link_and_not_what_it_leads_to() {
        let Place {
            directory,
            mut files,
        } = place();
        symlink("../secret", directory.path().join("workspace/up")).unwrap();
        write(&mut files, "up", "mine").unwrap();
        assert_eq!(read(&files, "up").unwrap(), "mine");
        let secret = std::fs::read_to_string(directory.path().join("secret")).unwrap();
        assert_eq!(secret, "secret");
    }

    #[test]
    fn links_that_stay_inside_are_followed() {
        let Place { directory, files } = place();
        symlink("sub", directory.path().join("workspace/link")).unwrap();
        assert_eq!(read(&files, "link/file").unwrap(), "text");
    }

    #[test]
    fn only_regular_files_are_handed_out() {
        let Place {
            directory,
            mut files,
        } = place();
        let workspace = directory.path().join("workspace");
        let mode = Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(CWD, workspace.join("pipe"), FileType::Fifo, mode, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
        for path in ["pipe", "socket", "sub", ""] {
            assert!(read(&files, path).is_err(), "{path}");
        }
        for path in ["sub", "", "sub/file/below"] {
            assert!(write(&mut files, path, "x").is_err(), "{path}");
        }
    }

    #[test]
    fn what_is_abandoned_leaves_nothing() {
        let Place {
            directory: _directory,
            mut files,
        } = place();
        let (_file, upload) = files.begin(Path::new("sub/file")).unwrap();
        files.abandon(upload);
        assert_eq!(files.list(Path::new("sub")).unwrap().len(), 1);
        assert_eq!(read(&files, "sub/file").unwrap(), "text");
        assert!(files.commit(upload).is_err());
    }

    #[test]
    fn a_directory_that_is_swapped_for_a_link_all_the_time_never_leads_out() {
        let Place { directory, files } = place();
        let workspace = directory.path().join("workspace");
        let outside = directory.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "outside").unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = std::fs::rename(workspace.join("sub"), workspace.join("aside"));
                    let _ = symlink(&outside, workspace.join("sub"));
                    let _ = std::fs::remove_file(workspace.join("sub"));
                    let _ = std::fs::rename(workspace.join("aside"), workspace.join("sub"));
                }
            });
            let mut seen = 0;
            for _ in 0..20_000 {
                if let Ok(text) = read(&files, "sub/file") {
                    assert_eq!(text, "text");
                    seen += 1;
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(seen > 0);
        });
    }
}
