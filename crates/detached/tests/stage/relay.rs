//! An address that stays, in front of a server whose address does not.

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes connections on, or breaks them while there is nobody behind it.
#[derive(Debug)]
pub struct Relay {
    pub address: SocketAddr,
    behind: Arc<Mutex<Option<SocketAddr>>>,
}

impl Relay {
    pub fn to(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let behind = Arc::new(Mutex::new(Some(server)));
        let known = Arc::clone(&behind);
        std::thread::spawn(move || {
            for front in listener.incoming().flatten() {
                let behind = *known.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(back) = behind.and_then(|address| TcpStream::connect(address).ok()) {
                    join(front, back);
                }
            }
        });
        Relay { address, behind }
    }

    /// From now on, this is behind it; nobody, where it is nothing.
    pub fn lead(&self, server: Option<SocketAddr>) {
        *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = server;
    }
}

fn join(front: TcpStream, back: TcpStream) {
    let (Ok(from_front), Ok(from_back)) = (front.try_clone(), back.try_clone()) else {
        return;
    };
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            let _ = copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    };
    pass(from_front, back);
    pass(from_back, front);
}
