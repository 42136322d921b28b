//! Scratch directories of overlays that are gone.
//!
//! Every overlay mount gets a scratch directory of its own, because one that was used before has to
//! be emptied first, and removing directories is the slowest thing a launch could do. What earlier
//! runs left is removed when there is nothing else to do: step by step while a command runs, and
//! while the kernel takes the sandbox down, then at least as many as this run leaves itself.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, unlinkat};

use crate::plan::{Mount, Plan};

/// A command that runs this long leaves time to tidy up.
const SOON: Duration = Duration::from_millis(50);

/// Between two steps; a busy disk makes each of them slow.
const PAUSE: Duration = Duration::from_millis(5);

/// How long the kernel takes at least to take a sandbox down.
const MOMENT: Duration = Duration::from_micros(200);

/// Scratch directories that may be removed.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Scratch directories in use, each among those that are not; looked at when there is time.
    used: Vec<PathBuf>,
    /// How many this run uses.
    own: usize,
    /// Found beside them, in turns.
    found: VecDeque<PathBuf>,
    due: Option<Instant>,
}

impl Leftovers {
    /// What lies beside the scratch directories of `plan`. Only for a run that mounted afresh: then
    /// no overlay of the sandbox is mounted but its own.
    pub(crate) fn of(plan: &Plan) -> Leftovers {
        let used: Vec<PathBuf> = plan
            .operations
            .iter()
            .filter_map(|operation| match &operation.mount {
                Mount::Overlay { work, .. } | Mount::Home { work, .. } => Some(work.clone()),
                _ => None,
            })
            .collect();
        Leftovers {
            own: used.len(),
            used,
            found: VecDeque::new(),
            due: Some(Instant::now() + SOON),
        }
    }

    /// When to remove the next.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Removes one.
    pub(crate) fn step(&mut self) {
        self.look();
        let next = self.found.pop_front();
        self.due = next.as_ref().map(|_| Instant::now() + PAUSE);
        if let Some(leftover) = next {
            remove(&leftover, None);
        }
    }

    /// Removes as many as this run will leave itself, so that they never pile up, and then as many
    /// as the moment allows.
    pub(crate) fn last_steps(&mut self) {
        let end = Instant::now() + MOMENT;
        self.look();
        for leftover in self.found.drain(..self.own.min(self.found.len())) {
            remove(&leftover, None);
        }
        while let Some(leftover) = self.found.pop_front() {
            if remove(&leftover, Some(end)) == Removed::InPart {
                return;
            }
        }
    }

    fn look(&mut self) {
        let used = std::mem::take(&mut self.used);
        let mut places: Vec<_> = used.iter().map(|used| siblings(used)).collect();
        while places.iter().any(|place| !place.is_empty()) {
            self.found.extend(places.iter_mut().filter_map(Vec::pop));
        }
    }
}

fn siblings(used: &Path) -> Vec<PathBuf> {
    let entries = used
        .parent()
        .and_then(|parent| std::fs::read_dir(parent).ok());
    let paths = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    paths.filter(|path| path != used).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removed {
    Whole,
    /// Time was up; the rest stays for a later run.
    InPart,
}

/// Removes what a volatile overlay leaves, known by name, from the inside out; anything else the
/// long way.
fn remove(leftover: &Path, end: Option<Instant>) -> Removed {
    let inside = |name: &str| leftover.join(name);
    // The overlay makes its directory unsearchable even for its owner.
    let _ = rustix::fs::chmod(inside("work"), Mode::RWXU);
    let _ = unlinkat(
        CWD,
        inside("work/incompat/volatile/dirty"),
        AtFlags::empty(),
    );
    for name in ["work/incompat/volatile", "work/incompat", "work"] {
        if end.is_some_and(|end| Instant::now() >= end) {
            return Removed::InPart;
        }
        let _ = unlinkat(CWD, inside(name), AtFlags::REMOVEDIR);
    }
    if unlinkat(CWD, leftover, AtFlags::REMOVEDIR).is_err() {
        let _ = std::fs::remove_dir_all(leftover);
    }
    Removed::Whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn directory_with(names: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let volatile = directory.path().join(name).join("work/incompat/volatile");
            std::fs::create_dir_all(&volatile).unwrap();
            std::fs::write(volatile.join("dirty"), "").unwrap();
            let closed = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(directory.path().join(name).join("work"), closed).unwrap();
        }
        directory
    }

    fn names(directory: &tempfile::TempDir) -> Vec<std::ffi::OsString> {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        entries.flatten().map(|entry| entry.file_name()).collect()
    }

    #[test]
    fn what_others_left_goes_step_by_step_and_what_is_used_stays() {
        let directory = directory_with(&["old", "older", "used"]);
        std::fs::write(directory.path().join("older/unexpected"), "").unwrap();
        let mut leftovers = Leftovers {
            used: vec![directory.path().join("used")],
            ..Leftovers::default()
        };
        leftovers.step();
        assert_eq!(names(&directory).len(), 2);
        assert!(leftovers.due().is_some());
        leftovers.step();
        leftovers.step();
        assert_eq!(names(&directory), ["used"]);
        assert_eq!(leftovers.due(), None);
    }

    #[test]
    fn each_run_removes_at_least_as_many_as_it_leaves() {
        let directory = directory_with(&["a", "b", "c", "used"]);
        let mut leftovers = Leftovers {
            used: vec![directory.path().join("used")],
            own: 2,
            ..Leftovers::default()
        };
        leftovers.last_steps();
        assert!(names(&directory).len() <= 2, "{:?}", names(&directory));
        assert!(directory.path().join("used").exists());
    }

    #[test]
    fn a_run_that_joined_removes_nothing() {
        let mut leftovers = Leftovers::default();
        leftovers.step();
        leftovers.last_steps();
        assert_eq!(leftovers.due(), None);
    }
}
