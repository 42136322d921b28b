//! The gate between an isolated network and the world.
//!
//! The sandbox's network namespace has loopback and nothing else. Listening sockets made inside it
//! by the sandbox's init are handed out to us; we accept on them and connect from the host's side,
//! deciding per connection. Nothing inside ever holds a socket of the host's network.
//!
//! Three kinds of door lead through the gate: a forwarded port (`forward`), the proxy (`proxy`) and
//! a published port (`publish`). Behind each, two sockets are joined by `relay`. What was asked for
//! and refused is kept by `refused`. Making the namespace and its listeners is the launch's job.

mod address;
mod confine;
mod entrance;
mod error;
mod forward;
mod gate;
mod gatehouse;
mod outside;
mod proxy;
mod publish;
mod refused;
mod relay;
mod socket;
mod stop;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;

use sandbox_model::HostPattern;
use serde::{Deserialize, Serialize};

pub use error::{MOST_PORTS, NetworkError, check};
pub use gate::Gate;
pub use gatehouse::Gatehouse;
pub use publish::Published;

/// A connection that was asked for and refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// `host:port` as asked, safe to print.
    pub target: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u32,
}

/// What the gate works with. All listeners are TCP sockets inside the sandbox's namespace,
/// listening already.
#[derive(Debug, Default)]
pub struct Doors {
    /// For each forwarded port, its listeners inside (127.0.0.1, and ::1 where there is IPv6). They
    /// are made with `SO_REUSEPORT`, so that each run that joins the namespace has its own.
    pub ports: Vec<(u16, Vec<OwnedFd>)>,
    /// The proxy's listener inside, 127.0.0.1 at [`PROXY_PORT`]; speaks HTTP CONNECT, plain HTTP
    /// proxying and SOCKS5 (with names resolved by us), told apart by the first byte.
    pub proxy: Option<OwnedFd>,
    /// Who may be reached through the proxy.
    pub hosts: Vec<HostPattern>,
    /// And who is not named there.
    pub others: Others,
    /// Ports published on the host's 127.0.0.1, listening already.
    pub published: Published,
    /// Asks the init for a fresh TCP socket of its namespace: send one byte `4` or `6`, receive the
    /// same byte with one descriptor (SCM_RIGHTS), or without where there is none. For published
    /// ports.
    pub sockets: Option<OwnedFd>,
}

/// Who may be reached without being named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Others {
    /// Nobody.
    #[default]
    Refused,
    /// Every public address, at every port; none that is private, or this machine's own.
    Public,
}

/// Where the proxy listens inside.
pub const PROXY_PORT: u16 = 3128;

/// Variables that lead tools through the proxy.
///
/// `all_proxy` names the HTTP proxy too, though the same port speaks SOCKS5: Python's httpx, and
/// every client built on it, refuses to start when it meets a `socks5h://` there without an extra
/// package. Node's own `fetch` looks at the variables only when `NODE_USE_ENV_PROXY` is set.
pub fn proxy_variables() -> Vec<(&'static str, String)> {
    let proxy = format!("http://127.0.0.1:{PROXY_PORT}");
    let direct = "localhost,127.0.0.1,::1";
    let through = [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ];
    let mut variables: Vec<_> = through
        .into_iter()
        .map(|name| (name, proxy.clone()))
        .collect();
    variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name, direct.to_owned())));
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables
}
