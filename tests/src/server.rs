//! Servers of the host's that nothing inside may reach.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that greets whoever connects with a secret, and counts.
#[derive(Debug)]
pub struct Answering {
    greeted: Arc<AtomicUsize>,
}

/// What a server of ours says: only the attacker who reached it can repeat it.
pub const SECRET: &str = "a secret of the host";

impl Answering {
    /// On a socket at `path`, open to everyone.
    pub fn at_path(path: &Path) -> Answering {
        let listener = UnixListener::bind(path).expect("bind a path");
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .expect("open to everyone");
        Answering::unix(listener)
    }

    /// On an abstract name.
    pub fn at_abstract(name: &str) -> Answering {
        let address = UnixAddress::from_abstract_name(name).expect("a name");
        Answering::unix(UnixListener::bind_addr(&address).expect("bind an abstract name"))
    }

    /// On a TCP port that the kernel picks.
    pub fn at_tcp(address: &str) -> (Answering, SocketAddr) {
        let listener = TcpListener::bind(address).expect("bind a port");
        let local = listener.local_addr().expect("its address");
        let greeted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&greeted);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(SECRET.as_bytes());
            }
        });
        (Answering { greeted }, local)
    }

    fn unix(listener: UnixListener) -> Answering {
        let greeted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&greeted);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(SECRET.as_bytes());
            }
        });
        Answering { greeted }
    }

    /// How many have connected.
    pub fn greeted(&self) -> usize {
        self.greeted.load(Ordering::SeqCst)
    }
}

/// An abstract name that no other test has.
pub fn abstract_name(purpose: &str) -> String {
    format!("sandbox-tests-{purpose}-{}", std::process::id())
}
