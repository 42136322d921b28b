//! The agent inside a session.
//!
//! It is process 1 of a sandbox that is kept open ([`sandbox_isolation::keeper`]) and runs code in inner
//! sandboxes, each alone with its processes. What it promises of every execution: it ends within its
//! time, with everything it started; what it printed is kept up to a limit and never read as anything
//! else; what its handler returned comes by a way of its own; and the next one finds nothing of it but
//! what it left in the workspace.
//!
//! Everything here runs on one thread: inner sandboxes are forked from it.
#![forbid(unsafe_code)]

mod archive;
pub mod artifact;
mod bytes;
mod entries;
mod environment;
pub mod execution;
pub mod executor;
mod exhaustion;
pub mod files;
mod language;
pub mod link;
pub mod listing;
mod lookout;
mod output;
mod port;
mod program;
pub mod protocol;
mod removal;
mod running;
mod serve;
mod streams;
mod tar;
pub mod terminal;
mod uploads;

pub use artifact::ArtifactFound;
pub use environment::environment;
pub use execution::{Ending, Happening, Outcome, Request, Stream};
pub use executor::{Executor, Settings};
pub use files::Files;
pub use link::Link;
pub use serve::serve;
pub use terminal::Opening;
