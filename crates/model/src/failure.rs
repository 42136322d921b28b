//! How an error is told: which exit status it earns, and what to do next.
//!
//! Each module has its own small error enum that says what failed, on what and why. Implementing
//! [`Failure`] for it adds the two things an edge (the command line, an HTTP answer) needs, so that
//! edges translate every error the same way and know none of them by name.

use std::error::Error;
use std::io;

/// What class of failure an error is; each has one exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Anything without a class of its own, usage included: exit 1.
    General,
    /// Someone else holds what is needed: exit 1.
    Busy,
    /// No such sandbox: exit 2.
    NotFound,
    /// The kernel, a mode or a policy said no: exit 3.
    Permission,
    /// The source is gone: exit 4.
    SourceNotFound,
    /// Both sides changed: exit 5.
    Conflict,
    /// No space, quota or size limit left: exit 6.
    DiskFull,
}

/// An error that knows its class and, where there is one, the way out.
pub trait Failure: Error + Send + Sync + 'static {
    /// Its class.
    fn class(&self) -> Class;

    /// What to do next, in one line without the word "hint".
    fn hint(&self) -> Option<String> {
        None
    }
}

impl Class {
    /// The process exit status for this class.
    pub const fn exit_status(self) -> u8 {
        match self {
            Class::General | Class::Busy => 1,
            Class::NotFound => 2,
            Class::Permission => 3,
            Class::SourceNotFound => 4,
            Class::Conflict => 5,
            Class::DiskFull => 6,
        }
    }

    /// The class of a bare I/O error.
    pub fn of_io(error: &io::Error) -> Class {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Class::DiskFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Class::Permission
            }
            _ => Class::General,
        }
    }
}
