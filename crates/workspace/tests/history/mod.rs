//! Random histories of filesystem operations, and trees to compare.

pub mod operation;
pub mod tree;
