//! What a command may leave behind: nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

use crate::process::await_exit;

/// Processes whose environment holds `mark`. Everything started below a fixture does, the
/// sandbox's own init included, unless it rewrote its environment.
pub fn marked_processes(mark: &str) -> Vec<(Pid, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        let Ok(environment) = fs::read(entry.path().join("environ")) else {
            continue;
        };
        if contains(&environment, mark.as_bytes()) {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.extend(Pid::from_raw(pid).map(|pid| (pid, command)));
        }
    }
    found
}

/// Waits, by events, for every marked process to be gone; names those that stay.
pub fn wait_until_gone(mark: &str, patience: Duration) -> Result<(), String> {
    for _ in 0..100 {
        let left = marked_processes(mark);
        if left.is_empty() {
            return Ok(());
        }
        for (pid, command) in &left {
            if !await_exit(*pid, patience) {
                return Err(format!("process {pid:?} stays: {command}"));
            }
        }
    }
    Err(String::from("new processes keep appearing"))
}

/// Mount points at or below `base` in this mount namespace.
pub fn mounts_below(base: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
    let base = base.to_str().expect("a plain path");
    table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .filter(|point| {
            point
                .strip_prefix(base)
                .is_some_and(|r| r.is_empty() || r.starts_with('/'))
        })
        .map(str::to_owned)
        .collect()
}

/// Control groups named after `name`, in any hierarchy.
pub fn control_groups(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = pending.pop() {
        // A group may vanish while we look: another test's.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().contains(name) {
                    found.push(entry.path().display().to_string());
                }
                pending.push(entry.path());
            }
        }
    }
    found
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
