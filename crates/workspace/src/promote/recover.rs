//! Finishing or taking back what an interrupted promote or undo left.

use std::path::{Path, PathBuf};

use sandbox_model::RelPath;
use serde::Serialize;

use super::error::PromoteError;
use crate::root::Root;

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovered {
    /// The transaction.
    pub id: String,
    /// Which way it went.
    pub outcome: Recovery,
    /// Paths that somebody changed meanwhile; they were left as found.
    pub left: Vec<RelPath>,
    /// Where what belonged to those paths is kept.
    pub kept: Option<PathBuf>,
}

/// Which way a recovery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The commit mark was not on disk: the source is as before.
    RolledBack,
    /// The commit mark was on disk: the source has everything.
    Finished,
}

/// Repairs `source` after an interrupted promote or undo. With nothing to repair it costs one failed
/// `open`; while another process is at work on the source it does nothing.
pub fn recover(root: &Root, source: &Path) -> Result<Option<Recovered>, PromoteError> {
    todo!("{root:?} {}", source.display())
}
