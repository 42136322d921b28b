//! Loopback ports.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use crate::secret;

/// Where one is looked for. Above are those that the kernel gives to whoever connects, 32768 to 60999 where nobody
/// says otherwise: such a one might be taken while its server is down, and could not start again.
const PORTS: Range<u16> = 20_000..32_000;

/// A port that was free a moment ago. Another may take it before its server does: whoever uses it
/// must be ready to try again with the next.
pub fn free() -> u16 {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut tries = std::iter::repeat_with(any).take(PORTS.len());
    tries.find(is_free).expect("a loopback port")
}

fn any() -> u16 {
    let digits = secret::random();
    let number = u32::from_str_radix(&digits[..8], 16).expect("hexadecimal digits");
    let place = number % u32::from(PORTS.end - PORTS.start);
    PORTS.start + u16::try_from(place).expect("less than there are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_none_that_the_kernel_gives_away() {
        let ports: Vec<_> = std::iter::repeat_with(free).take(100).collect();
        let is_below = |port: &u16| (20_000..32_768).contains(port);
        assert!(ports.iter().all(is_below), "{ports:?}");
        // Nor always the same.
        assert!(ports.iter().any(|port| *port != ports[0]));
    }
}
