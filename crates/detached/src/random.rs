//! Random numbers, of the kernel's.

use rustix::rand::{GetRandomFlags, getrandom};

/// `N` random numbers, for an identifier.
pub(crate) fn numbers<const N: usize>() -> [u16; N] {
    std::array::from_fn(|_| {
        let mut bytes = [0; 2];
        // So few bytes come at once or not at all, and a kernel that has started has them.
        let _ = getrandom(&mut bytes, GetRandomFlags::empty());
        u16::from_ne_bytes(bytes)
    })
}
