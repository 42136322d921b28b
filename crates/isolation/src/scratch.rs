//! Scratch directories of overlays.
//!
//! An overlay wants an empty directory beside its layer, fills it with bookkeeping, and leaves that
//! behind. Removing it is the slowest thing a launch could do, so there are several slots in each
//! place where an overlay is: a run mounts on a clean one, and tidies the others while its command
//! runs.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, unlinkat};
use sandbox_model::WorkspaceMount;

use crate::facts::Facts;
use crate::policy::Policy;

/// How many slots there are at most.
const MOST: usize = 16;

/// How many of them stay when they are tidied: one to mount on, one to tidy.
const KEPT: usize = 2;

/// A disk that takes longer than this for one step is busy with something else.
const SLOW: Duration = Duration::from_micros(500);

/// A command that runs this long leaves time to tidy up.
const SOON: Duration = Duration::from_millis(50);

/// Between two steps; a busy disk makes each of them slow.
const PAUSE: Duration = Duration::from_millis(5);

/// What an overlay makes in its slot, and all that makes a slot dirty.
pub(crate) const BOOKKEEPING: &str = "work";

/// What a volatile overlay leaves, known by name, from the inside out.
const LEFT: [(&str, AtFlags); 4] = [
    ("work/incompat/volatile/dirty", AtFlags::empty()),
    ("work/incompat/volatile", AtFlags::REMOVEDIR),
    ("work/incompat", AtFlags::REMOVEDIR),
    (BOOKKEEPING, AtFlags::REMOVEDIR),
];

/// The directories in which `policy`'s overlays have their slots.
pub(crate) fn places(policy: &Policy, facts: &Facts) -> Vec<PathBuf> {
    let workspace = match &policy.workspace {
        WorkspaceMount::Overlay { work, .. } => Some(work.clone()),
        WorkspaceMount::Bind { .. } => None,
    };
    let home = facts.home.as_ref().map(|home| home.work.clone());
    workspace.into_iter().chain(home).collect()
}

/// The slot for a run that mounts afresh, and the slots it leaves to be tidied. No overlay of the
/// sandbox may be mounted.
pub(crate) fn choose(places: &[PathBuf]) -> (String, Leftovers) {
    let mut dirty: BTreeSet<usize> = places.iter().flat_map(|place| dirty_slots(place)).collect();
    let clean = (0..MOST).find(|slot| !dirty.contains(slot));
    let chosen = clean.unwrap_or_else(|| {
        // Runs came faster than they could be tidied up after, or were killed.
        let mut first = Leftovers::of(places, [0]);
        while first.step() {}
        dirty.remove(&0);
        0
    });
    (chosen.to_string(), Leftovers::of(places, dirty))
}

fn dirty_slots(place: &Path) -> Vec<usize> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let bookkeeping = entry.path().join(BOOKKEEPING);
            bookkeeping.symlink_metadata().is_ok()
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Slots to be tidied, step by step.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    steps: VecDeque<Step>,
    due: Option<Instant>,
}

/// One thing to remove.
#[derive(Debug)]
struct Step {
    slot: PathBuf,
    name: &'static str,
    how: AtFlags,
}

impl Leftovers {
    fn of(places: &[PathBuf], slots: impl IntoIterator<Item = usize>) -> Leftovers {
        let mut steps = VecDeque::new();
        for number in slots {
            for place in places {
                let slot = place.join(number.to_string());
                let rest = (number >= KEPT).then_some(("", AtFlags::REMOVEDIR));
                steps.extend(LEFT.into_iter().chain(rest).map(|(name, how)| Step {
                    slot: slot.clone(),
                    name,
                    how,
                }));
            }
        }
        let due = Some(Instant::now() + SOON);
        Leftovers { steps, due }
    }

    /// Takes steps for as long as there is nothing else to do, and none of them is slow.
    pub(crate) fn steps_while(&mut self, idle: impl Fn() -> bool) {
        while idle() {
            let begin = Instant::now();
            if !self.step() || begin.elapsed() > SLOW {
                return;
            }
        }
    }

    /// When to take the next step, where a command leaves time for it.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.steps.is_empty())
    }

    /// Removes one thing; `false` when there was nothing left to remove.
    pub(crate) fn step(&mut self) -> bool {
        let Some(step) = self.steps.pop_front() else {
            return false;
        };
        self.due = Some(Instant::now() + PAUSE);
        step.take();
        true
    }
}

impl Step {
    fn take(&self) {
        if self.how.is_empty() {
            for (directory, _) in LEFT.iter().skip(1).rev() {
                open_up(&self.slot.join(directory));
            }
        }
        let path = self.slot.join(self.name);
        let removed = unlinkat(CWD, &path, self.how);
        // Something unexpected lies in it: the long way.
        if self.name == BOOKKEEPING && removed == Err(rustix::io::Errno::NOTEMPTY) {
            remove_all(&path);
        }
    }
}

/// The overlay makes its directories unsearchable even for their owner.
fn open_up(directory: &Path) {
    let _ = rustix::fs::chmod(directory, Mode::RWXU);
}

fn remove_all(directory: &Path) {
    open_up(directory);
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_all(&entry.path());
        } else {
            let _ = unlinkat(CWD, entry.path(), AtFlags::empty());
        }
    }
    let _ = unlinkat(CWD, directory, AtFlags::REMOVEDIR);
}

/// Makes `slot` where it is missing.
pub(crate) fn make(slot: &Path) -> std::io::Result<()> {
    match rustix::fs::mkdir(slot, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mount(place: &Path, slot: &str) {
        let volatile = place.join(slot).join("work/incompat/volatile");
        std::fs::create_dir_all(&volatile).unwrap();
        std::fs::write(volatile.join("dirty"), "").unwrap();
        for closed in ["work/incompat/volatile", "work/incompat", "work"] {
            let nothing = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(place.join(slot).join(closed), nothing).unwrap();
        }
    }

    fn is_clean(place: &Path, slot: &str) -> bool {
        place.join(slot).join("work").symlink_metadata().is_err()
    }

    #[test]
    fn slots_take_turns_and_the_other_is_tidied() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().to_owned()];
        for expected in ["0", "1", "0", "1"] {
            let (slot, mut leftovers) = choose(&places);
            assert_eq!(slot, expected);
            mount(directory.path(), &slot);
            while leftovers.step() {}
            assert_eq!(leftovers.due(), None);
            let other = if slot == "0" { "1" } else { "0" };
            assert!(is_clean(directory.path(), other));
        }
    }

    #[test]
    fn with_all_slots_dirty_one_is_tidied_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("a"), directory.path().join("b")];
        for slot in 0..MOST {
            mount(&places[slot % 2], &slot.to_string());
        }
        std::fs::write(places[0].join("0/work/incompat/volatile/unexpected"), "").unwrap();
        let (slot, mut leftovers) = choose(&places);
        assert_eq!(slot, "0");
        assert!(places.iter().all(|place| is_clean(place, "0")));
        assert!(leftovers.due().is_some());
        while leftovers.step() {}
        for slot in 1..MOST {
            assert!(
                places
                    .iter()
                    .all(|place| is_clean(place, &slot.to_string()))
            );
        }
    }

    #[test]
    fn what_is_left_while_there_is_no_time_stays_for_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().to_owned()];
        mount(directory.path(), "0");
        let (slot, mut leftovers) = choose(&places);
        leftovers.steps_while(|| false);
        mount(directory.path(), &slot);
        let (next, mut leftovers) = choose(&places);
        assert_eq!((slot.as_str(), next.as_str()), ("1", "2"));
        while leftovers.step() {}
        assert!(is_clean(directory.path(), "0") && is_clean(directory.path(), "1"));
        mount(directory.path(), &next);
        let (_, mut leftovers) = choose(&places);
        while leftovers.step() {}
        let left = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, KEPT, "no more slots than are needed stay");
    }
}
