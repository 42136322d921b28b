//! What goes on in a group: who is in it, what it uses, and stopping it where it is.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::{Group, Limit, Version, set, write};

/// What a group uses. What its hierarchies do not count is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consumption {
    /// Bytes of memory, without files that were not looked at lately and could be dropped.
    pub memory: Option<u64>,
    /// Time of processors since it was made.
    pub cpu: Option<Duration>,
    /// Processes and threads.
    pub tasks: Option<u64>,
}

/// How long everybody may take to stop.
const PATIENCE: Duration = Duration::from_secs(2);

impl Group {
    /// Holds it to `limit`; an error where none of its hierarchies can.
    pub fn limit(&self, limit: Limit) -> io::Result<()> {
        let (directory, version) = self.holder(limit)?;
        set(directory, version, limit)
    }

    /// The hierarchy that can hold it.
    pub(super) fn holder(&self, limit: Limit) -> io::Result<(&Path, Version)> {
        let holds = |(directory, version): &&(PathBuf, Version)| {
            let settings = limit.settings(*version);
            let file = settings.first().map(|(file, ..)| *file);
            file.is_some_and(|file| directory.join(file).exists())
        };
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such controller");
        let found = self.directories.iter().find(holds).ok_or_else(missing)?;
        Ok((&found.0, found.1))
    }

    /// What it uses.
    pub fn consumption(&self) -> Consumption {
        let number = |file: &str| self.read(file)?.trim().parse().ok();
        // In version 1 there is a file of that name, too, that tells of something else.
        let microseconds = || {
            let mut texts = self.directories.iter();
            texts.find_map(|(directory, _)| {
                let text = fs::read_to_string(directory.join("cpu.stat")).ok()?;
                let line = text
                    .lines()
                    .find_map(|line| line.strip_prefix("usage_usec "))?;
                line.trim().parse().ok().map(Duration::from_micros)
            })
        };
        Consumption {
            memory: number("memory.current")
                .or_else(|| number("memory.usage_in_bytes"))
                .map(|bytes: u64| bytes.saturating_sub(self.droppable())),
            cpu: microseconds().or_else(|| number("cpuacct.usage").map(Duration::from_nanos)),
            tasks: number("pids.current").or_else(|| {
                let tasks = self.read("cgroup.threads").or_else(|| self.read("tasks"));
                tasks.map(|tasks| tasks.lines().count() as u64)
            }),
        }
    }

    /// Bytes of files in memory that nobody has looked at lately.
    fn droppable(&self) -> u64 {
        let text = self.read("memory.stat").unwrap_or_default();
        // Version 1 tells of the group alone first, and then of it and those in it.
        let lines = ["total_inactive_file ", "inactive_file "];
        let mut lines = lines.iter();
        let found = lines.find_map(|name| text.lines().find_map(|line| line.strip_prefix(name)));
        found
            .and_then(|number| number.trim().parse().ok())
            .unwrap_or(0)
    }

    /// A file whose text is another whenever somebody in it ran.
    pub fn clock(&self) -> Option<PathBuf> {
        let files = ["cpuacct.usage", "cpu.stat"].into_iter();
        let paths = files.flat_map(|file| self.directories.iter().map(move |(d, _)| d.join(file)));
        // In version 1 there is a file of the second name that tells of something else.
        let tells = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            path.ends_with("cpuacct.usage") && !text.is_empty() || text.starts_with("usage_usec ")
        };
        { paths }.find(tells)
    }

    /// Whoever is in it.
    pub fn processes(&self) -> Vec<i32> {
        match self.directories.first() {
            Some((directory, _)) => processes(directory),
            None => Vec::new(),
        }
    }

    /// Can [`Group::freeze`] stop it?
    pub fn can_freeze(&self) -> bool {
        self.freezer().is_some()
    }

    /// Stops everybody in it where they are, and waits until they have. In version 2 they can still be
    /// killed; in version 1 they must be let go for that.
    pub fn freeze(&self) -> io::Result<()> {
        match self.freezer() {
            Some((directory, Version::V2)) => {
                write(&directory.join("cgroup.freeze"), "1")?;
                await_frozen(directory)
            }
            Some((directory, Version::V1)) => {
                let state = directory.join("freezer.state");
                write(&state, "FROZEN")?;
                let begin = Instant::now();
                // Looking is what makes the kernel look.
                while fs::read_to_string(&state)?.trim() != "FROZEN" {
                    if begin.elapsed() > PATIENCE {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    std::thread::yield_now();
                }
                Ok(())
            }
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Lets them go on.
    pub fn thaw(&self) -> io::Result<()> {
        match self.freezer() {
            Some((directory, Version::V2)) => write(&directory.join("cgroup.freeze"), "0"),
            Some((directory, Version::V1)) => write(&directory.join("freezer.state"), "THAWED"),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The hierarchy that can, version 2 where there is the choice.
    fn freezer(&self) -> Option<(&Path, Version)> {
        let with = |file: &str| {
            let mut directories = self.directories.iter();
            let found = directories.find(|(directory, _)| directory.join(file).exists());
            found.map(|(directory, version)| (directory.as_path(), *version))
        };
        with("cgroup.freeze").or_else(|| with("freezer.state"))
    }

    fn read(&self, file: &str) -> Option<String> {
        let mut directories = self.directories.iter();
        directories.find_map(|(directory, _)| fs::read_to_string(directory.join(file)).ok())
    }
}

/// Whoever is in the group at `directory`, or in a part of it.
pub fn processes(directory: &Path) -> Vec<i32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(processes(&entry.path()));
        }
    }
    found
}

fn await_frozen(directory: &Path) -> io::Result<()> {
    let events = fs::File::open(directory.join("cgroup.events"))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Through the descriptor that is waited on: what it has read is what has not changed since.
        let mut text = [0; 256];
        let length = rustix::io::pread(&events, &mut text, 0)?;
        let mut lines = text[..length].split(|byte| *byte == b'\n');
        if lines.any(|line| line == b"frozen 1") {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut watched = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)];
        match rustix::event::poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::hierarchy;
    use crate::clone::{Namespaces, Parent, clone};

    /// A group in each hierarchy that can freeze, of either version.
    fn freezers() -> Vec<Group> {
        let name = format!("freezer-trial-{}", rustix::process::getpid());
        // Where there is no such controller, the second finds version 2.
        let found = [hierarchy("freezer"), hierarchy("no such controller")];
        let mut groups: Vec<Group> = Vec::new();
        for found in found.into_iter().filter_map(Result::ok).flatten() {
            let directory = found.home().join(&name);
            if fs::create_dir(&directory).is_ok() {
                groups.push(Group {
                    directories: vec![(directory, found.version)],
                    ..Group::default()
                });
            }
        }
        groups
    }

    #[test]
    fn the_frozen_do_nothing_and_can_be_ended_in_either_version() {
        let groups = freezers();
        assert!(!groups.is_empty());
        for mut group in groups {
            let busy = || loop {
                std::hint::spin_loop();
            };
            let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), busy).unwrap();
            let pid = child.pid.as_raw_nonzero().get();
            group.place(pid).unwrap();
            assert!(group.can_freeze());
            group.freeze().unwrap();
            let time = || fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
            let before = time();
            for _ in 0..1000 {
                std::thread::yield_now();
            }
            assert_eq!(time(), before);
            child.kill();
            group.thaw().unwrap();
            assert_eq!(child.wait().unwrap().terminating_signal(), Some(9));
            group.remove();
        }
    }
}
