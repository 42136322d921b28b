//! Limits, and which of them this host can hold.

use std::time::Instant;

use rustix::process::Resource;
use sandbox_model::Limits;
use serde::Serialize;

use crate::launch::LaunchError;
use crate::policy::Policy;

/// How one limit is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The flag: "--memory".
    pub limit: &'static str,
    /// The value asked for.
    pub value: String,
    /// By what ("cgroup v1", "RLIMIT_NPROC", "accounting"), or why not.
    pub by: Result<String, String>,
}

/// How each limit asked for would be held on this host.
pub fn holding(limits: &Limits) -> Vec<Held> {
    let _ = limits;
    Vec::new()
}

/// What holds the limits of one run.
#[derive(Debug)]
pub(crate) struct Enforcer {}

impl Enforcer {
    pub(crate) fn prepare(_policy: &Policy) -> Result<Enforcer, LaunchError> {
        Ok(Enforcer {})
    }

    pub(crate) fn needs_placing(&self) -> bool {
        false
    }

    pub(crate) fn place(&self, _init: i32) -> Result<(), LaunchError> {
        Ok(())
    }

    pub(crate) fn own(&self, _privileged: bool) -> Vec<(Resource, u64)> {
        Vec::new()
    }

    pub(crate) fn first_check(&self) -> Option<Instant> {
        None
    }

    pub(crate) fn next_check(&mut self) -> Option<Instant> {
        None
    }

    pub(crate) fn over_size(&mut self) -> Option<u64> {
        None
    }

    pub(crate) fn final_size(&mut self) -> Option<u64> {
        None
    }

    pub(crate) fn out_of_memory(&self) -> bool {
        false
    }

    pub(crate) fn release(&mut self) {}
}
