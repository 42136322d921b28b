//! Terminals in sessions, over WebSockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandbox_api_tests::{Options, Server, Storage, User, escaped, on_every_storage, pause};
use sandbox_test_servers::Database;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tungstenite::Message;

/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn started() -> Server {
    Options::on(Storage::SqliteAndFiles).start()
}

/// Waits until `is_so`.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        pause(Duration::from_millis(10));
    }
}

/// Does a process on this machine have this among its arguments?
fn runs(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.flat_map(|process| std::fs::read(process.path().join("cmdline")));
    let mut words = lines.flat_map(|line| {
        let words: Vec<Vec<u8>> = line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        words
    });
    words.any(|word| word == argument.as_bytes())
}

/// How long to sleep, for a `sleep` that no other test has.
fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}.{}{number}", 100_000, std::process::id())
}

on_every_storage! {
    fn what_is_typed_is_read_and_what_is_shown_comes(server: &Server) {
        let id = server.session();
        let mut terminal = server.terminal(&id, "columns=91&rows=17");
        terminal.say("PS1='rea''dy '; stty -echo\n");
        terminal.until("ready ");
        terminal.say("echo $((6*7)) $(basename $0) $PWD $TERM; stty size; tty\n");
        terminal.until("42 bash /workspace xterm-256color\r\n17 91\r\n/dev/pts/0\r\n");
        terminal.say("exit 7\n");
        assert_eq!(terminal.end().1, 7);
    }

    fn coming_and_going_are_events_and_audit_records(server: &Server) {
        let id = server.session();
        let mut events = server.events(&id);
        let mut terminal = server.terminal_with(&id, "exit 3");
        assert_eq!(events.until("terminal").data["detail"], json!({ "state": "opened" }));
        terminal.end();
        assert_eq!(events.until("terminal").data["detail"], json!({ "state": "closed", "exit_code": 3 }));
        drop(server.terminal_with(&id, "sleep 1000"));
        assert_eq!(events.until("terminal").data["detail"]["state"], "opened");
        assert_eq!(events.until("terminal").data["detail"], json!({ "state": "closed", "exit_code": null }));
    }

    fn only_a_websocket_to_a_session_that_runs_is_taken(server: &Server) {
        let id = server.session();
        let path = format!("/sessions/{id}/terminal");
        server.get(&path).invalid("upgrade");
        for query in ["columns=0", "rows=1001", "columns=x", "rows=-1", "command=%00", "command=%20"] {
            let field = query.split('=').next().unwrap();
            server.asking_for_socket(&format!("{path}?{query}")).send().invalid(field);
        }
        let unknown = "/sessions/sess_0000000000000000/terminal";
        server.asking_for_socket(unknown).send().error(404, "Sandbox.SessionNotFound");
        for origin in ["http://evil.example", "null"] {
            let call = server.asking_for_socket(&path).header("Origin", origin);
            call.send().error(403, "Sandbox.Forbidden");
        }
        server.post(&format!("/sessions/{id}/pause"), &json!({})).json(200);
        server.asking_for_socket(&path).send().error(409, "Sandbox.StateConflict");
        server.post(&format!("/sessions/{id}/resume"), &json!({})).json(200);
        server.terminal(&id, "").leave();
        server.delete(&format!("/sessions/{id}")).json(200);
        server.asking_for_socket(&path).send().error(409, "Sandbox.StateConflict");
    }
}

#[test]
fn audit_records_name_the_session_and_the_key() {
    let server = started();
    let id = server.session();
    let mut terminal = server.terminal_with(&id, "exit 3");
    terminal.end();
    let script = "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30); \
        print(json.dumps(c.execute(\"select action, object, key_id, request_id, detail from audit \
        where action like 'terminal.%' order by id\").fetchall()))";
    let database = server.data().join("records.db");
    let records = || -> Vec<Value> {
        let asked = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&database)
            .output()
            .unwrap();
        assert!(
            asked.status.success(),
            "{}",
            String::from_utf8_lossy(&asked.stderr)
        );
        serde_json::from_slice(&asked.stdout).unwrap()
    };
    until("both records", || records().len() == 2);
    let records = records();
    for (record, action) in records.iter().zip(["terminal.open", "terminal.close"]) {
        assert_eq!((&record[0], &record[1]), (&json!(action), &json!(id)));
        assert!(record[2].as_str().unwrap().starts_with("key_"), "{record}");
        assert!(record[3].is_string(), "{record}");
    }
    assert_eq!(records[1][4], r#"{"exit_code":3,"state":"closed"}"#);
}

#[test]
fn it_is_a_terminal_for_an_ordinary_user_s_server_too() {
    let server = Options::on(Storage::SqliteAndFiles)
        .by(User::Tester)
        .start();
    let id = server.session();
    let mut terminal = server.terminal_with(&id, "id -u; stty size; test -t 0 && cat");
    terminal.until("1000\r\n24 80\r\n");
    terminal.say("word\n");
    terminal.until("word\r\nword\r\n");
    terminal.say("\x04");
    assert_eq!(terminal.end().1, 0);
}

#[test]
fn keys_and_sizes_reach_whoever_is_in_the_foreground() {
    let server = started();
    let id = server.session();
    let mut terminal = server.terminal(&id, "");
    terminal.say("PS1='rea''dy '\n");
    terminal.until("ready ");
    terminal.say("bash -c 'echo on-$((2+3)); exec sleep 1000'\n");
    terminal.until("on-5");
    terminal.say("\x03");
    terminal.until("ready ");
    terminal.say("echo was-$?\n");
    terminal.until("was-130");
    terminal.until("ready ");
    let job = "bash -c 'trap \"echo on-$((3+4))\" CONT; trap \"stty size\" WINCH; echo on-$((4+4)); \
        while :; do sleep 0.02; done'\n";
    terminal.say(job);
    terminal.until("on-8");
    terminal.resize(133, 41);
    terminal.until("41 133");
    terminal.say("\x1a");
    terminal.until("Stopped");
    terminal.until("ready ");
    terminal.say("fg\n");
    terminal.until("on-7");
    terminal.say("\x1a");
    terminal.until("ready ");
    terminal.say("kill -9 %1; wait; echo was-$?\n");
    terminal.until("was-");
    terminal.leave();
}

#[test]
fn a_command_has_what_an_execution_has_and_nothing_of_ours() {
    let server = started();
    let id = server.session_with(json!({ "env_vars": { "MINE": "here", "TERM": "dumb" } }));
    server.upload(&id, "file", b"content").expect(200);
    let script = "cat file; echo; env | cut -d= -f1 | sort | tr '\\n' ' '; echo $MINE $TERM; \
        ls /proc/self/fd | tr '\\n' ' '; echo; grep -E '^(CapEff|NoNewPrivs|Seccomp:)' /proc/self/status; \
        ls -1 /dev/pts; cat /proc/1/environ; kill -9 1; echo > out; echo > /etc/x";
    let (shown, _) = server.terminal_with(&id, script).end();
    let expected = "content\nHISTFILE HOME LANG MINE NODE_PATH NPM_CONFIG_PREFIX PATH PIP_BREAK_SYSTEM_PACKAGES PWD \
        PYTHONDONTWRITEBYTECODE PYTHONUSERBASE SHLVL TERM USER _ here dumb\n0 1 2 3 \n\
        CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n0\nptmx\n";
    assert!(shown.starts_with(expected), "{shown}");
    for refused in ["/proc/1/environ", "kill", "/etc/x"] {
        assert!(shown.contains(refused), "{shown}");
    }
    server.get(&format!("/sessions/{id}/files/out")).expect(200);
    // It cannot put words into anybody's mouth, not even its own.
    let push = "python3 -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")'";
    let (shown, status) = server.terminal_with(&id, push).end();
    assert!(
        status != 0 && shown.contains("Operation not permitted"),
        "{shown}"
    );
    // Limits hold there as they hold for executions.
    let id = server.session_with(json!({ "resources": { "max_processes": 32 } }));
    let many = "for i in $(seq 100); do sleep 30 & done; echo all-$((1+1))";
    let (shown, _) = server.terminal_with(&id, many).end();
    assert!(
        shown.contains("Resource temporarily unavailable"),
        "{shown}"
    );
}

#[test]
fn everything_ends_when_the_client_is_gone_however_it_went() {
    let server = started();
    let id = server.session();
    for leaves in [true, false] {
        let long = unique();
        let command = format!(
            "trap '' HUP TERM INT; setsid sleep {long} & (sleep {long} &); echo on; sleep {long}"
        );
        let mut terminal = server.terminal_with(&id, &command);
        terminal.until("on");
        until("what is to run there", || runs(&long));
        match leaves {
            true => terminal.leave(),
            false => drop(terminal),
        }
        until("the end of what ran there", || !runs(&long));
    }
    // Also one whose program does not read what was typed.
    let long = unique();
    let mut terminal =
        server.terminal_with(&id, &format!("stty raw -echo; echo on; exec sleep {long}"));
    terminal.until("on");
    for _ in 0..8 {
        terminal.say(&"x".repeat(60_000));
    }
    drop(terminal);
    until("the end of what ran there", || !runs(&long));
}

#[test]
fn while_it_is_paused_everything_stands_still() {
    let server = started();
    let id = server.session();
    let mut terminal = server.terminal_with(
        &id,
        "stty -echo; echo on; while read word; do echo got-$word; done",
    );
    terminal.until("on");
    server
        .post(&format!("/sessions/{id}/pause"), &json!({}))
        .json(200);
    terminal.say("one\n");
    server
        .asking_for_socket(&format!("/sessions/{id}/terminal"))
        .send()
        .error(409, "Sandbox.StateConflict");
    server
        .post(&format!("/sessions/{id}/resume"), &json!({}))
        .json(200);
    // What was typed meanwhile has waited.
    assert_eq!(terminal.until("got-one").trim(), "");
    // Who leaves meanwhile is gone when it goes on.
    let long = unique();
    let mut other = server.terminal_with(&id, &format!("trap '' HUP; echo on; exec sleep {long}"));
    other.until("on");
    until("what is to run there", || runs(&long));
    server
        .post(&format!("/sessions/{id}/pause"), &json!({}))
        .json(200);
    drop(other);
    assert!(runs(&long));
    server
        .post(&format!("/sessions/{id}/resume"), &json!({}))
        .json(200);
    until("the end of what was left", || !runs(&long));
    terminal.say("two\n");
    terminal.until("got-two");
}

#[test]
fn it_ends_with_its_session() {
    let server = started();
    let id = server.session();
    let long = unique();
    let mut terminal = server.terminal_with(&id, &format!("trap '' HUP; echo on; sleep {long}"));
    terminal.until("on");
    server.delete(&format!("/sessions/{id}")).json(200);
    assert_eq!(terminal.closed(), (1001, "the session ended".to_owned()));
    until("the end of what ran there", || !runs(&long));
}

#[test]
fn it_ends_with_the_server_at_once() {
    let mut server = Options::on(Storage::SqliteAndFiles)
        .with(&["--drain-timeout", "60s"])
        .start();
    let id = server.session();
    let mut terminal = server.terminal_with(&id, "echo on; sleep 1000");
    terminal.until("on");
    let begin = Instant::now();
    let processes = server.processes();
    server.signal(Signal::TERM);
    assert_eq!(terminal.closed(), (1001, "the server is ending".to_owned()));
    assert!(server.wait().success());
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "{:?}",
        begin.elapsed()
    );
    server.must_be_clean(&processes);
}

#[test]
fn there_is_a_handful_for_each_session() {
    let server = started();
    let (id, other) = (server.session(), server.session());
    let mut open: Vec<_> = (0..5).map(|_| server.terminal_with(&id, "cat")).collect();
    let path = format!("/sessions/{id}/terminal");
    let error = server
        .asking_for_socket(&path)
        .send()
        .error(503, "Sandbox.CapacityExhausted");
    assert!(
        error["error_detail"]
            .as_str()
            .unwrap()
            .contains("5 terminals"),
        "{error}"
    );
    server.terminal(&other, "").leave();
    open.pop().unwrap().leave();
    // The place is free as soon as what ran there has ended.
    until("a free place", || {
        let asked = server.asking_for_socket(&path).write().unwrap();
        sandbox_api_tests::Opened::read(asked).unwrap().status == 101
    });
}

#[test]
fn frames_that_are_none_of_ours_are_refused_with_a_reason() {
    let server = started();
    let id = server.session();
    let open = || server.terminal_with(&id, "cat");
    let masked = |opcode: u8, payload: &[u8]| {
        let mut frame = vec![0x80 | opcode, 0x80 | payload.len() as u8, 0, 0, 0, 0];
        frame.extend(payload);
        frame
    };
    for (text, code) in [
        ("ls", 1007),
        ("{\"resize\":{}}", 1003),
        ("[]", 1003),
        ("{\"exit_code\":0}", 1003),
    ] {
        let mut terminal = open();
        terminal.send(Message::text(text));
        let (told, reason) = terminal.closed();
        assert_eq!(told, code, "{reason}");
        assert!(!reason.is_empty());
    }
    for (bytes, code) in [
        (masked(1, b"\xff\xfe"), 1007),
        (masked(3, b"x"), 1002),
        (masked(0, b"x"), 1002),
        // Not masked.
        (vec![0x82, 1, b'x'], 1002),
        // Reserved bits.
        (vec![0xf2, 0x81, 0, 0, 0, 0, b'x'], 1002),
        // Far more than there will be.
        (
            vec![
                0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
            ],
            1009,
        ),
    ] {
        let mut terminal = open();
        terminal.forge(&bytes);
        let (told, reason) = terminal.closed();
        assert_eq!(told, code, "{bytes:x?}: {reason}");
    }
    until("the end of all of them", || {
        let mut again = server.terminal_with(&id, "pgrep -c cat; true");
        again.end().0.trim() == "0"
    });
}

#[test]
fn what_nobody_reads_stops_the_program_and_is_kept_nowhere() {
    let server = started();
    let id = server.session();
    let code = "import os\nline = b'x' * 1023 + b'\\n'\nwritten = 0\n\
        while True:\n    os.write(1, line)\n    written += len(line)\n    \
        f = os.open('.count', os.O_WRONLY | os.O_CREAT, 0o644)\n    os.pwrite(f, b'%012d' % written, 0)\n    os.close(f)\n";
    server.upload(&id, "flood.py", code.as_bytes()).expect(200);
    let before = server.memory();
    let mut terminal = server.terminal_with(&id, "stty -opost; exec python3 flood.py");
    let count = || -> u64 {
        let found = server.until_file(&id, ".count");
        String::from_utf8(found).unwrap().parse().unwrap()
    };
    // It stands still: a second passes in which it writes nothing.
    let mut last = count();
    until("it stands still", || {
        pause(Duration::from_secs(1));
        std::mem::replace(&mut last, count()) == count()
    });
    assert!(
        last < 16 << 20,
        "{last} bytes were written with nobody to read them"
    );
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 32 << 20, "the server has grown by {grown} bytes");
    // It goes on where it stood, and nothing is missing.
    let wanted = usize::try_from(last).unwrap() + (1 << 20);
    let all = terminal.bytes(wanted);
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    assert!(all.chunks(1024).all(|part| part == &line[..part.len()]));
    assert!(count() > last);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 32 << 20, "the server has grown by {grown} bytes");
}

#[test]
fn much_is_typed_and_shown_and_nothing_is_lost() {
    let server = started();
    let id = server.session();
    let length = 300_000;
    let command = format!("stty raw -echo; echo on; head -c {length} | sha256sum");
    let mut terminal = server.terminal_with(&id, &command);
    terminal.until("on");
    let typed: Vec<u8> = (0..length)
        .map(|number: u32| (number % 251) as u8)
        .collect();
    for part in typed.chunks(50_000) {
        terminal.send(Message::binary(part.to_vec()));
    }
    let digest = Sha256::digest(&typed);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    terminal.until(&digest);
    terminal.end();
    let (shown, status) = server.terminal_with(&id, "seq 200000; exit 9").end();
    let numbers: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert!(
        shown == numbers,
        "{} of {} bytes",
        shown.len(),
        numbers.len()
    );
    assert_eq!(status, 9);
}

#[test]
fn a_program_that_closes_its_terminal_may_come_back_to_it() {
    let server = started();
    let id = server.session();
    let command =
        "exec 3</dev/null; exec </dev/null >/dev/null 2>&1; sleep 1; echo back > /dev/tty; exit 4";
    let (shown, status) = server.terminal_with(&id, command).end();
    assert_eq!((shown.as_str(), status), ("back\n", 4));
}

#[test]
fn being_there_is_use_of_the_session() {
    let options = Options::on(Storage::SqliteAndFiles);
    let server = options
        .with(&[
            "--idle-timeout",
            "4s",
            "--reap-interval",
            "1s",
            "--hibernate-after",
            "1s",
        ])
        .start();
    let (id, idle) = (server.session(), server.session());
    let mut terminal = server.terminal_with(
        &id,
        "stty -echo; echo ready; while read word; do echo got-$word-$$; done",
    );
    terminal.until("ready\r\n");
    terminal.say("one\n");
    let process = terminal.until("\r\n");
    // The other one has been idle for too long, and was made later than this was last typed to.
    server.events(&idle).until_status("timeout");
    terminal.say("two\n");
    let again = terminal.until("\r\n");
    assert_eq!(again.trim(), process.trim().replace("one", "two"));
    let mut events = server.events(&id);
    terminal.leave();
    events.until_status("timeout");
}

#[test]
fn another_server_passes_it_on() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let options = |node: &str| {
        let options = Options::on(Storage::SqliteAndFiles);
        options.with(&["--database", &url, "--node-id", node])
    };
    let one = options("one").start();
    let id = one.session();
    // It looks for others as it starts.
    let other = options("other").start();
    let key = json!({ "name": "both", "scope": "operate" });
    let key = one.post("/api-keys", &key).json(201);
    let key = key["secret"].as_str().unwrap();
    let open = |command: &str| {
        let path = format!("/sessions/{id}/terminal?command={}", escaped(command));
        other.socket_as(key, &path)
    };
    let mut terminal = open("stty -echo; read word; echo got-$word; exit 5");
    terminal.say("it\n");
    terminal.until("got-it");
    assert_eq!(terminal.end().1, 5);
    let long = unique();
    let mut terminal = open(&format!("trap '' HUP; echo on; sleep {long}"));
    terminal.until("on");
    drop(terminal);
    until("the end of what ran there", || !runs(&long));
    let wrong = other.asking_for_socket(&format!("/sessions/{id}/terminal?rows=0"));
    wrong.key(key).send().invalid("rows");
}
