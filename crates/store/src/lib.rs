//! What the control plane keeps.
//!
//! `objects` are files of any size, in a directory or in an S3 bucket. This crate alone knows the
//! libraries it uses for them: what it offers are its own types.
#![forbid(unsafe_code)]

pub mod objects;
