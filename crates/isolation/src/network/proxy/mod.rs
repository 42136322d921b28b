//! The proxy: who inside asks for a host is connected to it, or told why not.
//!
//! One port, three protocols, told apart by the first byte: SOCKS5, HTTP's CONNECT, and plain HTTP
//! with an absolute URL. Each is parsed to a target (`target`), the target is judged before its name
//! is resolved (`rules`), the name is resolved once, every address found is judged, and exactly
//! those addresses are connected to. From there on no byte from inside can change where it goes.

mod body;
mod http;
mod request;
mod rules;
mod socks;
mod target;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::rules::Refusal;
pub(super) use self::rules::Rules;
use self::target::{Host, Target};
use super::outside::{Outside, resolve};
use super::refused::Ledger;
use super::relay::Joint;
use super::socket::receive_more;
use super::stop::Stop;

/// How long a client may take to say what it wants, and a name to be resolved.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_secs(30);

/// How much a client may say before it is served.
const MOST_HEAD: usize = 64 * 1024;

/// What connections through the proxy are decided with.
#[derive(Debug)]
pub(super) struct Proxy {
    rules: Rules,
    outside: Arc<dyn Outside>,
    stop: Arc<Stop>,
    ledger: Arc<Ledger>,
    /// As often shared as names are being looked up.
    lookups: Arc<()>,
}

/// Why there is no connection.
#[derive(Debug)]
enum Denied {
    /// We will not; it is recorded. This is what the client hears.
    Refused(String),
    /// The world did not answer.
    Failed(io::Error),
}

impl Proxy {
    pub(super) fn new(
        rules: Rules,
        outside: Arc<dyn Outside>,
        stop: Arc<Stop>,
        ledger: Arc<Ledger>,
    ) -> Proxy {
        Proxy {
            rules,
            outside,
            stop,
            ledger,
            lookups: Arc::default(),
        }
    }

    /// A connection to `target`, if it may be had.
    fn connect(&self, target: &Target) -> Result<OwnedFd, Denied> {
        let addresses = self.addresses(target)?;
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            match self.outside.dial(&self.stop, address) {
                Ok(socket) => return Ok(socket),
                Err(error) => failure = error,
            }
        }
        Err(Denied::Failed(failure))
    }

    /// Where `target` is: judged before and after the one look at the resolver.
    fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, Denied> {
        let refuse = |refusal: Refusal| {
            self.refuse(&target.to_string(), &refusal.to_string());
            Denied::Refused(refusal.to_client(target))
        };
        self.rules.admit(target).map_err(refuse)?;
        let found = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                let deadline = Instant::now() + HANDSHAKE_TIME;
                resolve(&self.outside, &self.stop, &self.lookups, name, deadline)
                    .map_err(Denied::Failed)?
            }
        };
        let is_own = |address| self.outside.is_own(address);
        self.rules.check(target, &found, is_own).map_err(refuse)
    }

    fn refuse(&self, target: &str, reason: &str) {
        self.ledger.record(target, reason);
    }
}

/// Opens the connection that a client inside asks for, if it may be had.
pub(super) fn open(proxy: &Proxy, client: &OwnedFd) -> Option<Joint> {
    let deadline = Instant::now() + HANDSHAKE_TIME;
    let mut heard = Vec::new();
    receive_more(&proxy.stop, client, &mut heard, deadline).ok()?;
    let opened = match heard[0] {
        socks::VERSION => socks::open(proxy, client, heard, deadline),
        _ => http::open(proxy, client, heard, deadline),
    };
    // A client that breaks off while it is served needs no answer, and nobody waits for one.
    opened.ok().flatten()
}
