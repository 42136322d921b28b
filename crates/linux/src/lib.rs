//! Linux, as far as it needs `unsafe` or more than one system call at a time.

pub mod authority;
pub mod trial;
