//! What can go wrong between a change set and its source.

use std::io;
use std::path::PathBuf;

use sandbox_model::{Class, Failure, RelPath, SandboxName};
use thiserror::Error;

use super::conflict::Conflict;
use super::plan::Refusal;
use crate::sandbox::SandboxError;
use crate::view::ViewError;

/// Why a promote, its recovery or its undo did not happen. Unless the variant says otherwise, the
/// source is as it was.
#[derive(Debug, Error)]
pub enum PromoteError {
    /// Both sides changed.
    #[error("{} in the source since the sandbox first saw {}: {}",
        counted(.0.len(), "path changed", "paths changed"), if .0.len() == 1 { "it" } else { "them" },
        named(.0.iter().map(|conflict| &conflict.path)))]
    Conflicts(Vec<Conflict>),
    /// The plan holds what cannot be promoted.
    #[error("{} cannot be promoted: {}", counted(.0.len(), "path", "paths"),
        named(.0.iter().map(|refusal| &refusal.path)))]
    Refused(Vec<Refusal>),
    /// By now these steer git on the host, which was not allowed.
    #[error("{} git on this machine, or would make or break a repository: {}",
        counted(.0.len(), "path would steer", "paths would steer"), named(.0.iter()))]
    GitControl(Vec<RelPath>),
    /// Something moved between the plan and its application; everything was put back.
    #[error("{path} changed while it was being promoted; everything was put back")]
    LateChange {
        /// What moved.
        path: RelPath,
    },
    /// The sandbox is no longer what the plan was made from.
    #[error("{path} changed in the sandbox after the plan was made")]
    Stale {
        /// What changed.
        path: RelPath,
    },
    /// A command ran in the sandbox after its changes were shown.
    #[error("a command ran in sandbox '{name}' after its changes were shown; nothing was promoted")]
    RanSince {
        /// Which.
        name: SandboxName,
    },
    /// The caller wanted it to stop; everything was put back.
    #[error("interrupted; everything was put back")]
    Interrupted,
    /// It failed, and while it was put back, paths were found that had been edited meanwhile.
    #[error("{cause}; edited meanwhile and left as it is: {}{}",
        named(.left.iter()), kept_in(.kept.as_deref()))]
    NotWhollyPutBack {
        /// Why it failed.
        cause: Box<PromoteError>,
        /// What was left.
        left: Vec<RelPath>,
        /// Where what stood there before is kept.
        kept: Option<PathBuf>,
    },
    /// Another promote, undo or recovery works on this source.
    #[error("another promote or undo of {path} is under way")]
    SourceBusy {
        /// The source.
        path: PathBuf,
    },
    /// The source is not there, or is another directory than the one that was promoted to.
    #[error("the source {path} is gone")]
    SourceGone {
        /// Where it was.
        path: PathBuf,
    },
    /// A journal that cannot be read; nothing is done with it.
    #[error("the promote journal {path} cannot be read: {reason}")]
    Journal {
        /// Which.
        path: PathBuf,
        /// In words.
        reason: String,
    },
    /// The sandbox cannot be used now.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The sandbox cannot be read.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A file operation failed.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// To what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Failure for PromoteError {
    fn class(&self) -> Class {
        match self {
            PromoteError::Conflicts(_) | PromoteError::LateChange { .. } => Class::Conflict,
            PromoteError::Refused(_) | PromoteError::GitControl(_) => Class::Permission,
            PromoteError::Interrupted => Class::General,
            PromoteError::NotWhollyPutBack { cause, .. } => cause.class(),
            PromoteError::Stale { .. }
            | PromoteError::RanSince { .. }
            | PromoteError::SourceBusy { .. } => Class::Busy,
            PromoteError::SourceGone { .. } => Class::SourceNotFound,
            PromoteError::Journal { .. } => Class::General,
            PromoteError::Sandbox(error) => error.class(),
            PromoteError::View(error) => error.class(),
            PromoteError::Io { source, .. } => Class::of_io(source),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PromoteError::Conflicts(_) => Some(
                "settle each by --resolve PATH=ours, theirs, merge or skip; all by --ours, --theirs or --merge"
                    .into(),
            ),
            PromoteError::Refused(_) => {
                Some("promote the other paths by name, or skip these".into())
            }
            PromoteError::GitControl(_) => {
                Some("nothing was done; --allow-git-control applies them all the same".into())
            }
            PromoteError::LateChange { .. }
            | PromoteError::Stale { .. }
            | PromoteError::RanSince { .. } => Some("look again, then promote again".into()),
            PromoteError::NotWhollyPutBack { cause, .. } => cause.hint(),
            PromoteError::SourceBusy { .. } => Some("wait for it to end, then try again".into()),
            PromoteError::Sandbox(error) => error.hint(),
            PromoteError::View(error) => error.hint(),
            PromoteError::Io { source, .. } if Class::of_io(source) == Class::DiskFull => {
                Some("the source was not changed; free some space and promote again".into())
            }
            _ => None,
        }
    }
}

fn kept_in(kept: Option<&std::path::Path>) -> String {
    kept.map(|path| format!("; what stood there before is in {}", path.display()))
        .unwrap_or_default()
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The first few paths by name.
fn named<'p>(paths: impl ExactSizeIterator<Item = &'p RelPath>) -> String {
    const SHOWN: usize = 3;
    let more = paths.len().saturating_sub(SHOWN);
    let mut text = paths
        .take(SHOWN)
        .map(RelPath::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
