//! The files of a workspace, for those outside.
//!
//! Paths come from outside and the directories they lead through belong to code that nobody trusts, so
//! every path is resolved by the kernel beneath the workspace, whatever links were planted and however
//! they change meanwhile. What is handed out is an open descriptor, of regular files only.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::lookout::Birth;
use crate::uploads::{self, Destination, Uploads, unfit};

/// The workspace, and what is being put into it.
#[derive(Debug)]
pub struct Files {
    workspace: OwnedFd,
    uploads: Uploads,
}

/// Links may be followed as long as they stay inside.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The longest name that a filesystem takes, in bytes.
const LONGEST_NAME: usize = 255;

/// How often a path is resolved again that was changed while it was resolved.
const PATIENCE: usize = 100;

impl Files {
    /// Those below `workspace`. There may be only one at a time.
    pub fn open(workspace: &Path) -> io::Result<Files> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let workspace = rustix::fs::open(workspace, flags, Mode::empty())?;
        Ok(Files {
            uploads: Uploads::open(workspace.try_clone()?)?,
            workspace,
        })
    }

    /// Opens the file at `path` for reading.
    pub fn read(&self, path: &Path) -> io::Result<(OwnedFd, u64)> {
        // Without waiting for somebody at the other end, should it be a pipe.
        let file = self.resolve(path, OFlags::RDONLY | OFlags::NONBLOCK);
        let file = file.map_err(|error| match Errno::from_io_error(&error) {
            // A socket cannot be opened at all, nor can a device that is not there.
            Some(Errno::NXIO | Errno::NODEV) => not_regular(),
            _ => error,
        })?;
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok((file, size_of(&found))),
            FileType::Directory => Err(Errno::ISDIR.into()),
            _ => Err(not_regular()),
        }
    }

    /// Begins to write the file at `path`, making its directories. It is there, whole, when it is
    /// committed by the number given back.
    pub fn begin(&mut self, path: &Path) -> io::Result<(OwnedFd, u64)> {
        let destination = self.destination(path).map_err(unfit)?;
        self.uploads.begin(Some(destination))
    }

    /// Begins to write a file that goes where its commit says.
    pub fn begin_anywhere(&mut self) -> io::Result<(OwnedFd, u64)> {
        self.uploads.begin(None)
    }

    /// Puts what was written in its place.
    pub(crate) fn commit(&mut self, upload: u64) -> io::Result<Birth> {
        self.uploads.commit(upload)
    }

    /// Puts what was written at `path`, making its directories. Where it cannot be there, it is thrown away.
    pub(crate) fn commit_at(&mut self, upload: u64, path: &Path) -> io::Result<Birth> {
        match self.destination(path) {
            Ok(destination) => {
                self.uploads.direct(upload, destination)?;
                self.uploads.commit(upload)
            }
            Err(error) => {
                self.uploads.abandon(upload);
                Err(unfit(error))
            }
        }
    }

    /// Throws away what was written.
    pub fn abandon(&mut self, upload: u64) {
        self.uploads.abandon(upload);
    }

    /// Opens the directory at `path`, to be read.
    pub fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens the directory in which `path` is, and says what it is called there. What that leads to, if it
    /// is a link, does not matter.
    pub fn place<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.resolve(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((directory, name))
    }

    /// Removes the file or link at `path`, or the empty directory.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.place(path)?;
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => Ok(rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR)?),
            outcome => Ok(outcome?),
        }
    }

    /// Where a file at `path` will be, in a directory that is made. Nothing is made for a path that cannot be.
    fn destination(&self, path: &Path) -> io::Result<Destination> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        if uploads::is_hidden(&name) {
            let reason = "such names are not to be had";
            return Err(io::Error::new(io::ErrorKind::InvalidFilename, reason));
        }
        if path.iter().any(|part| part.len() > LONGEST_NAME) {
            return Err(Errno::NAMETOOLONG.into());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let directory = self.make_directories(parent)?;
        match rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                Err(Errno::ISDIR.into())
            }
            Ok(_) | Err(Errno::NOENT) => Ok(Destination { directory, name }),
            Err(error) => Err(error.into()),
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

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn size_of(found: &Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::{self, Entry, Kind};
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

    fn list(files: &Files, path: &str) -> io::Result<Vec<Entry>> {
        let directory = files.directory(Path::new(path))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let page = runtime.block_on(listing::list(directory, None, 1_000))?;
        Ok(page.entries)
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
        let names = list(&files, "").unwrap();
        let names: Vec<_> = names
            .iter()
            .map(|entry| (entry.name.as_str(), entry.kind))
            .collect();
        assert_eq!(names, [("new", Kind::Directory), ("sub", Kind::Directory)]);
        let [file] = &list(&files, "new/deep").unwrap()[..] else {
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
            assert!(list(&files, path).is_err(), "{path}");
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
        // Nobody needs power to make this one, and nothing is behind it.
        let device = workspace.join("device");
        rustix::fs::mknodat(CWD, device, FileType::CharacterDevice, mode, 0).unwrap();
        for path in ["pipe", "socket", "device"] {
            let refused = read(&files, path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path}");
            assert_eq!(refused.to_string(), "it is not a regular file", "{path}");
        }
        for path in ["sub", ""] {
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
        assert_eq!(list(&files, "sub").unwrap().len(), 1);
        assert_eq!(read(&files, "sub/file").unwrap(), "text");
        assert!(files.commit(upload).is_err());
    }

    #[test]
    fn where_a_file_goes_may_be_said_when_it_is_whole() {
        let Place {
            directory: _directory,
            mut files,
        } = place();
        for path in ["new/deep/file", "sub/file"] {
            let (file, upload) = files.begin_anywhere().unwrap();
            File::from(file).write_all(path.as_bytes()).unwrap();
            let seen = list(&files, "").unwrap();
            assert!(seen.iter().all(|entry| entry.kind == Kind::Directory));
            files.commit_at(upload, Path::new(path)).unwrap();
            assert_eq!(read(&files, path).unwrap(), path);
        }
        // What is said last counts.
        let (_file, upload) = files.begin(Path::new("first")).unwrap();
        files.commit_at(upload, Path::new("last")).unwrap();
        assert_eq!(read(&files, "last").unwrap(), "");
        assert!(read(&files, "first").is_err());
        // Nobody has said it.
        let (_file, upload) = files.begin_anywhere().unwrap();
        assert!(files.commit(upload).is_err());
    }

    #[test]
    fn a_path_that_is_refused_leaves_nothing_whenever_it_is_said() {
        let Place {
            directory,
            mut files,
        } = place();
        let workspace = directory.path().join("workspace");
        symlink(directory.path(), workspace.join("out")).unwrap();
        symlink("/proc/self/root", workspace.join("magic")).unwrap();
        let long = "x".repeat(LONGEST_NAME + 1);
        let (long_name, long_parent) = (format!("new/{long}"), format!("new/{long}/made"));
        for path in [
            "../made",
            "out/made",
            "/made",
            "magic/made",
            "sub/../../made",
            "sub",
            "",
            "sub/file/below",
            "sub/.sandbox-upload-1",
            "new/.sandbox-upload-1",
            &long_name,
            &long_parent,
        ] {
            assert!(write(&mut files, path, "x").is_err(), "{path}");
            let (file, upload) = files.begin_anywhere().unwrap();
            File::from(file).write_all(b"x").unwrap();
            assert!(files.commit_at(upload, Path::new(path)).is_err(), "{path}");
            assert!(files.commit(upload).is_err(), "{path}");
        }
        let mut names: Vec<_> = std::fs::read_dir(&workspace)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["magic", "out", "sub"]);
        assert_eq!(list(&files, "sub").unwrap().len(), 1);
        assert_eq!(read(&files, "sub/file").unwrap(), "text");
        assert!(!directory.path().join("made").exists() && !Path::new("/made").exists());
    }

    #[test]
    fn a_directory_that_is_swapped_for_a_link_all_the_time_never_leads_out() {
        use std::collections::BTreeSet;
        use std::time::{Duration, Instant};
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
            // On a busy machine whoever swaps may be kept from it for a while, and all that time nothing changes.
            let (mut seen, mut refused, mut tries) = (BTreeSet::new(), 0, 0);
            let deadline = Instant::now() + Duration::from_secs(60);
            while tries < 20_000 || seen.is_empty() || refused == 0 {
                tries += 1;
                match read(&files, "sub/file") {
                    Ok(text) => drop(seen.insert(text)),
                    Err(_) => refused += 1,
                }
                if Instant::now() > deadline {
                    break;
                }
            }
            // Only then may anything fail: whoever swaps is waited for.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(seen, BTreeSet::from(["text".to_owned()]));
            assert!(refused > 0, "it was never swapped");
        });
    }
}
