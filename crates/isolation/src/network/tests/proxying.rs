//! The proxy: what it lets through, what it refuses, and what it cannot be talked into.

use super::*;

const PUBLIC: &[&[&str]] = &[&["93.184.215.14"]];

/// Says what it heard up to the first empty line, then a body of it after the end, if any.
fn http_server(mut stream: TcpStream) {
    let mut heard = Vec::new();
    let mut byte = [0];
    while !heard.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        heard.push(byte[0]);
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", heard.len());
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&heard);
}

fn connect_request(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

/// Asks for `target` by CONNECT and sends `ping` through; the whole answer.
fn tunnel(port: u16, target: &str) -> String {
    let mut stream = client(port);
    stream
        .write_all(connect_request(target).as_bytes())
        .unwrap();
    let _ = stream.write_all(b"ping");
    let _ = stream.shutdown(Shutdown::Write);
    heard(&mut stream)
}

/// A SOCKS5 request for a name.
fn socks_request(name: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 5, 1, 0, 3, name.len() as u8];
    bytes.extend(name.bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

/// What SOCKS answers, from the reply code on.
fn socks(port: u16, request: &[u8]) -> (u8, Vec<u8>) {
    let mut stream = client(port);
    stream.write_all(request).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(answer[..2], [5, 0], "{answer:?}");
    (answer[3], answer[12..].to_vec())
}

#[test]
fn an_allowed_host_is_reached_by_connect() {
    let world = World::new(server(echo), &[("api.example.com", PUBLIC)]);
    let (gate, port) = proxy(&world, &["*.example.com:443"]);
    assert_eq!(
        tunnel(port, "API.example.com.:443"),
        "HTTP/1.1 200 Connection established\r\n\r\nping"
    );
    assert_eq!(world.dialled(), ["93.184.215.14:443"]);
    assert_eq!(gate.close(), []);
}

#[test]
fn an_allowed_host_is_reached_by_socks() {
    let world = World::new(server(echo), &[("api.example.com", PUBLIC)]);
    let (gate, port) = proxy(
        &world,
        &["api.example.com", "[2606:4700::1111]:443", "1.1.1.1"],
    );
    let mut request = socks_request("api.example.com", 443);
    request.extend(b"early bytes");
    assert_eq!(socks(port, &request), (0, b"early bytes".to_vec()));
    assert_eq!(socks(port, &[5, 1, 0, 5, 1, 0, 1, 1, 1, 1, 1, 0, 80]).0, 0);
    assert_eq!(socks(port, &socks_request("2606:4700::1111", 443)).0, 0);
    assert_eq!(
        world.dialled(),
        ["93.184.215.14:443", "1.1.1.1:80", "[2606:4700::1111]:443"]
    );
    assert_eq!(gate.close(), []);
}

#[test]
fn an_allowed_host_is_reached_by_plain_http() {
    let world = World::new(server(http_server), &[("example.com", PUBLIC)]);
    let (gate, port) = proxy(&world, &["example.com"]);
    let answer = ask(
        port,
        "GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\n\r\n",
    );
    let seen = "GET /a?b HTTP/1.1\r\nHost: example.com\r\nx-one: 1\r\nConnection: close\r\n\r\n";
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(seen),
        "{answer}"
    );
    assert_eq!(gate.close(), []);
}

#[test]
fn everything_else_is_refused_at_once_and_recorded() {
    let world = World::new(
        server(echo),
        &[("example.com", PUBLIC), ("evil.org", PUBLIC)],
    );
    let (gate, port) = proxy(&world, &["example.com"]);
    for _ in 0..2 {
        let answer = tunnel(port, "evil.org:443");
        let reason =
            "evil.org:443 is refused: not allowed; `--allow-host evil.org:443` would allow it";
        let status = format!("HTTP/1.1 403 Forbidden (sandbox: {reason})\r\n");
        assert!(answer.starts_with(&status), "{answer}");
        assert!(
            answer.ends_with(&format!("\r\n\r\nsandbox: {reason}\n")),
            "{answer}"
        );
    }
    assert!(
        ask(
            port,
            "GET http://evil.org/ HTTP/1.1\r\nHost: example.com\r\n\r\n"
        )
        .contains(" 403 ")
    );
    assert_eq!(socks(port, &socks_request("evil.org", 22)).0, 2);
    assert_eq!(socks(port, &socks_request("example.com", 22)).0, 2);
    assert_eq!(world.dialled(), Vec::<String>::new());
    assert_eq!(world.looks(), 0, "a refused name must not reach the DNS");
    let refused = gate.close();
    let wanted = [
        ("evil.org:443", 2),
        ("evil.org:80", 1),
        ("evil.org:22", 1),
        ("example.com:22", 1),
    ];
    let mut found = targets(&refused);
    found.sort_unstable();
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!(refused[0].target, "evil.org:443");
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let world = World::new(server(echo), &[]);
    let (_gate, port) = proxy(&world, &[]);
    let mut stream = client(port);
    let head = "PUT http://evil.org/ HTTP/1.1\r\nHost: evil.org\r\nContent-Length: 4194304\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![0; 4 * 1024 * 1024]).unwrap();
    assert!(heard(&mut stream).starts_with("HTTP/1.1 403 "));
}

#[test]
fn a_host_header_talks_it_into_nothing() {
    let world = World::new(
        server(http_server),
        &[("example.com", PUBLIC), ("evil.org", PUBLIC)],
    );
    let (gate, port) = proxy(&world, &["example.com"]);
    let answer = ask(
        port,
        "GET http://example.com/ HTTP/1.1\r\nHost: evil.org\r\n\r\n",
    );
    assert!(
        answer.contains("Host: example.com\r\n") && !answer.contains("evil"),
        "{answer}"
    );
    let answer = ask(port, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let two = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: evil.org\r\n\r\n";
    assert!(ask(port, two).starts_with("HTTP/1.1 400 "));
    assert_eq!(world.dialled(), ["93.184.215.14:80"]);
    assert_eq!(
        targets(&gate.close()),
        [("malformed request", 1), ("malformed request", 1)]
    );
}

#[test]
fn a_second_request_behind_the_first_goes_nowhere() {
    // The server tells all it hears until the client ends.
    let world = World::new(server(echo), &[("example.com", PUBLIC)]);
    let (_gate, port) = proxy(&world, &["example.com"]);
    let firsts = [
        "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\n\r\nbody",
        "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    ];
    for first in firsts {
        for pause in [false, true] {
            let before = world.dialled().len();
            let mut stream = client(port);
            stream.write_all(first.as_bytes()).unwrap();
            if pause {
                // So that the rest arrives once the relay is on.
                while world.dialled().len() == before {
                    thread::yield_now();
                }
            }
            stream
                .write_all(b"GET /secret HTTP/1.1\r\nHost: evil.org\r\n\r\n")
                .unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let seen = heard(&mut stream);
            assert!(seen.contains("Host: example.com\r\n"), "{seen}");
            assert!(!seen.contains("evil") && !seen.contains("secret"), "{seen}");
        }
    }
}

#[test]
fn a_tunnel_leads_to_one_host_whatever_is_said_in_it() {
    let world = World::new(
        server(echo),
        &[("example.com", PUBLIC), ("evil.org", PUBLIC)],
    );
    let (_gate, port) = proxy(&world, &["example.com:443"]);
    let mut stream = client(port);
    stream
        .write_all(connect_request("example.com:443").as_bytes())
        .unwrap();
    stream
        .write_all(connect_request("evil.org:443").as_bytes())
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let seen = heard(&mut stream);
    assert!(seen.ends_with(&connect_request("evil.org:443")), "{seen}");
    assert_eq!(world.dialled(), ["93.184.215.14:443"]);
}

#[test]
fn a_name_is_looked_up_once_and_that_address_is_connected_to() {
    // Rebinding: harmless when it is judged, this machine when it is used.
    let answers: &[&[&str]] = &[&["93.184.215.14"], &["127.0.0.1"]];
    let world = World::new(server(echo), &[("rebind.example.com", answers)]);
    let (gate, port) = proxy(&world, &["*.example.com"]);
    assert!(tunnel(port, "rebind.example.com:443").ends_with("ping"));
    assert_eq!(
        (world.looks(), world.dialled()),
        (1, vec!["93.184.215.14:443".to_owned()])
    );
    let refused = tunnel(port, "rebind.example.com:443");
    assert!(
        refused.contains("resolves to a non-public address"),
        "{refused}"
    );
    assert!(!refused.contains("127.0.0.1"), "{refused}");
    assert_eq!((world.looks(), world.dialled().len()), (2, 1));
    assert_eq!(targets(&gate.close()), [("rebind.example.com:443", 1)]);
}

#[test]
fn private_addresses_are_refused_by_whatever_name() {
    let world = World::new(
        server(echo),
        &[
            ("localhost", &[&["127.0.0.1"]]),
            ("metadata.google.internal", &[&["169.254.169.254"]]),
            ("intranet.example.com", &[&["10.0.0.7"]]),
            ("both.example.com", &[&["93.184.215.14", "192.168.1.1"]]),
            ("mapped.example.com", &[&["::ffff:127.0.0.1"]]),
            ("nat64.example.com", &[&["64:ff9b::7f00:1"]]),
            ("own.example.com", &[&["9.9.9.9"]]),
        ],
    );
    let (gate, port) = proxy(&world, &["*", "intranet.example.com"]);
    let refused = [
        "localhost",
        "metadata.google.internal",
        "intranet.example.com",
        "both.example.com",
        "mapped.example.com",
        "nat64.example.com",
        "own.example.com",
        "127.0.0.1",
        "[::1]",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "10.1.2.3",
        "0x7f.1",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "[fe80::1]",
        "224.0.0.1",
        "9.9.9.9",
    ];
    for host in refused {
        let answer = tunnel(port, &format!("{host}:80"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        let url = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(ask(port, url).starts_with("HTTP/1.1 403 "), "{host}");
        let name = host.trim_matches(['[', ']']);
        assert_eq!(socks(port, &socks_request(name, 80)).0, 2, "{host}");
    }
    assert_eq!(world.dialled(), Vec::<String>::new());
    let recorded: u32 = gate.close().iter().map(|refused| refused.count).sum();
    assert_eq!(recorded as usize, refused.len() * 3);
}

#[test]
fn a_private_address_that_is_named_is_reached() {
    let world = World::new(
        server(echo),
        &[
            ("db.internal", &[&["10.0.0.7"]]),
            ("localhost", &[&["127.0.0.1"]]),
        ],
    );
    let (gate, port) = proxy(
        &world,
        &[
            "db.internal:5432",
            "10.0.0.7:5432",
            "localhost:8080",
            "[::1]:80",
        ],
    );
    for target in [
        "db.internal:5432",
        "10.0.0.7:5432",
        "localhost:8080",
        "[::1]:80",
    ] {
        assert!(tunnel(port, target).ends_with("\r\n\r\nping"), "{target}");
    }
    assert_eq!(
        world.dialled(),
        [
            "10.0.0.7:5432",
            "10.0.0.7:5432",
            "127.0.0.1:8080",
            "[::1]:80"
        ]
    );
    assert_eq!(gate.close(), []);
}

#[test]
fn the_real_host_is_behind_a_gate_that_is_opened_plainly() {
    let (inside, port) = listener();
    let served = server(echo);
    let doors = Doors {
        proxy: Some(inside.into()),
        hosts: vec![format!("127.0.0.1:{served}").parse().unwrap()],
        ..Doors::default()
    };
    let gate = Gate::open(doors).unwrap();
    assert!(tunnel(port, &format!("127.0.0.1:{served}")).ends_with("ping"));
    assert!(tunnel(port, &format!("localhost:{served}")).contains(" 403 "));
    assert_eq!(
        targets(&gate.close()),
        [(format!("localhost:{served}").as_str(), 1)]
    );
}

#[test]
fn a_host_that_does_not_answer_is_a_failure_and_not_a_refusal() {
    let (free, closed_port) = listener();
    drop(free);
    let world = World::new(closed_port, &[("example.com", PUBLIC)]);
    let (gate, port) = proxy(&world, &["example.com", "unknown.org"]);
    assert!(tunnel(port, "example.com:443").starts_with("HTTP/1.1 502 "));
    assert!(tunnel(port, "unknown.org:443").starts_with("HTTP/1.1 502 "));
    assert_eq!(socks(port, &socks_request("example.com", 443)).0, 5);
    assert_eq!(socks(port, &socks_request("unknown.org", 443)).0, 4);
    assert_eq!(gate.close(), []);
}

#[test]
fn socks_offers_connections_without_passwords_and_nothing_else() {
    let world = World::new(server(echo), &[("example.com", PUBLIC)]);
    let (gate, port) = proxy(&world, &["example.com"]);
    assert_eq!(ask(port, [5, 1, 2]).len(), "\u{5}\u{fffd}".len());
    let mut associate = socks_request("example.com", 443);
    associate[4] = 3;
    assert_eq!(socks(port, &associate).0, 7);
    assert_eq!(targets(&gate.close()), [("example.com:443", 1)]);
}

#[test]
fn endless_and_broken_heads_are_turned_away() {
    let world = World::new(server(echo), &[]);
    let (gate, port) = proxy(&world, &[]);
    let long = format!("GET http://a/ HTTP/1.1\r\nX: {}", "a".repeat(100 * 1024));
    assert!(ask(port, long).starts_with("HTTP/1.1 400 "));
    assert!(ask(port, "GET http://a/ HTTP/1.1\nHost: a\n\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(port, "\x16\x03\x01 a TLS hello\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Who goes away in the middle is missed by nobody.
    client(port).write_all(b"CONN").unwrap();
    client(port).write_all(&[5]).unwrap();
    assert!(ask(port, "HELLO\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let refused = gate.close();
    assert_eq!(
        refused.iter().map(|r| r.count).sum::<u32>(),
        4,
        "{refused:?}"
    );
}

#[test]
fn a_gate_closes_while_names_are_looked_up_and_heads_are_awaited() {
    #[derive(Debug)]
    struct Silent(Mutex<std::sync::mpsc::Sender<()>>);
    impl Outside for Silent {
        fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            self.0.lock().unwrap().send(()).unwrap();
            loop {
                thread::park();
            }
        }
        fn is_own(&self, _: IpAddr) -> bool {
            false
        }
        fn dial(&self, _: &Stop, _: SocketAddr) -> io::Result<OwnedFd> {
            panic!("nothing was resolved")
        }
    }
    let (asked, was_asked) = std::sync::mpsc::channel();
    let (inside, port) = listener();
    let doors = Doors {
        proxy: Some(inside.into()),
        hosts: vec!["*".parse().unwrap()],
        ..Doors::default()
    };
    let gate = Gate::open_to(doors, Arc::new(Silent(Mutex::new(asked)))).unwrap();
    let mut slow = client(port);
    slow.write_all(b"CONNECT ").unwrap();
    let mut waiting = client(port);
    waiting
        .write_all(connect_request("example.com:443").as_bytes())
        .unwrap();
    was_asked.recv_timeout(Duration::from_secs(20)).unwrap();
    let begun = std::time::Instant::now();
    gate.close();
    assert!(begun.elapsed() < Duration::from_secs(5));
}
