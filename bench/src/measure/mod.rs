//! One file per measurement. Each says how it measures, and returns rows with their bars.

pub mod copy;
pub mod create;
pub mod diff;
pub mod executions;
pub mod inside;
pub mod launch;
pub mod memory;
pub mod promote;
pub mod scale;
pub mod sessions;
pub mod stored;
pub mod timeouts;
pub mod transfer;
