//! Passwords and names that no other test has.

use std::io::Read as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// 32 random hexadecimal digits.
pub fn random() -> String {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .expect("/dev/urandom gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name for a database or bucket, never given twice by this process.
pub fn fresh_name() -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    format!("test{}", GIVEN.fetch_add(1, Ordering::Relaxed))
}
