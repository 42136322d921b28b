//! Fork, snapshot and rollback.
