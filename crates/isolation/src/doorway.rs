//! The way into the network of an inner sandbox.
//!
//! A socket belongs for ever to the network namespace it was made in, and leads nowhere else. So whoever is
//! to speak with a server inside is given a socket that was made there. A keeper cannot go and come back:
//! where its own namespace is the host's, it may not enter that again. It sends a process, which makes the
//! sockets, hands them over and is gone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use sandbox_linux::clone::{Namespaces, Parent, clone, close_others, enter};
use sandbox_linux::message;
use sandbox_linux::network::{IpVersion, tcp_socket};

use crate::keeper::InnerNetwork;
use crate::network::PROXY_PORT;

/// The way into the network of an inner sandbox. It is closed when that has ended.
#[derive(Debug)]
pub struct Doorway {
    /// The inner init.
    init: OwnedFd,
    network: InnerNetwork,
}

impl Doorway {
    pub(crate) fn new(init: OwnedFd, network: InnerNetwork) -> Doorway {
        Doorway { init, network }
    }

    /// What of the network is behind it.
    pub fn network(&self) -> InnerNetwork {
        self.network
    }

    /// May somebody inside be listening at `port`? At the one that leads out of a network that is shared,
    /// there is nobody of theirs.
    pub fn is_theirs(&self, port: u16) -> bool {
        port != 0 && (self.network == InnerNetwork::Own || port != PROXY_PORT)
    }

    /// TCP sockets of that network: one for 127.0.0.1, and one for ::1 where there is such a thing. Must be
    /// called while the process has a single thread.
    pub fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        let (ours, theirs) = message::pair()?;
        let envoy = clone(Namespaces::empty(), Parent::Caller, ours, move || {
            let made = close_others(&[theirs.as_fd(), self.init.as_fd()])
                .and_then(|()| enter(self.init.as_fd(), Namespaces::NEWNET))
                .and_then(|()| tcp_socket(IpVersion::V4));
            let told = made.and_then(|first| {
                let second = tcp_socket(IpVersion::V6).ok();
                let sockets: Vec<_> = [Some(first), second].into_iter().flatten().collect();
                let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
                message::send(&theirs, b"s", &sockets)
            });
            i32::from(told.is_err())
        });
        let (envoy, ours) = envoy?;
        let received = message::receive(&ours, &mut [0]);
        let _ = envoy.wait();
        match received? {
            (_, sockets) if !sockets.is_empty() => Ok(sockets),
            // Whoever was inside has ended.
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}
