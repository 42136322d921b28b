//! The live runs of a sandbox: records by which a second run finds the first's namespaces, and by
//! which pause, resume and info find the processes.
//!
//! A record is one file per init, `runs/PID`, written when its command runs and removed when it has
//! ended. A record whose process is gone, or whose pid is someone else's by now, counts for nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use sandbox_linux::clone::open_process;
use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::processes;
pub use crate::processes::Process;

/// The records' directory, `ROOT/NAME/runs`.
#[derive(Debug, Clone)]
pub struct Runs {
    dir: PathBuf,
}

/// One live run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRun {
    /// The init's pid on the host.
    pub init: i32,
    /// Its start time (field 22 of `/proc/PID/stat`), against reuse of the pid.
    pub start_time: u64,
    /// The command, for people.
    pub command: String,
    /// The isolation settings that later runs must share to join.
    pub settings: sandbox_model::Settings,
}

/// A live run whose namespaces can be joined.
#[derive(Debug)]
pub(crate) struct Donor {
    pub(crate) run: LiveRun,
    pub(crate) pidfd: OwnedFd,
}

/// Held from looking for a donor until the new run can be one itself.
#[derive(Debug)]
pub(crate) struct LaunchLock {
    file: File,
}

impl Drop for LaunchLock {
    /// Unlocks rather than only closes: the init was forked with a duplicate, which would keep the
    /// lock, and every later run waiting, until this run ends.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// A record on disk.
#[derive(Debug)]
pub(crate) struct Record {
    path: PathBuf,
}

impl LiveRun {
    pub(crate) fn of(policy: &Policy, init: i32) -> LiveRun {
        let words = policy.command.iter().map(|word| word.to_string_lossy());
        LiveRun {
            init,
            start_time: processes::start_time(init).unwrap_or(0),
            command: words.collect::<Vec<_>>().join(" "),
            settings: policy.settings.clone(),
        }
    }

    /// Is the init still the process that was recorded?
    fn is_alive(&self) -> bool {
        processes::start_time(self.init) == Some(self.start_time)
    }
}

impl Record {
    pub(crate) fn write(runs: &Runs, run: &LiveRun) -> io::Result<Record> {
        let path = runs.dir.join(run.init.to_string());
        let text = serde_json::to_vec(run)?;
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&path)?.write_all(&text)?;
        Ok(Record { path })
    }

    pub(crate) fn remove(&self) {
        // One that stays behind is found dead by the next reader.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Runs {
    /// The records in `dir` (which may not exist yet).
    pub fn open(dir: &Path) -> Runs {
        Runs {
            dir: dir.to_owned(),
        }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The runs that are alive; records of dead ones are removed.
    pub fn live(&self) -> io::Result<Vec<LiveRun>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            outcome => outcome?,
        };
        let mut live = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok())
            else {
                continue;
            };
            let run = std::fs::read(entry.path()).ok();
            let run = run.and_then(|text| serde_json::from_slice::<LiveRun>(&text).ok());
            match run {
                Some(run) if run.init == pid && run.is_alive() => live.push(run),
                // Being written this moment, perhaps.
                None if processes::start_time(pid).is_some() => {}
                _ => {
                    let _ = std::fs::remove_file(entry.path());
                }
            }
        }
        live.sort_by_key(|run| run.start_time);
        Ok(live)
    }

    /// Waits until no other launch of this sandbox is under way.
    pub(crate) fn lock_launches(&self) -> io::Result<LaunchLock> {
        let path = self.dir.join(".launch");
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(&self.dir)?;
                options.open(&path)?
            }
            outcome => outcome?,
        };
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                outcome => return Ok(outcome.map(|()| LaunchLock { file })?),
            }
        }
    }

    /// A live run to join.
    pub(crate) fn donor(&self) -> io::Result<Option<Donor>> {
        for run in self.live()? {
            let Ok(pidfd) = open_process(run.init) else {
                continue;
            };
            // Looked at again with the descriptor in hand: now it cannot become another process.
            if run.is_alive() {
                return Ok(Some(Donor { run, pidfd }));
            }
        }
        Ok(None)
    }
}
