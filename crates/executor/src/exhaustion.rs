//! Telling a failure for want of something from others.
//!
//! The executor knows what was killed for memory and disk space, and what the system told it when a process could not be
//! started. What the system tells code it tells nobody else: there only what the code prints of it is left to go by, which
//! is the system's own words in every language that we run.

use rustix::io::Errno;
use rustix::process::Signal;
use sandbox_isolation::LaunchError;
use sandbox_isolation::keeper::Kills;
use sandbox_model::execution::FailureCause;

/// What a session has too little of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhaustion {
    Disk,
    Memory,
    Processes,
}

/// The exit status, as a shell has it, of what the kernel killed for a file that is larger than everything may be.
const FILE_TOO_LARGE: i32 = 128 + Signal::XFSZ.as_raw();

/// What programs print of ENOSPC, EDQUOT and EFBIG: the last is what the limit of a session's disk makes of a single
/// file that is too large for it.
const DISK: [&str; 7] = [
    "No space left on device",
    "ENOSPC: no space left on device",
    "Disk quota exceeded",
    "EDQUOT: ",
    ": File too large",
    "[Errno 27] File too large",
    "EFBIG: ",
];

/// What they print of EAGAIN. Sockets have it, too: only with the second it is a process that could not be started.
const PROCESSES: [(&str, &str); 6] = [
    ("Resource temporarily unavailable", "fork"),
    ("Resource temporarily unavailable", "pthread_create"),
    // Node.js cannot do without its threads.
    ("Assertion failed", "uv_thread_create"),
    ("can't start new thread", ""),
    ("EAGAIN", "spawn"),
    ("EAGAIN", "fork"),
];

impl Exhaustion {
    /// For what something was killed between these two.
    pub(crate) fn between(before: Kills, after: Kills) -> Option<Exhaustion> {
        match (after.disk > before.disk, after.memory > before.memory) {
            (true, _) => Some(Exhaustion::Disk),
            (_, true) => Some(Exhaustion::Memory),
            _ => None,
        }
    }

    /// For what something could not be started.
    pub(crate) fn of_launch(error: &LaunchError) -> Option<Exhaustion> {
        let (LaunchError::Step { source, .. } | LaunchError::Exec { source, .. }) = error else {
            return None;
        };
        match Errno::from_io_error(source)? {
            Errno::AGAIN => Some(Exhaustion::Processes),
            Errno::NOSPC | Errno::DQUOT => Some(Exhaustion::Disk),
            _ => None,
        }
    }

    /// For what code failed that ended with this exit status and printed this last.
    pub(crate) fn of_code(exit_code: i32, printed: &str) -> Option<Exhaustion> {
        let has = |words: &str| printed.contains(words);
        if exit_code == FILE_TOO_LARGE || DISK.iter().any(|words| has(words)) {
            return Some(Exhaustion::Disk);
        }
        let is_of_processes = |(one, other): &(&str, &str)| has(one) && has(other);
        let no_process = PROCESSES.iter().any(is_of_processes);
        no_process.then_some(Exhaustion::Processes)
    }

    /// As the result tells it. What is killed for memory has its exit status.
    pub(crate) fn cause(self) -> Option<FailureCause> {
        match self {
            Exhaustion::Disk => Some(FailureCause::DiskFull),
            Exhaustion::Processes => Some(FailureCause::ProcessLimit),
            Exhaustion::Memory => None,
        }
    }

    /// What is full, and what to do, for people.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Exhaustion::Disk => {
                "the session's disk is full: remove files, or create a session with more resources.disk (where the host's \
                 own disk is full, make room there)"
            }
            Exhaustion::Memory => {
                "killed: the session's memory is used up; use less at once, or one with more memory"
            }
            Exhaustion::Processes => {
                "the session has as many processes as it may have: wait until other executions have ended, or create a \
                 session with more resources.max_processes"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_system_tell_what_is_exhausted() {
        let disk = Some(Exhaustion::Disk);
        let processes = Some(Exhaustion::Processes);
        for (printed, expected) in [
            ("cp: error writing 'b': No space left on device\n", disk),
            ("OSError: [Errno 28] No space left on device\n", disk),
            ("Error: ENOSPC: no space left on device, write\n", disk),
            ("OSError: [Errno 122] Disk quota exceeded: 'x'\n", disk),
            ("fallocate: fallocate failed: File too large\n", disk),
            (
                "bash: fork: retry: Resource temporarily unavailable\n",
                processes,
            ),
            ("RuntimeError: can't start new thread\n", processes),
            ("Error: spawn ls EAGAIN\n", processes),
            (
                "Assertion failed: (0) == (uv_thread_create(t.get(), start_thread, this))\n",
                processes,
            ),
            (
                "BlockingIOError: [Errno 11] Resource temporarily unavailable\n",
                None,
            ),
            ("the file is too large for this tool\n", None),
            ("", None),
        ] {
            assert_eq!(Exhaustion::of_code(1, printed), expected, "{printed}");
        }
        assert_eq!(Exhaustion::of_code(153, ""), disk);
    }

    #[test]
    fn a_process_that_is_refused_is_told_from_other_failures() {
        let failed = |errno: Errno| LaunchError::Step {
            step: "start a process".to_owned(),
            source: errno.into(),
            hint: None,
        };
        let of = |errno| Exhaustion::of_launch(&failed(errno));
        assert_eq!(of(Errno::AGAIN), Some(Exhaustion::Processes));
        assert_eq!(of(Errno::NOSPC), Some(Exhaustion::Disk));
        assert_eq!(of(Errno::PERM), None);
    }
}
