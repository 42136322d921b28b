//! What is open to strangers before they have said anything: connections. There are so many, and each is held only by
//! somebody who uses it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use sandbox_api_tests::{Call, Opened, Options, Server, Storage, eventually, pause};
use serde_json::json;

fn options() -> Options {
    Options::on(Storage::SqliteAndFiles)
}

/// How long somebody is waited for, but for the moments before the server begins to.
const WAITED: Duration = Duration::from_secs(29);

/// Far longer than anything is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection on which this was said.
fn say(server: &Server, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    stream
}

/// Waits until it is closed.
#[track_caller]
fn must_be_closed(stream: &mut TcpStream, what: &str) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!(
            "{what}: {error}, after {:?}",
            String::from_utf8_lossy(&rest)
        ),
    }
}

#[test]
fn nobody_holds_a_connection_by_saying_nothing_or_half_of_it() {
    let server = options().start();
    let begin = Instant::now();
    let head = "GET /health HTTP/1.1\r\nHost: here\r\n";
    let mut held = [
        ("nothing", say(&server, "")),
        ("a letter", say(&server, "P")),
        ("half a head", say(&server, head)),
        ("a request", say(&server, &format!("{head}\r\n"))),
        (
            "a greeting",
            say(&server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ),
    ];
    // A head that comes letter by letter is no more of one.
    let mut slow = say(&server, head);
    let writing = slow.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        let mut writing = writing;
        while begin.elapsed() < PATIENCE && writing.write_all(b"x").is_ok() {
            pause(Duration::from_secs(1));
        }
    });
    for (what, stream) in &mut held {
        must_be_closed(stream, what);
    }
    must_be_closed(&mut slow, "a slow head");
    let took = begin.elapsed();
    assert!(took >= WAITED, "{took:?}");
    writer.join().unwrap();
}

#[test]
fn a_body_that_does_not_come_is_given_up_and_told() {
    let server = options().start();
    let call = server.call("POST", "/api/v1/sessions");
    let call = call.json(&json!({ "template_id": "python-basic" })).cut(5);
    let begin = Instant::now();
    call.send().invalid("too slowly");
    let took = begin.elapsed();
    assert!(took >= WAITED, "{took:?}");
}

#[test]
fn a_head_that_cannot_be_read_has_the_error_of_the_api() {
    let server = options().start();
    let call = |target: &str| Call::new(server.address(), "GET", target);
    let long = format!("/health?{}", "a".repeat(100_000));
    call(&long).send().error(414, "Sandbox.InvalidParameter");
    let large = call("/health").header("X-Large", "a".repeat(600_000));
    large.send().error(431, "Sandbox.InvalidParameter");
    let many = (0..150).fold(call("/health"), |call, number| {
        call.header(&format!("X-{number}"), "1")
    });
    many.send().error(431, "Sandbox.InvalidParameter");
    let malformed = call("/health").header("X Y", "1");
    malformed.send().error(400, "Sandbox.InvalidParameter");
    let fits = format!("/health?{}", "a".repeat(60_000));
    call(&fits).send().expect(200);
}

/// Nothing is heard on it for so long that something would have been.
#[track_caller]
fn must_wait(stream: &mut TcpStream) {
    stream
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let heard = stream.read(&mut [0; 1]);
    let kind = heard.as_ref().map_err(std::io::Error::kind);
    assert_eq!(kind, Err(ErrorKind::WouldBlock), "{heard:?}");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

#[test]
fn those_who_come_when_every_connection_is_taken_wait_for_one() {
    let server = options().with(&["--max-connections", "2"]).start();
    let session = server.session();
    // A stream of events, and what has left HTTP.
    let events = server.events(&session);
    let terminal = server.terminal(&session, "");
    let mut waiting = say(&server, "GET /health HTTP/1.1\r\nHost: here\r\n\r\n");
    must_wait(&mut waiting);
    eventually("the log tells of it", || {
        server
            .log()
            .contains("there are 2 connections")
            .then_some(())
    });
    drop(terminal);
    assert_eq!(Opened::read(waiting).unwrap().status, 200);
    drop(events);
}

#[test]
fn descriptors_that_have_run_out_are_waited_for() {
    let server = options().with(&["--pool", "none"]).start();
    server.get("/sessions").json(200);
    let pid = Some(server.pid());
    // What it may have at most stays as it was: not every root may raise that again.
    let none = Rlimit {
        current: Some(3),
        ..getrlimit(Resource::Nofile)
    };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    let mut waiting = say(&server, "GET /health HTTP/1.1\r\nHost: here\r\n\r\n");
    eventually("it has none for this", || {
        server
            .log()
            .contains("cannot take a connection")
            .then_some(())
    });
    must_wait(&mut waiting);
    prlimit(pid, Resource::Nofile, before).unwrap();
    assert_eq!(Opened::read(waiting).unwrap().status, 200);
}
