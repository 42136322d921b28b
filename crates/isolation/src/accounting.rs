//! Disk space by counting: how much a sandbox's layers hold, looked at as often as it is close.
//!
//! Looking takes as long as there are files, so it is done rarely. Between two looks there are glances: how full
//! the filesystems are costs one call, and what has been filled since the last look bounds what a sandbox can
//! have written. Others write there, too, so a glance decides only that it is time to look.
//!
//! What cannot be counted is too much: a limit that could be evaded by hiding would be none.

pub(crate) mod space;
pub(crate) mod unlinked;

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The closest two looks are together, the farthest apart. Glances come as often as the closest looks.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Bytes per second that a fast disk takes: how long it takes to fill what is left, at worst.
const FILLING: u64 = 1 << 30;

/// The least that filesystems have to fill for an early look.
const LEAST_FILLED: u64 = 64 << 10;

/// Space used in some places, against a limit.
#[derive(Debug)]
pub(crate) struct Accounting {
    places: Vec<PathBuf>,
    /// The filesystem of each, by its device.
    devices: Vec<u64>,
    most: u64,
    /// How much there was at the last look.
    last: u64,
    /// How full the filesystems were before that.
    filled: u64,
    /// When to look or glance next, when to look at the latest, and when at the earliest.
    next: Instant,
    look: Instant,
    rested: Instant,
}

/// How full filesystems are, asked once for all who want to know it at about the same time.
#[derive(Debug, Default)]
pub(crate) struct Glances {
    known: HashMap<u64, (Instant, u64)>,
}

impl Glances {
    /// Bytes in use on the filesystem of `place`, each inode counted as the least that one takes. More on one that
    /// does not tell: tmpfs without a limit says nothing.
    fn filled(&mut self, device: u64, place: &Path) -> u64 {
        let now = Instant::now();
        if let Some((then, filled)) = self.known.get(&device)
            && now.duration_since(*then) < SHORTEST / 2
        {
            return *filled;
        }
        let filled = rustix::fs::statvfs(place).map_or(0, |found| {
            let blocks = found.f_blocks.saturating_sub(found.f_bfree);
            let inodes = found.f_files.saturating_sub(found.f_ffree);
            let bytes = blocks.saturating_mul(found.f_frsize);
            bytes.saturating_add(inodes.saturating_mul(space::LEAST))
        });
        self.known.insert(device, (now, filled));
        filled
    }
}

impl Accounting {
    /// What is there already is let be: one that is over its limit may still be run to free
    /// space, but not to take more.
    pub(crate) fn new(places: Vec<PathBuf>, most: u64) -> Accounting {
        Accounting::beyond(places, most, None)
    }

    /// The same, but only `allowed` bytes of what is there are let be, where that is given.
    pub(crate) fn beyond(places: Vec<PathBuf>, most: u64, allowed: Option<u64>) -> Accounting {
        let now = Instant::now();
        let device = |place: &PathBuf| std::fs::metadata(place).map_or(0, |found| found.dev());
        let mut accounting = Accounting {
            devices: places.iter().map(device).collect(),
            places,
            most: u64::MAX,
            last: 0,
            filled: 0,
            next: now,
            look: now,
            rested: now,
        };
        accounting.filled = accounting.filled(&mut Glances::default());
        let enough = match allowed {
            Some(allowed) => enough(most.max(allowed)),
            None => u64::MAX,
        };
        accounting.last = accounting.used(enough).unwrap_or(0);
        accounting.most = most.max(allowed.unwrap_or(accounting.last));
        accounting.look = Instant::now() + SHORTEST;
        accounting.next = accounting.look;
        accounting
    }

    /// When to look or glance next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// How much there was at the last look.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Looks, if it is time; the bytes used, if they are too many. More than any disk has where they cannot be told.
    pub(crate) fn check(&mut self) -> Option<u64> {
        let mut glances = Glances::default();
        if !self.is_due(&mut glances) {
            return None;
        }
        let used = self.look(&mut glances, || 0);
        (used > self.most).then_some(used)
    }

    /// The same, whether it is time or not.
    pub(crate) fn check_now(&mut self) -> Option<u64> {
        let used = self.look(&mut Glances::default(), || 0);
        (used > self.most).then_some(used)
    }

    /// Is it time to look? Else it is noted when to ask again.
    pub(crate) fn is_due(&mut self, glances: &mut Glances) -> bool {
        let now = Instant::now();
        if now >= self.look {
            return true;
        }
        self.next = self.look.min(now + SHORTEST);
        let half = (self.most.saturating_sub(self.last) / 2).max(LEAST_FILLED);
        now >= self.rested && self.filled(glances).saturating_sub(self.filled) >= half
    }

    /// Looks; the bytes used, and those that `beside` finds.
    pub(crate) fn look(&mut self, glances: &mut Glances, beside: impl FnOnce() -> u64) -> u64 {
        let started = Instant::now();
        self.filled = self.filled(glances);
        let used = self.used(enough(self.most)).unwrap_or(u64::MAX);
        let used = used.saturating_add(beside());
        let (now, took) = (Instant::now(), started.elapsed());
        self.last = used;
        self.look = now + pause(self.most.saturating_sub(used), took);
        // At most half of the time is spent looking, whatever is written.
        self.rested = now + took;
        self.next = self.look.min(now + SHORTEST);
        used
    }

    /// Does not look, because nothing happened, for the `times`th time. There may be thousands of whom that
    /// is so: the next time is farther away.
    pub(crate) fn skip(&mut self, glances: &mut Glances, times: u32) {
        let pause = pause(self.most.saturating_sub(self.last), Duration::ZERO);
        let now = Instant::now();
        self.filled = self.filled(glances);
        self.look = now + (pause * times.min(100)).min(LONGEST);
        self.next = self.look.min(now + SHORTEST);
    }

    /// How many there may be.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    fn used(&self, enough: u64) -> io::Result<u64> {
        self.places
            .iter()
            .map(|place| space::space(place, enough))
            .sum()
    }

    fn filled(&self, glances: &mut Glances) -> u64 {
        let places = self.places.iter().zip(&self.devices);
        places
            .map(|(place, device)| glances.filled(*device, place))
            .fold(0, u64::saturating_add)
    }
}

/// How much is too much in any case: there is no need to count on.
fn enough(most: u64) -> u64 {
    most.saturating_add(most / 4)
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
        assert_eq!(accounting.check_now(), None);
        std::fs::write(directory.path().join("a"), vec![1; 1 << 20]).unwrap();
        assert!(accounting.check_now().is_some_and(|used| used > 1 << 19));
    }

    #[test]
    fn a_filesystem_that_fills_is_looked_at_before_it_is_time() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut accounting = Accounting::new(vec![directory.path().to_owned()], 1 << 20);
        let later = Instant::now() + Duration::from_secs(3600);
        (accounting.look, accounting.rested) = (later, Instant::now());
        std::fs::write(directory.path().join("a"), vec![1; 16 << 20]).unwrap();
        assert!(accounting.check().is_some_and(|used| used > 1 << 20));
        // Empty files take none of its bytes.
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut accounting = Accounting::new(vec![directory.path().to_owned()], 1 << 20);
        (accounting.look, accounting.rested) = (later, Instant::now());
        for number in 0..2000 {
            std::fs::File::create(directory.path().join(number.to_string())).unwrap();
        }
        assert!(accounting.check().is_some());
    }

    #[test]
    fn only_what_is_allowed_of_what_was_there_is_let_be() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), vec![1; 1 << 20]).unwrap();
        let places = || vec![directory.path().to_owned()];
        let mut strict = Accounting::beyond(places(), 1 << 19, Some(0));
        assert!(strict.last() > 1 << 19 && strict.check_now().is_some());
        let mut copied = Accounting::beyond(places(), 1 << 19, Some(2 << 20));
        assert_eq!(copied.check_now(), None);
    }

    #[test]
    fn what_was_too_much_before_may_shrink_but_not_grow() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        std::fs::write(&file, vec![1; 1 << 20]).unwrap();
        let mut accounting = Accounting::new(vec![directory.path().to_owned()], 1 << 19);
        assert_eq!(accounting.check_now(), None);
        std::fs::write(directory.path().join("b"), vec![1; 1 << 16]).unwrap();
        assert!(accounting.check_now().is_some());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(accounting.check_now(), None);
    }
}
