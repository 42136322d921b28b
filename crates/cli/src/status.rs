//! Whether a sandbox is in use.

use jiff::Timestamp;
use sandbox_isolation::runs::Process;
use sandbox_workspace::Sandbox;
use serde::Serialize;

/// What a sandbox is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// A process runs in it.
    Active,
    /// Its processes are frozen.
    Paused,
    /// Nothing runs in it.
    Idle,
    /// Nothing was done with it for long.
    Stale,
    /// It is no more; only the history knows it.
    Discarded,
}

impl Status {
    /// The word in listings.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Paused => "paused",
            Status::Idle => "idle",
            Status::Stale => "stale",
            Status::Discarded => "discarded",
        }
    }

    /// The status of `sandbox`, of which `processes` are alive.
    pub(crate) fn of(sandbox: &Sandbox, processes: &[Process], stale_days: u32) -> Status {
        if !processes.is_empty() {
            return match processes
                .iter()
                .all(|process| matches!(process.state, 'T' | 'Z'))
            {
                true => Status::Paused,
                false => Status::Active,
            };
        }
        let used = last_used(sandbox);
        let days = (Timestamp::now().as_second() - used.as_second()) / 86_400;
        match days >= i64::from(stale_days) {
            true => Status::Stale,
            false => Status::Idle,
        }
    }
}

/// When something was last done with it.
pub(crate) fn last_used(sandbox: &Sandbox) -> Timestamp {
    let marked = sandbox
        .last_used()
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok());
    marked.map_or(sandbox.meta.created, |marked| {
        marked.max(sandbox.meta.created)
    })
}
