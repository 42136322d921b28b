//! Ctrl-C, TERM and HUP while the source is being changed.
//!
//! From [`hold`] on they wait. Work that changes the source asks between its steps whether one waits
//! ([`Interruptible`]), and puts everything back before it returns; a second one changes nothing about
//! that. Everything that is to be said is said, and at the very end [`release`] lets the signal end the
//! process, so that a calling shell sees it.

use std::sync::OnceLock;

use rustix::process::Signal;
use sandbox_linux::signal::{self, Mask};
use sandbox_workspace::progress::{Phase, Progress};

use crate::progress::Bar;

const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// What was blocked before.
static BEFORE: OnceLock<Mask> = OnceLock::new();

/// From now on the signals wait until [`release`]. Those that are ignored stay ignored.
pub(crate) fn hold() {
    if BEFORE.get().is_some() {
        return;
    }
    if let Ok(before) = signal::block(&heeded()) {
        let _ = BEFORE.set(before);
    }
}

/// Lets a signal that waits take effect: the process ends here.
pub(crate) fn release() {
    if let Some(before) = BEFORE.get() {
        let _ = signal::restore(before);
    }
}

fn heeded() -> Vec<i32> {
    let signals = SIGNALS.iter().map(|signal| signal.as_raw());
    signals
        .filter(|signal| !signal::is_ignored(*signal))
        .collect()
}

/// A progress bar whose work stops when a signal waits.
#[derive(Debug, Default)]
pub(crate) struct Interruptible {
    bar: Bar,
}

impl Progress for Interruptible {
    fn begin(&mut self, phase: Phase, total: Option<u64>) {
        self.bar.begin(phase, total);
    }

    fn advance(&mut self, items: u64) {
        self.bar.advance(items);
    }

    fn finish(&mut self) {
        self.bar.finish();
    }

    fn is_cancelled(&mut self) -> bool {
        let signals = SIGNALS.map(|signal| signal.as_raw());
        BEFORE.get().is_some() && signal::pending(&signals).is_some()
    }
}
