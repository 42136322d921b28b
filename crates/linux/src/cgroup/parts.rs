//! Dividing a group between whoever keeps it and those it starts.
//!
//! A limit of memory is kept by killing, and the kernel may choose anybody in the group, above all when
//! what used it up is no process but files in memory; one of processors by making everybody wait. So the
//! one who must stay, and answer, is not in the part of the group that these hold for.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::{Group, Limit, Version, Way, delegate, memory_kills, set};
use crate::clone::{Child, Namespaces, Parent};

/// Where the one who keeps it is, in version 2: a group with limited groups in it can have no processes.
pub(super) const KEEPER: &str = "keeper";

/// Where those are whom it starts.
const STARTED: &str = "started";

/// The way into a part of a group, for a process that holds it. It works behind every wall.
#[derive(Debug, Default)]
pub struct Entrance {
    way: Way,
    valve: Option<Valve>,
    /// Where the kernel counts whom it kills for memory.
    kills: Option<OwnedFd>,
}

/// Where the limit of processors is set.
#[derive(Debug)]
struct Valve {
    file: OwnedFd,
    open: &'static str,
    held: String,
}

impl Group {
    /// Makes a part of it that is held to `limit`, and adds the way there to `entrance`. Who is placed in
    /// the group is not in that part.
    pub fn divide(&mut self, limit: Limit, entrance: &mut Entrance) -> io::Result<()> {
        let (directory, version) = self.holder(limit)?;
        let directory = directory.to_owned();
        let started = directory.join(STARTED);
        let is_new = !self.parts.contains(&started);
        if is_new {
            self.add_part(&started)?;
            if version == Version::V2 {
                self.add_part(&directory.join(KEEPER))?;
            }
        }
        if version == Version::V2 {
            delegate(&directory, limit.controller());
        }
        set(&started, version, limit)?;
        let open = |file: &str| OpenOptions::new().write(true).open(started.join(file));
        if let Limit::Memory(_) = limit {
            let file = fs::File::open(started.join(version.memory_events()));
            entrance.kills = file.ok().map(OwnedFd::from);
        }
        if is_new {
            entrance.way.add(&started, version)?;
        }
        if let (Limit::Cpu(_), Some((file, held, _))) = (limit, limit.settings(version).pop()) {
            entrance.valve = Some(Valve {
                file: open(file)?.into(),
                open: match version {
                    Version::V1 => "-1",
                    Version::V2 => "max",
                },
                held,
            });
        }
        Ok(())
    }

    fn add_part(&mut self, part: &Path) -> io::Result<()> {
        fs::create_dir(part)?;
        self.parts.push(part.to_owned());
        Ok(())
    }
}

impl Entrance {
    /// Starts a process in there: see [`Way::start`].
    pub fn start<Kept>(
        &self,
        namespaces: Namespaces,
        parent: Parent,
        kept: Kept,
        body: impl FnOnce(io::Result<()>) -> i32,
    ) -> io::Result<(Child, Kept)> {
        self.way.start(namespaces, parent, kept, body)
    }

    /// Does `work` while processors are not limited in there. Who is killed has a way to go to its end, and
    /// many of them at once, in a part that has used up its share, take seconds for it.
    pub fn unthrottled<T>(&self, work: impl FnOnce() -> T) -> T {
        let turn = |to: fn(&Valve) -> &str| {
            if let Some(valve) = &self.valve {
                // It was written to before, and the value is one that it takes.
                let _ = rustix::io::pwrite(&valve.file, to(valve).as_bytes(), 0);
            }
        };
        turn(|valve| valve.open);
        let done = work();
        turn(|valve| &valve.held);
        done
    }

    /// How often somebody in there was killed for memory.
    pub fn killed_for_memory(&self) -> u64 {
        let mut text = [0; 512];
        let read = |file| rustix::io::pread(file, &mut text, 0).ok();
        let length = self.kills.as_ref().and_then(read).unwrap_or(0);
        memory_kills(&String::from_utf8_lossy(&text[..length])).unwrap_or(0)
    }

    /// What it is made of.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let valve = self.valve.iter().map(|valve| &valve.file);
        let files = valve.chain(&self.kills).map(AsFd::as_fd);
        self.way.descriptors().chain(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Ground;
    use crate::clone::clone;

    #[test]
    fn who_enters_is_held_and_who_keeps_it_is_not() {
        let name = format!("parts-trial-{}", rustix::process::getpid());
        let ground = Ground::take(&name, None);
        let mut group = ground.group("session").unwrap();
        let mut entrance = Entrance::default();
        for limit in [Limit::Memory(32 << 20), Limit::Cpu(500)] {
            group.divide(limit, &mut entrance).unwrap();
        }
        let body = || {
            let eaten = vec![1u8; 64 << 20];
            i32::from(std::hint::black_box(&eaten)[5000] != 1)
        };
        let run = |enters| {
            let (namespaces, parent) = (Namespaces::empty(), Parent::Caller);
            let made = match enters {
                true => entrance.start(namespaces, parent, (), |entered| {
                    entered.unwrap();
                    body()
                }),
                false => clone(namespaces, parent, (), body),
            };
            made.unwrap().0.wait().unwrap().exit_status()
        };
        assert_eq!((run(false), entrance.killed_for_memory()), (Some(0), 0));
        assert_eq!((run(true), entrance.killed_for_memory()), (None, 1));
        group.remove();
        Ground::give_up(&name);
    }

    #[test]
    fn the_limit_of_processors_is_lifted_for_a_moment_and_there_again() {
        let name = format!("valve-trial-{}", rustix::process::getpid());
        let ground = Ground::take(&name, None);
        let mut group = ground.group("session").unwrap();
        let mut entrance = Entrance::default();
        group.divide(Limit::Cpu(500), &mut entrance).unwrap();
        let part = group.parts[0].clone();
        let quota = || {
            let files = ["cpu.max", "cpu.cfs_quota_us"].into_iter();
            let mut texts = files.flat_map(|file| fs::read_to_string(part.join(file)));
            let text = texts.next().unwrap();
            text.split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!(quota(), "50000");
        let lifted = entrance.unthrottled(quota);
        assert!(lifted == "-1" || lifted == "max", "{lifted}");
        assert_eq!(quota(), "50000");
        group.remove();
        Ground::give_up(&name);
    }
}
