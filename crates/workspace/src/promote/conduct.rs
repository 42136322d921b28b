//! The order of a transaction, for promote and undo alike.
//!
//! ```text
//! pending ── stage ── journal ── forward ── commit mark ── settle ── pending cleared
//!    └─────────┴─ sweep            └─ back ── sweep
//! ```
//!
//! Left of the journal the source is untouched, and sweeping the stage away is enough. Between the
//! journal and the commit mark it goes back. Right of the mark it can only be finished.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sandbox_model::{RelPath, path};

use super::area::{Area, KEPT_PREFIX, Pending, STAGE, stage_name};
use super::error::PromoteError;
use super::fault;
use super::journal::{Committed, Inode, Journal, Place};
use super::transaction::Transaction;
use crate::progress::Progress;
use crate::transfer;
use crate::tree::{Dir, Replace, Tree};

/// A transaction under way.
#[derive(Debug)]
pub(crate) struct Conduct<'a> {
    pub area: &'a Area,
    pub source: &'a Tree,
    pub id: String,
    pub place: Place,
    /// Its own directory in the area.
    pub dir: Dir,
    pub stage: Dir,
    /// Where visible copies go.
    pub backup: Option<PathBuf>,
    pending: Pending,
}

impl<'a> Conduct<'a> {
    /// Begins a transaction: from here on a crash is noticed by whoever comes next. The stage is
    /// shared with an earlier transaction if `share` names one.
    pub fn begin(
        area: &'a Area,
        source: &'a Tree,
        share: Option<&str>,
        backup: bool,
    ) -> Result<Conduct<'a>, PromoteError> {
        let cannot = |source| PromoteError::Io {
            operation: "begin a transaction in",
            path: area.path.clone(),
            source,
        };
        let id = area.new_id().map_err(cannot)?;
        let place = match share {
            Some(of) => Place::Shared(of.to_owned()),
            None => choose_place(area, source).map_err(cannot)?,
        };
        let backup = backup.then(|| backup_path(source.path(), &id));
        let root = source
            .root_dir()
            .and_then(|root| root.stat_self())
            .map_err(cannot)?;
        let pending = Pending {
            id: id.clone(),
            stage: place.clone(),
            root: Inode::of(&root),
            root_mtime: root.entry.mtime,
            backup: backup
                .as_ref()
                .map(|path| path::escape(path.as_os_str().as_bytes())),
        };
        area.set_pending(&pending).map_err(cannot)?;
        match make_places(area, source, &id, &place) {
            Ok((dir, stage)) => Ok(Conduct {
                area,
                source,
                id,
                place,
                dir,
                stage,
                backup,
                pending,
            }),
            Err(error) => {
                sweep(area, source, &pending)?;
                Err(cannot(error))
            }
        }
    }

    /// Performs `journal` up to the commit mark. On an error the source is as before and nothing is
    /// left of the transaction, unless putting back failed too: then it is left to a recovery.
    pub fn perform(
        &self,
        journal: &Journal,
        progress: &mut dyn Progress,
    ) -> Result<Committed, PromoteError> {
        let cannot = |source| PromoteError::Io {
            operation: "write the journal of",
            path: self.area.path.join(&self.id),
            source,
        };
        if let Err(error) = journal.write(&self.dir) {
            self.abandon()?;
            return Err(cannot(error));
        }
        let transaction = Transaction {
            source: self.source,
            stage: &self.stage,
            journal,
        };
        let stop = match transaction.forward(progress) {
            Ok(committed) => match committed.write(&self.dir) {
                Ok(()) => return Ok(committed),
                // Durable or not, it says "done"; taking it back must come first.
                Err(error) => {
                    Committed::remove(&self.dir).map_err(cannot)?;
                    cannot(error)
                }
            },
            Err(stop) => stop.into_error(self.source),
        };
        let back = roll_back(self.area, self.source, &self.pending, &transaction)?;
        let is_told = |path: &RelPath| match &stop {
            PromoteError::LateChange { path: late } => late == path,
            _ => false,
        };
        if back.kept.is_none() && back.left.iter().all(is_told) {
            return Err(stop);
        }
        Err(PromoteError::NotWhollyPutBack {
            cause: Box::new(stop),
            left: back.left,
            kept: back.kept,
        })
    }

    /// Gives up before the source was touched.
    pub fn abandon(&self) -> Result<(), PromoteError> {
        sweep(self.area, self.source, &self.pending)
    }

    /// After the commit mark and after the sandbox settled.
    pub fn finish(&self, committed: &Committed) -> Result<(), PromoteError> {
        finish(self.area, self.source, &self.pending, committed)
    }
}

fn make_places(area: &Area, source: &Tree, id: &str, place: &Place) -> io::Result<(Dir, Dir)> {
    fault::at("make stage")?;
    let dir = area.dir.make_dir(id.as_bytes())?;
    let stage = match place {
        Place::Own => dir.make_dir(STAGE)?,
        Place::Shared(_) => area.stage(source, id, place)?,
        Place::Inside => source.root_dir()?.make_dir(&stage_name(id))?,
    };
    fault::at("stage made")?;
    Ok((dir, stage))
}

/// Below the sandbox root, if a rename can lead from there into the source.
fn choose_place(area: &Area, source: &Tree) -> io::Result<Place> {
    let root = source.root_dir()?;
    if area.dir.stat_self()?.dev != root.stat_self()?.dev {
        return Ok(Place::Inside);
    }
    // The kernel compares the mounts before it looks for the names, so a rename of nothing tells.
    let nothing = [super::STAGE_PREFIX.as_bytes(), b"none"].concat();
    match area.dir.rename(&nothing, &root, &nothing, Replace::No) {
        Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => Ok(Place::Inside),
        _ => Ok(Place::Own),
    }
}

/// `SOURCE.sandbox-backup-ID`.
fn backup_path(source: &Path, id: &str) -> PathBuf {
    let mut path = source.as_os_str().to_owned();
    path.push(format!(".sandbox-backup-{id}"));
    PathBuf::from(path)
}

/// What became of a transaction that was taken back.
pub(crate) struct RolledBack {
    /// Left as found.
    pub left: Vec<RelPath>,
    /// Where what belongs to those is kept.
    pub kept: Option<PathBuf>,
}

/// Puts the source back and removes every trace, but for what belongs to paths left as found.
pub(crate) fn roll_back(
    area: &Area,
    source: &Tree,
    pending: &Pending,
    transaction: &Transaction<'_>,
) -> Result<RolledBack, PromoteError> {
    let left = transaction.back().map_err(|stop| stop.into_error(source))?;
    let kept = if left.is_empty() {
        None
    } else {
        keep(area, source, pending, transaction)?
    };
    sweep(area, source, pending)?;
    Ok(RolledBack { left, kept })
}

/// Moves what could not be put back, because something else stands there, out of the way of [`sweep`]:
/// to `kept-ID/`, each at its own path below it.
fn keep(
    area: &Area,
    source: &Tree,
    pending: &Pending,
    transaction: &Transaction<'_>,
) -> Result<Option<PathBuf>, PromoteError> {
    let name = format!("{KEPT_PREFIX}{}", pending.id);
    let path = area.path.join(&name);
    let inside = pending.stage == Place::Inside;
    let keep = || -> io::Result<bool> {
        // A stage inside the source is on another filesystem: what is kept is gathered there first.
        let gathered = match inside {
            true => transaction.stage,
            false => &area.dir,
        };
        let any = transaction.gather_displaced(gathered, name.as_bytes())?;
        if any && inside {
            area.dir.remove_all(name.as_bytes())?;
            area.dir.make_dir(name.as_bytes())?;
            let stage = source
                .path()
                .join(OsString::from_vec(stage_name(&pending.id)));
            let (from, to) = (Tree::open(&stage.join(&name))?, Tree::open(&path)?);
            transfer::copy_tree(&from, &to, &[], &mut crate::progress::Silent)
                .map_err(io::Error::other)?;
        }
        area.dir.sync_filesystem()?;
        Ok(any)
    };
    let any = keep().map_err(|source| PromoteError::Io {
        operation: "keep",
        path: path.clone(),
        source,
    })?;
    Ok(any.then_some(path))
}

/// Removes what a transaction that is not committed left beside the source and inside it.
pub(crate) fn sweep(area: &Area, source: &Tree, pending: &Pending) -> Result<(), PromoteError> {
    let clean = || -> io::Result<()> {
        fault::at("sweep")?;
        if pending.stage == Place::Inside {
            remove_inside(source, pending)?;
            source.root_dir()?.set_times_self(pending.root_mtime)?;
        }
        if let Some(backup) = &pending.backup {
            remove_backup(backup)?;
        }
        fault::at("sweep own")?;
        area.delete(&pending.id)?;
        area.clear_pending()
    };
    clean().map_err(|source| PromoteError::Io {
        operation: "clean up",
        path: area.path.join(&pending.id),
        source,
    })
}

/// The end of a committed transaction.
pub(crate) fn finish(
    area: &Area,
    source: &Tree,
    pending: &Pending,
    committed: &Committed,
) -> Result<(), PromoteError> {
    let clean = || -> io::Result<()> {
        fault::at("finish")?;
        if pending.stage == Place::Inside {
            remove_inside(source, pending)?;
            let time = committed
                .directories
                .get(&RelPath::root())
                .unwrap_or(&pending.root_mtime);
            source.root_dir()?.set_times_self(*time)?;
        }
        area.clear_pending()
    };
    clean().map_err(|source| PromoteError::Io {
        operation: "clean up",
        path: area.path.join(&pending.id),
        source,
    })
}

fn remove_inside(source: &Tree, pending: &Pending) -> io::Result<()> {
    source.root_dir()?.remove_all(&stage_name(&pending.id))
}

fn remove_backup(escaped: &str) -> io::Result<()> {
    let bytes = path::unescape(escaped).map_err(io::Error::other)?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Dir::open(parent)?.remove_all(name.as_bytes()),
        _ => Ok(()),
    }
}
