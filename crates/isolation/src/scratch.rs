//! Scratch directories of overlays.
//!
//! An overlay wants an empty directory beside its layer, fills it with bookkeeping, and leaves that
//! behind. Removing it is the slowest thing a launch could do, so there are several slots in each
//! place where an overlay is: a run mounts on a clean one, and tidies the others while its init
//! makes the mounts, and while its command runs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, CWD, Mode, unlinkat};
use sandbox_model::WorkspaceMount;

use crate::facts::Facts;
use crate::policy::Policy;

/// How many slots there are at most.
const MOST: usize = 8;

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

/// The slot for a run that mounts afresh. No overlay of the sandbox may be mounted.
pub(crate) fn choose(places: &[PathBuf]) -> usize {
    // Any will do, but not always the same: a filesystem looks long for room where much was let go
    // of lately.
    let first = chance() % MOST;
    let clean = (first..first + MOST)
        .map(|slot| slot % MOST)
        .find(|slot| places.iter().all(|place| !is_dirty(place, *slot)));
    clean.unwrap_or_else(|| {
        // Runs came faster than they could be tidied up after, or were killed.
        let mut leftovers = Leftovers::of(places, [first]);
        while leftovers.step() {}
        first
    })
}

fn chance() -> usize {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.subsec_micros() as usize)
}

fn is_dirty(place: &Path, slot: usize) -> bool {
    let bookkeeping = place.join(slot.to_string()).join(BOOKKEEPING);
    bookkeeping.symlink_metadata().is_ok()
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
    /// What runs before left in `places`, where this one mounts on `chosen`.
    pub(crate) fn beside(chosen: usize, places: &[PathBuf]) -> Leftovers {
        let dirty = |slot: &usize| places.iter().any(|place| is_dirty(place, *slot));
        let others = (0..MOST).filter(|slot| *slot != chosen);
        Leftovers::of(places, others.filter(dirty))
    }

    fn of(places: &[PathBuf], slots: impl IntoIterator<Item = usize>) -> Leftovers {
        let mut steps = VecDeque::new();
        for number in slots {
            for place in places {
                let slot = place.join(number.to_string());
                steps.extend(LEFT.into_iter().map(|(name, how)| Step {
                    slot: slot.clone(),
                    name,
                    how,
                }));
            }
        }
        let due = Some(Instant::now() + SOON);
        Leftovers { steps, due }
    }

    /// Takes steps for as long as there is nothing else to do.
    pub(crate) fn steps_while(&mut self, idle: impl Fn() -> bool) {
        while idle() && self.step() {}
    }

    /// Takes steps like that, but none after one that was slow.
    pub(crate) fn quick_steps_while(&mut self, idle: impl Fn() -> bool) {
        let begin = Cell::new(Instant::now());
        let quick = || begin.replace(Instant::now()).elapsed() < SLOW;
        self.steps_while(|| quick() && idle());
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

pub(crate) fn remove_all(directory: &Path) {
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

    fn mount(place: &Path, slot: usize) {
        let slot = place.join(slot.to_string());
        let volatile = slot.join("work/incompat/volatile");
        std::fs::create_dir_all(&volatile).unwrap();
        std::fs::write(volatile.join("dirty"), "").unwrap();
        for closed in ["work/incompat/volatile", "work/incompat", "work"] {
            let nothing = std::fs::Permissions::from_mode(0o000);
            std::fs::set_permissions(slot.join(closed), nothing).unwrap();
        }
    }

    #[test]
    fn a_run_gets_a_clean_slot_and_the_others_are_tidied() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().to_owned()];
        let mut dirty = None;
        for _ in 0..4 {
            let slot = choose(&places);
            assert_ne!(Some(slot), dirty);
            mount(directory.path(), slot);
            let mut leftovers = Leftovers::beside(slot, &places);
            assert_eq!(leftovers.due().is_some(), dirty.is_some());
            leftovers.steps_while(|| true);
            assert_eq!(leftovers.due(), None);
            let still: Vec<usize> = (0..MOST)
                .filter(|slot| is_dirty(&places[0], *slot))
                .collect();
            assert_eq!(still, [slot]);
            dirty = Some(slot);
        }
    }

    #[test]
    fn a_slot_is_clean_only_if_it_is_in_every_place() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("a"), directory.path().join("b")];
        for slot in 1..MOST {
            mount(&places[slot % 2], slot);
        }
        assert_eq!(choose(&places), 0);
    }

    #[test]
    fn with_all_slots_dirty_one_is_tidied_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().join("a"), directory.path().join("b")];
        for slot in 0..MOST {
            mount(&places[slot % 2], slot);
            let volatile = places[slot % 2].join(format!("{slot}/work/incompat/volatile"));
            std::fs::write(volatile.join("unexpected"), "").unwrap();
        }
        let slot = choose(&places);
        assert!(places.iter().all(|place| !is_dirty(place, slot)));
        let mut leftovers = Leftovers::beside(slot, &places);
        leftovers.steps_while(|| true);
        let tidy = |place: &PathBuf| (0..MOST).all(|slot| !is_dirty(place, slot));
        assert!(places.iter().all(tidy));
    }

    #[test]
    fn what_there_is_no_time_for_stays_for_the_next_run() {
        let directory = tempfile::tempdir().unwrap();
        let places = [directory.path().to_owned()];
        let first = choose(&places);
        mount(directory.path(), first);
        let second = choose(&places);
        let mut leftovers = Leftovers::beside(second, &places);
        leftovers.steps_while(|| false);
        leftovers.quick_steps_while(|| false);
        assert!(leftovers.due().is_some() && is_dirty(&places[0], first));
        mount(directory.path(), second);
        let third = choose(&places);
        assert!(![first, second].contains(&third));
    }
}
