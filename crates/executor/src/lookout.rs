//! Which files of the workspace are new.
//!
//! New is a file that was born since an execution began: by the filesystem's own clock, which code cannot
//! set as it can a file's other times. Whoever makes a file changes its directory, so only directories
//! that changed are read; and because the change of one says nothing about those below it, every
//! directory is known here and asked for its time: one call each, as long as nothing happens.
//!
//! Names that begin with a dot, Python's compiled modules (`__pycache__`), and all below them, are nobody's business. What is too deep or too much is
//! not looked at, and that there was such is told.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Statx, StatxFlags};
use rustix::time::ClockId;
use tokio::sync::Mutex;

use look::Look;
use tree::{First, Tree};

mod look;
mod tree;

const OVERLAY: i64 = 0x794c_7630;

/// A point in the time of filesystems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// A file, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Birth {
    number: u64,
    pub(crate) born: Moment,
}

/// A new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) path: PathBuf,
    pub(crate) birth: Birth,
}

/// What a look found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) files: Vec<NewFile>,
    /// There is more than was looked at.
    pub(crate) truncated: bool,
    /// There are directories that were not read, and will not be missed.
    unread: bool,
}

/// Knows the workspace's directories, and who has seen which file.
#[derive(Debug)]
pub(crate) struct Lookout {
    workspace: OwnedFd,
    /// What is looked at, by one at a time.
    tree: Mutex<Tree>,
    /// There was a first look.
    is_known: Cell<bool>,
    ledger: RefCell<Ledger>,
}

/// What is remembered while executions run.
#[derive(Debug, Default)]
struct Ledger {
    /// When each of those that run began.
    begun: Vec<Moment>,
    /// Files that were told of, or brought from outside, and may be as young as a running execution.
    claimed: HashSet<Birth>,
}

impl Moment {
    /// Now, as filesystems have it: no file that is made later is born before it.
    pub(crate) fn now() -> Moment {
        let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
        Moment {
            seconds: now.tv_sec,
            nanoseconds: u32::try_from(now.tv_nsec).unwrap_or(0),
        }
    }

    /// Since the beginning of that time.
    pub(crate) fn as_nanoseconds(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    fn changed(found: &Statx) -> Moment {
        Moment {
            seconds: found.stx_ctime.tv_sec,
            nanoseconds: found.stx_ctime.tv_nsec,
        }
    }
}

impl Birth {
    /// Of the file that was found. Where the filesystem does not know it, its last change stands for it.
    pub(crate) fn of(found: &Statx) -> Birth {
        let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born = match known {
            true => Moment {
                seconds: found.stx_btime.tv_sec,
                nanoseconds: found.stx_btime.tv_nsec,
            },
            false => Moment::changed(found),
        };
        Birth {
            number: found.stx_ino,
            born,
        }
    }
}

impl Lookout {
    /// For the files below `workspace`. What is there by now is not new.
    pub(crate) fn open(workspace: &Path) -> io::Result<Lookout> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let workspace = rustix::fs::open(workspace, flags, Mode::empty())?;
        let is_overlay = rustix::fs::fstatfs(&workspace)?.f_type == OVERLAY;
        let first = match is_overlay {
            true => First::Known(Default::default(), Vec::new()),
            false => First::Unimportant,
        };
        Ok(Lookout {
            workspace,
            tree: Mutex::new(Tree::new(first)),
            is_known: Cell::new(false),
            ledger: RefCell::default(),
        })
    }

    /// Those below which everything is.
    pub(crate) fn workspace(&self) -> BorrowedFd<'_> {
        self.workspace.as_fd()
    }

    /// An execution begins; to be [ended](Lookout::end).
    pub(crate) fn begin(&self) -> Moment {
        let now = Moment::now();
        let mut ledger = self.ledger.borrow_mut();
        ledger.begun.push(now);
        let oldest = ledger.begun.iter().min().copied().unwrap_or(now);
        ledger.claimed.retain(|birth| birth.born >= oldest);
        now
    }

    /// The execution that began then has been looked for, or will not be.
    pub(crate) fn end(&self, began: Moment) {
        let begun = &mut self.ledger.borrow_mut().begun;
        if let Some(place) = begun.iter().position(|moment| *moment == began) {
            begun.swap_remove(place);
        }
    }

    /// This file is not an execution's.
    pub(crate) fn disown(&self, birth: Birth) {
        self.ledger.borrow_mut().claimed.insert(birth);
    }

    /// Gets to know what is there. No execution may begin before.
    pub(crate) async fn get_to_know(&self) {
        if self.is_known.get() {
            return;
        }
        let mut tree = self.tree.lock().await;
        if tree.known.is_none() {
            Look::new(self, &mut tree, None).first().await;
        }
        self.is_known.set(true);
    }

    /// The files that were born since `began`, each told of once.
    pub(crate) async fn look(&self, began: Moment) -> Found {
        let mut tree = self.tree.lock().await;
        let mut look = Look::new(self, &mut tree, Some(began));
        look.again(began).await;
        let mut found = look.found;
        tree.truncated |= found.unread;
        found.truncated |= tree.truncated;
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
        found
    }
}
