//! Processes of the host, as `/proc` tells of them.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;

/// A process inside, as seen from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its pid on the host.
    pub pid: i32,
    /// Its state letter.
    pub state: char,
    /// Its command line, for people.
    pub command: String,
    /// Resident memory, in bytes.
    pub memory: u64,
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) state: char,
    pub(crate) start_time: u64,
    pub(crate) resident_pages: u64,
}

/// Reads it; `None` when there is no such process.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the command's name in parentheses and may hold anything, parentheses and
/// spaces included; what follows the last one is numbers.
fn parse(pid: i32, text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Stat {
        pid,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
        resident_pages: fields.get(21)?.parse().ok()?,
    })
}

/// When a live process started; zombies count as ended.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    stat(pid)
        .filter(|stat| !matches!(stat.state, 'Z' | 'X'))
        .map(|stat| stat.start_time)
}

/// Every process that descends from `root`, itself first, parents before children. All processes of
/// a PID namespace descend from its init, whatever they do.
pub(crate) fn tree(root: i32) -> Vec<Stat> {
    let everyone: Vec<Stat> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .collect();
    let mut tree: Vec<Stat> = everyone
        .iter()
        .filter(|stat| stat.pid == root)
        .copied()
        .collect();
    let mut next = 0;
    while let Some(parent) = tree.get(next).map(|stat| stat.pid) {
        tree.extend(everyone.iter().filter(|stat| stat.parent == parent));
        next += 1;
    }
    tree
}

/// Has the process behind `pidfd` ended?
pub(crate) fn is_gone(pidfd: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    !matches!(
        rustix::event::poll(&mut watched, Some(&Timespec::default())),
        Ok(0)
    )
}

/// A process for people to read.
pub(crate) fn describe(stat: &Stat) -> Process {
    let line = std::fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
    let words = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let command = match words.is_empty() {
        true => std::fs::read_to_string(format!("/proc/{}/comm", stat.pid)).unwrap_or_default(),
        false => words.join(" "),
    };
    Process {
        pid: stat.pid,
        state: stat.state,
        command: command.trim_end().to_owned(),
        memory: stat.resident_pages * sandbox_linux::clone::page_size(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_hell_does_not_shift_the_fields() {
        let text = b"7 (a) S 1 (b) R 3 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 1000 55 18";
        let stat = parse(7, text).unwrap();
        assert_eq!((stat.state, stat.parent), ('R', 3));
        assert_eq!((stat.start_time, stat.resident_pages), (4242, 55));
    }

    #[test]
    fn this_process_is_in_its_own_tree() {
        let own = std::process::id() as i32;
        assert_eq!(tree(own).first().map(|stat| stat.pid), Some(own));
        assert!(start_time(own).is_some());
        assert!(start_time(i32::MAX).is_none());
    }
}
