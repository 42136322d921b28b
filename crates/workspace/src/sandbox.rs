//! One sandbox, opened: its record, its directories, its locks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sandbox_model::{Class, EntryKind, Failure, RelPath, SandboxName, WorkspaceMount};
use thiserror::Error;

use crate::backend::backend;
use crate::checkpoint;
use crate::lock::{self, Lock, Sharing, Use};
use crate::meta::Meta;
use crate::root::Root;
use crate::tree::{Dir, Tree};

/// A sandbox. Cheap to open: one small file is read.
#[derive(Debug)]
pub struct Sandbox {
    /// The root it lives in.
    pub root: Root,
    /// `ROOT/NAME`.
    pub dir: PathBuf,
    /// Its record.
    pub meta: Meta,
}

/// Why a sandbox cannot be used now.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// A run, or another exclusive operation, holds it.
    #[error("sandbox '{name}' is busy: {holder}")]
    Busy {
        /// Which.
        name: SandboxName,
        /// What runs in it, or who is at work on it.
        holder: String,
    },
    /// It was discarded meanwhile.
    #[error("sandbox '{name}' is gone")]
    Gone {
        /// Which.
        name: SandboxName,
    },
    /// The source is gone, or is not the directory it was.
    #[error("the source {path} of sandbox '{name}' is gone")]
    SourceGone {
        /// Which.
        name: SandboxName,
        /// Where it was.
        path: PathBuf,
    },
    /// A file operation failed.
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

impl Failure for SandboxError {
    fn class(&self) -> Class {
        match self {
            SandboxError::Busy { .. } => Class::Busy,
            SandboxError::Gone { .. } => Class::NotFound,
            SandboxError::SourceGone { .. } => Class::SourceNotFound,
            SandboxError::Io { source, .. } => Class::of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            SandboxError::Busy { name, .. } => Some(format!(
                "wait for it to end, or end it with `sandbox pause --stop {name}`"
            )),
            SandboxError::SourceGone { name, .. } => Some(format!(
                "put the directory back, or `sandbox discard {name}`"
            )),
            SandboxError::Gone { .. } | SandboxError::Io { .. } => None,
        }
    }
}

/// What a person should know about a new sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Files that an overlay in a user namespace cannot copy up.
    OwnedByOthers {
        /// How many of the source's top-level entries.
        count: usize,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Note::OwnedByOthers { count } => write!(
                f,
                "{count} {} owned by others cannot be changed inside; --backend copy can",
                if *count == 1 { "entry" } else { "entries" }
            ),
        }
    }
}

impl Sandbox {
    /// Its name.
    pub fn name(&self) -> &SandboxName {
        &self.meta.name
    }

    /// The source's path.
    pub fn source(&self) -> &Path {
        &self.meta.source
    }

    /// For a reader. Waits for nobody: busy if an exclusive operation is under way.
    pub fn lock_shared(&self) -> Result<Lock, SandboxError> {
        self.lock(Sharing::Shared, Use::Marked)
    }

    /// For a run: as [`Sandbox::lock_shared`], and noticed by a review of the sandbox's changes.
    pub fn lock_for_run(&self) -> Result<Lock, SandboxError> {
        self.lock(Sharing::Shared, Use::Run)
    }

    /// For a look that does not count as use: listings.
    pub fn lock_glance(&self) -> Result<Lock, SandboxError> {
        self.lock(Sharing::Shared, Use::Unmarked)
    }

    /// For what must be alone. Busy if anything runs in it.
    pub fn lock_exclusive(&self) -> Result<Lock, SandboxError> {
        self.lock(Sharing::Exclusive, Use::Marked)
    }

    fn lock(&self, sharing: Sharing, usage: Use) -> Result<Lock, SandboxError> {
        let lock = self.take_lock(sharing, usage)?;
        if !self.dir.join(checkpoint::ANNOUNCED).exists() {
            return Ok(lock);
        }
        // A rollback was killed half way: finish it alone, then lock as asked.
        drop(lock);
        let alone = self.take_lock(Sharing::Exclusive, Use::Marked)?;
        checkpoint::finish_rollback(&self.dir).map_err(|source| SandboxError::Io {
            operation: "finish the rollback of",
            path: self.dir.clone(),
            source,
        })?;
        drop(alone);
        self.take_lock(sharing, usage)
    }

    fn take_lock(&self, sharing: Sharing, usage: Use) -> Result<Lock, SandboxError> {
        Lock::take(&self.dir, sharing, usage).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SandboxError::Busy {
                name: self.name().clone(),
                holder: self.holder(),
            },
            io::ErrorKind::NotFound => SandboxError::Gone {
                name: self.name().clone(),
            },
            _ => SandboxError::Io {
                operation: "lock",
                path: self.dir.clone(),
                source: error,
            },
        })
    }

    /// Who keeps the sandbox busy, in words.
    fn holder(&self) -> String {
        let running = self.running_commands();
        match running.split_first() {
            Some((first, [])) => format!("`{first}` runs in it"),
            Some((first, more)) => format!("`{first}` and {} more run in it", more.len()),
            None => match lock::holder(&self.dir) {
                Some(process) => format!("{process} is at work on it"),
                None => "another process uses it".to_owned(),
            },
        }
    }

    /// The commands of live runs, read leniently from the launcher's records.
    fn running_commands(&self) -> Vec<String> {
        #[derive(serde::Deserialize)]
        struct Record {
            init: i32,
            command: String,
        }
        let Ok(entries) = std::fs::read_dir(self.runs_dir()) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path()).ok())
            .filter_map(|text| serde_json::from_slice::<Record>(&text).ok())
            .filter(|record| Path::new(&format!("/proc/{}", record.init)).exists())
            .map(|record| sandbox_model::path::escape(record.command.as_bytes()))
            .collect()
    }

    /// Is the source still a directory?
    pub fn check_source(&self) -> Result<(), SandboxError> {
        if self.source().is_dir() {
            return Ok(());
        }
        Err(SandboxError::SourceGone {
            name: self.name().clone(),
            path: self.source().to_owned(),
        })
    }

    /// What to mount at the source's path inside.
    pub fn mount(&self) -> WorkspaceMount {
        backend(self.meta.backend).mount(&self.meta, &self.dir)
    }

    /// The directory that takes the workspace's writes: an overlay's upper, or the copy.
    pub fn layer_dir(&self) -> PathBuf {
        match self.mount() {
            WorkspaceMount::Overlay { upper, .. } => upper,
            WorkspaceMount::Bind { dir } => dir,
        }
    }

    /// Where the launcher keeps its records of live runs (`ROOT/NAME/runs`).
    pub fn runs_dir(&self) -> PathBuf {
        self.dir.join("runs")
    }

    /// The home layer (`ROOT/NAME/home`): what is written to `$HOME` inside, kept, never promoted.
    pub fn home_dir(&self) -> PathBuf {
        self.dir.join("home")
    }

    /// Where the base records and base copies are kept (`ROOT/NAME/bases`).
    pub fn bases_dir(&self) -> PathBuf {
        self.dir.join("bases")
    }

    /// The sandbox root's path below the source, when it lies there: no part of the workspace.
    pub fn root_in_source(&self) -> Option<RelPath> {
        let below = self.root.path().strip_prefix(self.source()).ok()?;
        RelPath::from_path(below).ok()
    }

    /// When something was last done with it.
    pub fn last_used(&self) -> io::Result<SystemTime> {
        std::fs::metadata(self.dir.join(lock::FILE))?.modified()
    }

    /// What a person should know: what will not work inside, and what to do instead.
    pub fn notes(&self) -> io::Result<Vec<Note>> {
        backend(self.meta.backend).notes(&self.meta)
    }

    /// What was written to the home inside.
    pub fn home_use(&self) -> io::Result<HomeUse> {
        home_use(&self.home_dir())
    }

    /// Disk space used by the sandbox's own files, in bytes.
    pub fn disk_use(&self) -> io::Result<u64> {
        disk_use(&self.dir)
    }
}

/// What is in a home layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct HomeUse {
    /// Disk space, in bytes.
    pub size: u64,
    /// Files, links and the like; directories are not counted, nor are the marks that hide
    /// something.
    pub files: u64,
}

/// Looks through the home layer at `path`, but for the scratch of its overlays. Nothing in it is
/// followed.
fn home_use(path: &Path) -> io::Result<HomeUse> {
    let mut used = HomeUse::default();
    let tree = match Tree::open(path) {
        // Nothing ran in the sandbox yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(used),
        tree => tree?,
    };
    let mut pending: Vec<RelPath> = ["root", "upper"]
        .map(|part| RelPath::root().join(part.as_bytes()))
        .into();
    while let Some(path) = pending.pop() {
        let dir = match tree.dir(&path) {
            Err(error) if crate::layer::vanished(&error) => continue,
            dir => dir?,
        };
        for entry in dir.entries()? {
            let Some((kind, blocks)) = blocks(&dir, &entry.name)? else {
                continue;
            };
            used.size += blocks * 512;
            match kind {
                EntryKind::Directory => pending.push(path.join(&entry.name)),
                EntryKind::CharDevice => {}
                _ => used.files += 1,
            }
        }
    }
    Ok(used)
}

/// Disk space below `path`, by blocks. A frozen snapshot shares its blocks with the source and is
/// not counted.
pub(crate) fn disk_use(path: &Path) -> io::Result<u64> {
    let tree = Tree::open(path)?;
    let top = tree.root_dir()?;
    let mut bytes = 0;
    let mut pending = vec![RelPath::root()];
    while let Some(path) = pending.pop() {
        let dir = match tree.dir(&path) {
            // Removed meanwhile: a sandbox may be at work.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            dir => dir?,
        };
        for entry in dir.entries()? {
            let is_base = path.is_root() && entry.name == b"base";
            if is_base {
                continue;
            }
            let Some((kind, blocks)) = blocks(&dir, &entry.name)? else {
                continue;
            };
            bytes += blocks * 512;
            if kind == EntryKind::Directory {
                pending.push(path.join(&entry.name));
            }
        }
    }
    drop(top);
    Ok(bytes)
}

fn blocks(dir: &Dir, name: &[u8]) -> io::Result<Option<(EntryKind, u64)>> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let statx = match rustix::fs::statx(dir.fd(), name, flags, rustix::fs::StatxFlags::BASIC_STATS)
    {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(rustix::io::Errno::ACCESS) => {
            let held = dir.behold(name)?;
            let empty = rustix::fs::AtFlags::EMPTY_PATH;
            rustix::fs::statx(&held, "", empty, rustix::fs::StatxFlags::BASIC_STATS)?
        }
        statx => statx?,
    };
    let kind = EntryKind::from_mode(u32::from(statx.stx_mode)).unwrap_or(EntryKind::File);
    // A file with several names counts once for each of its names' share.
    let shares = if kind == EntryKind::Directory {
        1
    } else {
        u64::from(statx.stx_nlink.max(1))
    };
    Ok(Some((kind, statx.stx_blocks / shares)))
}
