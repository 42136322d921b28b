//! What of the network a session's code reaches, and what it does not.
#![allow(clippy::unwrap_used)]

mod server;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::mpsc;

use sandbox_executor::Request;
use sandbox_linux::clone::{Namespaces, Parent, clone, unshare};
use sandbox_model::execution::Language;
use sandbox_model::session::SessionNetwork;
use sandbox_runtime::{Line, Local, SessionSpec};
use server::{
    children, id, nursery, printed, process, request, served, served_by_tester, shell, spec,
};

fn with(allow: &[&str]) -> SessionSpec {
    SessionSpec {
        network: SessionNetwork {
            enabled: true,
            allow: allow.iter().map(|host| (*host).to_owned()).collect(),
        },
        ..spec('a')
    }
}

/// A server that says hello to everybody, in a thread.
fn greeter(address: &str) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    address
}

/// What Python's own client gets of `url`; it goes by the variables.
async fn fetched(line: &Line, url: &str) -> String {
    let code = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}\", timeout=5).read().decode())' \
         2>&1 | tail -1"
    );
    printed(line, &code).await
}

/// Does a plain connection come about?
async fn connects(line: &Line, host: &str, port: u16) -> bool {
    let code = format!("timeout 3 bash -c 'exec 9<>/dev/tcp/{host}/{port}'");
    shell(line, &code).await.result.exit_code == 0
}

#[test]
fn a_named_host_is_reached_and_nothing_else_is() {
    served(async |_, local, _| {
        let (named, other) = (greeter("127.0.0.1:0"), greeter("127.0.0.1:0"));
        let raised = local.raise(with(&[&named.to_string()])).await.unwrap();
        assert!(raised.walls.network.contains("named hosts"));
        let line = raised.line;
        // Python leaves the proxy out for the loopback, as it is told to.
        let proxied = |address: SocketAddr| {
            format!(
                "no_proxy= NO_PROXY= python3 -c 'import urllib.request as r; \
                 print(r.urlopen(\"http://{address}/\", timeout=5).read().decode())' 2>&1 | tail -1"
            )
        };
        assert_eq!(printed(&line, &proxied(named)).await, "hello");
        let refused = printed(&line, &proxied(other)).await;
        assert!(refused.contains("403"), "{refused}");
        // Around the proxy there is nothing.
        for address in [named, other] {
            assert!(!connects(&line, "127.0.0.1", address.port()).await);
        }
        assert!(!connects(&line, "1.1.1.1", 80).await);
        // The next execution has it too, and so has one of a session that was raised again.
        assert_eq!(printed(&line, &proxied(named)).await, "hello");
        local.end(&id('a')).await.unwrap();
        let line = local.raise(with(&[&named.to_string()])).await.unwrap().line;
        assert_eq!(printed(&line, &proxied(named)).await, "hello");
    });
}

#[test]
fn without_a_network_there_is_not_even_a_proxy() {
    served(async |_, local, _| {
        let here = greeter("127.0.0.1:0");
        let line = local.raise(spec('a')).await.unwrap().line;
        assert!(!connects(&line, "127.0.0.1", here.port()).await);
        assert!(!connects(&line, "127.0.0.1", 3128).await);
        assert_eq!(printed(&line, "env | grep -ci proxy; true").await, "0");
    });
}

#[test]
fn what_is_no_host_is_told() {
    served(async |_, local, _| {
        let error = local.raise(with(&["http://nonsense"])).await.unwrap_err();
        assert!(error.to_string().contains("http://nonsense"), "{error}");
        // Nothing of it is left in the way.
        local.raise(spec('a')).await.unwrap();
    });
}

#[test]
fn a_proxy_ends_with_its_session() {
    served(async |_, local, _| {
        let nursery = nursery();
        let before = children(nursery).len();
        local.raise(with(&["example.com:443"])).await.unwrap();
        local.end(&id('a')).await.unwrap();
        assert_eq!(children(nursery).len(), before);
        let line = local.raise(with(&["example.com:443"])).await.unwrap().line;
        // The keeper, and the proxy.
        assert_eq!(children(nursery).len(), before + 2);
        drop(line);
    });
}

/// A server that keeps every connection, and tells of those who say that they are ready. It answers these when
/// it is told to.
fn gatherer() -> (SocketAddr, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, ready) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut word = [0; 5];
            client.read_exact(&mut word).unwrap();
            match &word {
                b"ready" => sender.send(client).unwrap(),
                _ => kept.push(client),
            }
        }
    });
    (address, ready)
}

/// What the kernel says of a process, and of each of its threads.
fn statuses(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
        .collect()
}

async fn a_proxy_is_confined_and_bounded(local: Local) {
    let before = children(nursery());
    let (address, ready) = gatherer();
    let mut spec = with(&[&address.to_string()]);
    spec.resources.max_processes = 32;
    let line = local.raise(spec).await.unwrap().line;
    let new: Vec<u32> = { children(nursery()).into_iter() }
        .filter(|pid| !before.contains(pid))
        .collect();
    // The keeper has a number in its own namespace, too.
    let is_keeper = |pid: &u32| {
        let status = &statuses(*pid)[0];
        let numbers = status.lines().find(|line| line.starts_with("NSpid:"));
        numbers.unwrap().split_whitespace().count() > 2
    };
    let (keepers, proxies): (Vec<u32>, Vec<u32>) = new.into_iter().partition(is_keeper);
    let ([keeper], [proxy]) = (&keepers[..], &proxies[..]) else {
        panic!("{keepers:?} {proxies:?}");
    };
    let code = format!(
        "import socket
kept = []
def connected(word):
    made = socket.create_connection(('127.0.0.1', 3128))
    made.sendall(b'CONNECT {address} HTTP/1.1\\r\\nHost: {address}\\r\\n\\r\\n')
    assert b' 200 ' in made.recv(1000)
    made.sendall(word)
    kept.append(made)
    return made
for _ in range(200):
    connected(b'keeps')
print(connected(b'ready').recv(10).decode())"
    );
    let looked = std::thread::spawn({
        let proxy = *proxy;
        move || {
            let mut client = ready.recv().unwrap();
            let found = statuses(proxy);
            client.write_all(b"seen").unwrap();
            found
        }
    });
    let code = Request {
        timeout_seconds: 60,
        ..request(Language::Python, &code)
    };
    let outcome = line.execute(code, || {}).await.unwrap();
    assert_eq!(outcome.result.stdout.trim(), "seen", "{outcome:?}");
    let threads = looked.join().unwrap();
    assert!(threads.len() < 40, "{} threads", threads.len());
    for status in threads {
        for line in [
            "Seccomp:\t2",
            "NoNewPrivs:\t1",
            "CapEff:\t0000000000000000",
            "CapPrm:\t0000000000000000",
        ] {
            assert!(status.contains(line), "{line}: {status}");
        }
    }
    let groups = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    assert_eq!(groups(proxy), groups(keeper));
    let limits = std::fs::read_to_string(format!("/proc/{proxy}/limits")).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let files = files.unwrap().split_whitespace().nth(3).unwrap();
    assert!(files.parse::<u32>().unwrap() <= 1024, "{limits}");
}

#[test]
fn a_proxy_is_confined_and_bounded_where_the_server_is_root() {
    served(async |_, local, _| a_proxy_is_confined_and_bounded(local).await);
}

#[test]
fn a_proxy_is_confined_and_bounded_of_an_ordinary_user() {
    served_by_tester(async |_, local, _| a_proxy_is_confined_and_bounded(local).await);
}

#[test]
fn abstract_sockets_of_the_host_are_out_of_reach() {
    served(async |_, local, _| {
        let name = format!("walls-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        for spec in [spec('a'), with(&[])] {
            let line = local.raise(spec).await.unwrap().line;
            let code = format!(
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'"
            );
            let outcome = shell(&line, &code).await;
            assert_ne!(outcome.result.exit_code, 0, "{outcome:?}");
            assert!(outcome.result.stderr.contains("Error"), "{outcome:?}");
            local.end(&id('a')).await.unwrap();
        }
    });
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// The world in miniature: this process on one end of a wire with public addresses, a server on the other.
fn in_a_small_world(body: impl FnOnce()) {
    let status = process(|| {
        unshare(Namespaces::NEWNET).unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let (mut go, gone) = std::io::pipe().unwrap();
        let (far, (reader_kept, gone)) = clone(
            Namespaces::NEWNET,
            Parent::Caller,
            (reader.try_clone().unwrap(), gone),
            || {
                go.read_exact(&mut [0]).unwrap();
                for words in [
                    "addr add 11.0.0.2/24 dev far",
                    "addr add 10.99.0.2/24 dev far",
                    "link set far up",
                    "link set lo up",
                ] {
                    ip(words);
                }
                greeter("0.0.0.0:80");
                greeter("0.0.0.0:2222");
                (&writer).write_all(b"x").unwrap();
                loop {
                    rustix::event::pause();
                }
            },
        )
        .unwrap();
        drop(reader_kept);
        ip(&format!(
            "link add near type veth peer name far netns {}",
            far.pid
        ));
        for words in [
            "addr add 11.0.0.1/24 dev near",
            "addr add 10.99.0.1/24 dev near",
            "link set near up",
            "link set lo up",
        ] {
            ip(words);
        }
        (&gone).write_all(b"x").unwrap();
        reader.read_exact(&mut [0]).unwrap();
        body();
        far.kill();
    });
    assert_eq!(status, Some(0));
}

#[test]
fn without_a_list_every_public_address_is_reached_and_no_other() {
    in_a_small_world(|| {
        served(async |_, local, _| {
            let raised = local.raise(with(&[])).await.unwrap();
            assert!(raised.walls.network.contains("public addresses"));
            let line = raised.line;
            greeter("0.0.0.0:8080");
            assert_eq!(fetched(&line, "http://11.0.0.2/").await, "hello");
            // At every port.
            assert_eq!(fetched(&line, "http://11.0.0.2:2222/").await, "hello");
            for private in [
                "http://10.99.0.2/",
                // This machine's own, public and not.
                "http://11.0.0.1:8080/",
                "http://10.99.0.1:8080/",
                "http://169.254.169.254/",
                "http://0.0.0.0:8080/",
            ] {
                let refused = fetched(&line, private).await;
                assert!(refused.contains("403"), "{private}: {refused}");
            }
            assert!(!connects(&line, "127.0.0.1", 8080).await);
        });
    });
}
