//! Marks of runs that are on.
//!
//! A run leaves a file in the store from its beginning until its bases are recorded, so that a run
//! whose process died is recorded by whoever looks next, with the right beginning.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use sandbox_model::Timestamp;

use super::store::make_private_dir;
use crate::meta::coarse_now;

/// A run that began and has not been recorded.
pub(super) struct Mark {
    pid: u32,
    pub(super) began: Timestamp,
}

const MARK: &str = "run";

impl Mark {
    /// Makes the mark of a run of this process that begins now, and tells when that is.
    pub(super) fn make(dir: &Path) -> io::Result<Timestamp> {
        let unnamed = dir.join(format!("{MARK}.{}", std::process::id()));
        let file = match File::create(&unnamed) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private_dir(dir)?;
                File::create(&unnamed)?
            }
            file => file?,
        };
        let mark = Mark::ours(stamp(&file)?);
        std::fs::rename(&unnamed, mark.path(dir))?;
        Ok(mark.began)
    }

    /// The mark of the run of this process that began then.
    pub(super) fn ours(began: Timestamp) -> Mark {
        Mark {
            pid: std::process::id(),
            began,
        }
    }

    /// Takes it away; one that is gone already is fine.
    pub(super) fn remove(&self, dir: &Path) -> io::Result<()> {
        match std::fs::remove_file(self.path(dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!(
            "{MARK}.{}.{}.{}",
            self.pid, self.began.0, self.began.1
        ))
    }

    fn parse(name: &str) -> Option<Mark> {
        let mut parts = name.strip_prefix(MARK)?.strip_prefix('.')?.splitn(3, '.');
        let mut part = || parts.next();
        let pid = part()?.parse().ok()?;
        let began = Timestamp(part()?.parse().ok()?, part()?.parse().ok()?);
        Some(Mark { pid, began })
    }

    /// Is the process that began it still there (and not a later one with its number)?
    pub(super) fn is_live(&self) -> bool {
        const TICKS_PER_SECOND: i64 = 100;
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)) else {
            return false;
        };
        let fields = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace());
        let started = fields.and_then(|mut fields| fields.nth(19)?.parse::<i64>().ok());
        let booted = coarse_now().0 - clock_gettime(ClockId::Boottime).tv_sec;
        started.is_some_and(|ticks| booted + ticks / TICKS_PER_SECOND <= self.began.0 + 1)
    }
}

/// Every mark in `dir`.
pub(super) fn all(dir: &Path) -> io::Result<Vec<Mark>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut marks = Vec::new();
    for entry in entries {
        marks.extend(entry?.file_name().to_str().and_then(Mark::parse));
    }
    Ok(marks)
}

/// A time that no change made so far was stamped with and no later one will be below of. The coarse
/// clock is not that: multigrain timestamps (Linux 6.13) run ahead of it by several milliseconds. But a
/// change to an inode whose time was looked at is stamped finely, and that stamp is from then on the
/// least that any filesystem of the machine gives out. Before 6.13 this is the coarse clock.
fn stamp(file: &File) -> io::Result<Timestamp> {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;
    file.metadata()?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    let found = file.metadata()?;
    Ok(Timestamp(
        found.ctime(),
        u32::try_from(found.ctime_nsec()).unwrap_or(0),
    ))
}
