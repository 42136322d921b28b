//! Which keys were valid not long ago.
//!
//! What is remembered is that a key was valid, not that it is: every key is still looked up. But somebody who sends wrong
//! keys uses up only what strangers at an address may send, and a key that is remembered here is not among them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a key is remembered after it was last found valid.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// The most keys that are remembered; then the half that was not found valid for longest is forgotten.
const MOST: usize = 10_000;

/// The keys, by their digests.
#[derive(Debug, Default)]
pub(super) struct RecentlyValid {
    seen: Mutex<HashMap<String, Instant>>,
}

impl RecentlyValid {
    /// Notes that a key was found valid.
    pub(super) fn note(&self, digest: &str) {
        self.note_at(digest, Instant::now());
    }

    fn note_at(&self, digest: &str, now: Instant) {
        let mut seen = self.lock();
        if seen.len() >= MOST && !seen.contains_key(digest) {
            let mut times: Vec<Instant> = seen.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(MOST / 2);
            let middle = *middle;
            seen.retain(|_, at| *at > middle);
        }
        seen.insert(digest.to_owned(), now);
    }

    /// Forgets a key: it was found not to be valid.
    pub(super) fn forget(&self, digest: &str) {
        self.lock().remove(digest);
    }

    /// Whether a key was valid not long ago.
    pub(super) fn has(&self, digest: &str) -> bool {
        let seen = self.lock();
        let at = seen.get(digest);
        at.is_some_and(|at| at.elapsed() < REMEMBERED)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        // Nothing that is done under it can panic half-way.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_newest_of_too_many_keys() {
        let recent = RecentlyValid::default();
        let begin = Instant::now();
        let all = 3 * MOST;
        for number in 0..all {
            let now = begin + Duration::from_millis(number as u64);
            recent.note_at(&number.to_string(), now);
            assert!(recent.lock().len() <= MOST);
        }
        assert!((all - MOST / 2..all).all(|number| recent.has(&number.to_string())));
        assert!(!recent.has("0"));
    }

    #[test]
    fn forgets_a_key_that_was_refused() {
        let recent = RecentlyValid::default();
        recent.note("one");
        recent.note("other");
        recent.forget("one");
        assert!(!recent.has("one") && recent.has("other"));
    }
}
