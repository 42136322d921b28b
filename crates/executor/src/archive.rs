//! A directory as one stream.
//!
//! It is written while it is read, in pieces, and as fast as the pipe is emptied; the executor does other
//! things meanwhile. Code may change what is in it: each directory is entered by descriptor and no link is
//! followed, and a file is as long as it was when it was opened, whatever becomes of it. An archive that
//! could not be completed ends in the middle of something, which is how whoever unpacks it knows.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FileType, Statx};
use rustix::pipe::PipeFlags;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;

use crate::entries::{self, Name};
use crate::tar::{self, BLOCK, Kind, Member};
use crate::uploads;

/// How many directories are open at once.
const DEEPEST: usize = 128;

/// How much is read before others have their turn.
const PIECE: usize = 64 << 10;

/// How long nobody may read.
const PATIENCE: Duration = Duration::from_secs(300);

/// A directory whose archive is to be written.
pub(crate) struct Archive {
    to: Sender,
    levels: Vec<Level>,
    piece: Vec<u8>,
    /// The next bytes are to be a file's.
    amid: bool,
}

/// A directory that is being read.
struct Level {
    directory: OwnedFd,
    /// What the paths of what is in it begin with.
    path: Vec<u8>,
    names: std::vec::IntoIter<Name>,
}

impl Archive {
    /// The archive of what is in `directory`, and where it can be read.
    pub(crate) fn of(directory: OwnedFd) -> io::Result<(Archive, OwnedFd)> {
        let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        let archive = Archive {
            to: Sender::from_owned_fd(to)?,
            levels: vec![Level::new(directory, Vec::new())],
            piece: Vec::new(),
            amid: false,
        };
        Ok((archive, from))
    }

    /// Writes it, as far as that can be done.
    pub(crate) async fn write(mut self) {
        if self.write_all().await.is_err() && !self.amid {
            // When it is the reader who is gone, nobody will miss it.
            let _ = self.send(&tar::cut_off()).await;
        }
    }

    async fn write_all(&mut self) -> io::Result<()> {
        while let Some(level) = self.levels.last_mut() {
            if let Some((name, kind)) = level.names.next() {
                if !uploads::is_hidden(&name) {
                    self.add(&name, kind).await?;
                }
                continue;
            }
            match entries::portion(&level.directory)? {
                Some(names) => level.names = names.into_iter(),
                None => drop(self.levels.pop()),
            }
            tokio::task::yield_now().await;
        }
        self.send(&[0; 2 * BLOCK]).await
    }

    /// Adds what is called `name` in the innermost directory. What is gone by now, or has become something
    /// else since it was said to be of this kind, is left out.
    async fn add(&mut self, name: &OsStr, kind: FileType) -> io::Result<()> {
        let Some(level) = self.levels.last() else {
            return Ok(());
        };
        let path = [&level.path, name.as_bytes()].concat();
        let kind = match kind {
            FileType::Unknown => match entries::look(&level.directory, name) {
                Ok(found) => entries::kind(&found),
                Err(error) => return unless_gone(error),
            },
            kind => kind,
        };
        let added = match kind {
            FileType::RegularFile => self.add_file(name, &path).await,
            FileType::Directory => self.add_directory(name, path).await,
            FileType::Symlink => self.add_link(name, &path).await,
            // Neither a socket nor a pipe nor a device is anything elsewhere.
            _ => Ok(()),
        };
        added.or_else(unless_gone)
    }

    async fn add_file(&mut self, name: &OsStr, path: &[u8]) -> io::Result<()> {
        let file = entries::open_file(self.innermost()?, Path::new(name))?;
        let found = entries::look(&file, "")?;
        if entries::kind(&found) != FileType::RegularFile {
            return Ok(());
        }
        let size = found.stx_size;
        self.send(&header(path, Kind::File(size), &found)).await?;
        self.amid = true;
        let mut left = size;
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(PIECE, 0);
        while left > 0 {
            let most = PIECE.min(usize::try_from(left).unwrap_or(PIECE));
            let length = match rustix::io::read(&file, &mut piece[..most]) {
                Err(rustix::io::Errno::INTR) => continue,
                // It is shorter than it was.
                Ok(0) => {
                    piece[..most].fill(0);
                    most
                }
                outcome => outcome?,
            };
            self.send(&piece[..length]).await?;
            left -= length as u64;
            tokio::task::yield_now().await;
        }
        self.piece = piece;
        self.send(&[0; BLOCK][..tar::padding(size)]).await?;
        self.amid = false;
        Ok(())
    }

    async fn add_directory(&mut self, name: &OsStr, mut path: Vec<u8>) -> io::Result<()> {
        if self.levels.len() == DEEPEST {
            return Err(io::Error::other("it is too deep"));
        }
        let directory = entries::open_directory(self.innermost()?, Path::new(name))?;
        let found = entries::look(&directory, "")?;
        path.push(b'/');
        self.send(&header(&path, Kind::Directory, &found)).await?;
        self.levels.push(Level::new(directory, path));
        Ok(())
    }

    async fn add_link(&mut self, name: &OsStr, path: &[u8]) -> io::Result<()> {
        let found = entries::look(self.innermost()?, name)?;
        let link = match rustix::fs::readlinkat(self.innermost()?, name, Vec::new()) {
            Ok(link) => link,
            // It is no link any more.
            Err(rustix::io::Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let header = header(path, Kind::Link(link.to_bytes()), &found);
        self.send(&header).await
    }

    fn innermost(&self) -> io::Result<&OwnedFd> {
        let level = self.levels.last().ok_or(io::ErrorKind::NotFound)?;
        Ok(&level.directory)
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sending = self.to.write_all(bytes);
        match tokio::time::timeout(PATIENCE, sending).await {
            Ok(sent) => sent,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Level {
    fn new(directory: OwnedFd, path: Vec<u8>) -> Level {
        Level {
            directory,
            path,
            names: Vec::new().into_iter(),
        }
    }
}

fn header(path: &[u8], kind: Kind<'_>, found: &Statx) -> Vec<u8> {
    tar::header(&Member {
        path,
        kind,
        mode: found.stx_mode.into(),
        user: found.stx_uid,
        group: found.stx_gid,
        modified: found.stx_mtime.tv_sec,
    })
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    match entries::is_gone(&error) {
        true => Ok(()),
        false => Err(error),
    }
}
