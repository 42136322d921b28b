//! The `sandbox` binary.
fn main() {}
