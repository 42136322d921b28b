//! Forwarded ports, and what all doors share.

use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

/// A gate with a port inside that leads to `server`, and the port inside. On one loopback the two
/// cannot be the same number, so the door is told the server's.
fn forwarded(server: u16) -> (Gate, u16) {
    let (inside, port) = listener();
    let doors = Doors {
        ports: vec![(server, vec![inside.into()])],
        ..Doors::default()
    };
    (Gate::open(doors).unwrap(), port)
}

#[test]
fn a_forwarded_port_reaches_the_host_and_keeps_half_closed_connections() {
    let (gate, port) = forwarded(server(echo));
    let mut stream = client(port);
    stream.write_all(b"all of it").unwrap();
    // The echo answers only after the end: it must arrive, and must not end the answer.
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(heard(&mut stream), "all of it");
    assert_eq!(gate.close(), []);
}

#[test]
fn a_server_that_ends_first_can_still_be_spoken_to() {
    let (tell, told) = std::sync::mpsc::channel();
    let tell = Mutex::new(tell);
    let port = server(move |mut stream| {
        stream.write_all(b"hello").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        tell.lock().unwrap().send(heard(&mut stream)).unwrap();
    });
    let (_gate, port) = forwarded(port);
    let mut stream = client(port);
    assert_eq!(heard(&mut stream), "hello");
    stream.write_all(b"and goodbye").unwrap();
    drop(stream);
    assert_eq!(
        told.recv_timeout(Duration::from_secs(20)).unwrap(),
        "and goodbye"
    );
}

#[test]
fn a_port_where_nobody_listens_fails_at_once() {
    let (free, closed_port) = listener();
    drop(free);
    let (_gate, port) = forwarded(closed_port);
    let error = client(port).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn a_broken_connection_does_not_look_complete() {
    let port = server(|mut stream| {
        stream.write_all(b"half of ").unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        let stream: OwnedFd = stream.into();
        socket::reset_on_close(&stream);
    });
    let (_gate, port) = forwarded(port);
    let mut stream = client(port);
    let mut first = [0; 8];
    stream.read_exact(&mut first).unwrap();
    stream.write_all(b"x").unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn large_amounts_pass_both_ways_at_once() {
    const SIZE: usize = 8 * 1024 * 1024;
    let port = server(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let sender = thread::spawn(move || {
            writer.write_all(&vec![7; SIZE]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let count = io::copy(&mut &stream, &mut io::sink()).unwrap();
        assert_eq!(count, SIZE as u64);
        sender.join().unwrap();
    });
    let (_gate, port) = forwarded(port);
    let stream = client(port);
    let mut writer = stream.try_clone().unwrap();
    let sender = thread::spawn(move || {
        writer.write_all(&vec![8; SIZE]).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    assert_eq!(
        io::copy(&mut &stream, &mut io::sink()).unwrap(),
        SIZE as u64
    );
    sender.join().unwrap();
}

#[test]
fn a_hundred_connections_are_served_at_once() {
    let (_gate, port) = forwarded(server(echo));
    let mut streams: Vec<_> = (0..100).map(|_| client(port)).collect();
    for (index, stream) in streams.iter_mut().enumerate() {
        write!(stream, "number {index}").unwrap();
    }
    for (index, stream) in streams.iter_mut().enumerate().rev() {
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(heard(stream), format!("number {index}"));
    }
}

#[test]
fn too_many_connections_are_refused_and_recorded() {
    let most = crate::network::gate::MOST_CONNECTIONS;
    // Client, gate and server are one process here: it needs twice what a gate needs.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )
    .unwrap();
    let (gate, port) = forwarded(server(echo));
    let mut streams: Vec<_> = (0..most).map(|_| client(port)).collect();
    // The last of them is served, so all of them have been accepted.
    let last = streams.last_mut().unwrap();
    last.write_all(b"last").unwrap();
    let mut one_more = client(port);
    assert_eq!(
        one_more.read(&mut [0]).unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
    drop(streams);
    let refused = gate.close();
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].reason.contains("connections at once"),
        "{refused:?}"
    );
}

#[test]
fn close_ends_every_connection_and_leaves_no_thread() {
    // In a process of its own, or the gates of other tests would be counted.
    let me = std::env::current_exe().unwrap();
    let test = "network::tests::forwarding::alone_close_leaves_no_thread";
    let status = std::process::Command::new(me)
        .args(["--exact", test, "--ignored", "--test-threads=1"])
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "run by close_ends_every_connection_and_leaves_no_thread, in a process of its own"]
fn alone_close_leaves_no_thread() {
    let (gate, port) = forwarded(server(|mut stream| {
        stream.write_all(b"hello").unwrap();
        echo(stream);
    }));
    let mut streams: Vec<_> = (0..100).map(|_| client(port)).collect();
    for stream in &mut streams {
        stream.read_exact(&mut [0; 5]).unwrap();
    }
    // All are served by the one thread, once those that opened their other side have ended.
    let deadline = Instant::now() + Duration::from_secs(10);
    while threads_named("gate") > 1 {
        assert!(Instant::now() < deadline, "{}", threads_named("gate"));
        thread::yield_now();
    }
    gate.close();
    // A thread that has been joined may stay in the process table for a moment.
    let deadline = Instant::now() + Duration::from_secs(10);
    while threads_named("gate") > 0 {
        assert!(
            Instant::now() < deadline,
            "{} threads are left",
            threads_named("gate")
        );
        thread::yield_now();
    }
    for stream in &mut streams {
        assert_eq!(heard(stream), "");
    }
    let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}
