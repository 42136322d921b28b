//! Scratch directories of overlays that are gone.
//!
//! Every overlay mount gets a scratch directory of its own, because one that was used before has to
//! be emptied first, and removing directories is the slowest thing a launch could do. What earlier
//! runs left is removed while a later one's command runs and there is nothing else to do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::Mode;

use crate::plan::{Mount, Plan};

/// A command that runs this long leaves time to tidy up.
const SOON: Duration = Duration::from_millis(50);

/// Scratch directories that may be removed.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Scratch directories in use, each among those that are not.
    used: Vec<PathBuf>,
    due: Option<Instant>,
}

impl Leftovers {
    /// What lies beside the scratch directories of `plan`. Only for a run that mounted afresh: then
    /// no overlay of the sandbox is mounted but its own.
    pub(crate) fn of(plan: &Plan) -> Leftovers {
        let work = plan
            .operations
            .iter()
            .filter_map(|operation| match &operation.mount {
                Mount::Overlay { work, .. } | Mount::Home { work, .. } => Some(work.clone()),
                _ => None,
            });
        Leftovers {
            used: work.collect(),
            due: Some(Instant::now() + SOON),
        }
    }

    /// When to tidy up.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Tidies up, once.
    pub(crate) fn remove(&mut self) {
        self.due = None;
        for used in std::mem::take(&mut self.used) {
            remove_siblings(&used);
        }
    }

    /// For commands too short to tidy up meanwhile: now and then, by the run's own name.
    pub(crate) fn remove_sometimes(&mut self) {
        let chosen = |work: &PathBuf| {
            let name = work
                .file_name()
                .map(|name| name.as_encoded_bytes().to_vec());
            name.is_some_and(|name| name.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 32 == 0)
        };
        if self.due.is_some() && self.used.iter().any(chosen) {
            self.remove();
        }
    }
}

fn remove_siblings(used: &Path) {
    let Some(parent) = used.parent() else { return };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.path() != used {
            // The overlay makes its directories unsearchable even for their owner.
            for inner in ["work", "index"] {
                let _ = rustix::fs::chmod(entry.path().join(inner), Mode::RWXU);
            }
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_left_goes_and_what_is_used_stays() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["old", "older", "used"] {
            let inner = directory.path().join(name).join("work/incompat/volatile");
            std::fs::create_dir_all(inner).unwrap();
            let closed = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(directory.path().join(name).join("work"), closed).unwrap();
        }
        let used = vec![directory.path().join("used")];
        let mut leftovers = Leftovers {
            used,
            due: Some(Instant::now()),
        };
        leftovers.remove();
        let left: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .flatten()
            .collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "used");
        assert_eq!(leftovers.due(), None);
    }
}
