//! Performing a plan.

use std::path::PathBuf;

use sandbox_model::RelPath;
use serde::Serialize;

use super::error::PromoteError;
use super::plan::Plan;
use crate::progress::Progress;
use crate::sandbox::Sandbox;

/// Whether a copy of what is replaced is left where the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backup {
    /// The pre-images kept for undo are enough.
    #[default]
    None,
    /// Copies of everything replaced or deleted go to `SOURCE.sandbox-backup-TIME/`, beside the
    /// source, at their own paths below it.
    Beside,
}

/// What a promote did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promoted {
    /// Names it for undo.
    pub id: String,
    /// The paths whose change is now in the source (or was dropped for the source's own).
    pub paths: Vec<RelPath>,
    /// Where the visible copies are, if asked for and if anything was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
}

/// Performs `plan`: all of it, or nothing. Takes the sandbox's exclusive lock and the source's, so
/// the caller must hold neither; first finishes what an earlier promote left.
pub fn apply(
    sandbox: &Sandbox,
    plan: Plan,
    backup: Backup,
    progress: &mut dyn Progress,
) -> Result<Promoted, PromoteError> {
    todo!("{sandbox:?} {plan:?} {backup:?} {:p}", progress)
}
