//! What a server may leave behind when it has ended: nothing but its data.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;
use sandbox_tests::{await_exit, control_groups, mounts_below};

/// How long the kernel may take to end what lost its init.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a program might leave files that belong elsewhere.
const PLACES: [&str; 6] = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib", "/root"];

/// Whom sessions belong to when the server is root: one user, and each its own above these.
const SESSIONS: u32 = 59_999;
const LOWEST: u32 = 1_900_000_000;

/// What was there before the server was.
#[derive(Debug)]
pub(crate) struct Surroundings {
    entries: BTreeSet<PathBuf>,
}

impl Surroundings {
    pub(crate) fn look() -> Surroundings {
        Surroundings { entries: entries() }
    }

    /// Fails when there is something new that is a server's. Other tests run beside this one, and have
    /// their own things there.
    #[track_caller]
    pub(crate) fn must_be_as_before(&self) {
        for new in entries().difference(&self.entries) {
            let name = new.file_name().unwrap_or_default().to_string_lossy();
            let is_a_tests = name.starts_with("sandbox-test");
            let is_ours = name.contains("sandbox") || name.starts_with("sess_");
            let is_a_sessions = fs::symlink_metadata(new)
                .is_ok_and(|meta| meta.uid() == SESSIONS || meta.uid() >= LOWEST);
            let is_left = (is_ours && !is_a_tests) || is_a_sessions;
            assert!(!is_left, "it left {}", new.display());
        }
    }
}

fn entries() -> BTreeSet<PathBuf> {
    let read = |place: &&str| fs::read_dir(place).into_iter().flatten().flatten();
    PLACES
        .iter()
        .flat_map(read)
        .map(|entry| entry.path())
        .collect()
}

/// The processes of the server at `base`: those that run its binary, which is in there, and those that see
/// something of it, whatever they run.
pub(crate) fn processes(base: &Path) -> Vec<Pid> {
    let text = base.to_str().expect("a plain path");
    let is_ours = |process: &Path| {
        fs::read_link(process.join("exe")).is_ok_and(|program| program.starts_with(base))
            || fs::read_to_string(process.join("mountinfo")).is_ok_and(|table| table.contains(text))
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let ours = all.filter(|entry| is_ours(&entry.path()));
    let numbers = ours.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

/// Fails when a process of the server at `base` or a mount below there is left.
#[track_caller]
pub(crate) fn must_have_ended(base: &Path) {
    let mut left = self::processes(base);
    while !left.is_empty() {
        for pid in left {
            let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            let command = String::from_utf8_lossy(&command.unwrap_or_default()).replace('\0', " ");
            assert!(
                await_exit(pid, PATIENCE),
                "process {pid:?} stays: {command}"
            );
        }
        left = self::processes(base);
    }
    let mounts = mounts_below(base);
    assert!(mounts.is_empty(), "mounts stay: {mounts:?}");
}

/// Fails when a process of the server at `base`, a mount below there, or a control group of one of
/// `processes` is left.
#[track_caller]
pub(crate) fn must_be_gone(base: &Path, processes: &[Pid]) {
    must_have_ended(base);
    let names: Vec<String> = processes
        .iter()
        .map(|pid| format!("-{}", pid.as_raw_nonzero()))
        .collect();
    let groups = control_groups("sandbox");
    let is_ours = |group: &&String| {
        let name = group.rsplit('/').next().unwrap_or_default();
        names.iter().any(|end| name.ends_with(end.as_str()))
    };
    let left: Vec<_> = groups.iter().filter(is_ours).collect();
    assert!(left.is_empty(), "control groups stay: {left:?}");
}
