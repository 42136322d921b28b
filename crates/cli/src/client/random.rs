//! Names that nobody else makes up.

use ring::rand::{SecureRandom as _, SystemRandom};

/// 32 random letters and digits.
pub(super) fn name() -> String {
    let mut bytes = [0_u8; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    // The kernel's own source; a machine without one starts nothing.
    filled.unwrap_or_else(|_| unreachable!("the kernel has random numbers"));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
