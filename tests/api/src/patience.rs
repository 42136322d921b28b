//! Waiting for what nobody announces.

use std::time::{Duration, Instant};

/// How long anything that is waited for may take. Far above what it does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        pause(Duration::from_millis(10));
    }
}

/// Lets time pass.
#[allow(
    clippy::disallowed_methods,
    reason = "what is asked over HTTP has no descriptor to wait on"
)]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
