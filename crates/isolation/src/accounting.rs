//! Disk space by counting: how much a sandbox's layers hold, looked at as often as it is close.
//!
//! What cannot be counted is too much: a limit that could be evaded by hiding would be none.

mod space;
pub(crate) mod unlinked;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The closest two looks are together, the farthest apart.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Bytes per second that a fast disk takes: how long it takes to fill what is left, at worst.
const FILLING: u64 = 1 << 30;

/// Space used in some places, against a limit.
#[derive(Debug)]
pub(crate) struct Accounting {
    places: Vec<PathBuf>,
    most: u64,
    next: Instant,
}

impl Accounting {
    /// What is there already is let be: one that is over its limit may still be run to free
    /// space, but not to take more.
    pub(crate) fn new(places: Vec<PathBuf>, most: u64) -> Accounting {
        let most = most.max(used(&places).unwrap_or(0));
        let next = Instant::now() + SHORTEST;
        Accounting { places, most, next }
    }

    /// When to look next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Looks; the bytes used, if they are too many. More than any disk has where they cannot be told.
    pub(crate) fn check(&mut self) -> Option<u64> {
        let used = self.look(|| 0);
        (used > self.most).then_some(used)
    }

    /// Looks; the bytes used, and those that `beside` finds.
    pub(crate) fn look(&mut self, beside: impl FnOnce() -> u64) -> u64 {
        let started = Instant::now();
        let used = used(&self.places).unwrap_or(u64::MAX);
        let used = used.saturating_add(beside());
        self.next = Instant::now() + pause(self.most.saturating_sub(used), started.elapsed());
        used
    }

    /// Does not look, because nothing happened, for the `times`th time. There may be thousands of whom that
    /// is so: the next time is farther away.
    pub(crate) fn skip(&mut self, last: u64, times: u32) {
        let pause = pause(self.most.saturating_sub(last), Duration::ZERO);
        self.next = Instant::now() + (pause * times.min(100)).min(LONGEST);
    }

    /// How many there may be.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

fn used(places: &[PathBuf]) -> io::Result<u64> {
    places.iter().map(|place| space::space(place)).sum()
}

/// Half the time in which what is left could be filled; and never more than a tenth of the time is
/// spent looking.
fn pause(left: u64, look: Duration) -> Duration {
    let filling = Duration::from_millis(left / 2 / (FILLING / 1000));
    filling.clamp(SHORTEST, LONGEST).max(look * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_closer_as_the_limit_does() {
        let quick = Duration::from_micros(100);
        assert_eq!(pause(u64::MAX, quick), LONGEST);
        assert_eq!(pause(0, quick), SHORTEST);
        assert!(pause(1 << 30, quick) > pause(1 << 28, quick));
        assert_eq!(pause(0, Duration::from_secs(1)), Duration::from_secs(10));
    }

    #[test]
    fn too_much_is_noticed_with_its_amount() {
        let directory = tempfile::tempdir().unwrap();
        let places = vec![directory.path().to_owned()];
        let mut accounting = Accounting::new(places, 1 << 19);
        assert_eq!(accounting.check(), None);
        std::fs::write(directory.path().join("a"), vec![1; 1 << 20]).unwrap();
        assert!(accounting.check().is_some_and(|used| used > 1 << 19));
    }

    #[test]
    fn what_was_too_much_before_may_shrink_but_not_grow() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        std::fs::write(&file, vec![1; 1 << 20]).unwrap();
        let mut accounting = Accounting::new(vec![directory.path().to_owned()], 1 << 19);
        assert_eq!(accounting.check(), None);
        std::fs::write(directory.path().join("b"), vec![1; 1 << 16]).unwrap();
        assert!(accounting.check().is_some());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(accounting.check(), None);
    }
}
