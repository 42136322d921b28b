//! Disk space of files that have no name any more but are still open.
//!
//! No walk through a tree meets them. They are found where they are held: among the descriptors of the
//! processes that may have them. What is only mapped, or on its way through a socket, is not found.

use std::collections::HashSet;
use std::path::Path;

use rustix::fs::FileType;

/// Files in memory are memory, not disk.
const TMPFS: u64 = 0x0102_1994;

/// Disk space of the unlinked files that `processes` hold open, each counted once.
pub(crate) fn space(processes: impl Iterator<Item = i32>) -> u64 {
    let mut seen = HashSet::new();
    let mut total = 0;
    for pid in processes {
        // It may have ended, or look at itself from behind a wall of its own.
        let held = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for descriptor in held.into_iter().flatten().flatten() {
            total += unlinked(&descriptor.path(), &mut seen).unwrap_or(0);
        }
    }
    total
}

fn unlinked(descriptor: &Path, seen: &mut HashSet<(u64, u64)>) -> Option<u64> {
    let found = rustix::fs::stat(descriptor).ok()?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if !is_file || found.st_nlink > 0 || !seen.insert((found.st_dev, found.st_ino)) {
        return None;
    }
    let filesystem = rustix::fs::statfs(descriptor).ok()?;
    (filesystem.f_type as u64 != TMPFS).then_some(found.st_blocks as u64 * 512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_without_a_name_counts_as_long_as_it_is_open() {
        let own = || [std::process::id() as i32].into_iter();
        let before = space(own());
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("file");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        let _again = file.try_clone().unwrap();
        assert_eq!(space(own()), before);
        std::fs::remove_file(&path).unwrap();
        let grown = space(own()) - before;
        assert!((1 << 20..2 << 20).contains(&grown), "{grown}");
        // One in memory does not.
        let memory = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&memory, &vec![1; 1 << 20]).unwrap();
        assert_eq!(space(own()) - before, grown);
    }
}
