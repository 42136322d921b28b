//! The user's terminal joined to the sandbox's own.

use std::io;

use sandbox_isolation::{Ended, Run};

/// Carries bytes both ways until the command ends.
pub(crate) fn attend(run: Run) -> io::Result<Ended> {
    run.wait()
}
