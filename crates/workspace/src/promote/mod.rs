//! Applying a change set to its source: all of it or nothing, across crashes.
//!
//! A promote is a transaction. [`plan`] freezes what will be done; [`apply`] stages everything on
//! the source's own filesystem, writes a journal that names both inodes of every entry, changes the
//! source by renames alone and ends with a commit mark. Until the mark is on disk the journal is
//! rolled back, after it only finished; [`recover`] does either, for whoever comes next, by looking
//! which inode stands where, so it may itself be killed and repeated.
//!
//! What was displaced stays as the pre-images of [`crate::undo`]. Finding what changed is
//! [`crate::changes`]' job, putting workspaces right afterwards the backends'.

pub(crate) mod apply;
pub(crate) mod area;
pub(crate) mod conduct;
pub mod conflict;
mod edits;
pub mod error;
pub(crate) mod examine;
pub mod fault;
pub(crate) mod ground;
pub(crate) mod journal;
pub mod plan;
mod planner;
pub(crate) mod recover;
mod references;
mod refusal;
pub(crate) mod retention;
mod review;
pub(crate) mod seal;
pub(crate) mod settle;
pub(crate) mod stage;
pub(crate) mod transaction;

pub use apply::{Backup, Promoted, apply, apply_alone, apply_reviewed};
pub use conflict::{Conflict, ConflictKind, Resolution, Resolutions};
pub use error::PromoteError;
pub use plan::{
    Action, GitControl, LeftOut, LeftOutReason, Plan, Privilege, Refusal, Selection, Step, plan,
};
pub use recover::{Recovered, RecoveredSource, Recovery, recover, recover_all, recover_thoroughly};
pub use review::Review;
pub(crate) use stage::promotable;

/// How the stage's name begins where it has to be inside the source (the sandbox root is on another
/// filesystem). It is never part of a change set.
pub const STAGE_PREFIX: &str = ".sandbox-stage-";
