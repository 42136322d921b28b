//! Published ports. The init is played by a thread that hands out sockets of this namespace.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socket, socketpair,
};
use sandbox_model::PublishedPort;

use super::*;

/// The gate's end of a channel to an init, and what that init was asked for.
fn init() -> (OwnedFd, Arc<Mutex<Vec<u8>>>) {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let record = asked.clone();
    thread::spawn(move || {
        let mut byte = [0];
        while let Ok((1, _)) = recv(&theirs, &mut byte, RecvFlags::empty()) {
            record.lock().unwrap().push(byte[0]);
            let family = match byte[0] {
                b'4' => AddressFamily::INET,
                _ => AddressFamily::INET6,
            };
            let fresh = socket(family, SocketType::STREAM, None).unwrap();
            let rights = [fresh.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
            sendmsg(
                &theirs,
                &[IoSlice::new(b"+")],
                &mut control,
                SendFlags::NOSIGNAL,
            )
            .unwrap();
        }
    });
    (ours, asked)
}

/// A gate that publishes `inside`, and the host's port.
fn published(inside: u16, sockets: OwnedFd) -> (Gate, u16) {
    let (free, host) = listener();
    drop(free);
    let publish = vec![PublishedPort { host, inside }];
    let doors = Doors {
        publish,
        sockets: Some(sockets),
        ..Doors::default()
    };
    (Gate::open(doors).unwrap(), host)
}

#[test]
fn the_host_reaches_a_server_inside() {
    let (sockets, asked) = init();
    let (_gate, port) = published(server(echo), sockets);
    for _ in 0..3 {
        let mut stream = client(port);
        stream.write_all(b"hello inside").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(heard(&mut stream), "hello inside");
    }
    assert_eq!(*asked.lock().unwrap(), b"444");
}

#[test]
fn a_server_that_listens_on_ipv6_alone_is_found() {
    let inside = TcpListener::bind("[::1]:0").unwrap();
    let port = inside.local_addr().unwrap().port();
    thread::spawn(move || echo(inside.accept().unwrap().0));
    let (sockets, asked) = init();
    let (_gate, port) = published(port, sockets);
    let mut stream = client(port);
    stream.write_all(b"six").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(heard(&mut stream), "six");
    assert_eq!(*asked.lock().unwrap(), b"46");
}

#[test]
fn a_published_port_without_a_server_fails_at_once() {
    let (free, inside) = listener();
    drop(free);
    let (sockets, _) = init();
    let (_gate, port) = published(inside, sockets);
    let error = client(port).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn an_init_that_is_gone_is_a_failure_and_not_a_wait() {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    drop(theirs);
    let (_gate, port) = published(server(echo), ours);
    let error = client(port).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let (_holds, port) = listener();
    let (sockets, _) = init();
    let publish = vec![PublishedPort {
        host: port,
        inside: 80,
    }];
    let doors = Doors {
        publish,
        sockets: Some(sockets),
        ..Doors::default()
    };
    let error = Gate::open(doors).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let wanted =
        format!("cannot publish port {port}: something on this host listens there already");
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn publishing_without_sockets_is_refused_before_anything_listens() {
    let doors = Doors {
        publish: vec![PublishedPort { host: 1, inside: 1 }],
        ..Doors::default()
    };
    assert_eq!(
        Gate::open(doors).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn a_run_that_joined_takes_the_port_over_when_the_first_ends() {
    let (first_sockets, _) = init();
    let inside = server(|mut stream| stream.write_all(b"inside").unwrap());
    let (first, port) = published(inside, first_sockets);
    let (sockets, asked) = init();
    let publish = vec![PublishedPort { host: port, inside }];
    let doors = Doors {
        publish,
        sockets: Some(sockets),
        joined: true,
        ..Doors::default()
    };
    let _second = Gate::open(doors).unwrap();
    assert_eq!(heard(&mut client(port)), "inside");
    assert_eq!(
        *asked.lock().unwrap(),
        b"",
        "the first serves while it lives"
    );
    first.close();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let mut stream = loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
        }
    };
    assert_eq!(heard(&mut stream), "inside");
    assert_eq!(*asked.lock().unwrap(), b"4");
}
