//! Files that are being written from outside.
//!
//! Each is at the top of the workspace under a hidden name until it is whole. Whoever writes it may vanish,
//! so there are only so many at once, one that nobody writes to any more is thrown away, and those that
//! an executor left that is gone are removed by the next.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::entries;
use crate::lookout::Birth;

/// How many there are at once.
const MOST: usize = 64;

/// How long nobody may write to one.
const PATIENCE: Duration = Duration::from_secs(600);

/// How their hidden names begin.
const PREFIX: &str = ".sandbox-upload-";

/// Those that were begun.
#[derive(Debug)]
pub(crate) struct Uploads {
    /// Where they are.
    top: OwnedFd,
    begun: BTreeMap<u64, Upload>,
    next: u64,
    patience: Duration,
}

/// One of them.
#[derive(Debug)]
struct Upload {
    hidden: OsString,
    birth: Birth,
    /// None as long as nobody has said it.
    destination: Option<Destination>,
}

/// Where one will be.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) directory: OwnedFd,
    pub(crate) name: OsString,
}

/// Is this the name of a file that is being written?
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PREFIX.as_bytes())
}

/// Where nothing can be put, the path is to blame and not we: below a workspace there may be mounts, to which
/// nothing can be renamed, and directories of others.
pub(crate) fn unfit(error: io::Error) -> io::Error {
    use io::ErrorKind::{CrossesDevices, InvalidInput, PermissionDenied, ReadOnlyFilesystem};
    match error.kind() {
        CrossesDevices | PermissionDenied | ReadOnlyFilesystem => {
            io::Error::new(InvalidInput, format!("nothing can be put there: {error}"))
        }
        _ => error,
    }
}

impl Uploads {
    /// Those at `top`, where nobody writes any yet.
    pub(crate) fn open(top: OwnedFd) -> io::Result<Uploads> {
        let directory = entries::open_directory(&top, Path::new(""))?;
        while let Some(names) = entries::portion(&directory)? {
            for (name, _) in names.iter().filter(|(name, _)| is_hidden(name)) {
                // A directory of that name is not ours.
                let _ = rustix::fs::unlinkat(&top, name, AtFlags::empty());
            }
        }
        Ok(Uploads {
            top,
            begun: BTreeMap::new(),
            next: 0,
            patience: PATIENCE,
        })
    }

    /// Begins one: where it is written, and its number.
    pub(crate) fn begin(&mut self, destination: Option<Destination>) -> io::Result<(OwnedFd, u64)> {
        self.sweep();
        if self.begun.len() >= MOST {
            let reason = "too many files are being written";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        let (file, hidden) = self.make()?;
        let birth = Birth::of(&entries::look(&file, "")?);
        let upload = Upload {
            hidden,
            birth,
            destination,
        };
        self.begun.insert(self.next, upload);
        Ok((file, self.next))
    }

    /// Makes a file with a name that nobody has.
    fn make(&mut self) -> io::Result<(OwnedFd, OsString)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            self.next += 1;
            let hidden = OsString::from(format!("{PREFIX}{}", self.next));
            match rustix::fs::openat(&self.top, &hidden, flags, Mode::from_raw_mode(0o644)) {
                // Code may make such names, too; it cannot make all of them.
                Err(Errno::EXIST) => {}
                file => return Ok((file?, hidden)),
            }
        }
    }

    /// Says where one will be.
    pub(crate) fn direct(&mut self, number: u64, destination: Destination) -> io::Result<()> {
        let upload = self.begun.get_mut(&number).ok_or(Errno::NOENT)?;
        upload.destination = Some(destination);
        Ok(())
    }

    /// Puts one in its place.
    pub(crate) fn commit(&mut self, number: u64) -> io::Result<Birth> {
        let upload = self.begun.remove(&number).ok_or(Errno::NOENT)?;
        let put = || -> io::Result<()> {
            let found = entries::look(&self.top, &upload.hidden)?;
            if Birth::of(&found) != upload.birth {
                // Code has put something else there.
                return Err(Errno::NOENT.into());
            }
            let unsaid = "nobody has said where it goes";
            let unsaid = || io::Error::new(io::ErrorKind::InvalidInput, unsaid);
            let Destination { directory, name } = upload.destination.as_ref().ok_or_else(unsaid)?;
            let renamed = rustix::fs::renameat(&self.top, &upload.hidden, directory, name);
            renamed.map_err(|error| unfit(error.into()))
        };
        put().inspect_err(|_| self.remove(&upload))?;
        Ok(upload.birth)
    }

    /// Throws one away.
    pub(crate) fn abandon(&mut self, number: u64) {
        if let Some(upload) = self.begun.remove(&number) {
            self.remove(&upload);
        }
    }

    /// Throws those away that nobody writes to.
    fn sweep(&mut self) {
        let Some(since) = SystemTime::now().checked_sub(self.patience) else {
            return;
        };
        let since = since.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
        let is_idle = |upload: &Upload| {
            let found = entries::look(&self.top, &upload.hidden);
            found.map_or(true, |found| found.stx_ctime.tv_sec < since)
        };
        let idle = self.begun.iter().filter(|(_, upload)| is_idle(upload));
        let idle: Vec<u64> = idle.map(|(number, _)| *number).collect();
        for number in idle {
            self.abandon(number);
        }
    }

    fn remove(&self, upload: &Upload) {
        let _ = rustix::fs::unlinkat(&self.top, &upload.hidden, AtFlags::empty());
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for upload in self.begun.values() {
            self.remove(upload);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn open(directory: &Path) -> Uploads {
        Uploads::open(File::open(directory).unwrap().into()).unwrap()
    }

    fn begin(uploads: &mut Uploads, directory: &Path, name: &str) -> io::Result<(File, u64)> {
        let (file, number) = uploads.begin(Some(destination(directory, name)))?;
        Ok((file.into(), number))
    }

    fn destination(directory: &Path, name: &str) -> Destination {
        Destination {
            directory: File::open(directory).unwrap().into(),
            name: name.into(),
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn there_are_only_so_many_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut uploads = open(at);
        for _ in 0..MOST {
            begin(&mut uploads, at, "file").unwrap();
        }
        let refused = begin(&mut uploads, at, "file").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        uploads.commit(7).unwrap();
        begin(&mut uploads, at, "file").unwrap();
        drop(uploads);
        assert_eq!(names(at), ["file"]);
    }

    #[test]
    fn one_that_nobody_writes_to_is_thrown_away() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut uploads = open(at);
        let (_, idle) = begin(&mut uploads, at, "idle").unwrap();
        let (mut file, busy) = begin(&mut uploads, at, "busy").unwrap();
        uploads.patience = Duration::from_secs(1);
        // Until one more second of the filesystem's has begun, twice, one of them writes.
        let begin_of = |number| {
            let hidden = at.join(format!("{PREFIX}{number}"));
            std::os::unix::fs::MetadataExt::ctime(&hidden.metadata().unwrap())
        };
        while begin_of(busy) < begin_of(idle) + 3 {
            file.write_all(b"x").unwrap();
        }
        begin(&mut uploads, at, "other").unwrap();
        assert!(uploads.commit(idle).is_err());
        uploads.commit(busy).unwrap();
        drop(uploads);
        assert_eq!(names(at), ["busy"]);
    }

    #[test]
    fn what_was_left_is_removed_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut uploads = open(at);
        begin(&mut uploads, at, "file").unwrap();
        // As if it were killed.
        std::mem::forget(uploads);
        std::fs::write(at.join(".hidden"), "").unwrap();
        std::fs::create_dir(at.join(".sandbox-upload-mine")).unwrap();
        assert_eq!(names(at).len(), 3);
        let uploads = open(at);
        assert_eq!(names(at), [".hidden", ".sandbox-upload-mine"]);
        drop(uploads);
    }

    #[test]
    fn names_that_code_has_made_and_what_it_puts_there_are_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut uploads = open(at);
        std::os::unix::fs::symlink("elsewhere", at.join(format!("{PREFIX}1"))).unwrap();
        let (_, number) = begin(&mut uploads, at, "file").unwrap();
        assert_eq!(number, 2);
        std::fs::rename(at.join(format!("{PREFIX}1")), at.join(format!("{PREFIX}2"))).unwrap();
        assert!(uploads.commit(number).is_err());
        assert!(!at.join("file").is_symlink() && !at.join("elsewhere").exists());
    }

    #[test]
    fn what_goes_nowhere_or_to_another_mount_is_refused_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let mut uploads = open(at);
        let (_file, nowhere) = uploads.begin(None).unwrap();
        let (_file, elsewhere) = begin(&mut uploads, Path::new("/proc"), "file").unwrap();
        let (_file, later) = uploads.begin(None).unwrap();
        let there = destination(Path::new("/proc"), "file");
        uploads.direct(later, there).unwrap();
        for number in [nowhere, elsewhere, later] {
            let refused = uploads.commit(number).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        }
        assert_eq!(names(at), Vec::<String>::new());
        let too_late = uploads.direct(later, destination(at, "file"));
        assert_eq!(too_late.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
