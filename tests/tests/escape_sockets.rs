//! Attempts to reach servers of the host that are no files to be read: a read-only mount does not
//! stop a connect. And socket families that only widen the kernel's surface.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;

use sandbox_tests::{Answering, Fixture, Running, SECRET, User, abstract_name, as_both, kernel};

as_both! {
    /// docker.sock, the session bus, an agent's socket: wherever such sockets live by default.
    fn pathname_sockets_of_the_host_cannot_be_reached(user) {
        let fixture = Fixture::new(user);
        fixture.write("home/.gnupg/kept", "");
        fixture.write("home/.cache/kept", "");
        fixture.create(&[]);
        let unique = format!("sandbox-tests-{}.sock", std::process::id());
        fs::create_dir_all("/run/user").unwrap();
        let places = [
            format!("/run/{unique}"),
            format!("/run/user/{unique}"),
            format!("/var/run/{unique}.2"),
            format!("/tmp/{unique}"),
            format!("/dev/shm/{unique}"),
            format!("{}/.gnupg/S.agent", fixture.home().display()),
            format!("{}/.cache/agent.sock", fixture.home().display()),
            format!("{}/agent.sock", fixture.source().display()),
        ];
        for place in &places {
            let server = Answering::at_path(place.as_ref());
            let control = fixture.control(&["connect-path", place]);
            let inside = fixture.inside(&["connect-path", place]);
            fs::remove_file(place).unwrap();
            assert_eq!(control.must_work(), SECRET);
            inside.must_fail();
            assert_eq!(server.greeted(), 1, "{place}");
        }
    }

    /// Abstract names have no file to hide, and the network is the host's by default.
    fn abstract_sockets_of_the_host_cannot_be_reached(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        // With the host's network only Landlock keeps them apart: see SECURITY.md.
        let shared = kernel::scopes().then_some(&[][..]);
        for options in shared.into_iter().chain([&["--isolated-network"][..]]) {
            let name = abstract_name(&format!("agent-{}-{user:?}", options.len()));
            let server = Answering::at_abstract(&name);
            assert_eq!(fixture.control(&["connect-abstract", &name]).must_work(), SECRET);
            fixture.inside_with(options, &["connect-abstract", &name]).must_fail();
            assert_eq!(server.greeted(), 1);
        }
    }

    fn abstract_datagrams_do_not_reach_the_host(user) {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::net::{SocketAddr, UnixDatagram};
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let name = abstract_name(&format!("datagram-{user:?}"));
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let server = UnixDatagram::bind_addr(&address).unwrap();
        server.set_nonblocking(true).unwrap();
        fixture.control(&["send-abstract", &name]).must_work();
        assert_eq!(server.recv(&mut [0; 16]).unwrap(), 5);
        let options: &[&str] = match kernel::scopes() {
            true => &[],
            false => &["--isolated-network"],
        };
        fixture.inside_with(options, &["send-abstract", &name]).must_fail();
        assert!(server.recv(&mut [0; 16]).is_err(), "a datagram came through");
    }

    /// Abstract and pathname sockets between processes of one sandbox are its own affair.
    fn sockets_within_the_sandbox_work(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        // The network is the host's, and so are its abstract names: a number of the sandbox's own is everybody's.
        let name = abstract_name(&format!("inside-{user:?}"));
        let script = "import socket, sys\n\
            for address in ['\\0' + sys.argv[1], 'inside.sock']:\n\
            \u{20}server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()\n\
            \u{20}client = socket.socket(socket.AF_UNIX); client.connect(address)\n\
            \u{20}server.accept()[0].send(b'ok'); print(client.recv(2).decode())\n";
        let outcome = fixture.ok(["run", sandbox_tests::BOX, "python3", "-c", script, &name]);
        assert_eq!(outcome.out(), "ok\nok\n", "{outcome}");
    }

    /// AF_PACKET (CVE-2020-14386), AF_VSOCK (CVE-2021-26708), AF_ALG, AF_KEY, AF_XDP, AF_RDS, AF_TIPC,
    /// AF_CAN, AF_BLUETOOTH, AF_SMC, raw IP and netlink beyond routing: not one is needed to build
    /// software, and each has given root to somebody.
    fn odd_socket_families_are_refused(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut worked_outside = 0;
        for (family, kind, protocol) in [
            (17, 3, 0), (17, 2, 0), (40, 1, 0), (40, 2, 0), (38, 5, 0), (15, 3, 2), (44, 3, 0),
            (21, 5, 0), (30, 5, 0), (29, 3, 1), (31, 3, 1), (43, 1, 0), (39, 2, 0), (42, 2, 0),
            (3, 5, 0), (8, 2, 0), (2, 3, 1), (2, 3, 255), (10, 3, 58),
            (16, 3, 4), (16, 3, 6), (16, 3, 9), (16, 3, 12), (16, 3, 15), (16, 3, 16), (16, 3, 21),
        ] {
            let numbers = [family, kind, protocol].map(|number: i32| number.to_string());
            let attempt = ["socket", &numbers[0], &numbers[1], &numbers[2]];
            if let sandbox_tests::Attempt::Done(_) = fixture.control(&attempt) {
                worked_outside += 1;
            }
            fixture.inside(&attempt).must_fail();
        }
        assert!(worked_outside >= 4, "the attempts themselves are broken");
    }

    fn ordinary_sockets_work(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        // Unix, IPv4 and IPv6 streams and datagrams, and netlink's routing for getaddrinfo.
        for (family, kind, protocol) in
            [("1", "1", "0"), ("2", "1", "0"), ("2", "2", "0"), ("10", "1", "0"), ("16", "3", "0")]
        {
            fixture.inside(&["socket", family, kind, protocol]).must_work();
        }
    }

    fn shared_memory_of_the_host_is_out_of_reach(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let key = (0x5b00_0000 + u32::from(user == User::Root) + (std::process::id() << 1)).to_string();
        let mut command = fixture.outside(fixture.attacker());
        let mut owner = Running::start(command.args(["share-memory", &key, "4096"]));
        owner.wait_for("sharing");
        let control = fixture.control(&["share-memory", &key, "0"]);
        let inside = fixture.inside(&["share-memory", &key, "0"]);
        owner.end();
        control.must_work();
        inside.must_fail();
    }
}
