//! Dividing a group between whoever keeps it and those it starts.
//!
//! A limit of memory is kept by killing, and the kernel may choose anybody in the group, above all when
//! what used it up is no process but files in memory. So the one who must stay is not in that part of it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;

use super::{Group, Limit, Version, delegate, set};

/// Where the one who keeps it is, in version 2: a group with limited groups in it can have no processes.
pub(super) const KEEPER: &str = "keeper";

/// Where those are whom it starts.
const STARTED: &str = "started";

/// The way into a part of a group, for a process that holds it. It works behind every wall.
#[derive(Debug)]
pub struct Entrance {
    processes: OwnedFd,
}

impl Group {
    /// Makes a part of it that is held to `limit`, and gives back the way in. Who is placed in the group
    /// is not in that part.
    pub fn divide(&mut self, limit: Limit) -> io::Result<Entrance> {
        let (directory, version) = self.holder(limit)?;
        let directory = directory.to_owned();
        let started = directory.join(STARTED);
        if version == Version::V2 {
            let keeper = directory.join(KEEPER);
            fs::create_dir(&keeper)?;
            self.parts.push(keeper);
            delegate(&directory, limit.controller());
        }
        fs::create_dir(&started)?;
        self.parts.push(started.clone());
        set(&started, version, limit)?;
        let processes = OpenOptions::new()
            .write(true)
            .open(started.join("cgroup.procs"))?;
        Ok(Entrance {
            processes: processes.into(),
        })
    }
}

impl Entrance {
    /// Takes the calling process in.
    pub fn enter(&self) -> io::Result<()> {
        rustix::io::write(&self.processes, b"0")?;
        Ok(())
    }
}

impl std::os::fd::AsFd for Entrance {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.processes.as_fd()
    }
}
