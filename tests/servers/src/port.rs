//! Loopback ports.

use std::net::{Ipv4Addr, TcpListener};

/// A port that was free a moment ago. Another may take it before its server does: whoever uses it
/// must be ready to try again with the next.
pub fn free() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port");
    listener.local_addr().expect("its address").port()
}
