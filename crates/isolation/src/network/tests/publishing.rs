//! Published ports. The init is played by a thread that hands out sockets of this namespace.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socket, socketpair,
};
use sandbox_model::{Failure, PublishedPort};

use super::*;
use crate::network::{NetworkError, Published};

/// An init, as the gate sees it.
struct Init {
    /// The gate's end of the channel.
    sockets: OwnedFd,
    /// What it was asked for, in order.
    asked: Receiver<u8>,
    /// It answers each question for which there is something in here; dropped, it is gone.
    answers: Sender<Answer>,
}

#[derive(Clone, Copy)]
enum Answer {
    Socket,
    /// The byte alone, as where a family is switched off.
    Nothing,
}

impl Init {
    fn start() -> Init {
        let (sockets, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let (ask, asked) = channel();
        let (answers, prepared) = channel();
        thread::spawn(move || {
            let mut byte = [0];
            while let Ok((1, _)) = recv(&theirs, &mut byte, RecvFlags::empty()) {
                let _ = ask.send(byte[0]);
                let Ok(answer) = prepared.recv() else { return };
                hand_out(&theirs, byte, answer);
            }
        });
        Init {
            sockets,
            asked,
            answers,
        }
    }

    /// One that will answer `count` times.
    fn answering(count: usize) -> Init {
        let init = Init::start();
        for _ in 0..count {
            init.answers.send(Answer::Socket).unwrap();
        }
        init
    }

    fn was_asked(&self) -> Vec<u8> {
        self.asked.try_iter().collect()
    }
}

fn hand_out(to: &OwnedFd, byte: [u8; 1], answer: Answer) {
    let family = if byte == *b"4" {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let fresh = socket(family, SocketType::STREAM, None).unwrap();
    let rights = [fresh.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if matches!(answer, Answer::Socket) {
        assert!(control.push(SendAncillaryMessage::ScmRights(&rights)));
    }
    let _ = sendmsg(
        to,
        &[IoSlice::new(&byte)],
        &mut control,
        SendFlags::NOSIGNAL,
    );
}

/// A gate that publishes `inside` at a port that is free, and that port.
fn published(inside: u16, sockets: OwnedFd) -> (Gate, u16) {
    let (free, host) = listener();
    drop(free);
    (
        publish(PublishedPort { host, inside }, sockets, false),
        host,
    )
}

fn publish(port: PublishedPort, sockets: OwnedFd, joined: bool) -> Gate {
    let published = Published::bind(&[port], joined).unwrap();
    Gate::open(Doors {
        published,
        sockets: Some(sockets),
        ..Doors::default()
    })
    .unwrap()
}

fn reset(port: u16) -> bool {
    client(port)
        .read(&mut [0])
        .is_err_and(|e| e.kind() == io::ErrorKind::ConnectionReset)
}

fn hello(mut stream: TcpStream) {
    let _ = stream.write_all(b"inside");
}

#[test]
fn the_host_reaches_a_server_inside() {
    let init = Init::answering(3);
    let (_gate, port) = published(server(echo), init.sockets.try_clone().unwrap());
    for _ in 0..3 {
        let mut stream = client(port);
        stream.write_all(b"hello inside").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(heard(&mut stream), "hello inside");
    }
    assert_eq!(init.was_asked(), b"444");
}

#[test]
fn a_server_that_listens_on_ipv6_alone_is_found() {
    let inside = TcpListener::bind("[::1]:0").unwrap();
    let port = inside.local_addr().unwrap().port();
    thread::spawn(move || hello(inside.accept().unwrap().0));
    let init = Init::answering(2);
    let (_gate, port) = published(port, init.sockets.try_clone().unwrap());
    assert_eq!(heard(&mut client(port)), "inside");
    assert_eq!(init.was_asked(), b"46");
}

#[test]
fn a_published_port_without_a_server_fails_at_once() {
    let (free, inside) = listener();
    drop(free);
    let init = Init::answering(2);
    let (_gate, port) = published(inside, init.sockets.try_clone().unwrap());
    assert!(reset(port));
}

#[test]
fn a_family_that_is_switched_off_inside_spoils_nothing() {
    let (inside, inside_port) = listener();
    drop(inside);
    let init = Init::start();
    let (_gate, port) = published(inside_port, init.sockets.try_clone().unwrap());
    init.answers.send(Answer::Socket).unwrap();
    init.answers.send(Answer::Nothing).unwrap();
    assert!(reset(port), "nobody listens yet");
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, inside_port)).unwrap();
    thread::spawn(move || hello(inside.accept().unwrap().0));
    init.answers.send(Answer::Socket).unwrap();
    assert_eq!(heard(&mut client(port)), "inside");
    assert_eq!(init.was_asked(), b"464");
}

#[test]
fn a_client_of_a_paused_sandbox_is_served_when_it_goes_on() {
    let init = Init::start();
    let (_gate, port) = published(server(hello), init.sockets.try_clone().unwrap());
    let mut first = client(port);
    assert_eq!(init.asked.recv_timeout(Duration::from_secs(20)), Ok(b'4'));
    let mut second = client(port);
    // It has been paused; now it goes on.
    init.answers.send(Answer::Socket).unwrap();
    init.answers.send(Answer::Socket).unwrap();
    assert_eq!(heard(&mut first), "inside");
    assert_eq!(heard(&mut second), "inside");
}

#[test]
fn a_gate_closes_though_the_sandbox_is_paused() {
    let init = Init::start();
    let (gate, port) = published(server(hello), init.sockets.try_clone().unwrap());
    let clients = [client(port), client(port), client(port)];
    assert_eq!(init.asked.recv_timeout(Duration::from_secs(20)), Ok(b'4'));
    let began = Instant::now();
    gate.close();
    assert!(began.elapsed() < Duration::from_secs(5));
    drop(clients);
}

#[test]
fn an_init_that_is_gone_is_a_failure_and_not_a_wait() {
    let Init {
        sockets, answers, ..
    } = Init::start();
    drop(answers);
    let (_gate, port) = published(server(hello), sockets);
    assert!(reset(port));
    assert!(reset(port));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let (_holds, host) = listener();
    let error = Published::bind(&[PublishedPort { host, inside: 80 }], false).unwrap_err();
    assert!(matches!(error, NetworkError::Taken(port) if port == host));
    let told = format!("cannot publish port {host}: something on this host listens there already");
    assert_eq!(error.to_string(), told);
    assert!(error.hint().is_some());
}

#[test]
fn publishing_without_sockets_is_refused() {
    let (free, host) = listener();
    drop(free);
    let published = Published::bind(&[PublishedPort { host, inside: 1 }], false).unwrap();
    let doors = Doors {
        published,
        ..Doors::default()
    };
    assert_eq!(
        Gate::open(doors).unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn a_run_that_joined_takes_the_port_over_when_the_first_ends() {
    let first_init = Init::answering(1);
    let inside = server(hello);
    let (first, host) = published(inside, first_init.sockets.try_clone().unwrap());
    let init = Init::answering(1);
    let port = PublishedPort { host, inside };
    let _second = publish(port, init.sockets.try_clone().unwrap(), true);
    assert_eq!(heard(&mut client(host)), "inside");
    assert_eq!(init.was_asked(), b"", "the first serves while it lives");
    first.close();
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut stream = loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, host)) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    assert_eq!(heard(&mut stream), "inside");
    assert_eq!(init.was_asked(), b"4");
}
