//! What a process started in a sandbox may see and use.
//!
//! A [`Policy`] says it in the words of the user; [`plan`] turns it into an ordered list of
//! operations, plain data that a test can read; [`launch`] performs that list in one clone and
//! execs the command. The library prints nothing and reads no environment variable.
#![forbid(unsafe_code)]

pub mod accountant;
mod accounting;
mod command;
mod control;
mod devices;
mod doorway;
pub mod environment;
mod error;
mod explain;
pub mod facts;
pub mod home;
mod init;
mod join;
pub mod keeper;
mod kills;
pub mod launch;
pub mod limits;
pub mod network;
mod order;
mod own_root;
mod pause;
mod perform;
pub mod plan;
pub mod policy;
mod private_home;
pub mod probe;
mod processes;
pub mod runs;
mod scratch;
mod step;
mod unwalled;
mod wait;

pub use launch::{LaunchError, launch, launch_after};
pub use order::Order;
pub use policy::{Home, Identity, Policy, Root, Terminal};
pub use runs::{LiveRun, Runs};
pub use wait::{Ended, Run, Status};
