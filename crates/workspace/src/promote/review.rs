//! What is promoted is what was shown.
//!
//! A command that runs in the sandbox can change a file without a trace: a page that it has mapped and
//! written to once is written to again without a new change time (and on tmpfs there is none at all).
//! So no comparison of times proves that what a person looked at is what is applied. A review begins
//! when nothing runs in the sandbox, and its promote is refused if a run began since. Readers are
//! welcome meanwhile, and so are runs: they only end the review.

use super::error::PromoteError;
use crate::lock::{LastRun, Lock};
use crate::root::random;
use crate::sandbox::{Sandbox, SandboxError};

/// A look at a sandbox's changes, from before they are shown until they are applied. While it lives,
/// nothing but runs changes the sandbox.
#[derive(Debug)]
pub struct Review {
    lock: Lock,
    /// `None` while the lock is exclusive: nothing can run.
    last_run: Option<LastRun>,
}

impl Review {
    /// Begins one that others may read and run beside: for as long as a person thinks. Busy while
    /// anything runs in the sandbox.
    pub fn begin(sandbox: &Sandbox) -> Result<Review, SandboxError> {
        let mut review = Review::begin_alone(sandbox)?;
        let lock = &mut review.lock;
        let shared = lock
            .mark_last_run(random())
            .and_then(|last_run| lock.share().map(|()| last_run));
        match shared {
            Ok(last_run) => review.last_run = Some(last_run),
            Err(source) => {
                return Err(SandboxError::Io {
                    operation: "lock",
                    path: sandbox.dir.clone(),
                    source,
                });
            }
        }
        Ok(review)
    }

    /// Begins one that nothing else goes on beside: where nobody is asked.
    pub fn begin_alone(sandbox: &Sandbox) -> Result<Review, SandboxError> {
        Ok(Review {
            lock: sandbox.lock_exclusive()?,
            last_run: None,
        })
    }

    /// Ends it: the exclusive lock, if nothing ran since it began.
    pub(super) fn end(self, sandbox: &Sandbox) -> Result<Lock, PromoteError> {
        let Review { lock, last_run } = self;
        let Some(last_run) = last_run else {
            return Ok(lock);
        };
        drop(lock);
        let lock = sandbox.lock_exclusive()?;
        let now = lock.last_run().map_err(|source| PromoteError::Io {
            operation: "look at the lock of",
            path: sandbox.dir.clone(),
            source,
        })?;
        match now == last_run {
            true => Ok(lock),
            false => Err(PromoteError::RanSince {
                name: sandbox.name().clone(),
            }),
        }
    }
}
