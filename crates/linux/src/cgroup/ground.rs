//! A piece of every hierarchy, for somebody who makes groups on it.
//!
//! Whoever starts many sandboxes takes the piece once, while it still has the power to, and gives it
//! to whom it becomes. In version 1 owning the directory is all that takes; in version 2 processes may
//! only be moved within what is owned, so the taker moves there itself ([`Ground::enter`]).

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use super::{Group, Limit, Version, delegate, find, mounted, remove_within, write};
use crate::clone::{Namespaces, Parent, clone};
use crate::identity::Ids;

/// The controllers that hold limits.
const LIMITING: [&str; 3] = ["memory", "cpu", "pids"];

/// What version 2 does without a controller, and version 1 with these.
const STATE: [&str; 2] = ["freezer", "cpuacct"];

/// What of a group of version 2 its new owner must be able to write. Not its limits.
const OWNED: [&str; 3] = ["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"];

/// Where the taker itself is, in version 2: beside its groups, because a group with limited groups in it
/// can have no processes.
const TAKER: &str = "taker";

/// Where those go who were in the group that pieces are taken of.
const VACATED: &str = "sandbox-server";

/// Pieces of hierarchies, side by side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ground {
    plots: Vec<(PathBuf, Version)>,
}

impl Ground {
    /// Takes a piece called `name` beside or beneath the caller's own groups, wherever that may be had,
    /// and gives it to `owner`.
    pub fn take(name: &str, owner: Option<Ids>) -> Ground {
        let mut ground = Ground::default();
        for home in homes() {
            let plot = home.directory.join(name);
            if home.version == Version::V2 {
                home.vacate();
                for controller in LIMITING {
                    delegate(&home.directory, controller);
                }
            }
            if lay_out(&plot, home.version, owner).is_ok() {
                ground.plots.push((plot, home.version));
            } else {
                clear(&plot);
            }
        }
        ground
    }

    /// Moves the calling process there, where groups cannot be filled from elsewhere. What it may not
    /// enter is no use to it, and given up.
    pub fn enter(&mut self) {
        self.plots.retain(|(plot, version)| {
            let taker = plot.join(TAKER).join("cgroup.procs");
            let entered = *version == Version::V1 || write(&taker, "0").is_ok();
            if !entered {
                clear(plot);
            }
            entered
        });
    }

    /// Makes a group called `name`, with no limits yet. On an error nothing is left behind.
    pub fn group(&self, name: &str) -> io::Result<Group> {
        let mut group = Group::default();
        for (plot, version) in &self.plots {
            let directory = plot.join(name);
            let made = match fs::create_dir(&directory) {
                // Left by one of this name that ended badly.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    clear(&directory);
                    fs::create_dir(&directory)
                }
                made => made,
            };
            if let Err(error) = made {
                group.remove();
                return Err(error);
            }
            group.directories.push((directory, *version));
        }
        Ok(group)
    }

    /// Which of `limits` a group made here can be held to, and a process put under, found by trying.
    pub fn enforceable(&self, limits: &[Limit]) -> Vec<Limit> {
        let Ok(mut group) = self.group("trial") else {
            return Vec::new();
        };
        let holds = |limit: &Limit| group.limit(*limit).is_ok();
        let held = limits.iter().copied().filter(holds).collect();
        let fills = try_on(&group);
        group.remove();
        if fills { held } else { Vec::new() }
    }

    /// Removes what is called `name` beside or beneath the caller's own groups. Who is still in it is
    /// killed.
    pub fn give_up(name: &str) {
        for home in homes() {
            clear(&home.directory.join(name));
        }
    }

    /// Removes pieces called `prefix…-PID` whose taker, the process of that number, is gone.
    pub fn sweep(prefix: &str) {
        for home in homes() {
            for entry in fs::read_dir(home.directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let taker = name.to_str().and_then(|name| name.strip_prefix(prefix));
                if taker.is_some_and(is_gone) {
                    clear(&entry.path());
                }
            }
        }
    }
}

/// Is there no process of this number, or one that has ended and was not waited for?
fn is_gone(taker: &str) -> bool {
    let stat = fs::read(Path::new("/proc").join(taker).join("stat")).unwrap_or_default();
    // After its name, which may hold anything, in parentheses.
    let end = stat.iter().rposition(|byte| *byte == b')');
    let state = end.and_then(|end| stat.get(end + 2));
    matches!(state, None | Some(b'Z' | b'X'))
}

/// Puts a process into `group` that has nothing to do.
fn try_on(group: &Group) -> bool {
    let idle = || {
        loop {
            rustix::event::pause();
        }
    };
    let Ok((child, ())) = clone(Namespaces::empty(), Parent::Caller, (), idle) else {
        return false;
    };
    let placed = group.place(child.pid.as_raw_nonzero().get());
    child.kill();
    let _ = child.wait();
    placed.is_ok()
}

/// Where a piece of a hierarchy is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Home {
    directory: PathBuf,
    version: Version,
    /// It is the group that the caller itself is in, and in version 2 must not be.
    is_own: bool,
}

fn homes() -> Vec<Home> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut homes: Vec<Home> = Vec::new();
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::"));
    if let Some((top, own)) = unified.and_then(|path| mounted(&mounts, "cgroup2", None, path)) {
        homes.push(Home::unified(top, own));
    }
    let wanted = LIMITING
        .iter()
        .chain(STATE.iter().filter(|_| homes.is_empty()));
    for controller in wanted.copied().collect::<Vec<_>>() {
        let found = find(&groups, &mounts, controller);
        if let Some(found) = found.filter(|found| found.version == Version::V1) {
            let home = Home {
                directory: found.own,
                version: Version::V1,
                is_own: true,
            };
            if !homes.contains(&home) {
                homes.push(home);
            }
        }
    }
    homes
}

impl Home {
    /// Beneath the caller's own group, where that was given to it; else beside it, as runs have it. A
    /// service that systemd lets manage its own groups must not make any beside them.
    fn unified(top: PathBuf, own: PathBuf) -> Home {
        let writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        // The one group of all that may have processes and limited groups in it has no type.
        let is_real_top = own == top && !own.join("cgroup.type").exists();
        let beside = own.parent().filter(|_| own != top).map(Path::to_owned);
        let (directory, is_own) = match beside {
            Some(beside) if !was_given(&own) && (writable(&beside) || !writable(&own)) => {
                (beside, false)
            }
            _ => (own, !is_real_top),
        };
        Home {
            directory,
            version: Version::V2,
            is_own,
        }
    }

    /// Moves everybody in it one level down.
    fn vacate(&self) {
        if !self.is_own {
            return;
        }
        let below = self.directory.join(VACATED);
        match fs::create_dir(&below) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return,
            _ => {}
        }
        let text = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
        for pid in text.lines() {
            // Who cannot be moved keeps the group from being divided, and that is seen there.
            let _ = write(&below.join("cgroup.procs"), pid);
        }
    }
}

/// Did systemd give this group to whoever is in it?
fn was_given(own: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        let length = rustix::fs::getxattr(own, *name, &mut value).unwrap_or(0);
        value[..length] == *b"1"
    })
}

/// Makes one piece. What is there already is what [`Ground::sweep`] could not remove.
fn lay_out(plot: &Path, version: Version, owner: Option<Ids>) -> io::Result<()> {
    fs::create_dir(plot)?;
    let give = |path: &Path| match owner {
        Some(owner) => chown(path, Some(owner.user), Some(owner.group)),
        None => Ok(()),
    };
    if version == Version::V2 {
        LIMITING.iter().for_each(|name| delegate(plot, name));
        let taker = plot.join(TAKER);
        fs::create_dir(&taker)?;
        for directory in [plot, &taker] {
            for file in OWNED.map(|file| directory.join(file)) {
                // One that a kernel does not have need not be given.
                match give(&file) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    given => given?,
                }
            }
        }
        give(&taker)?;
    }
    give(plot)
}

/// Removes a group and those beneath it. Whoever is in one was left by somebody who is gone.
fn clear(plot: &Path) {
    for entry in fs::read_dir(plot).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            clear(&entry.path());
        }
    }
    // In version 1, whoever is frozen cannot even be killed.
    let _ = write(&plot.join("freezer.state"), "THAWED");
    for pid in super::state::processes(plot) {
        let pid = rustix::process::Pid::from_raw(pid);
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL));
    }
    // On a busy machine it takes a while until the kernel has taken a sandbox down.
    remove_within(plot, std::time::Duration::from_secs(5));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clone::Child;
    use crate::identity::become_user;
    use std::os::fd::AsFd;

    fn tester() -> Ids {
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let line = users.lines().find(|line| line.starts_with("tester:"));
        let line = line.expect("the user `tester` (useradd tester)");
        let numbers: Vec<u32> = line.split(':').skip(2).flat_map(str::parse).collect();
        Ids {
            user: numbers[0],
            group: numbers[1],
        }
    }

    fn name() -> String {
        format!("ground-trial-{}", rustix::process::getpid())
    }

    /// Runs `body` in a child that took a ground as root and became the ordinary user on it.
    fn on_a_ground(body: impl FnOnce(&Ground)) -> Child {
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut ground = Ground::take(&name(), Some(tester()));
                ground.enter();
                become_user(tester()).unwrap();
                body(&ground);
            }));
            i32::from(outcome.is_err())
        })
        .unwrap();
        child
    }

    fn is_left(pid: rustix::process::Pid) -> bool {
        let name = format!("ground-trial-{pid}");
        homes()
            .iter()
            .any(|home| home.directory.join(&name).exists())
    }

    fn sleeper() -> Child {
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            loop {
                rustix::event::pause();
            }
        })
        .unwrap();
        child
    }

    #[test]
    fn who_was_given_it_makes_groups_fills_limits_and_stops_them() {
        let child = on_a_ground(|ground| {
            let limits = [Limit::Memory(64 << 20), Limit::Cpu(500), Limit::Pids(20)];
            assert_eq!(ground.enforceable(&limits), limits);
            let mut group = ground.group("session").unwrap();
            group.limit(Limit::Pids(20)).unwrap();
            let sleeper = sleeper();
            let pid = sleeper.pid.as_raw_nonzero().get();
            group.place(pid).unwrap();
            assert_eq!(group.processes(), [pid]);
            let used = group.consumption();
            assert_eq!(used.tasks, Some(1));
            assert!(used.memory.is_some() && used.cpu.is_some());
            group.freeze().unwrap();
            group.freeze().unwrap();
            group.thaw().unwrap();
            group.freeze().unwrap();
            sleeper.kill();
            group.thaw().unwrap();
            sleeper.wait().unwrap();
            group.remove();
            // Its own limits are not the owner's to change.
            for (plot, version) in &ground.plots {
                for (file, value, _) in Limit::Pids(1000).settings(*version) {
                    assert!(write(&plot.join(file), &value).is_err());
                }
            }
        });
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
        Ground::give_up(&format!("ground-trial-{}", child.pid));
        assert!(!is_left(child.pid));
    }

    #[test]
    fn a_group_that_was_given_to_its_process_is_where_pieces_are_taken() {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let (_, own) = mounted(&mounts, "cgroup2", None, path.unwrap()).unwrap();
        let given = own.join(format!("given-trial-{}", rustix::process::getpid()));
        fs::create_dir(&given).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&given, "user.delegate", b"1", flags).unwrap();
        let (child, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let outcome = std::panic::catch_unwind(|| {
                write(&given.join("cgroup.procs"), "0").unwrap();
                let mut ground = Ground::take(&name(), Some(tester()));
                let plot = (given.join(name()), Version::V2);
                assert!(ground.plots.contains(&plot), "{ground:?}");
                // Nobody is in the way of dividing it.
                assert_eq!(fs::read_to_string(given.join("cgroup.procs")).unwrap(), "");
                ground.enter();
                become_user(tester()).unwrap();
                let mut group = ground.group("session").unwrap();
                let sleeper = sleeper();
                group.place(sleeper.pid.as_raw_nonzero().get()).unwrap();
                sleeper.kill();
                sleeper.wait().unwrap();
                group.remove();
            });
            i32::from(outcome.is_err())
        })
        .unwrap();
        assert_eq!(child.wait().unwrap().exit_status(), Some(0));
        clear(&given);
        assert!(!given.exists());
        Ground::give_up(&format!("ground-trial-{}", child.pid));
    }

    #[test]
    fn what_a_killed_taker_left_is_swept_with_whoever_is_in_it() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let child = on_a_ground(|ground| {
            let group = ground.group("session").unwrap();
            let sleeper = sleeper();
            group.place(sleeper.pid.as_raw_nonzero().get()).unwrap();
            group.freeze().unwrap();
            let _ = rustix::io::write(&writer, b"x");
            loop {
                rustix::event::pause();
            }
        });
        drop(writer);
        std::io::Read::read_exact(&mut reader, &mut [0]).unwrap();
        Ground::sweep("ground-trial-");
        assert!(is_left(child.pid), "its taker lives");
        child.kill();
        child.wait().unwrap();
        Ground::sweep("ground-trial-");
        assert!(!is_left(child.pid));
        // The pipe ends when the last one that held it is gone.
        let _ = reader.as_fd();
        assert_eq!(std::io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
    }
}
