//! Processes of this machine, whoever started them.

use std::fs;

use rustix::process::Pid;

use crate::eventually;

/// A number of seconds to sleep that nobody else sleeps, so that who does can be found.
pub fn unlikely(seconds: u32, purpose: u32) -> String {
    format!("{seconds}.{purpose:03}{}", std::process::id())
}

/// Those that were started with this word among their arguments.
pub fn started_with(word: &str) -> Vec<Pid> {
    let is_it = |pid: &Pid| {
        let command = fs::read(file(*pid, "cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0);
        words.any(|found| found == word.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).filter(is_it).collect()
}

/// What `/proc/PID/status` says of a process, under this name.
pub fn status(pid: Pid, name: &str) -> Option<String> {
    let status = fs::read_to_string(file(pid, "status")).ok()?;
    let prefix = format!("{name}:");
    let line = status.lines().find_map(|line| line.strip_prefix(&prefix));
    line.map(|line| line.trim().to_owned())
}

/// Who started it.
pub fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(status(pid, "PPid")?.parse().ok()?)
}

fn file(pid: Pid, name: &str) -> String {
    format!("/proc/{}/{name}", pid.as_raw_nonzero())
}

/// The executor of whoever was started with `word`: the process above it that is first in a namespace of its own, and
/// in no other one.
#[track_caller]
pub fn executor(word: &str) -> Pid {
    let inside = eventually("it runs", || started_with(word).pop());
    let mut above = std::iter::successors(Some(inside), |pid| parent(*pid));
    let is_first = |pid: &Pid| {
        let numbers = status(*pid, "NSpid").unwrap_or_default();
        let numbers: Vec<_> = numbers.split_whitespace().collect();
        numbers.len() == 2 && numbers[1] == "1"
    };
    above.find(is_first).expect("an executor above it")
}
