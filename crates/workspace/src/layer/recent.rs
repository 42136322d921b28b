//! The directories of a tree that were looked into last.
//!
//! Questions come in the order of paths, so what is kept is one way down: the directory last looked
//! into, after those above it. Descriptors are few, so of a deep way the lower end is kept: what is
//! asked next is near it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_model::RelPath;

/// How many are kept.
const KEPT: usize = 32;

/// From the top down, each below the one before.
type Way<T> = VecDeque<(RelPath, Arc<T>)>;

/// What is known of them, by their paths.
#[derive(Debug)]
pub(super) struct Recent<T>(Mutex<Way<T>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent(Mutex::default())
    }
}

impl<T> Recent<T> {
    /// The nearest at or above `path`; those beside its way are forgotten.
    pub(super) fn nearest(&self, path: &RelPath) -> Option<(RelPath, Arc<T>)> {
        self.way_to(path).back().cloned()
    }

    /// Keeps `place`, which is at `path`.
    pub(super) fn remember(&self, path: &RelPath, place: &Arc<T>) {
        let mut way = self.way_to(path);
        if way.back().is_none_or(|(at, _)| at != path) {
            way.push_back((path.clone(), place.clone()));
        }
        if way.len() > KEPT {
            way.pop_front();
        }
    }

    fn way_to(&self, path: &RelPath) -> MutexGuard<'_, Way<T>> {
        let mut way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while way.back().is_some_and(|(at, _)| !path.starts_with(at)) {
            way.pop_back();
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_nearest_above_is_found_and_what_lies_beside_is_forgotten() {
        let recent = Recent::default();
        for at in ["a", "a/b", "a/b/c"] {
            recent.remember(&path(at), &Arc::new(at));
        }
        let nearest = |at| recent.nearest(&path(at)).map(|(_, place)| *place);
        assert_eq!(nearest("a/b/c/d/e"), Some("a/b/c"));
        assert_eq!(nearest("a/x"), Some("a"));
        assert_eq!(nearest("a/b/c"), Some("a"), "a/b was beside the way to a/x");
        assert_eq!(nearest("b"), None);
    }

    #[test]
    fn of_a_deep_way_the_lower_end_is_kept() {
        let recent = Recent::default();
        let mut at = RelPath::root();
        for depth in 1..=2 * KEPT {
            at = at.join(b"d");
            recent.remember(&at, &Arc::new(depth));
        }
        assert_eq!(recent.nearest(&at).map(|(_, depth)| *depth), Some(2 * KEPT));
        assert_eq!(recent.way_to(&at).len(), KEPT);
    }
}
