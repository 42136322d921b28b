//! What memory a group is left, by its own limit and by those of the groups above it.

use std::fs;
use std::path::Path;

use super::{Hierarchy, Version};

/// What memory a group may use, in bytes. Where nothing limits it, there is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The lowest limit.
    pub most: u64,
    /// How much more it may use until one of its limits is reached. What files have in memory gives way, and
    /// counts as free.
    pub left: u64,
}

impl Hierarchy {
    /// What memory the caller's group may use, as far up as its hierarchy is mounted here: a container sees its own
    /// limit, and not those of the machine around it.
    pub fn memory(&self) -> Option<Memory> {
        let groups = self.own.ancestors();
        let groups = groups.take_while(|group| group.starts_with(&self.top));
        let limits = groups.filter_map(|group| limit_of(group, self.version));
        limits.reduce(|one, other| Memory {
            most: one.most.min(other.most),
            left: one.left.min(other.left),
        })
    }
}

/// What a group may use by its own limit, if it has one.
fn limit_of(group: &Path, version: Version) -> Option<Memory> {
    let (most, used, cached) = match version {
        Version::V1 => (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            // Without these, of the group alone, and not of those in it.
            ["total_inactive_file ", "total_active_file "],
        ),
        Version::V2 => (
            "memory.max",
            "memory.current",
            ["inactive_file ", "active_file "],
        ),
    };
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    // The word for no limit is no number. Version 1 has no word for it, and a number that no machine reaches.
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let (most, used) = (number(most)?, number(used)?);
    let stat = read("memory.stat").unwrap_or_default();
    let cached = cached.iter().filter_map(|name| {
        let mut lines = stat.lines();
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u64>().ok()
    });
    let used = used.saturating_sub(cached.sum());
    Some(Memory {
        most,
        left: most.saturating_sub(used),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBI: u64 = 1 << 20;

    fn group(at: &Path, files: &[(&str, String)]) {
        fs::create_dir_all(at).unwrap();
        for (name, text) in files {
            fs::write(at.join(name), format!("{text}\n")).unwrap();
        }
    }

    fn of_version_2(at: &Path, most: &str, used: u64, cached: u64) {
        let stat = format!(
            "anon 5\nfile {}\ninactive_anon 9\ninactive_file {cached}\nactive_file {cached}\nshmem 7",
            2 * cached
        );
        let files = [
            ("memory.max", most.to_owned()),
            ("memory.current", used.to_string()),
            ("memory.stat", stat),
        ];
        group(at, &files);
    }

    fn hierarchy(version: Version, top: &Path, own: &str) -> Hierarchy {
        Hierarchy {
            version,
            own: top.join(own),
            top: top.to_owned(),
        }
    }

    #[test]
    fn the_closest_limit_of_version_2_counts_and_files_give_way() {
        let mount = tempfile::tempdir().unwrap();
        // What is outside of the hierarchy is not looked at.
        of_version_2(mount.path(), "1", 1, 0);
        let top = mount.path().join("cgroup");
        group(&top, &[("memory.stat", String::new())]);
        of_version_2(
            &top.join("a"),
            &(512 * MEBI).to_string(),
            400 * MEBI,
            50 * MEBI,
        );
        of_version_2(&top.join("a/b"), &(600 * MEBI).to_string(), 100 * MEBI, 0);
        of_version_2(&top.join("a/b/c"), "max", 100 * MEBI, 0);
        let own = hierarchy(Version::V2, &top, "a/b/c");
        let memory = Memory {
            most: 512 * MEBI,
            left: 212 * MEBI,
        };
        assert_eq!(own.memory(), Some(memory));
        // One that is over its limit, as it may be for a moment.
        of_version_2(&top.join("a/b"), &MEBI.to_string(), 2 * MEBI, 0);
        let memory = Memory {
            most: MEBI,
            left: 0,
        };
        assert_eq!(own.memory(), Some(memory));
    }

    #[test]
    fn a_group_of_version_1_counts_with_those_in_it() {
        let top = tempfile::tempdir().unwrap();
        let stat = "inactive_file 1\nactive_file 1\ntotal_inactive_file 1048576\ntotal_active_file 2097152";
        let files = [
            ("memory.limit_in_bytes", (64 * MEBI).to_string()),
            ("memory.usage_in_bytes", (13 * MEBI).to_string()),
            ("memory.stat", stat.to_owned()),
        ];
        group(top.path(), &files);
        let unlimited = [
            ("memory.limit_in_bytes", "9223372036854771712".to_owned()),
            ("memory.usage_in_bytes", MEBI.to_string()),
            ("memory.stat", String::new()),
        ];
        group(&top.path().join("a"), &unlimited);
        let memory = Memory {
            most: 64 * MEBI,
            left: 54 * MEBI,
        };
        let own = hierarchy(Version::V1, top.path(), "a");
        assert_eq!(own.memory(), Some(memory));
    }

    #[test]
    fn where_nothing_limits_it_there_is_no_number() {
        let top = tempfile::tempdir().unwrap();
        assert_eq!(hierarchy(Version::V2, top.path(), "a/b").memory(), None);
        of_version_2(&top.path().join("a"), "max", MEBI, 0);
        assert_eq!(hierarchy(Version::V2, top.path(), "a").memory(), None);
    }
}
