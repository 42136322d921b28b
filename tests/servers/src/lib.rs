//! Real servers for tests: a [`Database`], which is PostgreSQL or MariaDB, and an [`S3`] store. Beside them
//! [`ContainerCredentials`], which plays a part of Amazon's.
//!
//! Each has a data directory of its own, a loopback port that the kernel gives to nobody, a password that
//! nobody else knows, and is ready when `start` returns: it answered a query. It can be stopped,
//! killed and started again on the same data and port. When it is dropped, and also when the test
//! process is killed, nothing stays: no process, no directory. A server that is not installed fails
//! the test and says how to get it.
//!
//! `fresh_database()` and `fresh_bucket()` give tests that share a server a part of it that is their
//! own. What tests do with a server is their business.

mod account;
mod answer;
mod container;
mod database;
mod mariadb;
mod port;
mod postgres;
mod program;
mod s3;
mod secret;
mod supervisor;

pub use container::ContainerCredentials;
pub use database::Database;
pub use s3::S3;
