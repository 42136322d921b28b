//! What the control plane keeps.
//!
//! [`records`] are rows in a database: SQLite where nobody says otherwise, PostgreSQL or
//! MySQL/MariaDB where several servers share the work. [`objects`] are files of any size, in a
//! directory or in an S3 bucket. All of a kind behave alike; whoever calls cannot tell which it is.
//!
//! The crate speaks [`sandbox_model`]'s types. It decides nothing about them: whether a session
//! may be paused is the model's question, and whether it should be is the control plane's.
#![forbid(unsafe_code)]

pub mod objects;
pub mod records;

pub use objects::{Objects, ObjectsError};
pub use records::{Records, StoreError, Stored};
