//! Where a source's transactions are kept: `ROOT/.undo/KEY/`, one directory per source.
//!
//! ```text
//! lock        held while a promote, an undo or a recovery works on the source
//! pending     names the transaction under way; there is none when all is well
//! ID/         one transaction: `journal`, `committed`, `stage/` with the pre-images, or
//!             `saved/` with copies of them where the stage had to be inside the source
//! kept-ID/    what a transaction that was taken back could not put back, at its own path
//! aside-ID/   a transaction that was never finished, with its `pending`: another directory stands
//!             at the source's path by now. It is taken up again if the first one comes back.
//! ```

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sandbox_linux::placement;
use sandbox_model::{RelPath, Timestamp};
use serde::{Deserialize, Serialize};

use super::STAGE_PREFIX;
use super::error::PromoteError;
use super::fault;
use super::ground::is_not_there;
use super::journal::{self, Inode, Journal, Place};
use crate::root::Root;
use crate::tree::{Dir, Replace, Tree};

const PENDING: &[u8] = b"pending";
const LOCK: &[u8] = b"lock";
pub(crate) const STAGE: &[u8] = b"stage";
pub(crate) const SAVED: &[u8] = b"saved";
pub(crate) const KEPT_PREFIX: &str = "kept-";
const ASIDE_PREFIX: &str = "aside-";
/// Which source the area is of.
const SOURCE: &[u8] = b"source";

/// One source's transactions.
#[derive(Debug)]
pub(crate) struct Area {
    pub dir: Dir,
    pub path: PathBuf,
}

/// The transaction under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub id: String,
    pub stage: Place,
    /// The source's root, and its modification time before a stage was put inside.
    pub root: Inode,
    pub root_mtime: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
}

/// Held while a transaction works on a source: against others of this root by a file of the area,
/// against other roots by the source's own directory.
#[derive(Debug)]
#[expect(dead_code, reason = "held, not read")]
pub(crate) struct SourceLock(OwnedFd, OwnedFd);

/// The source's path as one name: `%2Fhome%2Fada%2Fapp`. One that is too long for that is hashed;
/// not every one, since every run looks for its area, and a first hash asks the processor for its
/// features, which takes as long as a dozen system calls in a virtual machine.
fn key(source: &Path) -> OsString {
    const LONGEST: usize = 200;
    let mut key = Vec::new();
    for byte in source.as_os_str().as_bytes() {
        match byte {
            b'/' => key.extend(b"%2F"),
            b'%' => key.extend(b"%25"),
            other => key.push(*other),
        }
    }
    match key.len() {
        0..=LONGEST => OsString::from_vec(key),
        _ => blake3::hash(source.as_os_str().as_bytes())
            .to_hex()
            .as_str()
            .into(),
    }
}

/// The source whose [`key`] is `name`; `None` for a hash.
fn source_of(name: &OsStr) -> Option<PathBuf> {
    let mut source = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'%', [b'2', b'F', after @ ..]) => (b'/', after),
            (b'%', [b'2', b'5', after @ ..]) => (b'%', after),
            (other, after) => (*other, after),
        };
        source.push(byte);
        rest = after;
    }
    let source = PathBuf::from(OsString::from_vec(source));
    (source.is_absolute() && key(&source) == name).then_some(source)
}

impl Area {
    /// Where the area of `source` is.
    pub fn path(root: &Root, source: &Path) -> PathBuf {
        root.path().join(".undo").join(key(source))
    }

    /// Where the transaction under way is named.
    pub fn pending_path(root: &Root, source: &Path) -> PathBuf {
        Area::path(root, source).join("pending")
    }

    /// The area of `source`, if there is one.
    pub fn find(root: &Root, source: &Path) -> Result<Option<Area>, PromoteError> {
        let path = Area::path(root, source);
        match Dir::open(&path) {
            Ok(dir) => Ok(Some(Area { dir, path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PromoteError::Io {
                operation: "open",
                path,
                source,
            }),
        }
    }

    /// The area of `source`, made where missing.
    pub fn make(root: &Root, source: &Path) -> Result<Area, PromoteError> {
        let path = Area::path(root, source);
        let make = || -> io::Result<Dir> {
            let root = Tree::open(root.path())?;
            let below = path.strip_prefix(root.path()).map_err(io::Error::other)?;
            let dir = root.make_dirs(&RelPath::from_path(below).map_err(io::Error::other)?)?;
            // A transaction makes as many files as the last one let go of; not beside those.
            placement::spread(&dir);
            if dir.stat(SOURCE)?.is_none() {
                journal::write_durably(&dir, SOURCE, source.as_os_str().as_bytes(), "area")?;
            }
            Ok(dir)
        };
        match make() {
            Ok(dir) => Ok(Area { dir, path }),
            Err(source) => Err(PromoteError::Io {
                operation: "make",
                path,
                source,
            }),
        }
    }

    /// Locks the source, or says that it is busy.
    pub fn lock(&self, source: &Tree) -> Result<SourceLock, PromoteError> {
        let busy = || PromoteError::SourceBusy {
            path: source.path().to_owned(),
        };
        let failed = |errno: Errno| PromoteError::Io {
            operation: "lock",
            path: self.path.clone(),
            source: errno.into(),
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(self.dir.fd(), LOCK, flags, Mode::RUSR | Mode::WUSR)
            .map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(source.fd(), ".", flags, Mode::empty()).map_err(failed)?;
        for fd in [&file, &root] {
            match rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(busy()),
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(SourceLock(file, root))
    }

    /// Keeps other transactions of this root away while what is kept is cleaned; `None` when one
    /// is under way.
    pub fn lock_kept(&self) -> io::Result<Option<OwnedFd>> {
        fault::at("lock kept")?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(self.dir.fd(), LOCK, flags, Mode::RUSR | Mode::WUSR)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A name for a transaction that sorts by time.
    pub fn new_id(&self) -> io::Result<String> {
        loop {
            let now = jiff::Timestamp::now();
            let id = format!(
                "{}-{:09}",
                now.strftime("%Y%m%d-%H%M%S"),
                now.subsec_nanosecond()
            );
            if self.dir.stat(id.as_bytes())?.is_none() {
                return Ok(id);
            }
        }
    }

    /// The transaction under way, or left by a crash.
    pub fn pending(&self) -> io::Result<Option<Pending>> {
        match journal::read(&self.dir, PENDING)? {
            None => Ok(None),
            Some(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        }
    }

    /// Is a transaction under way, or left by a crash?
    pub fn has_pending(&self) -> io::Result<bool> {
        Ok(self.dir.stat(PENDING)?.is_some())
    }

    /// A transaction begins: from now on a crash is noticed.
    pub fn set_pending(&self, pending: &Pending) -> io::Result<()> {
        journal::write_durably(&self.dir, PENDING, &serde_json::to_vec(pending)?, "pending")
    }

    /// The transaction is over, one way or the other.
    pub fn clear_pending(&self) -> io::Result<()> {
        fault::at("pending cleared")?;
        self.dir.unlink(PENDING)?;
        self.dir.sync()
    }

    /// Which source it is of. Older versions did not record it; then the area's name says it, unless
    /// that is a hash: `None`.
    pub fn source(&self) -> io::Result<Option<PathBuf>> {
        let recorded = journal::read(&self.dir, SOURCE)?;
        Ok(match recorded {
            Some(bytes) => Some(PathBuf::from(OsString::from_vec(bytes))),
            None => self.path.file_name().and_then(source_of),
        })
    }

    /// Every area of `root`.
    pub fn all(root: &Root) -> io::Result<Vec<Area>> {
        let path = root.path().join(".undo");
        let undo = match Dir::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            undo => undo?,
        };
        let mut areas = Vec::new();
        for entry in undo.entries()? {
            match undo.open_dir(&entry.name) {
                Ok(dir) => areas.push(Area {
                    dir,
                    path: path.join(OsString::from_vec(entry.name)),
                }),
                Err(error) if is_not_there(&error) => {}
                Err(error) => return Err(error),
            }
        }
        areas.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(areas)
    }

    /// Puts the transaction under way aside, with all that it holds. May be killed and repeated.
    /// Returns where it is.
    pub fn set_aside(&self, pending: &Pending) -> io::Result<PathBuf> {
        let aside = format!("{ASIDE_PREFIX}{}", pending.id);
        match self.dir.rename(
            pending.id.as_bytes(),
            &self.dir,
            aside.as_bytes(),
            Replace::Yes,
        ) {
            // Moved already, or never made.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved?,
        }
        let dir = match self.dir.open_dir(aside.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.dir.make_dir(aside.as_bytes())
            }
            opened => opened,
        }?;
        self.dir.rename(PENDING, &dir, PENDING, Replace::Yes)?;
        dir.sync()?;
        self.dir.sync()?;
        Ok(self.path.join(aside))
    }

    /// Takes up again what was put aside when another directory stood at the source's path, if the
    /// one with the inode `root` is the one it began in.
    pub fn resume(&self, root: &Inode) -> io::Result<Option<Pending>> {
        for name in self.set_asides()? {
            let aside = self.dir.open_dir(name.as_bytes())?;
            let Some(bytes) = journal::read(&aside, PENDING)? else {
                continue;
            };
            let pending: Pending = serde_json::from_slice(&bytes)?;
            if pending.root == *root {
                aside.rename(PENDING, &self.dir, PENDING, Replace::No)?;
                self.complete_resume(&pending)?;
                return Ok(Some(pending));
            }
        }
        Ok(None)
    }

    /// The second half of [`Area::resume`], also after a crash between the two.
    pub fn complete_resume(&self, pending: &Pending) -> io::Result<()> {
        let aside = format!("{ASIDE_PREFIX}{}", pending.id);
        let (from, to) = (aside.as_bytes(), pending.id.as_bytes());
        match self.dir.rename(from, &self.dir, to, Replace::No) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.and_then(|()| self.dir.sync()),
        }
    }

    /// Transactions that are not over: the one under way, and those put aside.
    pub fn unfinished(&self) -> io::Result<Vec<Pending>> {
        let mut unfinished: Vec<Pending> = self.pending()?.into_iter().collect();
        for name in self.set_asides()? {
            let aside = self.dir.open_dir(name.as_bytes())?;
            if let Some(bytes) = journal::read(&aside, PENDING)? {
                unfinished.push(serde_json::from_slice(&bytes)?);
            }
        }
        Ok(unfinished)
    }

    /// Names of what was put aside.
    pub fn set_asides(&self) -> io::Result<Vec<String>> {
        self.named(ASIDE_PREFIX)
    }

    /// Names of what transactions that were taken back could not put back.
    pub fn kept(&self) -> io::Result<Vec<String>> {
        self.named(KEPT_PREFIX)
    }

    fn named(&self, prefix: &str) -> io::Result<Vec<String>> {
        let entries = self.dir.entries()?.into_iter();
        let names = entries.filter_map(|entry| String::from_utf8(entry.name).ok());
        Ok(names.filter(|name| name.starts_with(prefix)).collect())
    }

    /// The directory of a transaction.
    pub fn transaction(&self, id: &str) -> io::Result<Dir> {
        self.dir.open_dir(id.as_bytes())
    }

    /// Ids of the transactions kept, oldest first, rubbish included.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        let mut ids: Vec<_> = self
            .dir
            .entries()?
            .into_iter()
            .filter_map(|entry| String::from_utf8(entry.name).ok())
            .filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Deletes a transaction and its pre-images.
    pub fn delete(&self, id: &str) -> io::Result<()> {
        if let Ok(dir) = self.transaction(id) {
            // Without its journal a half-deleted transaction is not offered for undo.
            Journal::remove(&dir)?;
        }
        self.dir.remove_all(id.as_bytes())
    }

    /// The stage of a transaction.
    pub fn stage(&self, source: &Tree, id: &str, place: &Place) -> io::Result<Dir> {
        match place {
            Place::Own => self.transaction(id)?.open_dir(STAGE),
            Place::Shared(of) => self.transaction(of)?.open_dir(STAGE),
            Place::Inside => source.root_dir()?.open_dir(&stage_name(id)),
        }
    }
}

/// The name of a stage inside the source.
pub(crate) fn stage_name(id: &str) -> Vec<u8> {
    format!("{STAGE_PREFIX}{id}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_key_of_its_own() {
        let long = "x/".repeat(150);
        let sources = ["/a/b", "/a%2Fb", "/a%b", "/a%25b", "/", &long, &long[2..]];
        let keys: std::collections::HashSet<OsString> = sources
            .iter()
            .map(|source| key(Path::new(source)))
            .collect();
        assert_eq!(keys.len(), sources.len());
        for key in keys {
            let key = key.as_bytes();
            assert!(!key.contains(&b'/') && (1..=255).contains(&key.len()));
        }
        assert_eq!(key(Path::new("/home/ada")), "%2Fhome%2Fada");
    }

    #[test]
    fn a_key_names_its_source_unless_it_is_a_hash() {
        for source in ["/a/b", "/a%2Fb", "/a%b%25", "/", "/%", "/a%2"] {
            let source = Path::new(source);
            assert_eq!(source_of(&key(source)).as_deref(), Some(source));
        }
        let long = PathBuf::from("/x".repeat(150));
        assert_eq!(source_of(&key(&long)), None);
        for other in ["relative", "%2Fa%2", "%2Fa%2f", ""] {
            assert_eq!(source_of(OsStr::new(other)), None, "{other}");
        }
    }
}
