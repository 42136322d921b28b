//! The live runs of a sandbox: records by which a second run finds the first's namespaces, and by
//! which pause, resume and info find the processes.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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

/// A process inside, as seen from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its pid on the host.
    pub pid: i32,
    /// Its state letter.
    pub state: char,
    /// Its command line, for people.
    pub command: String,
    /// Resident memory, in bytes.
    pub memory: u64,
}

impl Runs {
    /// The records in `dir` (which may not exist yet).
    pub fn open(dir: &Path) -> Runs {
        Runs { dir: dir.to_owned() }
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The runs that are alive; records of dead ones are removed.
    pub fn live(&self) -> io::Result<Vec<LiveRun>> {
        todo!()
    }

    /// Every process of every live run.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        todo!()
    }

    /// Stops all processes where they are. Returns how many.
    pub fn freeze(&self) -> io::Result<usize> {
        todo!()
    }

    /// Lets them go on.
    pub fn thaw(&self) -> io::Result<usize> {
        todo!()
    }

    /// Ends all processes: SIGTERM, then SIGKILL after `grace`. Returns how many there were.
    pub fn stop(&self, grace: std::time::Duration) -> io::Result<usize> {
        todo!("{grace:?}")
    }
}
