//! The sandbox root: the directory that holds every sandbox of a user.
//!
//! A sandbox is built in a hidden directory and appears under its name by one rename, so that two
//! creates of one name cannot both win and a crash leaves nothing that looks like a sandbox.
//! Opening a root costs next to nothing: it stands before every command. What crashes left is
//! cleaned by whoever creates, discards or asks for it.

mod caution;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use sandbox_linux::placement;
use sandbox_model::{BackendChoice, BackendKind, Class, EntryKind, Failure, SandboxName, Settings};
use thiserror::Error;

pub use caution::{Caution, caution};

use crate::backend::{BackendError, backend};
use crate::lock;
use crate::meta::{self, Meta};
use crate::progress::Progress;
use crate::sandbox::Sandbox;
use crate::spare;
use crate::tree::{Dir, Replace};

/// What the hidden directories of creates under way start with.
const UNDER_WAY: &str = ".new-";

/// A sandbox root.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// Creates first remove what killed ones left.
    sweeps: bool,
}

/// What a sandbox's directory is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing.
    Empty,
    /// What was put aside, where there is something.
    Spare,
}

/// What to create.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    /// Its name; `None` makes a memorable one.
    pub name: Option<SandboxName>,
    /// The directory to sandbox.
    pub source: PathBuf,
    /// Which backend.
    pub backend: BackendChoice,
    /// Isolation settings to store.
    pub settings: Settings,
}

/// Why a root cannot be used, or a sandbox not created or opened.
#[derive(Debug, Error)]
pub enum RootError {
    /// The name is none.
    #[error(transparent)]
    Name(#[from] sandbox_model::name::NameError),
    /// No such sandbox.
    #[error("no sandbox named '{name}'")]
    NotFound {
        /// As asked.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
        /// One of that name was discarded and can be restored.
        discarded: bool,
    },
    /// No discarded sandbox of that name can be restored.
    #[error("no discarded sandbox named '{0}' can be restored")]
    NotDiscarded(SandboxName),
    /// The name is taken.
    #[error("a sandbox named '{0}' exists already")]
    Exists(SandboxName),
    /// The source is not there, or no directory.
    #[error("cannot sandbox {path}")]
    Source {
        /// The source.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The backend asked for does not work here.
    #[error("the {backend} backend cannot be used for {path}: {reason}")]
    Backend {
        /// Which.
        backend: BackendKind,
        /// The source.
        path: PathBuf,
        /// In words.
        reason: String,
    },
    /// The backend worked in the trial and failed in earnest.
    #[error("cannot make the sandbox")]
    Make(#[from] BackendError),
    /// Anything else.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Failure for RootError {
    fn class(&self) -> Class {
        match self {
            RootError::NotFound { .. } | RootError::NotDiscarded(_) => Class::NotFound,
            RootError::Name(_) | RootError::Exists(_) | RootError::Backend { .. } => Class::General,
            RootError::Source { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Class::Permission,
                _ => Class::SourceNotFound,
            },
            RootError::Make(error) => error.class(),
            RootError::Io { source, .. } => Class::of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            RootError::Name(_) => Some("such as `risky-refactor`".to_owned()),
            RootError::NotFound {
                discarded: true,
                name,
                ..
            } => Some(format!(
                "it was discarded; `sandbox discard --undo {name}` restores it"
            )),
            RootError::NotFound {
                nearest: Some(nearest),
                ..
            } => Some(format!("did you mean '{nearest}'?")),
            RootError::NotDiscarded(_) => {
                Some("`sandbox discard --undo` lists what can be restored".to_owned())
            }
            RootError::NotFound { nearest: None, .. } => {
                Some("`sandbox list` shows what there is".to_owned())
            }
            RootError::Exists(name) => Some(format!(
                "choose another name, or `sandbox discard {name}` first"
            )),
            RootError::Backend { .. } => {
                Some("without --backend the best that works here is taken".to_owned())
            }
            RootError::Make(error) => error.hint(),
            RootError::Source { .. } | RootError::Io { .. } => None,
        }
    }
}

impl Root {
    /// Opens (making it, mode 0700, where missing) the root at `path`. Cheap: nothing is listed.
    pub fn open(path: &Path) -> Result<Root, RootError> {
        let failed = |operation| {
            move |source| RootError::Io {
                operation,
                path: path.to_owned(),
                source,
            }
        };
        match path.canonicalize() {
            Ok(path) if path.is_dir() => Ok(Root { path, sweeps: true }),
            Ok(_) => Err(failed("open")(rustix::io::Errno::NOTDIR.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut builder = std::fs::DirBuilder::new();
                std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
                builder
                    .recursive(true)
                    .create(path)
                    .map_err(failed("make"))?;
                Ok(Root {
                    path: path.canonicalize().map_err(failed("open"))?,
                    sweeps: true,
                })
            }
            Err(error) => Err(failed("open")(error)),
        }
    }

    /// The same, for whoever makes many and knows that there is nothing to remove: creates do not list it.
    pub fn unswept(self) -> Root {
        Root {
            sweeps: false,
            ..self
        }
    }

    /// Its path, absolute and canonical.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root as an open directory.
    pub(crate) fn dir(&self) -> Result<Dir, RootError> {
        Dir::open(&self.path).map_err(|source| self.failed("open", source))
    }

    fn failed(&self, operation: &'static str, source: io::Error) -> RootError {
        RootError::Io {
            operation,
            path: self.path.clone(),
            source,
        }
    }

    /// Makes a sandbox. All or nothing: on an error nothing is left behind.
    pub fn create(
        &self,
        request: &CreateRequest,
        progress: &mut dyn Progress,
    ) -> Result<Sandbox, RootError> {
        let source = readable_directory(&request.source)?;
        let mut refusal = None;
        for &kind in candidates(&request.backend) {
            if let Err(reason) = backend(kind).probe(&source, &self.path) {
                refusal = Some((kind, reason));
                continue;
            }
            match self.create_with(kind, &source, request, progress) {
                // A snapshot is only really tried by making it.
                Err(RootError::Make(_))
                    if kind == BackendKind::Btrfs && request.backend == BackendChoice::Auto => {}
                made => return made,
            }
        }
        let (backend, reason) = refusal.unwrap_or((BackendKind::Copy, String::new()));
        Err(RootError::Backend {
            backend,
            path: source,
            reason,
        })
    }

    fn create_with(
        &self,
        kind: BackendKind,
        source: &Path,
        request: &CreateRequest,
        progress: &mut dyn Progress,
    ) -> Result<Sandbox, RootError> {
        let from = match kind {
            BackendKind::Overlay => Start::Spare,
            BackendKind::Btrfs | BackendKind::Copy => Start::Empty,
        };
        self.build(request.name.as_ref(), from, |name, dir| {
            let mut meta =
                new_meta(name, source, kind, request.settings.clone()).map_err(|error| {
                    RootError::Source {
                        path: source.to_owned(),
                        source: error,
                    }
                })?;
            backend(kind).create(&mut meta, dir, &self.path, progress)?;
            Ok(meta)
        })
    }

    /// Builds a sandbox's directory out of sight with `fill`, then shows it under its name.
    pub(crate) fn build(
        &self,
        name: Option<&SandboxName>,
        from: Start,
        mut fill: impl FnMut(&SandboxName, &Path) -> Result<Meta, RootError>,
    ) -> Result<Sandbox, RootError> {
        let root = self.dir()?;
        placement::spread(&root);
        if self.sweeps {
            self.sweep()?;
        }
        let chosen = match name {
            Some(name) => name.clone(),
            None => self.unused_name(&root)?,
        };
        if root
            .stat(chosen.as_str().as_bytes())
            .map_err(|e| self.failed("read", e))?
            .is_some()
        {
            return Err(RootError::Exists(chosen));
        }
        let (hidden, dir, alive) = self
            .start(&root, from)
            .map_err(|error| self.failed("write to", error))?;
        let built = (|| {
            let meta = fill(&chosen, &self.path.join(&hidden))?;
            meta.write_new(&dir)
                .map_err(|e| self.failed("write to", e))?;
            self.show(&root, &hidden, &chosen)?;
            Ok(Sandbox {
                root: self.clone(),
                dir: self.path.join(chosen.as_str()),
                meta,
            })
        })();
        drop(alive);
        if built.is_err() {
            // The first error is the one to tell; what stays here is swept by the next create.
            let _ = crate::discard::delete(&root, &self.path, hidden.as_bytes());
        }
        built
    }

    /// Makes the hidden directory of a create, and its lock, which is held until the rename:
    /// whoever sweeps sees that this create is alive.
    fn start(&self, root: &Dir, from: Start) -> io::Result<(String, Dir, lock::Lock)> {
        loop {
            let hidden = format!("{UNDER_WAY}{:x}-{:x}", std::process::id(), random());
            let dir = match from == Start::Spare && spare::take(root, &hidden)? {
                true => root.open_dir(hidden.as_bytes())?,
                false => root.make_dir(hidden.as_bytes())?,
            };
            let path = self.path.join(&hidden);
            match lock::Lock::take(&path, lock::Sharing::Exclusive, lock::Use::Marked) {
                Ok(alive) => return Ok((hidden, dir, alive)),
                // Taken for abandoned between the two steps, and about to be swept.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    let _ = root.remove_all(hidden.as_bytes());
                    return Err(error);
                }
            }
        }
    }

    pub(crate) fn show(
        &self,
        root: &Dir,
        hidden: &str,
        name: &SandboxName,
    ) -> Result<(), RootError> {
        let (from, to) = (hidden.as_bytes(), name.as_str().as_bytes());
        let shown = match root.rename(from, root, to, Replace::No) {
            // A filesystem without RENAME_NOREPLACE: a plain rename refuses as well, since no
            // sandbox's directory is empty.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                root.rename(from, root, to, Replace::Yes)
            }
            shown => shown,
        };
        shown.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                RootError::Exists(name.clone())
            }
            _ => self.failed("write to", error),
        })
    }

    fn unused_name(&self, root: &Dir) -> Result<SandboxName, RootError> {
        loop {
            let name = SandboxName::memorable(random());
            let taken = root
                .stat(name.as_str().as_bytes())
                .map_err(|e| self.failed("read", e))?;
            if taken.is_none() {
                return Ok(name);
            }
        }
    }

    /// Opens a sandbox by name. Does not lock it, does not look at its source.
    pub fn sandbox(&self, name: &str) -> Result<Sandbox, RootError> {
        let parsed: SandboxName = name.parse()?;
        if let Some(sandbox) = self.find(&parsed)? {
            return Ok(sandbox);
        }
        let known = self.names()?;
        let nearest = SandboxName::nearest(name, known.iter().map(SandboxName::as_str));
        let discarded = crate::discard::discarded(self).unwrap_or_default();
        Err(RootError::NotFound {
            name: name.to_owned(),
            nearest: nearest.map(str::to_owned),
            discarded: discarded.iter().any(|found| found.meta.name == parsed),
        })
    }

    /// The sandbox of that name, if there is one. Takes no longer where there are many others.
    pub fn find(&self, name: &SandboxName) -> Result<Option<Sandbox>, RootError> {
        let dir = self.path.join(name.as_str());
        match Meta::read(&dir) {
            Ok(meta) => Ok(Some(Sandbox {
                root: self.clone(),
                dir,
                meta,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RootError::Io {
                operation: "read the record of",
                path: dir,
                source,
            }),
        }
    }

    /// Names of all sandboxes, sorted.
    pub fn names(&self) -> Result<Vec<SandboxName>, RootError> {
        let entries = self.dir()?.entries().map_err(|e| self.failed("list", e))?;
        let mut names: Vec<SandboxName> = entries
            .into_iter()
            .filter(|entry| matches!(entry.kind, Some(EntryKind::Directory) | None))
            .filter_map(|entry| String::from_utf8(entry.name).ok()?.parse().ok())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Removes what creates that were killed left behind.
    pub fn sweep(&self) -> Result<(), RootError> {
        let root = &self.dir()?;
        for leftover in self.leftovers(root)? {
            match crate::discard::delete(root, &self.path, &leftover.name) {
                // Another sweep was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                deleted => deleted.map_err(|e| self.failed("clean", e))?,
            }
        }
        Ok(())
    }

    /// What killed creates left.
    pub(crate) fn leftovers(&self, root: &Dir) -> Result<Vec<Leftover>, RootError> {
        let entries = root.entries().map_err(|e| self.failed("list", e))?;
        Ok(entries
            .into_iter()
            .map(|entry| entry.name)
            .filter(|name| name.starts_with(UNDER_WAY.as_bytes()))
            .filter_map(|name| abandoned(root, name))
            .collect())
    }
}

/// A directory that a killed create left.
#[derive(Debug)]
pub(crate) struct Leftover {
    /// Its name in the root.
    pub(crate) name: Vec<u8>,
    /// Held until it is deleted: a create that is only late finds its lock taken and starts anew.
    _lock: Option<OwnedFd>,
}

/// The backends to try, in order.
fn candidates(choice: &BackendChoice) -> &[BackendKind] {
    match choice {
        BackendChoice::Auto => &BackendKind::ALL,
        BackendChoice::Only(kind) => std::slice::from_ref(kind),
    }
}

/// The directory `name`, if the create that builds it has died. Its process and its lock tell; one
/// without a lock yet is given time.
fn abandoned(root: &Dir, name: Vec<u8>) -> Option<Leftover> {
    if is_of_a_live_process(&name) {
        return None;
    }
    let dir = root.open_dir(&name).ok()?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = match rustix::fs::openat(dir.fd(), lock::FILE, flags, Mode::empty()) {
        Ok(fd) => {
            rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).ok()?;
            Some(fd)
        }
        Err(_) => {
            let found = dir.stat_self().ok()?;
            let age = meta::coarse_now().0.saturating_sub(found.entry.mtime.0);
            if age <= 60 {
                return None;
            }
            None
        }
    };
    // It may have been completed and renamed before we had the lock.
    let (held, named) = (dir.stat_self().ok()?, root.stat(&name).ok()??);
    (held.ino == named.ino).then_some(Leftover { name, _lock: lock })
}

/// Names of directories under way begin with the pid of who builds them.
fn is_of_a_live_process(name: &[u8]) -> bool {
    let pid = name
        .get(UNDER_WAY.len()..)
        .and_then(|rest| std::str::from_utf8(rest).ok())
        .and_then(|rest| rest.split_once('-'))
        .and_then(|(pid, _)| u32::from_str_radix(pid, 16).ok());
    pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists())
}

/// `path`, canonical, when it is a directory that can be read.
fn readable_directory(path: &Path) -> Result<PathBuf, RootError> {
    let failed = |source| RootError::Source {
        path: path.to_owned(),
        source,
    };
    let path = path.canonicalize().map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, &path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    Ok(path)
}

fn new_meta(
    name: &SandboxName,
    source: &Path,
    kind: BackendKind,
    settings: Settings,
) -> io::Result<Meta> {
    Ok(Meta {
        version: meta::VERSION,
        name: name.clone(),
        source: source.to_owned(),
        created: jiff::Timestamp::now(),
        created_coarse: meta::coarse_now(),
        source_root: Dir::open(source)?.stat_self()?,
        source_fs: meta::filesystem_type(source)?,
        backend: kind,
        xattr: None,
        forked_from: None,
        settings,
    })
}

/// Random enough for a name: the standard library seeds its hash maps from the kernel.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests;
