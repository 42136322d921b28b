//! Limits, and which of them this host can hold.

use sandbox_model::Limits;
use serde::Serialize;

/// How one limit is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The flag: "--memory".
    pub limit: &'static str,
    /// The value asked for.
    pub value: String,
    /// By what ("cgroup v1", "RLIMIT_NPROC", "accounting"), or why not.
    pub by: Result<String, String>,
}

/// How each limit asked for would be held on this host.
pub fn holding(limits: &Limits) -> Vec<Held> {
    todo!("{limits:?}")
}
