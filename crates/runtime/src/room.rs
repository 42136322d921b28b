//! What a host has, and what of it is free.
//!
//! Sessions are promised more than they use, so what counts is what is used: by everybody on the host,
//! as the kernel tells it.

use std::io;
use std::path::Path;

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

/// This machine's: its processors, its memory, and the disk that holds `path`.
pub(crate) fn here(path: &Path) -> io::Result<Room> {
    let processors = std::thread::available_parallelism()?.get() as u64 * 1000;
    let load = rustix::system::sysinfo().loads[0];
    // A load of one is 65,536.
    let busy = load.saturating_mul(1000) >> 16;
    let meminfo = std::fs::read_to_string("/proc/meminfo")?;
    let disk = rustix::fs::statvfs(path)?;
    Ok(Room {
        total: Capacity {
            cpu_thousandths: processors,
            memory_bytes: memory(&meminfo, "MemTotal")?,
            disk_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        },
        free: Capacity {
            cpu_thousandths: processors.saturating_sub(busy),
            memory_bytes: memory(&meminfo, "MemAvailable")?,
            disk_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        },
    })
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
    use super::*;

    #[test]
    fn a_machine_has_something_and_not_all_of_it_is_free() {
        let room = here(Path::new("/")).unwrap();
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
    fn memory_is_told_in_kibibytes() {
        let text = "MemTotal:       24610364 kB\nMemAvailable:   100 kB\n";
        assert_eq!(memory(text, "MemAvailable").unwrap(), 102_400);
        assert!(memory(text, "Mem").is_err());
    }
}
