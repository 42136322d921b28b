//! `--with-ports`: a port inside that leads to the same port of the host's loopback.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use super::relay::Joint;
use super::socket::{dial, reset_on_close};
use super::stop::Stop;

/// Opens the other side of a connection made inside. Where nobody listens on the host, the client is reset, the
/// nearest thing to the refusal it would have met there.
pub(super) fn open(stop: &Stop, client: &OwnedFd, port: u16) -> Option<Joint> {
    let [v4, v6] = loopback(port);
    let dialled = dial(stop, v4).or_else(|_| dial(stop, v6));
    let dialled = dialled.inspect_err(|_| reset_on_close(client));
    dialled.ok().map(Joint::plain)
}

/// A port of the loopback, in the order servers are looked for.
pub(super) fn loopback(port: u16) -> [SocketAddr; 2] {
    [
        (Ipv4Addr::LOCALHOST, port).into(),
        (Ipv6Addr::LOCALHOST, port).into(),
    ]
}
