//! What a host has, and what of it is free.
//!
//! Sessions are promised more than they use, so what counts is what is used: by everybody on the host,
//! as the kernel tells it. Where the server's own control group may use less memory than there is, as in most
//! containers, that is what there is.

use std::io;
use std::path::Path;

use sandbox_linux::cgroup::{Hierarchy, Memory};
use sandbox_model::Capacity;

/// What a host has, and what of it is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// What it has.
    pub total: Capacity,
    /// What of that nobody uses now.
    pub free: Capacity,
}

impl Room {
    /// What is used.
    pub fn used(&self) -> Capacity {
        let Room { total, free } = self;
        Capacity {
            cpu_thousandths: total.cpu_thousandths.saturating_sub(free.cpu_thousandths),
            memory_bytes: total.memory_bytes.saturating_sub(free.memory_bytes),
            disk_bytes: total.disk_bytes.saturating_sub(free.disk_bytes),
        }
    }
}

/// This machine's: its processors, its memory as far as `group` may use it, and the disk that holds `path`.
pub(crate) fn here(path: &Path, group: Option<&Hierarchy>) -> io::Result<Room> {
    let processors = std::thread::available_parallelism()?.get() as u64 * 1000;
    let load = rustix::system::sysinfo().loads[0];
    // A load of one is 65,536.
    let busy = load.saturating_mul(1000) >> 16;
    let meminfo = std::fs::read_to_string("/proc/meminfo")?;
    let (memory, free_memory) = within(
        (
            memory(&meminfo, "MemTotal")?,
            memory(&meminfo, "MemAvailable")?,
        ),
        group.and_then(Hierarchy::memory),
    );
    let disk = rustix::fs::statvfs(path)?;
    Ok(Room {
        total: Capacity {
            cpu_thousandths: processors,
            memory_bytes: memory,
            disk_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        },
        free: Capacity {
            cpu_thousandths: processors.saturating_sub(busy),
            memory_bytes: free_memory,
            disk_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        },
    })
}

/// What a group has of a machine's memory: of all of it, and of what is free.
fn within((total, free): (u64, u64), allowed: Option<Memory>) -> (u64, u64) {
    match allowed {
        Some(allowed) => (total.min(allowed.most), free.min(allowed.left)),
        None => (total, free),
    }
}

/// A line of `/proc/meminfo`, in bytes.
fn memory(meminfo: &str, name: &str) -> io::Result<u64> {
    let line = |line: &str| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        let kibibytes = value.trim().strip_suffix("kB")?.trim().parse::<u64>();
        Some(kibibytes.ok()? << 10)
    };
    let found = meminfo.lines().find_map(line);
    found.ok_or_else(|| io::Error::other(format!("/proc/meminfo does not tell {name}")))
}

#[cfg(test)]
mod tests {
    use sandbox_linux::cgroup::Version;

    use super::*;

    #[test]
    fn a_machine_has_something_and_not_all_of_it_is_free() {
        let room = here(Path::new("/"), None).unwrap();
        let Room { total, free } = room;
        assert!(total.cpu_thousandths >= 1000);
        assert!(free.memory_bytes > 0 && free.memory_bytes < total.memory_bytes);
        assert!(free.disk_bytes < total.disk_bytes);
        assert_eq!(
            room.used().memory_bytes + free.memory_bytes,
            total.memory_bytes
        );
    }

    #[test]
    fn no_more_memory_is_there_than_the_servers_group_may_use() {
        let top = tempfile::tempdir().unwrap();
        for (file, text) in [("memory.max", "1048576"), ("memory.current", "1000000")] {
            std::fs::write(top.path().join(file), text).unwrap();
        }
        let group = Hierarchy {
            version: Version::V2,
            own: top.path().to_owned(),
            top: top.path().to_owned(),
        };
        let Room { total, free } = here(Path::new("/"), Some(&group)).unwrap();
        assert_eq!((total.memory_bytes, free.memory_bytes), (1_048_576, 48_576));
    }

    #[test]
    fn a_group_that_may_use_more_than_there_is_has_what_there_is() {
        let wide = Memory {
            most: u64::MAX,
            left: 30,
        };
        assert_eq!(within((100, 50), Some(wide)), (100, 30));
        assert_eq!(within((100, 20), Some(wide)), (100, 20));
        assert_eq!(within((100, 50), None), (100, 50));
    }

    #[test]
    fn memory_is_told_in_kibibytes() {
        let text = "MemTotal:       24610364 kB\nMemAvailable:   100 kB\n";
        assert_eq!(memory(text, "MemAvailable").unwrap(), 102_400);
        assert!(memory(text, "Mem").is_err());
    }
}
