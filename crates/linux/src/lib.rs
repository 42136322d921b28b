//! Linux, as far as it needs `unsafe` or more than one system call at a time.
//!
//! Each module wraps one part of the kernel in safe functions that return `io::Result`. What to do
//! with them, in which order and with which words for the user, is `sandbox-isolation`'s and
//! `sandbox-workspace`'s business.

pub mod authority;
pub mod btrfs;
pub mod capabilities;
pub mod cgroup;
pub mod clone;
pub mod exec;
pub mod hold;
pub mod identity;
pub mod inherited;
pub mod landlock;
pub mod message;
pub mod mount;
pub mod network;
pub mod placement;
pub mod powers;
pub mod range_lock;
mod seal;
pub mod seccomp;
pub mod signal;
pub mod terminal;
pub mod trial;
pub mod usage;
pub mod users;
