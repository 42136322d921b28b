//! What hosts sessions.
//!
//! A session's executor runs somewhere; whoever wants something of it holds a [`line::Line`] to it and
//! does not care where. [`local`] is this machine's own kernel: no daemon, no images, no root.
#![forbid(unsafe_code)]

pub mod descriptors;
mod image;
pub mod line;
pub mod local;
mod nursery;
pub mod promotion;
mod room;
pub mod runtime;
pub mod spec;
pub mod users;

pub use line::{Course, Line, LineError, Terminal};
pub use local::{Ended, Local};
pub use nursery::Nursery;
pub use promotion::{Extent, Promote, Promotion, Resolve};
pub use room::Room;
pub use runtime::{ChangeReport, Changes, Raised, Runtime, RuntimeError, Usage};
pub use spec::{Image, SessionSpec, Workspace};
pub use users::{UserRange, Users};
