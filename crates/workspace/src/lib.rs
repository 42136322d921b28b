//! Copy-on-write workspaces: making them, reading what changed in them, and applying that to the
//! source without losing anything.
//!
//! The library prints nothing, reads no environment variable and assumes no terminal. Long work
//! reports through [`progress::Progress`].
#![forbid(unsafe_code)]

mod alike;
pub mod backend;
pub mod base;
pub mod changes;
pub mod checkpoint;
pub mod content;
pub mod diff;
pub mod discard;
pub mod drift;
pub mod garbage;
pub mod history;
pub mod layer;
pub mod lock;
pub mod merge;
pub mod meta;
pub mod progress;
pub mod promote;
pub mod root;
pub mod sandbox;
pub mod side;
pub mod spare;
pub mod sync;
pub mod transfer;
pub mod tree;
pub mod undo;
pub mod view;

#[cfg(test)]
mod fixture;

pub use progress::Progress;
pub use root::Root;
pub use sandbox::Sandbox;
pub use view::View;
