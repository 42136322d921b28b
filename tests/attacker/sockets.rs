//! Reaching servers: pathname and abstract sockets, TCP, UDP, proxies; and odd socket families.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream};
use std::time::Duration;

use crate::files::println_now;
use crate::{Attempt, Refusal, checked, refused_by};

const PATIENCE: Duration = Duration::from_secs(5);

pub fn attempt(name: &str, arguments: &[&str]) -> Option<Attempt> {
    Some(match (name, arguments) {
        ("connect-path", [path]) => UnixStream::connect(path)
            .map_err(refused_by("connect"))
            .and_then(greeting),
        ("connect-abstract", [name]) => connect_abstract(name),
        ("send-abstract", [name]) => send_abstract(name),
        ("connect-tcp", [address]) => connect_tcp(address),
        ("ask-udp", [address]) => ask_udp(address),
        ("resolve", [name]) => resolve(name),
        ("through-proxy", [proxy, request]) => through_proxy(proxy, request),
        ("through-socks", [proxy, host, port]) => through_socks(proxy, host, port),
        ("serve-tcp", [address]) => serve_tcp(address),
        ("socket", [family, kind, protocol]) => socket(family, kind, protocol),
        ("share-memory", [key, size]) => share_memory(key, size),
        _ => return None,
    })
}

/// What the server says first: proof that somebody answered.
fn greeting(mut stream: UnixStream) -> Attempt {
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(refused_by("timeout"))?;
    let mut said = String::new();
    stream
        .read_to_string(&mut said)
        .map_err(refused_by("read"))?;
    Ok(said)
}

fn connect_abstract(name: &str) -> Attempt {
    let address = UnixAddress::from_abstract_name(name).map_err(refused_by("name"))?;
    UnixStream::connect_addr(&address)
        .map_err(refused_by("connect"))
        .and_then(greeting)
}

fn send_abstract(name: &str) -> Attempt {
    let address = UnixAddress::from_abstract_name(name).map_err(refused_by("name"))?;
    let socket = UnixDatagram::unbound().map_err(refused_by("socket"))?;
    socket
        .send_to_addr(b"0wned", &address)
        .map_err(refused_by("send"))?;
    Ok(String::from("sent"))
}

fn parse(address: &str) -> SocketAddr {
    address.parse().expect("an address and a port")
}

fn connect_tcp(address: &str) -> Attempt {
    let mut stream =
        TcpStream::connect_timeout(&parse(address), PATIENCE).map_err(refused_by("connect"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(refused_by("timeout"))?;
    let mut said = String::new();
    stream
        .read_to_string(&mut said)
        .map_err(refused_by("read"))?;
    if said.is_empty() {
        // Accepted by a forwarder that had nobody to forward to: not reached.
        return Err(Refusal {
            errno: libc::ECONNRESET,
            at: String::from("closed unanswered"),
        });
    }
    Ok(said)
}

fn ask_udp(address: &str) -> Attempt {
    let address = parse(address);
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).map_err(refused_by("bind"))?;
    socket
        .set_read_timeout(Some(Duration::from_millis(500)))
        .map_err(refused_by("timeout"))?;
    socket
        .send_to(b"question", address)
        .map_err(refused_by("send"))?;
    let mut buffer = [0; 512];
    let (length, _) = socket
        .recv_from(&mut buffer)
        .map_err(refused_by("receive"))?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// As programs do, through the C library.
fn resolve(name: &str) -> Attempt {
    use std::net::ToSocketAddrs as _;
    let found = (name, 80)
        .to_socket_addrs()
        .map_err(refused_by("resolve"))?;
    Ok(found
        .map(|address| address.ip().to_string())
        .collect::<Vec<_>>()
        .join(" "))
}

/// `request` with `\r` and `\n` written out, to a proxy; its whole answer.
fn through_proxy(proxy: &str, request: &str) -> Attempt {
    let mut stream =
        TcpStream::connect_timeout(&parse(proxy), PATIENCE).map_err(refused_by("connect"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(refused_by("timeout"))?;
    let request = request.replace("\\r", "\r").replace("\\n", "\n");
    stream
        .write_all(request.as_bytes())
        .map_err(refused_by("write"))?;
    let mut answer = Vec::new();
    // Some answers end by a reset, some stay open: what came until then is the answer.
    let _ = stream.read_to_end(&mut answer);
    Ok(String::from_utf8_lossy(&answer).escape_debug().to_string())
}

/// SOCKS5 without authentication, the name resolved by the proxy.
fn through_socks(proxy: &str, host: &str, port: &str) -> Attempt {
    let mut stream =
        TcpStream::connect_timeout(&parse(proxy), PATIENCE).map_err(refused_by("connect"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(refused_by("timeout"))?;
    stream.write_all(&[5, 1, 0]).map_err(refused_by("greet"))?;
    let mut chosen = [0; 2];
    stream
        .read_exact(&mut chosen)
        .map_err(refused_by("greet"))?;
    let mut request = vec![5, 1, 0];
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => {
            request.push(1);
            request.extend(address.octets());
        }
        Ok(std::net::IpAddr::V6(address)) => {
            request.push(4);
            request.extend(address.octets());
        }
        Err(_) => {
            request.push(3);
            request.push(u8::try_from(host.len()).expect("a short name"));
            request.extend(host.as_bytes());
        }
    }
    request.extend(port.parse::<u16>().expect("a port").to_be_bytes());
    stream.write_all(&request).map_err(refused_by("request"))?;
    let mut answer = [0; 10];
    stream
        .read_exact(&mut answer)
        .map_err(refused_by("answer"))?;
    if answer[1] != 0 {
        let at = format!("the proxy said {}", answer[1]);
        return Err(Refusal {
            errno: libc::ECONNREFUSED,
            at,
        });
    }
    let mut said = String::new();
    stream
        .read_to_string(&mut said)
        .map_err(refused_by("read"))?;
    Ok(said)
}

/// Answers every connection until it is killed.
fn serve_tcp(address: &str) -> Attempt {
    let listener = TcpListener::bind(parse(address)).map_err(refused_by("bind"))?;
    println_now("listening");
    for stream in listener.incoming().flatten() {
        let mut stream = stream;
        let _ = stream.write_all(b"hello from inside\n");
    }
    Ok(String::from("served"))
}

fn socket(family: &str, kind: &str, protocol: &str) -> Attempt {
    let number = |text: &str| text.parse::<i32>().expect("a number");
    // SAFETY: three integers.
    let result = unsafe { libc::socket(number(family), number(kind), number(protocol)) };
    checked("socket", i64::from(result))?;
    Ok(String::from("opened"))
}

/// A System V segment of that key; size 0 takes only one that exists.
fn share_memory(key: &str, size: &str) -> Attempt {
    let key = key.parse().expect("a key");
    let size: usize = size.parse().expect("a size");
    let flags = if size == 0 {
        0o600
    } else {
        libc::IPC_CREAT | libc::IPC_EXCL | 0o600
    };
    // SAFETY: integers only.
    let id = unsafe { libc::shmget(key, size, flags) };
    checked("shmget", i64::from(id))?;
    if size != 0 {
        println_now("sharing");
        // Kept until the test has looked: it closes our standard input.
        let _ = std::io::stdin().read(&mut [0]);
        // SAFETY: removing a segment takes no buffer.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
    Ok(String::from("attached"))
}
