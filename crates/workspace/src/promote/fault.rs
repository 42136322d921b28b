//! Fault points: one per step of the journal.
//!
//! In production [`at`] is an empty inline function. Under test, or with the feature `faults`, a
//! process-wide hook decides at each point whether to go on, fail with an error or die at once, as
//! by a power cut.

/// What happens at a fault point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Continue,
    /// The process dies at once; nothing is cleaned up.
    Crash,
    /// The step fails with this `errno`.
    Error(i32),
}

/// A step that may fail here under test.
#[cfg(not(any(test, feature = "faults")))]
#[inline(always)]
pub(crate) fn at(_point: &str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(test, feature = "faults"))]
pub(crate) use hooked::at;
#[cfg(any(test, feature = "faults"))]
pub use hooked::{clear, inject};

#[cfg(any(test, feature = "faults"))]
mod hooked {
    use std::io;
    use std::sync::RwLock;

    use super::Action;

    type Hook = Box<dyn Fn(&str) -> Action + Send + Sync>;

    static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

    /// From now on `hook` decides at every fault point of this process.
    pub fn inject(hook: Hook) {
        *HOOK
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(hook);
    }

    /// No more faults.
    pub fn clear() {
        *HOOK
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }

    pub(crate) fn at(point: &str) -> io::Result<()> {
        let hook = HOOK.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        match hook.as_ref().map_or(Action::Continue, |hook| hook(point)) {
            Action::Continue => Ok(()),
            Action::Crash => std::process::abort(),
            Action::Error(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
