//! The gate between an isolated network and the world.
//!
//! The sandbox's network namespace has loopback and nothing else. Listening sockets made inside it
//! by the sandbox's init are handed out to us; we accept on them and connect from the host's side,
//! deciding per connection. Nothing inside ever holds a socket of the host's network.

use std::io;
use std::os::fd::OwnedFd;

use sandbox_model::{HostPattern, PublishedPort};
use serde::{Deserialize, Serialize};

/// A connection that was asked for and refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// `host:port` as asked.
    pub target: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u32,
}

/// What the gate works with. All listeners are TCP sockets inside the sandbox's namespace,
/// listening already.
#[derive(Debug)]
pub struct Doors {
    /// For each forwarded port, its listeners inside (127.0.0.1 and ::1).
    pub ports: Vec<(u16, Vec<OwnedFd>)>,
    /// The proxy's listener inside, 127.0.0.1 at [`PROXY_PORT`]; speaks HTTP CONNECT, plain HTTP proxying and SOCKS5
    /// (with names resolved by us), told apart by the first byte.
    pub proxy: Option<OwnedFd>,
    /// Who may be reached through the proxy.
    pub hosts: Vec<HostPattern>,
    /// Ports to publish on the host's 127.0.0.1.
    pub publish: Vec<PublishedPort>,
    /// Asks the init for a fresh TCP socket of its namespace: send one byte `4` or `6`, receive one
    /// descriptor (SCM_RIGHTS). For published ports.
    pub sockets: Option<OwnedFd>,
}

/// Where the proxy listens inside.
pub const PROXY_PORT: u16 = 3128;

/// A gate that serves.
#[derive(Debug)]
pub struct Gate {}

impl Gate {
    /// Starts serving in threads of its own. Binds the published ports before it returns.
    pub fn open(doors: Doors) -> io::Result<Gate> {
        todo!("{doors:?}")
    }

    /// Stops serving and tells what was refused.
    pub fn close(self) -> Vec<Refused> {
        todo!()
    }
}

/// Variables that lead tools through the proxy.
pub fn proxy_variables() -> Vec<(&'static str, String)> {
    todo!()
}
