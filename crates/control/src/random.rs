//! Random numbers for names and secrets.

use ring::rand::{SecureRandom, SystemRandom};

/// `N` random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    // The kernel's own source; a machine without one starts nothing.
    filled.unwrap_or_else(|_| unreachable!("the kernel has random numbers"));
    bytes
}

/// `N` random numbers, for an identifier.
pub fn numbers<const N: usize>() -> [u16; N] {
    std::array::from_fn(|_| u16::from_ne_bytes(bytes()))
}
