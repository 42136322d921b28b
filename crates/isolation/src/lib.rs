//! What a process started in a sandbox may see and use.
//!
//! A [`Policy`] says it in the words of the user; [`plan`] turns it into an ordered list of
//! operations, plain data that a test can read; [`launch`] performs that list in one clone and
//! execs the command. The library prints nothing and reads no environment variable.
#![forbid(unsafe_code)]

pub mod environment;
pub mod home;
pub mod launch;
pub mod limits;
pub mod network;
pub mod plan;
pub mod policy;
pub mod probe;
pub mod runs;

pub use launch::{Ended, LaunchError, Run, launch};
pub use policy::{Home, Policy, Terminal};
pub use runs::{LiveRun, Runs};
