//! `--isolated-network`: nothing but what was named is reached, and what was refused is told.
//! Servers are on loopback, or in network namespaces made for the test.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;

use sandbox_tests::{Answering, Attempt, BOX, Fixture, SECRET, User, as_both, finish, need};

/// Where the proxy listens inside, by its documented variables.
const PROXY: &str = "127.0.0.1:3128";

fn boxed(user: User, options: &[&str]) -> Fixture {
    let fixture = Fixture::new(user);
    fixture.create(options);
    fixture
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n")
}

as_both! {
    fn the_hosts_loopback_is_out_of_reach(user) {
        let fixture = boxed(user, &[]);
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let (server, address) = Answering::at_tcp(local);
            let address = address.to_string();
            assert_eq!(fixture.control(&["connect-tcp", &address]).must_work(), SECRET);
            assert_eq!(fixture.inside(&["connect-tcp", &address]).must_work(), SECRET, "by default");
            fixture.inside_with(&["--isolated-network"], &["connect-tcp", &address]).must_fail();
            assert_eq!(server.greeted(), 2);
        }
    }

    fn a_stored_isolation_is_enforced_and_can_be_lifted(user) {
        let fixture = boxed(user, &["--isolated-network"]);
        let (server, address) = Answering::at_tcp("127.0.0.1:0");
        let address = address.to_string();
        fixture.inside(&["connect-tcp", &address]).must_fail();
        assert_eq!(server.greeted(), 0);
        fixture.inside_with(&["--host-network"], &["connect-tcp", &address]).must_work();
        let mut shell = fixture.command(["enter", BOX, "-c"]);
        shell.arg(format!("{} connect-tcp {address}", fixture.attacker().display()));
        Attempt::of(&finish(&mut shell)).must_fail();
    }

    fn datagrams_and_names_go_nowhere(user) {
        let fixture = boxed(user, &[]);
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 64];
            let (_, from) = server.recv_from(&mut buffer).unwrap();
            server.send_to(b"answer", from).unwrap();
            server.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
            server.recv_from(&mut buffer).is_ok()
        });
        fixture.control(&["ask-udp", &address]).must_work();
        fixture.inside_with(&["--isolated-network"], &["ask-udp", &address]).must_fail();
        assert!(!answering.join().unwrap(), "a datagram reached the host");
        fixture.inside_with(&["--isolated-network"], &["resolve", "example.com"]).must_fail();
        fixture.inside_with(&["--isolated-network"], &["ask-udp", "192.0.2.1:53"]).must_fail();
    }

    fn only_loopback_is_inside_and_it_works(user) {
        let fixture = boxed(user, &["--isolated-network"]);
        let seen = fixture.run("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").succeeded();
        assert_eq!(seen.out().trim(), "lo");
        let script = "import socket\n\
            s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n\
            s.accept()[0].send(b'ok'); print(c.recv(2).decode())";
        assert_eq!(fixture.ok(["run", BOX, "python3", "-c", script]).out(), "ok\n");
    }

    fn a_named_port_is_reached_and_its_neighbour_is_not(user) {
        let fixture = boxed(user, &[]);
        let (server, named) = Answering::at_tcp("127.0.0.1:0");
        let (neighbour, other) = Answering::at_tcp("127.0.0.1:0");
        let port = named.port().to_string();
        let options = ["--isolated-network", "--with-ports", &port];
        let attempt = fixture.inside_with(&options, &["connect-tcp", &named.to_string()]);
        assert_eq!(attempt.must_work(), SECRET);
        fixture.inside_with(&options, &["connect-tcp", &other.to_string()]).must_fail();
        assert_eq!((server.greeted(), neighbour.greeted()), (1, 0));
    }

    /// Naming a port on the host must not open it to others: the forwarder is inside, not on a
    /// port of the host's.
    fn a_port_with_nobody_behind_it_fails_at_once(user) {
        let fixture = boxed(user, &[]);
        let port = free_port();
        let began = std::time::Instant::now();
        fixture
            .inside_with(&["--with-ports", &port.to_string()], &["connect-tcp", &format!("127.0.0.1:{port}")])
            .must_fail();
        assert!(began.elapsed().as_secs() < 4, "{:?}", began.elapsed());
    }

    fn a_named_address_is_reached_through_the_proxy_and_others_are_told(user) {
        let (server, named) = Answering::at_tcp("127.0.0.1:0");
        let (neighbour, other) = Answering::at_tcp("127.0.0.1:0");
        let fixture = boxed(user, &["--allow-host", &named.to_string()]);
        let reached = fixture.inside(&["through-proxy", PROXY, &connect(&named.to_string())]).must_work();
        assert!(reached.contains("200") && reached.contains("secret"), "{reached}");
        fixture.inside(&["through-socks", PROXY, "127.0.0.1", &named.port().to_string()]).must_work();
        let refused = fixture.inside(&["through-proxy", PROXY, &connect(&other.to_string())]).must_work();
        assert!(refused.contains("403") && !refused.contains("secret"), "{refused}");
        fixture.inside(&["through-socks", PROXY, "127.0.0.1", &other.port().to_string()]).must_fail();
        let plain = format!("GET http://{other}/ HTTP/1.1\\r\\nHost: {named}\\r\\n\\r\\n");
        let refused = fixture.inside(&["through-proxy", PROXY, &plain]).must_work();
        assert!(!refused.contains("secret"), "{refused}");
        fixture.inside(&["connect-tcp", &named.to_string()]).must_fail();
        assert_eq!((server.greeted(), neighbour.greeted()), (2, 0));
        let info = fixture.ok(["info", BOX]);
        assert!(info.out().contains(&other.to_string()), "the refusal is recorded: {info}");
        let json = fixture.ok(["info", BOX, "--json"]);
        assert!(json.out().contains(&other.to_string()), "{json}");
    }

    fn refusals_are_told_after_try(user) {
        let fixture = Fixture::new(user);
        let mut command = fixture.command([
            "try", "--discard", "--allow-host", "api.example.com:443", "--",
        ]);
        command.arg(fixture.attacker()).args(["through-proxy", PROXY, &connect("evil.example.org:443")]);
        let outcome = finish(&mut command).succeeded();
        assert!(outcome.out().contains("403"), "{outcome}");
        assert!(outcome.err().contains("evil.example.org:443"), "{outcome}");
    }

    /// Any host does not mean one's own machine.
    fn a_wildcard_does_not_name_loopback_or_metadata(user) {
        let (server, address) = Answering::at_tcp("127.0.0.1:0");
        let port = address.port();
        let fixture = boxed(user, &["--allow-host", &format!("*:{port}"), "--allow-host", "*:80"]);
        for target in [
            format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("0.0.0.0:{port}"),
            format!("127.1:{port}"), format!("2130706433:{port}"), format!("0x7f000001:{port}"),
            format!("[::1]:{port}"), format!("[::ffff:127.0.0.1]:{port}"), format!("[::]:{port}"),
            format!("LOCALHOST.:{port}"), String::from("169.254.169.254:80"),
            String::from("[fe80::1]:80"), String::from("10.0.0.1:80"), String::from("[fd00::1]:80"),
        ] {
            let answer = fixture.inside(&["through-proxy", PROXY, &connect(&target)]).must_work();
            assert!(!answer.contains("200") && !answer.contains("secret"), "{target}: {answer}");
        }
        assert_eq!(server.greeted(), 0);
    }

    fn a_published_server_is_reached_from_the_host(user) {
        let fixture = boxed(user, &[]);
        let port = free_port();
        let mut command = fixture.command(["run", "--publish", &format!("{port}:3000"), BOX, "--"]);
        command.arg(fixture.attacker()).args(["serve-tcp", "127.0.0.1:3000"]);
        let mut server = sandbox_tests::Running::start(&mut command);
        server.wait_for("listening");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        for _ in 0..3 {
            let mut said = String::new();
            TcpStream::connect(address).unwrap().read_to_string(&mut said).unwrap();
            assert_eq!(said, "hello from inside\n");
        }
        // On the host's loopback only, and gone with the server.
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(!sockets.contains(&format!("00000000:{port:04X} 00000000:0000 0A")), "bound to all");
        server.signal(rustix::process::Signal::KILL);
        server.end();
        fixture.must_be_clean();
        assert!(TcpStream::connect(address).is_err(), "the port outlived the sandbox");
    }

    fn a_published_port_that_is_taken_is_told_before_anything_runs(user) {
        let fixture = boxed(user, &[]);
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = holder.local_addr().unwrap().port();
        let publish = format!("{port}:3000");
        let told = fixture.sandbox(["run", "--publish", &publish, BOX, "touch", "ran"]).failed(1);
        assert!(told.err().contains(&format!("cannot publish port {port}")), "{told}");
        assert!(told.err().contains("hint: "), "{told}");
        fixture.run("test ! -e ran").succeeded();
    }

    fn a_forwarded_port_cannot_be_the_proxys(user) {
        let fixture = boxed(user, &[]);
        let options = ["run", "--with-ports", "3128", "--allow-host", "example.com", BOX, "true"];
        let told = fixture.sandbox(options).failed(1);
        assert!(told.err().contains("cannot forward port 3128"), "{told}");
    }

    /// Every run has its own way out: the first may end before the others.
    fn what_a_run_joined_stays_open_when_the_first_run_ends(user) {
        let (_server, named) = Answering::at_tcp("127.0.0.1:0");
        let (_forwarded, forwarded) = Answering::at_tcp("127.0.0.1:0");
        let published = free_port();
        let fixture = boxed(user, &[
            "--allow-host", &named.to_string(), "--with-ports", &forwarded.port().to_string(),
            "--publish", &format!("{published}:3000"),
        ]);
        let mut first = fixture.start(["run", BOX, "sh", "-c", "echo first; cat"]);
        first.wait_for("first");
        let mut command = fixture.command(["run", BOX, "--"]);
        command.arg(fixture.attacker()).args(["serve-tcp", "127.0.0.1:3000"]);
        let mut second = sandbox_tests::Running::start(&mut command);
        second.wait_for("listening");
        let all_work = || {
            let through = fixture.inside(&["through-proxy", PROXY, &connect(&named.to_string())]);
            assert!(through.must_work().contains("secret"));
            fixture.inside(&["connect-tcp", &forwarded.to_string()]).must_work();
            // The port is let go by one run and taken up by the other in between.
            let deadline = std::time::Instant::now() + sandbox_tests::PATIENCE;
            loop {
                let mut said = String::new();
                let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, published))
                    .and_then(|mut stream| stream.read_to_string(&mut said));
                match asked {
                    Ok(_) => break assert_eq!(said, "hello from inside\n"),
                    Err(error) => assert!(std::time::Instant::now() < deadline, "{error}"),
                }
            }
        };
        all_work();
        drop(first.stdin());
        first.end().succeeded();
        all_work();
        second.signal(rustix::process::Signal::KILL);
        second.end();
    }

    fn a_published_server_is_there_again_after_a_pause(user) {
        let port = free_port();
        let fixture = boxed(user, &["--publish", &format!("{port}:3000")]);
        let mut command = fixture.command(["run", BOX, "--"]);
        command.arg(fixture.attacker()).args(["serve-tcp", "127.0.0.1:3000"]);
        let mut server = sandbox_tests::Running::start(&mut command);
        server.wait_for("listening");
        for _ in 0..10 {
            fixture.ok(["pause", BOX]);
            // A client that comes meanwhile waits, as it would for any server that is paused.
            let mut meanwhile = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            fixture.ok(["resume", BOX]);
            let mut said = String::new();
            meanwhile.read_to_string(&mut said).unwrap();
            assert_eq!(said, "hello from inside\n");
        }
        server.signal(rustix::process::Signal::KILL);
        server.end();
    }

    /// In networks made for it: a public host by name in one, and in the other, which is the
    /// sandbox's host, names that lead to private addresses and to the host itself.
    fn names_are_resolved_outside_and_private_answers_refused(user) {
        let fixture = Fixture::new(user);
        fixture.write("host/hosts", "127.0.0.1 localhost\n93.184.215.14 api.example.com\n\
            169.254.169.254 meta.example.com\n10.1.2.3 internal.example.com\n127.0.0.1 sneaky.example.com\n\
            93.184.215.15 own.example.com\n");
        let (uid, gid) = user.ids();
        let ask = |target: &str| format!(
            "setpriv --reuid {uid} --regid {gid} --clear-groups {} run {BOX} {} through-proxy {PROXY} '{}'; echo",
            fixture.binary().display(), fixture.attacker().display(), connect(target)
        );
        fixture.create(&["--allow-host", "*.example.com:80"]);
        let attacker = fixture.attacker();
        let script = format!(
            "set -e; trap 'kill $(jobs -p)' EXIT\nip link set lo up\n\
             unshare --net sleep 300 & far=$!\n\
             until ! [ /proc/$far/ns/net -ef /proc/self/ns/net ]; do :; done\n\
             ip link add near type veth peer name far netns $far\n\
             nsenter -t $far --net ip addr add 93.184.215.14/24 dev far\n\
             nsenter -t $far --net ip link set far up\n\
             ip addr add 93.184.215.15/24 dev near; ip link set near up\n\
             for a in 169.254.169.254 10.1.2.3; do ip addr add $a/32 dev lo; done\n\
             mount --bind {base}/host/hosts /etc/hosts\n\
             nsenter -t $far --net {attacker} serve-tcp 93.184.215.14:80 > {base}/93.184.215.14 &\n\
             for a in 93.184.215.15 169.254.169.254 10.1.2.3 127.0.0.1; do \
               {attacker} serve-tcp $a:80 > {base}/$a & done\n\
             for a in 93.184.215.14 93.184.215.15 169.254.169.254 10.1.2.3 127.0.0.1; do \
               until grep -q listening {base}/$a; do :; done; {attacker} connect-tcp $a:80 >/dev/null; done\n\
             {api}\n{meta}\n{internal}\n{sneaky}\n{own}\n{other}",
            base = fixture.base().display(),
            attacker = attacker.display(),
            api = ask("api.example.com:80"),
            meta = ask("meta.example.com:80"),
            internal = ask("internal.example.com:80"),
            sneaky = ask("sneaky.example.com:80"),
            own = ask("own.example.com:80"),
            other = ask("93.184.215.14:80"),
        );
        let mut command = fixture.outside(need("unshare"));
        command.uid(0).gid(0).args(["--net", "--mount", "bash", "-c", &script]);
        let outcome = finish(&mut command).succeeded();
        let answers: Vec<String> =
            outcome.out().lines().filter(|line| line.starts_with("done")).map(str::to_owned).collect();
        assert_eq!(answers.len(), 6, "{outcome}");
        assert!(answers[0].contains("hello from inside"), "the named host is reached: {outcome}");
        for refused in &answers[1..] {
            assert!(!refused.contains("hello") && !refused.contains(" 200 "), "{refused}: {outcome}");
        }
    }
}
