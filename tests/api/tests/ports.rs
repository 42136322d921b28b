//! Port previews: HTTP to servers that code in a session has started.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use sandbox_api_tests::{
    Answer, Call, Opened, Options, Server, Storage, User, on_every_storage, pause,
};
use sandbox_test_servers::Database;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tungstenite::Message;

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-downloads";

fn started() -> Server {
    let options = Options::on(Storage::SqliteAndFiles);
    // What is still being served at the end is not waited for.
    options.with(&["--drain-timeout", "1s"]).start()
}

/// Starts the server in an execution that goes on: its identifier.
#[track_caller]
fn serve(server: &Server, id: &str, port: u16, word: &str) -> String {
    let code = include_str!("ports/server.py");
    server.upload(id, "server.py", code.as_bytes()).expect(200);
    let script = format!("exec python3 server.py {port} {word}");
    let execution = server.submit(
        id,
        json!({ "language": "shell", "code": script, "timeout": 3600 }),
    );
    server.until_file(id, &format!("listening-{word}"));
    execution
}

fn path(id: &str, port: u16, tail: &str) -> String {
    format!("/api/v1/sessions/{id}/ports/{port}{tail}")
}

#[track_caller]
fn asking(server: &Server, id: &str, port: u16, tail: &str) -> Call {
    server.call("GET", &path(id, port, tail))
}

/// What the server inside was asked.
#[track_caller]
fn told(answer: Answer) -> Value {
    answer.json(200)
}

#[track_caller]
fn must_be_closed(server: &Server, id: &str, port: u16) {
    let begin = Instant::now();
    let answer = asking(server, id, port, "/").send();
    let error = answer.error(503, "Sandbox.Unavailable");
    assert!(
        error["error_detail"]
            .as_str()
            .unwrap()
            .contains(&format!("port {port}")),
        "{error}"
    );
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

on_every_storage! {
    fn whatever_is_asked_is_passed_on_and_nothing_of_ours_with_it(server: &Server) {
        let id = server.session();
        serve(server, &id, 8000, "here");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"] {
            let tail = "/a%2Fb/../c;d?e=f&g=%20#";
            let call = server.call(method, &path(&id, 8000, tail.trim_end_matches('#')));
            let call = call.header("Cookie", "sandbox=secret; preview.theirs=1").header("X-Mine", "kept");
            let call = call.header("X-Forwarded-For", "6.6.6.6").header("Connection", "close, X-Hop").header("X-Hop", "1");
            let call = match method {
                "GET" | "OPTIONS" => call,
                _ => call.body("text/plain", "the body"),
            };
            let asked = told(call.send());
            assert_eq!(asked["method"], method);
            assert_eq!(asked["path"], "/a%2Fb/../c;d?e=f&g=%20");
            let body = if ["GET", "OPTIONS"].contains(&method) { "" } else { "the body" };
            assert_eq!(asked["body"], body, "{method}");
            let header = |name: &str| {
                let all = asked["headers"].as_array().unwrap().iter();
                let found: Vec<&str> = all.filter(|pair| pair[0] == name).map(|pair| pair[1].as_str().unwrap()).collect();
                found.join("|")
            };
            assert_eq!(header("x-mine"), "kept");
            assert_eq!(header("cookie"), "theirs=1");
            assert_eq!(header("host"), "localhost:8000");
            assert_eq!(header("x-forwarded-for"), "127.0.0.1");
            assert_eq!(header("x-forwarded-host"), server.address().to_string());
            assert_eq!(header("x-forwarded-proto"), "http");
            assert_eq!(header("x-forwarded-prefix"), path(&id, 8000, ""));
            for ours in ["authorization", "x-hop", "x-sandbox-forwarded", "connection"] {
                assert_eq!(header(ours), "", "{ours}");
            }
            let key = server.admin();
            assert!(!asked.to_string().contains(key), "the key went in");
        }
        assert_eq!(told(asking(server, &id, 8000, "").send())["path"], "/");
        assert_eq!(told(asking(server, &id, 8000, "/").send())["path"], "/");
        assert_eq!(told(asking(server, &id, 8000, "?q").send())["path"], "/?q");
        let head = server.call("HEAD", &path(&id, 8000, "/x")).open();
        assert_eq!(head.status, 200);
        server.delete(&format!("/sessions/{id}")).json(200);
    }

    fn only_a_port_of_a_session_that_runs_is_asked(server: &Server) {
        let id = server.session();
        for port in ["0", "65536", "x", "+80", "-1", "080"] {
            server.get(&format!("/sessions/{id}/ports/{port}/")).invalid("port");
        }
        must_be_closed(server, &id, 8000);
        server.get("/sessions/sess_0000000000000000/ports/8000/").error(404, "Sandbox.SessionNotFound");
        let execution = serve(server, &id, 8000, "here");
        server.post(&format!("/sessions/{id}/pause"), &json!({})).json(200);
        server.get(&format!("/sessions/{id}/ports/8000/")).error(409, "Sandbox.StateConflict");
        server.post(&format!("/sessions/{id}/resume"), &json!({})).json(200);
        told(asking(server, &id, 8000, "/").send());
        must_be_closed(server, &id, 8001);
        server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
        must_be_closed(server, &id, 8000);
        server.delete(&format!("/sessions/{id}")).json(200);
        server.get(&format!("/sessions/{id}/ports/8000/")).error(409, "Sandbox.StateConflict");
    }
}

#[test]
fn answers_are_the_servers_own_and_their_pages_no_part_of_us() {
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "here");
    for status in [200, 204, 400, 401, 404, 418, 500, 503] {
        let answer = asking(&server, &id, 8000, &format!("/status/{status}")).send();
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("content-security-policy"), Some(SANDBOX));
        assert!(answer.header("x-request-id").is_some());
        if status != 204 {
            assert_eq!(answer.text(), "<h1>theirs</h1>");
        }
    }
    let answer = asking(&server, &id, 8000, "/hostile").send();
    let all = |name: &str| -> Vec<&str> {
        let named = answer.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    };
    let prefix = path(&id, 8000, "");
    assert_eq!(
        all("content-security-policy"),
        ["sandbox allow-same-origin allow-scripts", SANDBOX]
    );
    assert_eq!(
        all("set-cookie"),
        [
            format!("preview.session=stolen; HttpOnly; Path={prefix}/"),
            format!("preview.theirs=1; Path={prefix}/"),
        ]
    );
    assert_eq!(all("location"), [format!("{prefix}/login")]);
    assert_eq!(all("x-theirs"), ["kept"]);
    assert_ne!(all("x-request-id"), ["req_forged"]);
    for gone in [
        "strict-transport-security",
        "clear-site-data",
        "service-worker-allowed",
        "alt-svc",
        "www-authenticate",
        "nel",
        "report-to",
        "x-hop",
        "x-accel-redirect",
        "x-accel-buffering",
        "x-sendfile",
        "x-lighttpd-send-file",
        "x-reproxy-url",
    ] {
        assert!(all(gone).is_empty(), "{gone}");
    }
    let worker = asking(&server, &id, 8000, "/x.js").header("Service-Worker", "script");
    worker.send().invalid("Service-Worker");
}

#[test]
fn answers_and_requests_are_passed_on_as_they_come() {
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "here");
    let mut answer = asking(&server, &id, 8000, "/stream").open();
    let mut first = [0; 5];
    answer.content().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    server.upload(&id, "go", b"").expect(200);
    let mut rest = String::new();
    answer.content().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "second");
    // The first of a request is there before the last was sent.
    let call = server.call("POST", &path(&id, 8000, "/digest"));
    let call = call.body("text/plain", "begin, and end").cut(5);
    let mut stream = call.write().unwrap();
    server.until_file(&id, "began");
    stream.write_all(b", and end").unwrap();
    let mut answer = Opened::read(stream).unwrap();
    let mut text = String::new();
    answer.content().read_to_string(&mut text).unwrap();
    let digest = hexadecimal(&Sha256::digest("begin, and end"));
    let expected = json!({ "digest": digest, "length": 14 });
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    // One without a length.
    let target = path(&id, 8000, "/digest");
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n9\r\n, and end\r\n0\r\n\r\n",
        server.admin()
    );
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Opened::read(stream).unwrap();
    let mut text = String::new();
    answer.content().read_to_string(&mut text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn bodies_may_be_large_and_are_kept_nowhere() {
    const LARGE: usize = 100 << 20;
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "here");
    told(asking(&server, &id, 8000, "/").send());
    let before = server.memory();
    let large: Vec<u8> = (0..LARGE).map(|number| (number % 251) as u8).collect();
    let digest = hexadecimal(&Sha256::digest(&large));
    let call = server.call("PUT", &path(&id, 8000, "/digest"));
    let answer = call.body("application/octet-stream", large).send();
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer, json!({ "digest": digest, "length": LARGE }));
    let answer = asking(&server, &id, 8000, &format!("/large?{LARGE}")).send();
    assert_eq!(answer.body.len(), LARGE);
    assert_eq!(hexadecimal(&Sha256::digest(&answer.body)), digest);
    // What nobody reads stops the server inside.
    let unread = asking(&server, &id, 8000, "/endless").open();
    let count = || String::from_utf8(server.until_file(&id, ".count")).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut last = count();
    loop {
        pause(Duration::from_secs(1));
        let now = count();
        if std::mem::replace(&mut last, now.clone()) == now {
            break;
        }
        assert!(Instant::now() < deadline, "it never stands still");
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 32 << 20, "the server has grown by {grown} bytes");
    drop(unread);
}

#[test]
fn websockets_go_through() {
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "here");
    let mut socket = server.socket(&format!("/sessions/{id}/ports/8000/websocket?x=y"));
    for length in [0, 1, 125, 126, 60_000] {
        let text = "ö".repeat(length / 2);
        socket.send(Message::text(text.clone()));
        assert_eq!(socket.heard(), Message::text(text));
        let bytes = vec![7; length];
        socket.send(Message::binary(bytes.clone()));
        assert_eq!(socket.heard(), Message::binary(bytes));
    }
    socket.leave();
    // One that the server inside does not agree to.
    let answer = server
        .asking_for_socket(&format!("/sessions/{id}/ports/8000/x"))
        .send();
    let asked = told(answer);
    assert!(
        asked["headers"].to_string().contains("sec-websocket-key"),
        "{asked}"
    );
    // It ends with what served it.
    let mut socket = server.socket(&format!("/sessions/{id}/ports/8000/websocket"));
    socket.send(Message::text("x"));
    socket.heard();
    server.delete(&format!("/sessions/{id}")).json(200);
    assert!(socket.is_cut());
}

#[test]
fn a_response_ends_with_its_session() {
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "here");
    let mut answer = asking(&server, &id, 8000, "/stream").open();
    answer.content().read_exact(&mut [0; 5]).unwrap();
    server.delete(&format!("/sessions/{id}")).json(200);
    assert!(
        answer.content().read(&mut [0; 5]).is_err(),
        "it is not told as whole"
    );
}

#[test]
fn nothing_but_the_sessions_own_loopback_is_reached() {
    for user in [User::Root, User::Tester] {
        let options = Options::on(Storage::SqliteAndFiles).by(user);
        let server = options.with(&["--drain-timeout", "1s"]).start();
        let listeners = [
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind("0.0.0.0:0").unwrap(),
            TcpListener::bind("[::1]:0").unwrap(),
        ];
        let allow = json!({ "network": { "enabled": true, "allow": ["example.com:443"] } });
        for fields in [json!({}), allow] {
            let (id, other) = (
                server.session_with(fields.clone()),
                server.session_with(fields),
            );
            let waiting =
                json!({ "language": "shell", "code": "echo > on; sleep 3600", "timeout": 3600 });
            server.submit(&id, waiting);
            server.until_file(&id, "on");
            serve(&server, &other, 8000, "other");
            assert_eq!(
                told(asking(&server, &other, 8000, "/").send())["word"],
                "other"
            );
            // What listens on the host, in another session, at the server itself, or leads out.
            let hosts = listeners
                .iter()
                .map(|listener| listener.local_addr().unwrap().port());
            let ports: Vec<u16> = hosts.chain([8000, server.address().port(), 3128]).collect();
            for port in ports {
                must_be_closed(&server, &id, port);
            }
            // Nor does what is asked for change where it is asked.
            serve(&server, &id, 8000, "own");
            for tail in ["/http://127.0.0.1:1/", "/@127.0.0.1/", "/../../../ports/1/"] {
                let asked = told(asking(&server, &id, 8000, tail).send());
                assert_eq!(
                    (&asked["word"], &asked["path"]),
                    (&json!("own"), &json!(tail))
                );
            }
            let call = asking(&server, &id, 8000, "/").header("Host", "elsewhere:1");
            assert_eq!(told(call.send())["word"], "own");
        }
        for listener in listeners {
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "somebody came to the host");
        }
    }
}

#[test]
fn with_a_network_all_executions_listen_in_one_place() {
    let server = started();
    let network = json!({ "network": { "enabled": true, "allow": ["example.com:443"] } });
    let id = server.session_with(network);
    serve(&server, &id, 8000, "one");
    serve(&server, &id, 8001, "two");
    assert_eq!(told(asking(&server, &id, 8000, "/").send())["word"], "one");
    assert_eq!(told(asking(&server, &id, 8001, "/").send())["word"], "two");
    let mut terminal = server.terminal_with(&id, "python3 server.py 8002 three");
    server.until_file(&id, "listening-three");
    assert_eq!(
        told(asking(&server, &id, 8002, "/").send())["word"],
        "three"
    );
    terminal.say("\x03");
    terminal.end();
    must_be_closed(&server, &id, 8002);
}

#[test]
fn without_a_network_the_latest_to_listen_is_asked() {
    let server = started();
    let id = server.session();
    serve(&server, &id, 8000, "one");
    let two = serve(&server, &id, 8000, "two");
    assert_eq!(told(asking(&server, &id, 8000, "/").send())["word"], "two");
    server
        .post(&format!("/executions/{two}/cancel"), &json!({}))
        .json(200);
    assert_eq!(told(asking(&server, &id, 8000, "/").send())["word"], "one");
    let terminal = server.terminal_with(&id, "python3 server.py 8000 three");
    server.until_file(&id, "listening-three");
    assert_eq!(
        told(asking(&server, &id, 8000, "/").send())["word"],
        "three"
    );
    drop(terminal);
}

#[test]
fn what_does_not_speak_http_is_told_as_that() {
    let server = started();
    let id = server.session();
    let code = "import os, socket, threading\n\
        answers = {8001: b'', 8002: b'SSH-2.0-x\\r\\n', 8003: b'HTTP/1.1 200 OK\\r\\nX: ' + b'x' * 1000000,\n\
        8004: b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n',\n\
        8005: b'HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\nContent-Length: 2\\r\\n\\r\\nxx',\n\
        8006: b'HTTP/1.1 200 OK\\r\\nX-A: b\\nc: d\\rSet-Cookie: x=y\\r\\n\\r\\n'}\n\
        def serve(port, answer):\n    s = socket.create_server(('127.0.0.1', port))\n    \
        while True:\n        c, _ = s.accept()\n        c.recv(10000)\n        \
        try: c.sendall(answer)\n        except OSError: pass\n        c.close()\n\
        for port, answer in answers.items(): threading.Thread(target=serve, args=(port, answer)).start()\n\
        open('on', 'w').write('x')\n";
    server.submit(
        &id,
        json!({ "language": "python", "code": code, "timeout": 3600 }),
    );
    server.until_file(&id, "on");
    for port in 8001..=8006 {
        let answer = asking(&server, &id, port, "/").send();
        let error = answer.error(503, "Sandbox.Unavailable");
        let detail = error["error_detail"].as_str().unwrap();
        assert!(detail.contains(&format!("port {port}")), "{error}");
    }
}

#[test]
fn another_server_passes_it_on() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let options = |node: &str| {
        let options = Options::on(Storage::SqliteAndFiles);
        let options = options.with(&["--database", &url, "--node-id", node]);
        options.with(&["--drain-timeout", "1s"])
    };
    let one = options("one").start();
    let id = one.session();
    serve(&one, &id, 8000, "here");
    // It looks for others as it starts.
    let other = options("other").start();
    let key = json!({ "name": "both", "scope": "operate" });
    let key = one.post("/api-keys", &key).json(201);
    let key = key["secret"].as_str().unwrap();
    let asked = told(asking(&other, &id, 8000, "/x?y").key(key).send());
    assert_eq!(
        (&asked["word"], &asked["path"]),
        (&json!("here"), &json!("/x?y"))
    );
    let headers = asked["headers"].to_string();
    assert!(
        headers.contains(&format!("[\"x-forwarded-host\",\"{}\"]", other.address())),
        "{headers}"
    );
    assert!(!headers.contains("x-sandbox-forwarded"), "{headers}");
    let missing = asking(&other, &id, 8000, "/status/404").key(key).send();
    assert_eq!(
        (missing.status, missing.text().as_str()),
        (404, "<h1>theirs</h1>")
    );
    assert_eq!(missing.header("content-security-policy"), Some(SANDBOX));
    let mut socket = other.socket_as(key, &format!("/sessions/{id}/ports/8000/websocket"));
    socket.send(Message::text("through both"));
    assert_eq!(socket.heard(), Message::text("through both"));
    socket.leave();
    let closed = asking(&other, &id, 8001, "/").key(key).send();
    closed.error(503, "Sandbox.Unavailable");
}
