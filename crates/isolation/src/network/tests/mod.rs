//! The gate as a client meets it, over real sockets.
//!
//! The listeners are made here on the loopback instead of in another namespace: to the gate there is
//! no difference. The internet is played by [`World`], which keeps every address it is asked to
//! connect to and leads them all to one server of the test, so that no packet leaves the machine.

mod forwarding;
mod proxying;
mod publishing;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::gate::Gate;
use super::outside::Outside;
use super::stop::Stop;
use super::{Doors, Refused, proxy_variables, socket};

/// A listener on the loopback, and its port.
fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A client that fails the test rather than wait for ever.
fn client(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// Serves each connection with `talk`, for as long as the test runs.
fn server(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let (listener, port) = listener();
    let talk = Arc::new(talk);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, talk) = (stream.unwrap(), talk.clone());
            thread::spawn(move || talk(stream));
        }
    });
    port
}

/// Sends back everything, once it has heard the end.
fn echo(mut stream: TcpStream) {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    let _ = stream.write_all(&heard);
}

/// Says `what`, hears the answer to its end.
fn ask(port: u16, what: impl AsRef<[u8]>) -> String {
    let mut stream = client(port);
    stream.write_all(what.as_ref()).unwrap();
    heard(&mut stream)
}

fn heard(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The threads of this process that belong to gates of this test, by the name they carry.
fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .filter(|name| name.starts_with(prefix))
        .count()
}

/// An internet of one server.
#[derive(Debug)]
struct World {
    /// What each name resolves to: the first answer for the first look, and so on; the last stays.
    names: HashMap<&'static str, Vec<Vec<IpAddr>>>,
    looks: AtomicUsize,
    /// Where every connection leads.
    server: u16,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl World {
    fn new(server: u16, names: &[(&'static str, &[&[&str]])]) -> Arc<World> {
        let parse = |list: &&[&str]| list.iter().map(|a| a.parse().unwrap()).collect();
        let names = names
            .iter()
            .map(|(name, looks)| (*name, looks.iter().map(parse).collect()));
        Arc::new(World {
            names: names.collect(),
            looks: AtomicUsize::new(0),
            server,
            dialled: Mutex::default(),
        })
    }

    fn dialled(&self) -> Vec<String> {
        self.dialled
            .lock()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }
}

impl Outside for World {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let looks = self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(looks[look.min(looks.len() - 1)].clone())
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address == IpAddr::from([9, 9, 9, 9])
    }

    fn dial(&self, stop: &Stop, address: SocketAddr) -> io::Result<OwnedFd> {
        self.dialled.lock().unwrap().push(address);
        socket::dial(stop, (Ipv4Addr::LOCALHOST, self.server).into())
    }
}

/// A gate with a proxy before `world`, and the proxy's port.
fn proxy(world: &Arc<World>, allowed: &[&str]) -> (Gate, u16) {
    let (inside, port) = listener();
    let doors = Doors {
        proxy: Some(inside.into()),
        hosts: allowed
            .iter()
            .map(|pattern| pattern.parse().unwrap())
            .collect(),
        ..Doors::default()
    };
    (Gate::open_to(doors, world.clone()).unwrap(), port)
}

fn targets(refused: &[Refused]) -> Vec<(&str, u32)> {
    refused
        .iter()
        .map(|r| (r.target.as_str(), r.count))
        .collect()
}

#[test]
fn tools_are_led_to_the_proxy_and_around_it_for_the_loopback() {
    let variables: HashMap<_, _> = proxy_variables().into_iter().collect();
    for name in ["http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        assert_eq!(variables[name], "http://127.0.0.1:3128");
    }
    assert_eq!(variables["no_proxy"], "localhost,127.0.0.1,::1");
    assert_eq!(variables["NO_PROXY"], variables["no_proxy"]);
}

#[test]
fn a_gate_without_doors_starts_nothing_and_refuses_nothing() {
    let gate = Gate::open(Doors::default()).unwrap();
    assert_eq!(gate.close(), []);
}
