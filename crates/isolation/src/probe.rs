//! What this host really offers, found by trying it.

use serde::Serialize;

/// One thing tried.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What: "user namespaces", "mount in a user namespace", "Landlock".
    pub feature: &'static str,
    /// Does it work?
    pub works: bool,
    /// What was seen: a version, an error.
    pub detail: String,
    /// What it means for sandboxes.
    pub meaning: &'static str,
    /// How to get it, when it does not work.
    pub fix: Option<String>,
    /// Sandboxes need it.
    pub required: bool,
}

/// Tries everything. `state` is a directory for trial mounts (the sandbox root).
pub fn host(state: &std::path::Path) -> Vec<Finding> {
    todo!("{}", state.display())
}
