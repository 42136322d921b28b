//! Rows, as they stand in their tables, and the way from a row to a record and back.

pub(super) mod api_key;
pub(super) mod artifact;
pub(super) mod audit;
pub(super) mod container;
pub(super) mod count;
pub(super) mod execution;
pub(super) mod idempotency;
pub(super) mod lease;
pub(super) mod node;
pub(super) mod notice;
pub(super) mod pool;
pub(super) mod result;
pub(super) mod session;
pub(super) mod template;
