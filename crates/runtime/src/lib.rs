//! What hosts sessions.
//!
//! A session's executor runs somewhere; whoever wants something of it holds a [`line::Line`] to it and
//! does not care where. [`local`] is this machine's own kernel: no daemon, no images, no root.
#![forbid(unsafe_code)]

pub mod line;
pub mod local;
mod nursery;
pub mod spec;

pub use line::{Course, Line, LineError};
pub use local::{Ended, Local, LocalError, Raised};
pub use nursery::Nursery;
pub use spec::{SessionSpec, Workspace};
