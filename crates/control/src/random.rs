//! Random numbers for names and secrets.

use ring::rand::{SecureRandom, SystemRandom};

/// `N` random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// `N` random numbers, for an identifier.
pub fn numbers<const N: usize>() -> [u16; N] {
    let mut pairs = [[0; 2]; N];
    fill(pairs.as_flattened_mut());
    pairs.map(u16::from_ne_bytes)
}

fn fill(bytes: &mut [u8]) {
    let filled = SystemRandom::new().fill(bytes);
    // The kernel's own source; a machine without one starts nothing.
    filled.unwrap_or_else(|_| unreachable!("the kernel has random numbers"));
}
