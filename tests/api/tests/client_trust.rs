//! Whom the commands that speak to a server trust with the key, and what they make of those who do not
//! behave.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use sandbox_api_tests::{Options, Server, Storage, sandbox};
use sandbox_tests::{Outcome, Running, finish, need};
use serde_json::{Value, json};

const KEY: &str = "the-key-that-nobody-else-may-see";
const SESSION: &str = "sess_0123456789abcdef";

/// Somebody who listens, says what they were told to, one answer for each request, and keeps what they heard.
struct Stranger {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Stranger {
    fn saying(answers: &[String]) -> Stranger {
        // Every address of this machine: 0.0.0.0 is one that is not the loopback's, and leads here.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (keeps, answers) = (Arc::clone(&heard), answers.to_vec());
        std::thread::spawn(move || {
            let mut answers = answers.into_iter();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                keeps.lock().unwrap().push(request(&stream));
                let answer = answers.next().unwrap_or_default();
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Stranger { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A whole request, its head in small letters but for what the headers say.
fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}

fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// An answer that ends when the connection does.
fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{text}")
}

fn error(status: &str, headers: &[(&str, &str)]) -> String {
    let body = json!({
        "error_code": "Sandbox.Unavailable", "description": "the database does not answer", "error_detail": "it failed",
        "solution": "try again", "request_id": "req_1",
    });
    answer(status, headers, &body.to_string())
}

/// A header of a request.
fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    request
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The client in a directory of its own, with the key.
fn asking(url: &str, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = sandbox(directory, arguments);
    command
        .env("SANDBOX_SERVER", url)
        .env("SANDBOX_API_KEY", KEY);
    command
}

fn ask(url: &str, arguments: &[&str]) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    finish(&mut asking(url, directory.path(), arguments))
}

/// What a real server tells of a session that runs.
fn a_session(server: &Server) -> Value {
    let id = server.session();
    server.get(&format!("/sessions/{id}")).json(200)
}

#[test]
fn a_redirect_is_followed_without_the_key_and_only_for_a_file() {
    let last = Stranger::saying(&[answer("200 OK", &[], "content")]);
    let location = format!("{}/f?signature=s", last.url());
    let between = Stranger::saying(&[answer(
        "307 Temporary Redirect",
        &[("Location", &location)],
        "",
    )]);
    let location = format!("{}/x", between.url());
    let first = Stranger::saying(&[answer(
        "307 Temporary Redirect",
        &[("Location", &location)],
        "",
    )]);
    let got = ask(
        &first.url(),
        &["file", "get", SESSION, "a b", "-", "--range", "0-6"],
    )
    .succeeded();
    assert_eq!(got.out(), "content");
    let asked = first.heard();
    assert!(
        asked[0].starts_with(&format!(
            "GET /api/v1/sessions/{SESSION}/files/a%20b HTTP/1.1\r\n"
        )),
        "{asked:?}"
    );
    assert_eq!(
        header(&asked[0], "authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
    for stranger in [&between, &last] {
        let heard = stranger.heard();
        assert_eq!(heard.len(), 1);
        assert!(
            !heard[0].contains(KEY) && header(&heard[0], "authorization").is_none(),
            "{heard:?}"
        );
        assert_eq!(header(&heard[0], "range"), Some("bytes=0-6"));
    }

    // To the same server, as files in a directory are: without it, too.
    let moved = answer(
        "307 Temporary Redirect",
        &[("Location", "/objects/x?signature=s")],
        "",
    );
    let own = Stranger::saying(&[moved.clone(), answer("200 OK", &[], "own")]);
    assert_eq!(
        ask(&own.url(), &["file", "get", SESSION, "f", "-"])
            .succeeded()
            .out(),
        "own"
    );
    assert!(own.heard()[1].starts_with("GET /objects/x?signature=s HTTP/1.1\r\n"));
    assert!(!own.heard()[1].contains(KEY));

    // In circles, and nowhere, nobody goes for ever; and a link is not told, which lets everybody read the file.
    let circle = Stranger::saying(&vec![moved; 20]);
    let told = ask(&circle.url(), &["file", "get", SESSION, "f", "-"]).failed(1);
    assert!(
        circle.heard().len() < 10 && !told.err().contains("signature"),
        "{told}"
    );

    for (arguments, method) in [
        (&["session", "list"][..], "GET"),
        (&["session", "create", "python-basic"], "POST"),
        (&["exec", SESSION, "true"], "POST"),
        (&["file", "archive", SESSION], "GET"),
    ] {
        let target = Stranger::saying(&[]);
        for status in [
            "307 Temporary Redirect",
            "302 Found",
            "308 Permanent Redirect",
        ] {
            let moved = answer(status, &[("Location", &target.url())], "");
            let first = Stranger::saying(&[moved]);
            let told = ask(&first.url(), arguments).failed(1);
            assert!(told.err().contains(&target.url()), "{told}");
            assert!(first.heard()[0].starts_with(method));
        }
        assert!(target.heard().is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_key_goes_unencrypted_to_this_machine_alone_unless_that_is_wanted() {
    let list = answer("200 OK", &[], r#"{"keys": []}"#);
    let stranger = Stranger::saying(&[list.clone(), list]);
    let elsewhere = format!("http://0.0.0.0:{}", stranger.address.port());
    let told = ask(&elsewhere, &["key", "list"]).failed(3);
    assert!(
        told.err()
            .contains("not sending the API key unencrypted to 0.0.0.0"),
        "{told}"
    );
    assert!(
        told.err().contains("--allow-plain-http") && !told.err().contains(KEY),
        "{told}"
    );
    assert!(stranger.heard().is_empty());
    ask(&elsewhere, &["key", "list", "--allow-plain-http"]).succeeded();
    assert_eq!(stranger.heard().len(), 1);
    let by_name = format!("http://localhost:{}", stranger.address.port());
    ask(&by_name, &["key", "list"]).succeeded();
    assert_eq!(
        header(&stranger.heard()[1], "authorization"),
        Some(&*format!("Bearer {KEY}"))
    );

    // Nor does it go to whoever passes things on.
    let proxy = Stranger::saying(&[]);
    let server = Stranger::saying(&[answer("200 OK", &[], r#"{"keys": []}"#)]);
    let directory = tempfile::tempdir().unwrap();
    let mut command = asking(&server.url(), directory.path(), &["key", "list"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, proxy.url());
    }
    finish(&mut command).succeeded();
    assert!(proxy.heard().is_empty());
}

#[test]
fn the_key_is_found_where_it_is_kept() {
    let server = Server::plain();
    let url = format!("http://{}", server.address());
    let with = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = sandbox(server.base(), arguments);
        command
            .env("SANDBOX_SERVER", &url)
            .envs(variables.iter().copied());
        finish(&mut command)
    };
    let file = server.data().join("admin.key");
    let file = file.to_str().unwrap();
    let list = ["template", "list"];
    with(&[("SANDBOX_API_KEY", server.admin())], &list).succeeded();
    with(&[("SANDBOX_API_KEY_FILE", file)], &list).succeeded();
    with(&[], &["template", "list", "--key-file", file]).succeeded();
    with(&[], &["template", "--key-file", file, "list"]).succeeded();
    with(
        &[("SANDBOX_API_KEY", "another")],
        &["template", "list", "--key-file", file],
    )
    .succeeded();
    // That of a server on this machine, when it is ours to read.
    let data = server.data();
    let here = ("SANDBOX_DATA", data.to_str().unwrap());
    with(&[here], &list).succeeded();
    let elsewhere = (
        "SANDBOX_SERVER",
        &*format!("http://0.0.0.0:{}", server.address().port()),
    );
    let told = with(
        &[here, elsewhere],
        &["template", "list", "--allow-plain-http"],
    )
    .failed(3);
    assert!(
        told.err()
            .contains("there is no API key for http://0.0.0.0"),
        "{told}"
    );

    let told = with(&[], &list).failed(3);
    assert!(told.err().contains("hint: set SANDBOX_API_KEY"), "{told}");
    let told = with(&[("SANDBOX_API_KEY", "another")], &list).failed(3);
    assert!(
        told.err().contains("Sandbox.Unauthorized") && !told.err().contains("another"),
        "{told}"
    );
    let told = with(
        &[("SANDBOX_API_KEY", "k"), ("SANDBOX_API_KEY_FILE", file)],
        &list,
    )
    .failed(1);
    assert!(told.err().contains("are both set"), "{told}");
    with(&[("SANDBOX_API_KEY_FILE", "/nowhere")], &list).failed(1);
    with(&[("SANDBOX_API_KEY", "two words")], &list).failed(1);
    with(
        &[("SANDBOX_API_KEY", "k"), ("SANDBOX_SERVER", "nonsense")],
        &list,
    )
    .failed(1);
}

#[test]
fn https_is_spoken_with_those_whom_the_system_trusts() {
    /// Forwards what comes encrypted to the port of its second argument.
    const FORWARDER: &str = r#"
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(plain):
    try:
        client = context.wrap_socket(plain, server_side=True)
    except OSError:
        return
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;
    let server = Server::plain();
    let mut openssl = Command::new(need("openssl"));
    openssl.current_dir(server.base()).args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=sandbox",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        "key.pem",
        "-out",
        "certificate.pem",
    ]);
    finish(&mut openssl).succeeded();
    let mut python = Command::new("/usr/bin/python3");
    let port = server.address().port().to_string();
    let mut forwarder = Running::start(
        python
            .current_dir(server.base())
            .args(["-c", FORWARDER, &port]),
    );
    forwarder.wait_for("\n");
    let url = format!("https://127.0.0.1:{}", forwarder.said().trim());

    let trusting = |arguments: &[&str]| {
        let mut command = server.sandbox(arguments);
        command.env("SANDBOX_SERVER", &url);
        command.env("SSL_CERT_FILE", server.base().join("certificate.pem"));
        finish(&mut command)
    };
    let id = trusting(&["session", "create", "python-basic"])
        .succeeded()
        .out();
    let exec = trusting(&["exec", id.trim(), "echo encrypted"]).succeeded();
    assert_eq!(exec.out(), "encrypted\n");
    let told = finish(
        server
            .sandbox(["session", "list"])
            .env("SANDBOX_SERVER", &url),
    )
    .failed(1);
    assert!(
        told.err()
            .contains(&format!("cannot reach the server at {url}")),
        "{told}"
    );
    assert!(told.err().contains("certificate"), "{told}");
}

#[test]
fn what_is_safe_is_asked_again_when_the_server_has_too_much_to_do() {
    let server = Server::plain();
    let session = a_session(&server);
    let busy = error("503 Service Unavailable", &[("Retry-After", "0")]);
    let often = error("429 Too Many Requests", &[("Retry-After", "0")]);
    let made = answer("201 Created", &[], &session.to_string());

    let patient = Stranger::saying(&[busy.clone(), often.clone(), made]);
    let told = ask(&patient.url(), &["session", "create", "python-basic"]).succeeded();
    assert_eq!(told.out().trim_end(), session["session_id"]);
    let keys: Vec<_> = patient
        .heard()
        .iter()
        .map(|request| header(request, "idempotency-key").unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(
        keys.iter().all(|key| *key == keys[0] && key.len() == 32),
        "{keys:?}"
    );

    // What may be done twice is not; what was refused before it was done is asked again; and all of it has an end.
    for (answers, arguments, heard) in [
        (vec![busy.clone(); 9], &["template", "create", "x"][..], 1),
        (vec![busy.clone(); 9], &["session", "delete", SESSION], 1),
        (vec![busy.clone(); 9], &["exec", SESSION, "true"], 4),
        (
            vec![busy.clone(); 9],
            &["exec", SESSION, "true", "--json"],
            4,
        ),
        (vec![busy.clone(); 9], &["session", "list"], 4),
        (vec![often; 9], &["template", "create", "x"], 4),
        (
            vec![error("503 Service Unavailable", &[]); 9],
            &["session", "list"],
            1,
        ),
        (
            vec![error("503 Service Unavailable", &[("Retry-After", "3600")]); 9],
            &["session", "list"],
            1,
        ),
        (
            vec![error("500 Internal Server Error", &[("Retry-After", "0")]); 9],
            &["session", "list"],
            1,
        ),
    ] {
        let server = Stranger::saying(&answers);
        let told = ask(&server.url(), arguments).failed(1);
        assert_eq!(server.heard().len(), heard, "{arguments:?}");
        assert!(
            told.err()
                .contains("the database does not answer\n  caused by: it failed"),
            "{told}"
        );
        assert!(told.err().contains("hint: try again"), "{told}");
    }
}

#[test]
fn a_rate_that_is_used_up_is_waited_for() {
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--requests-per-second", "1"])
        .start();
    while server.get("/templates").status != 429 {}
    let listed = server
        .ask(["template", "list", "--json"])
        .succeeded()
        .json();
    assert_eq!(listed["total"], 3);
}

#[test]
fn events_go_on_after_the_last_one_when_the_connection_breaks() {
    let server = Server::plain();
    let session = answer("200 OK", &[], &a_session(&server).to_string());
    let event = |id: u32, status: &str| {
        let data = json!({ "at": "2026-01-31T12:00:00Z", "detail": { "status": status } });
        format!("id: {id}\nevent: status\ndata: {data}\n\n")
    };
    let first = events(&(event(1, "creating") + &event(2, "running") + "id: 3\nevent: sta"));
    let second = events(&event(3, "terminated"));
    let stranger = Stranger::saying(&[session.clone(), first, session, second]);
    let told = ask(&stranger.url(), &["session", "events", SESSION, "--json"]).succeeded();
    let ids: Vec<Value> = told
        .out()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [1, 2, 3], "{told}");
    let heard = stranger.heard();
    assert_eq!(header(&heard[1], "last-event-id"), None);
    assert_eq!(header(&heard[3], "last-event-id"), Some("2"));
}

#[test]
fn what_breaks_off_is_never_taken_for_the_whole() {
    // Code whose result never comes.
    let begun = "event: submitted\ndata: {\"execution_id\": \"exec_20260131_a1b2c3d4\"}\n\n";
    let printed = "event: stdout\ndata: {\"base64\": \"aGkK\"}\n\n";
    let stranger = Stranger::saying(&[events(&format!("{begun}{printed}"))]);
    let told = ask(&stranger.url(), &["exec", SESSION, "true"]).failed(1);
    assert_eq!(told.out(), "hi\n");
    assert!(
        told.err()
            .contains("sandbox execution result exec_20260131_a1b2c3d4 --wait"),
        "{told}"
    );

    // A file whose end never comes.
    let half = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\nhalf";
    let stranger = Stranger::saying(&[half.to_owned()]);
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("f"), "before").unwrap();
    let told = finish(&mut asking(
        &stranger.url(),
        directory.path(),
        &["file", "get", SESSION, "f"],
    ))
    .failed(1);
    assert!(told.err().contains("broke off"), "{told}");
    assert_eq!(fs::read(directory.path().join("f")).unwrap(), b"before");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    // A file that cannot be read to its end is not sent as if it were whole.
    let server = Server::plain();
    let id = server.session();
    let told = server
        .ask(["file", "put", &id, "/proc/self/mem", "mem"])
        .failed(1);
    assert!(told.err().contains("cannot read /proc/self/mem"), "{told}");
    assert_eq!(server.shell(&id, "ls -A"), "");
}

#[test]
fn who_is_no_server_is_told_apart() {
    let page = |status: &str| {
        answer(
            status,
            &[("Content-Type", "text/html")],
            "<html>not for you</html>",
        )
    };
    for (status, said) in [
        ("200 OK", "cannot understand the answer of"),
        (
            "404 Not Found",
            "answers with status 404, and not as a sandbox server does",
        ),
        (
            "502 Bad Gateway",
            "answers with status 502, and not as a sandbox server does",
        ),
    ] {
        for arguments in [
            &["session", "list"][..],
            &["session", "list", "--json"],
            &["session", "get", SESSION, "--json"],
        ] {
            let stranger = Stranger::saying(&[page(status)]);
            let told = ask(&stranger.url(), arguments).failed(1);
            assert_eq!(told.out(), "");
            assert!(
                told.err().contains(said) && told.err().contains(&stranger.url()),
                "{told}"
            );
        }
    }
    // Nobody at all.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let told = ask(&url, &["session", "list", "--json"]).failed(1);
    assert_eq!(told.out(), "");
    let expected = format!(
        "error: cannot reach the server at {url}\n  caused by: Connection refused (os error 111)\nhint: start it with `sandbox serve`"
    );
    assert!(told.err().starts_with(&expected), "{told}");
    // Somebody whose words would steer a terminal.
    let evil = answer("409 Conflict", &[], &json!({
        "error_code": "\u{1b}]0;owned", "description": "a\u{1b}[2Jb", "error_detail": "c\nd", "solution": "e\u{7}", "request_id": "f",
    }).to_string());
    let told = ask(&Stranger::saying(&[evil]).url(), &["session", "list"]).failed(5);
    assert!(!told.err().contains(['\u{1b}', '\u{7}']), "{told}");
}
