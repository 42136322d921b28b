//! The way into groups, for a process that is made to be in them.
//!
//! To move a process the kernel stops every fork and exit of the machine, and before it may, it waits until all
//! processors have passed by: up to 20 ms where nobody was moved lately. It need not where a process is made
//! in its group, which version 2 can, nor where a single thread moves itself, which version 1 can by `tasks`.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::Version;
use crate::clone::{Child, Namespaces, Parent, clone_into};

/// The way, through descriptors: it works behind every wall.
#[derive(Debug, Default)]
pub struct Way {
    /// The group of version 2.
    unified: Option<OwnedFd>,
    /// Those of version 1, one in each hierarchy.
    tasks: Vec<OwnedFd>,
}

impl Way {
    /// Lets it lead into the group in `directory`, too.
    pub(super) fn add(&mut self, directory: &Path, version: Version) -> io::Result<()> {
        match version {
            Version::V1 => {
                let tasks = OpenOptions::new()
                    .write(true)
                    .open(directory.join("tasks"))?;
                self.tasks.push(tasks.into());
            }
            Version::V2 => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let opened = rustix::fs::open(directory, flags, Mode::empty())?;
                self.unified = Some(opened);
            }
        }
        Ok(())
    }

    /// As [`clone`](crate::clone::clone), in the groups that this leads into: `body` is told whether it is.
    pub fn start<Kept>(
        &self,
        namespaces: Namespaces,
        parent: Parent,
        kept: Kept,
        body: impl FnOnce(io::Result<()>) -> i32,
    ) -> io::Result<(Child, Kept)> {
        let unified = self.unified.as_ref().map(AsFd::as_fd);
        clone_into(unified, namespaces, parent, kept, |is_in| {
            body(self.walk(is_in))
        })
    }

    fn walk(&self, is_in: bool) -> io::Result<()> {
        if let Some(directory) = self.unified.as_ref().filter(|_| !is_in) {
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let processes = rustix::fs::openat(directory, "cgroup.procs", flags, Mode::empty())?;
            rustix::io::write(processes, b"0")?;
        }
        for tasks in &self.tasks {
            rustix::io::write(tasks, b"0")?;
        }
        Ok(())
    }

    /// What it is made of.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.unified.iter().chain(&self.tasks).map(AsFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ground, Limit, processes};
    use super::*;

    #[test]
    fn who_is_made_on_the_way_is_in_every_group() {
        let name = format!("way-trial-{}", rustix::process::getpid());
        let ground = Ground::take(&name, None);
        let mut group = ground.group("session").unwrap();
        group.limit(Limit::Pids(20)).unwrap();
        let way = group.way().unwrap();
        let (child, ()) = way
            .start(Namespaces::empty(), Parent::Caller, (), |entered| {
                if entered.is_err() {
                    return 1;
                }
                loop {
                    rustix::event::pause();
                }
            })
            .unwrap();
        let pid = child.pid.as_raw_nonzero().get();
        for (directory, version) in &group.directories {
            // Those of version 1 it enters after it was made.
            let mut found = processes(directory);
            while found.is_empty() && *version == Version::V1 {
                std::thread::yield_now();
                found = processes(directory);
            }
            assert_eq!(found, [pid], "{}", directory.display());
        }
        child.kill();
        child.wait().unwrap();
        group.remove();
        Ground::give_up(&name);
    }

    #[test]
    fn one_that_was_not_made_in_its_group_enters_it() {
        let name = format!("way-trial-{}-late", rustix::process::getpid());
        let ground = Ground::take(&name, None);
        let mut group = ground.group("session").unwrap();
        let way = group.way().unwrap();
        let body = |_| i32::from(way.walk(false).is_err());
        let (child, ()) = way
            .start(Namespaces::empty(), Parent::Caller, (), body)
            .unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
        group.remove();
        Ground::give_up(&name);
    }
}
