//! Control groups: which ones the host has, and one of its own for a run.
//!
//! Version 2 where the caller was given a subtree (delegation), version 1 for root. Finding out is
//! trying: a group is made beneath the caller's own, and if that works it can be limited.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

mod ground;
mod memory;
mod parts;
mod state;
mod way;

pub use ground::Ground;
pub use memory::Memory;
pub use parts::Entrance;
pub use state::{Consumption, processes};
pub use way::Way;

/// A limit, as the kernel counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Memory and swap together, in bytes.
    Memory(u64),
    /// Thousandths of a processor.
    Cpu(u32),
    /// Processes and threads.
    Pids(u32),
}

/// Which generation of control groups holds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy per controller.
    V1,
    /// One hierarchy.
    V2,
}

/// Where the caller's group is, per controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its generation.
    pub version: Version,
    /// The caller's own group, as a directory.
    pub own: PathBuf,
    /// Where the hierarchy is mounted.
    pub top: PathBuf,
}

impl Hierarchy {
    /// Where groups for runs are made. In version 2 a group that has processes can have no limited
    /// children, so they go beside it; the top is exempt.
    fn home(&self) -> &Path {
        match (self.version, self.own.parent()) {
            (Version::V2, Some(parent)) if self.own != self.top => parent,
            _ => &self.own,
        }
    }
}

/// A group made for one run, in each hierarchy it needs.
#[derive(Debug, Default)]
pub struct Group {
    directories: Vec<(PathBuf, Version)>,
    /// Groups in it, where it was divided.
    parts: Vec<PathBuf>,
}

impl Limit {
    /// The controller that holds it.
    pub fn controller(self) -> &'static str {
        match self {
            Limit::Memory(_) => "memory",
            Limit::Cpu(_) => "cpu",
            Limit::Pids(_) => "pids",
        }
    }

    /// Files and what to write into them. Those marked optional may be missing.
    fn settings(self, version: Version) -> Vec<(&'static str, String, Need)> {
        const PERIOD_MICROSECONDS: u64 = 100_000;
        let quota = |millis: u32| u64::from(millis) * PERIOD_MICROSECONDS / 1000;
        match (self, version) {
            (Limit::Memory(bytes), Version::V2) => vec![
                ("memory.max", bytes.to_string(), Need::Must),
                ("memory.swap.max", "0".to_owned(), Need::MayLack),
            ],
            (Limit::Memory(bytes), Version::V1) => vec![
                ("memory.limit_in_bytes", bytes.to_string(), Need::Must),
                (
                    "memory.memsw.limit_in_bytes",
                    bytes.to_string(),
                    Need::MayLack,
                ),
            ],
            (Limit::Cpu(millis), Version::V2) => {
                let text = format!("{} {PERIOD_MICROSECONDS}", quota(millis));
                vec![("cpu.max", text, Need::Must)]
            }
            (Limit::Cpu(millis), Version::V1) => vec![
                (
                    "cpu.cfs_period_us",
                    PERIOD_MICROSECONDS.to_string(),
                    Need::Must,
                ),
                ("cpu.cfs_quota_us", quota(millis).to_string(), Need::Must),
            ],
            (Limit::Pids(most), _) => vec![("pids.max", most.to_string(), Need::Must)],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    MayLack,
}

/// The hierarchy that holds `controller` for this process.
pub fn hierarchy(controller: &str) -> io::Result<Option<Hierarchy>> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(find(&groups, &mounts, controller))
}

fn find(groups: &str, mounts: &str, controller: &str) -> Option<Hierarchy> {
    let mut unified = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.split(',').any(|name| name == controller) {
            let (top, own) = mounted(mounts, "cgroup", Some(controller), path)?;
            return Some(Hierarchy {
                version: Version::V1,
                own,
                top,
            });
        }
        if controllers.is_empty() {
            unified = Some(path);
        }
    }
    let (top, own) = mounted(mounts, "cgroup2", None, unified?)?;
    Some(Hierarchy {
        version: Version::V2,
        own,
        top,
    })
}

/// Where the hierarchy with this type and option is mounted, and the directory of its group `path`.
fn mounted(
    mounts: &str,
    kind: &str,
    option: Option<&str>,
    path: &str,
) -> Option<(PathBuf, PathBuf)> {
    for line in mounts.lines() {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        if after.next() != Some(kind) {
            continue;
        }
        let options = after.nth(1).unwrap_or_default();
        if option.is_some_and(|option| !options.split(',').any(|name| name == option)) {
            continue;
        }
        let mut before = before.split(' ').skip(3);
        let (root, point) = (before.next()?, before.next()?);
        // Of a container only its own subtree is mounted.
        let beneath = path
            .strip_prefix(root.trim_end_matches('/'))
            .unwrap_or(path);
        let beneath = beneath.trim_start_matches('/');
        let top = PathBuf::from(point);
        // Joining nothing would add a slash.
        let own = if beneath.is_empty() {
            top.clone()
        } else {
            top.join(beneath)
        };
        return Some((top, own));
    }
    None
}

impl Group {
    /// Makes a group called `name` beneath the caller's own and puts `limits` on it. On an error
    /// nothing is left behind.
    pub fn make(name: &str, limits: &[Limit]) -> Result<Group, (Limit, io::Error)> {
        let mut group = Group::default();
        for limit in limits {
            if let Err(error) = group.add(name, *limit) {
                group.remove();
                return Err((*limit, error));
            }
        }
        Ok(group)
    }

    /// The group called `prefix…` that process `pid` is in, in each hierarchy that holds one of
    /// `limits`; none where it is not in one.
    pub fn of(pid: i32, prefix: &str, limits: &[Limit]) -> io::Result<Option<Group>> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let mut directories: Vec<(PathBuf, Version)> = Vec::new();
        for limit in limits {
            let Some(found) = find(&groups, &mounts, limit.controller()) else {
                return Ok(None);
            };
            let name = found.own.file_name().unwrap_or_default();
            if !name.to_string_lossy().starts_with(prefix) {
                return Ok(None);
            }
            let entry = (found.own, found.version);
            if !directories.contains(&entry) {
                directories.push(entry);
            }
        }
        Ok(Some(Group {
            directories,
            ..Group::default()
        }))
    }

    fn add(&mut self, name: &str, limit: Limit) -> io::Result<()> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such controller");
        let hierarchy = hierarchy(limit.controller())?.ok_or_else(missing)?;
        let (version, directory) = (hierarchy.version, hierarchy.home().join(name));
        if version == Version::V2 {
            delegate(hierarchy.home(), limit.controller());
        }
        match fs::create_dir(&directory) {
            Ok(()) => self.directories.push((directory.clone(), version)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !self
                    .directories
                    .iter()
                    .any(|(known, _)| *known == directory)
                {
                    self.directories.push((directory.clone(), version));
                }
            }
            Err(error) => return Err(error),
        }
        if let (Limit::Memory(_), Version::V2) = (limit, version) {
            // A run whose memory is used up ends as a whole.
            let _ = write(&directory.join("memory.oom.group"), "1");
        }
        set(&directory, version, limit)
    }

    /// Moves a process into the group.
    pub fn place(&self, pid: i32) -> io::Result<()> {
        for (directory, _) in self.places() {
            write(&directory.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// The way into the group, for a process that is to be made.
    pub fn way(&self) -> io::Result<Way> {
        let mut way = Way::default();
        for (directory, version) in self.places() {
            way.add(&directory, version)?;
        }
        Ok(way)
    }

    /// Where in each hierarchy its first process is.
    fn places(&self) -> impl Iterator<Item = (PathBuf, Version)> {
        self.directories.iter().map(|(directory, version)| {
            let keeper = directory.join(parts::KEEPER);
            match self.parts.contains(&keeper) {
                true => (keeper, *version),
                false => (directory.clone(), *version),
            }
        })
    }

    /// Has the memory limit killed anything in it?
    pub fn out_of_memory(&self) -> bool {
        self.directories.iter().any(|(directory, version)| {
            let file = directory.join(version.memory_events());
            let text = fs::read_to_string(file).unwrap_or_default();
            memory_kills(&text).is_some_and(|count| count > 0)
        })
    }

    /// Removes it; its processes are gone.
    pub fn remove(&mut self) {
        for part in self.parts.drain(..) {
            remove_soon(&part);
        }
        for (directory, _) in self.directories.drain(..) {
            remove_soon(&directory);
        }
    }
}

impl Version {
    /// Where the kernel tells whom it killed for memory.
    fn memory_events(self) -> &'static str {
        match self {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        }
    }
}

/// How many that are.
fn memory_kills(text: &str) -> Option<u64> {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count?.trim().parse().ok()
}

/// Removes a group whose last process is about to leave: it does a moment after it was waited for.
fn remove_soon(directory: &Path) {
    remove_within(directory, std::time::Duration::from_millis(100));
}

/// The same, for those who know that everybody in it was killed, and may take their time to be gone.
#[expect(
    clippy::disallowed_methods,
    reason = "version 1 tells of no event to wait for"
)]
fn remove_within(directory: &Path, patience: std::time::Duration) {
    let begin = std::time::Instant::now();
    loop {
        match fs::remove_dir(directory) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < patience =>
            {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            _ => break,
        }
    }
}

/// Removes what [`leftovers`] finds.
pub fn sweep(prefix: &str) {
    for group in leftovers(prefix) {
        remove_leftover(&group);
    }
}

/// Removes one of them, unless someone is in it: then the kernel refuses.
pub fn remove_leftover(group: &Path) -> bool {
    fs::remove_dir(group).is_ok()
}

/// Groups called `prefix…-PID` in which no process is left and whose maker, the process of that
/// number, is gone: what a killed launcher left.
pub fn leftovers(prefix: &str) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for controller in ["memory", "cpu", "pids"] {
        let Ok(Some(hierarchy)) = hierarchy(controller) else {
            continue;
        };
        let groups = fs::read_dir(hierarchy.home()).into_iter().flatten();
        let is_left = |group: &PathBuf| is_left(group, prefix);
        found.extend(groups.flatten().map(|group| group.path()).filter(is_left));
    }
    found.into_iter().collect()
}

fn is_left(group: &Path, prefix: &str) -> bool {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let Some(rest) = name.strip_prefix(prefix) else {
        return false;
    };
    let maker = rest.rsplit('-').next().unwrap_or_default();
    // A group is empty for a moment before its first process is put into it.
    let is_made = Path::new("/proc").join(maker).exists();
    let processes = fs::read_to_string(group.join("cgroup.procs"));
    !is_made && processes.is_ok_and(|processes| processes.is_empty())
}

/// Lets the groups in `home` be limited by `controller`, where that is not so and may be made so. What
/// fails here is told by the limit that cannot be set then.
fn delegate(home: &Path, controller: &str) {
    let file = home.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&file).unwrap_or_default();
    if !enabled.split_whitespace().any(|name| name == controller) {
        let _ = write(&file, &format!("+{controller}"));
    }
}

/// Holds the group in `directory` to `limit`.
fn set(directory: &Path, version: Version, limit: Limit) -> io::Result<()> {
    for (file, value, need) in limit.settings(version) {
        match write(&directory.join(file), &value) {
            Err(error) if need == Need::MayLack && lacking(&error) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// A file that this kernel or configuration does not have, or a value it cannot take.
fn lacking(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EACCES)
    )
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 1 0:22 / /sys rw - sysfs sysfs rw
33 24 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
38 24 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_controller_of_version_1_is_found_where_it_is_mounted() {
        let groups = "4:memory:/service/a\n0::/\n";
        let found = find(groups, MOUNTS, "memory").unwrap();
        assert_eq!(found.version, Version::V1);
        assert_eq!(found.own, Path::new("/sys/fs/cgroup/memory/service/a"));
    }

    #[test]
    fn everything_else_is_looked_for_in_the_unified_hierarchy() {
        let found = find("0::/user.slice/run.scope\n", MOUNTS, "pids").unwrap();
        assert_eq!(found.version, Version::V2);
        assert_eq!(
            found.own,
            Path::new("/sys/fs/cgroup/unified/user.slice/run.scope")
        );
        assert_eq!(find("4:memory:/\n", MOUNTS, "pids"), None);
    }
}
