//! Ports: speaking with a server that code has started.
//!
//! Whoever listens on the loopback of an execution or of a terminal is reached by a socket of that one's
//! network, which is handed over connected. Nothing is ever connected to from the executor's own network,
//! which may be the host's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use sandbox_isolation::keeper::{Doorway, Inner, InnerNetwork, Keeper};
use tokio::net::TcpSocket;

use crate::executor::Executor;

/// How long one that does not take a connection is waited for. One that does takes it in no time.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long all of them together are.
const PATIENCE_WITH_ALL: Duration = Duration::from_secs(5);

/// The ways into the networks of what runs.
#[derive(Debug, Default)]
pub(crate) struct Doorways {
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Rc<Doorway>>>,
}

/// A way that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    doorways: Rc<Doorways>,
    number: u64,
}

impl Doorways {
    /// Opens the one into the network of `inner`. Where there is none, it cannot be reached.
    pub(crate) fn open(self: &Rc<Doorways>, keeper: &Keeper, inner: &Inner) -> Option<Opened> {
        let doorway = keeper.doorway(inner).ok().flatten()?;
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut().insert(number, Rc::new(doorway));
        Some(Opened {
            doorways: self.clone(),
            number,
        })
    }

    /// All of them, that of what began last first.
    fn all(&self) -> Vec<Rc<Doorway>> {
        self.open.borrow().values().rev().cloned().collect()
    }
}

impl Executor {
    /// A connection to `port` on the loopback of whatever runs and listens there; of what began last, if
    /// several do.
    pub(crate) async fn connect(&self, port: u16) -> io::Result<OwnedFd> {
        let trying = async {
            for doorway in self.doorways.all() {
                if !doorway.is_theirs(port) {
                    continue;
                }
                // One that has just ended has no sockets.
                let Ok(sockets) = doorway.sockets() else {
                    continue;
                };
                if let Some(connected) = first_connected(sockets, port).await {
                    return Some(connected);
                }
                if doorway.network() == InnerNetwork::Shared {
                    // The others lead to the same network.
                    return None;
                }
            }
            None
        };
        let connected = tokio::time::timeout(PATIENCE_WITH_ALL, trying).await;
        connected.ok().flatten().ok_or_else(|| {
            let reason = format!("nothing that runs in the session listens on port {port}");
            io::Error::new(io::ErrorKind::NotFound, reason)
        })
    }
}

/// The first of the sockets, of each internet one, that finds somebody.
async fn first_connected(sockets: Vec<OwnedFd>, port: u16) -> Option<OwnedFd> {
    let loopback = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    for (socket, address) in sockets.into_iter().zip(loopback) {
        let connecting = tokio::time::timeout(PATIENCE, connect(socket, address));
        if let Ok(Ok(connected)) = connecting.await {
            return Some(connected);
        }
    }
    None
}

async fn connect(socket: OwnedFd, address: SocketAddr) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    let socket = TcpSocket::from_std_stream(socket.into());
    let connected = socket.connect(address).await?;
    if connected.local_addr()? == connected.peer_addr()? {
        // Where nobody listens, the kernel may by chance give us the very port that we ask for.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(connected.into_std()?.into())
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.doorways.open.borrow_mut().remove(&self.number);
    }
}
