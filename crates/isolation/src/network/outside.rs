//! The host's side of the gate: its resolver and its routes, behind a trait so that a test can
//! stand in for the internet.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use super::gate::STACK;
use super::socket;
use super::stop::{Stop, locked};

/// What the proxy needs of the world.
pub(super) trait Outside: Debug + Send + Sync {
    /// The addresses of a name. May block as long as it likes.
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Is it one of this machine's own addresses, public or not?
    fn is_own(&self, address: IpAddr) -> bool;

    /// A connection to exactly this address.
    fn dial(&self, stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd>;
}

/// The host's network.
#[derive(Debug)]
pub(super) struct Host;

impl Outside for Host {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0)
            .to_socket_addrs()?
            .map(|found| found.ip())
            .collect())
    }

    /// Asks the kernel, without a packet: only its own addresses can be bound to. Without this, a
    /// public address of this machine would lead to every service here that trusts the loopback
    /// for being out of the world's reach.
    fn is_own(&self, address: IpAddr) -> bool {
        let nobody: IpAddr = match address {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 123).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x123).into(),
        };
        let can_bind = |address| UdpSocket::bind((address, 0)).is_ok();
        // Where anything can be bound to (ip_nonlocal_bind), the route tells: a machine reaches its
        // own address from that very address.
        can_bind(address) && (!can_bind(nobody) || source_to(address) == Some(address))
    }

    fn dial(&self, stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd> {
        socket::dial(stop, address)
    }
}

/// The address this machine would connect from.
fn source_to(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0)).ok()?;
    probe.connect((address, 9)).ok()?;
    Some(probe.local_addr().ok()?.ip())
}

/// How many names may be looked up at once. One that was given up on is looked up still.
const MOST_LOOKUPS: usize = 32;

/// Resolves without holding up a gate that closes: the host's resolver cannot be interrupted, so it
/// runs in a thread of its own that holds no socket and, if given up on, ends by itself. `lookups` is
/// shared with each of them, and so counts them.
pub(super) fn resolve(
    outside: &Arc<dyn Outside>,
    stop: &Arc<Stop>,
    lookups: &Arc<()>,
    name: &str,
    deadline: Instant,
) -> io::Result<Vec<IpAddr>> {
    let answer = Arc::new(Mutex::new(None));
    let counted = lookups.clone();
    if Arc::strong_count(lookups) > MOST_LOOKUPS + 1 {
        return Err(io::Error::other(
            "too many names are being looked up at once",
        ));
    }
    let lookup = {
        let (outside, stop, answer) = (outside.clone(), stop.clone(), answer.clone());
        let name = name.to_owned();
        move || {
            let _counted = counted;
            let found = outside.resolve(&name);
            *locked(&answer) = Some(found);
            stop.stir();
        }
    };
    thread::Builder::new()
        .name("gate-lookup".to_owned())
        .stack_size(STACK)
        .spawn(lookup)?;
    stop.wait_for(deadline, || locked(&answer).take())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_knows_its_own_addresses() {
        for own in ["127.0.0.1", "127.0.0.9", "::1"] {
            assert!(Host.is_own(own.parse().unwrap()), "{own}");
        }
        for other in ["192.0.2.1", "2001:db8::1"] {
            assert!(!Host.is_own(other.parse().unwrap()), "{other}");
        }
        assert_eq!(
            source_to(Ipv4Addr::LOCALHOST.into()),
            Some(Ipv4Addr::LOCALHOST.into())
        );
    }
}
