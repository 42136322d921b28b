//! Running code in sessions from the command line.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{Read as _, Write as _};

use rustix::process::Signal;
use sandbox_api_tests::{Form, Server, beside, eventually, like, pipe, rows};
use sandbox_tests::{Running, finish};
use serde_json::json;

#[test]
fn what_code_prints_comes_as_it_is_printed_each_where_it_belongs() {
    let server = Server::plain();
    let id = server.session();
    let code = "echo first; echo complaint >&2; until [ -e go ]; do sleep 0.01; done; printf 'last\\xff'; exit 7";
    let mut exec = Running::start(&mut server.sandbox(["exec", &id, code]));
    exec.wait_for("first\n");
    assert!(exec.is_running());
    server.upload(&id, "go", b"x").json(200);
    let ended = exec.end();
    assert_eq!(ended.code(), 7, "{ended}");
    assert_eq!(ended.stdout, b"first\nlast\xff");
    assert_eq!(ended.err(), "complaint\n");

    // In the order in which it was printed, however much that is.
    let code = "for n in $(seq 20000); do echo $n; done";
    let counted = server.ask(["exec", &id, code]).succeeded();
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(counted.out(), expected);
    assert_eq!(counted.err(), "");
}

#[test]
fn the_status_is_the_codes_own() {
    let server = Server::plain();
    let id = server.session();
    for (code, status) in [
        ("true", 0),
        ("exit 1", 1),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("no-such-command", 127),
    ] {
        assert_eq!(server.ask(["exec", &id, code]).code(), status, "{code}");
        assert_eq!(
            server.ask(["exec", &id, code, "--json"]).code(),
            status,
            "{code}"
        );
    }
    let late = server
        .ask(["exec", &id, "--timeout", "1", "echo begun; sleep 100"])
        .failed(124);
    assert_eq!(late.out(), "begun\n");
    assert!(
        late.err()
            .contains("caused by: Execution timeout after 1 seconds"),
        "{late}"
    );
    let late = server.ask(["exec", &id, "--timeout", "1", "--json", "sleep 100"]);
    assert_eq!(
        (late.code(), &late.json()["status"]),
        (124, &json!("timeout"))
    );

    let mut exec = Running::start(&mut server.sandbox(["exec", &id, "echo begun; sleep 100"]));
    exec.wait_for("begun");
    // What is over in a moment is never told as running.
    let execution = eventually("it is running", || {
        let running = server
            .ask(["execution", "list", &id, "--status", "running", "--json"])
            .succeeded()
            .json();
        let found = running["executions"][0]["execution_id"].as_str();
        found.map(str::to_owned)
    });
    let cancelled = server
        .ask(["execution", "cancel", &execution, "--json"])
        .succeeded()
        .json();
    assert_eq!(cancelled["status"], "cancelled");
    assert!(exec.end().failed(125).err().contains("was cancelled"));

    server
        .ask(["exec", "sess_0000000000000000", "true"])
        .failed(2);
    server
        .ask(["exec", &id, "--timeout", "0", "true"])
        .failed(1);
    server
        .post(&format!("/sessions/{id}/pause"), &json!({}))
        .expect(200);
    server.ask(["exec", &id, "true"]).failed(5);
}

#[test]
fn code_comes_from_an_argument_a_file_or_a_pipe() {
    let server = Server::plain();
    let id = server.session();
    let python =
        "import sys\ndef handler(event):\n    print('printed')\n    return {'n': event['n'] + 1}\n";
    let file = server.file_beside("handler.py", python.as_bytes());
    let event = server.file_beside("event.json", br#"{"n": 41}"#);
    let at = format!("@{event}");

    let told = server
        .ask([
            "exec",
            &id,
            "--language",
            "python",
            python,
            "--event",
            r#"{"n": 1}"#,
        ])
        .succeeded();
    assert_eq!(
        (told.out().as_str(), told.err().as_str()),
        ("printed\n", "Returned: {\"n\":2}\n")
    );
    let result = server
        .ask(["exec", "--json", "--event", &at, "--file", &file, &id])
        .succeeded()
        .json();
    assert_eq!(
        (&result["return_value"], &result["stdout"]),
        (&json!({ "n": 42 }), &json!("printed\n"))
    );
    let javascript = server.file_beside(
        "handler.js",
        b"module.exports.handler = async (event) => event.n * 2;",
    );
    let result = server
        .ask(["exec", &id, "--file", &javascript, "--event", &at, "--json"])
        .succeeded()
        .json();
    assert_eq!(result["return_value"], 82);

    let piped = |arguments: &[&str], input: &str| {
        let mut exec = Running::start(&mut server.sandbox(arguments));
        exec.stdin().write_all(input.as_bytes()).unwrap();
        exec.end().succeeded().out()
    };
    assert_eq!(piped(&["exec", &id, "-"], "echo piped"), "piped\n");
    assert_eq!(
        piped(
            &["exec", &id, "--file", "-", "-l", "python"],
            "print(6 * 7)"
        ),
        "42\n"
    );
    assert_eq!(piped(&["exec", &id, "cat", "--event", "@-"], "[1]"), "[1]");
    // Several words are a command, whatever is in them.
    assert_eq!(
        server
            .ask(["exec", &id, "echo", "it's", "$HOME", "*"])
            .succeeded()
            .out(),
        "it's $HOME *\n"
    );
    assert_eq!(
        server
            .ask(["exec", &id, "--", "printf", "%s|", "-n", "a b"])
            .succeeded()
            .out(),
        "-n|a b|"
    );

    for wrong in [
        &["exec", &id][..],
        &["exec", &id, "-l", "python", "print(1)", "print(2)"],
        &["exec", &id, "-l", "perl", "print"],
        &["exec", &id, "--event", "{", "true"],
        &["exec", &id, "--event", "@/nowhere", "true"],
        &["exec", &id, "--file", "/nowhere"],
        &["exec", &id, "--file", &file, "true"],
        &["exec", &id, "-", "--event", "@-"],
        &["exec", "--memory", "1G", &id, "true"],
    ] {
        assert_eq!(server.ask(wrong).failed(1).out(), "", "{wrong:?}");
    }
}

#[test]
fn code_can_be_left_to_itself_and_asked_for_later() {
    let server = Server::plain();
    let id = server.session();
    let code = "echo out; echo err >&2; until [ -e go ]; do sleep 0.01; done; exit 4";
    let execution = server.line(["exec", &id, "--detach", code, "--timeout", "100", "--retry"]);
    assert!(like(Form::Execution, &json!(execution)));
    server.until(&execution, "running");
    let status = server.ask(["execution", "status", &execution]).succeeded();
    assert_eq!(beside(&status, "Status"), "running");
    assert_eq!(beside(&status, "Timeout"), "100 s");
    assert_eq!(beside(&status, "Retry"), "yes");
    let early = server.ask(["execution", "result", &execution]).failed(5);
    assert!(early.err().contains("hint: give --wait"), "{early}");

    let waiting =
        Running::start(&mut server.sandbox(["execution", "result", &execution, "--wait"]));
    server.upload(&id, "go", b"x").json(200);
    let ended = waiting.end();
    assert_eq!(
        (ended.code(), ended.out().as_str(), ended.err().as_str()),
        (4, "out\n", "err\n"),
        "{ended}"
    );
    let result = server.ask(["execution", "result", &execution, "--json"]);
    assert_eq!((result.code(), &result.json()["exit_code"]), (4, &json!(4)));
    let shown = server.ask(["execution", "get", &execution]).succeeded();
    assert_eq!(
        (beside(&shown, "Code"), beside(&shown, "Event")),
        (code.to_owned(), "{}".to_owned())
    );
    assert_eq!(
        server
            .ask(["execution", "get", &execution, "--json"])
            .succeeded()
            .json()["code"],
        code
    );
    assert_eq!(
        server
            .ask(["execution", "status", &execution, "--json"])
            .succeeded()
            .json()["status"],
        "failed"
    );
    server.ask(["execution", "cancel", &execution]).failed(5);
    server
        .ask(["execution", "get", "exec_20260131_a1b2c3d4"])
        .failed(2);

    // Sent again with the same key, it is the same execution.
    let submit = || {
        let submitted = server.ask([
            "exec",
            &id,
            "--detach",
            "--json",
            "--idempotency-key",
            "k1",
            "echo once >> times",
        ]);
        submitted.succeeded().json()
    };
    let (first, second) = (submit(), submit());
    assert_eq!(first, second);
    assert_eq!(first["status"], "submitted");
    server.until(first["execution_id"].as_str().unwrap(), "completed");
    assert_eq!(server.shell(&id, "cat times"), "once");
    // Also where it prints as it goes.
    let streamed = [
        "exec",
        &id,
        "--idempotency-key",
        "k2",
        "echo again >> times; cat times",
    ];
    for _ in 0..2 {
        assert_eq!(server.ask(streamed).succeeded().out(), "once\nagain\n");
    }

    let listed = server
        .ask(["execution", "list", &id, "--status", "failed"])
        .succeeded();
    assert_eq!(
        rows(&listed)[0][..3],
        [execution.as_str(), "shell", "failed"]
    );
}

#[test]
fn whoever_interrupts_it_ends_the_code_too() {
    let server = Server::plain();
    let id = server.session();
    for signal in [Signal::INT, Signal::TERM] {
        let mut exec = Running::start(&mut server.sandbox(["exec", &id, "echo begun; sleep 1000"]));
        exec.wait_for("begun");
        exec.signal(signal);
        assert_eq!(exec.end().code(), 128 + signal.as_raw());
        let last = server
            .get(&format!("/sessions/{id}/executions?limit=1"))
            .json(200);
        assert_eq!(last["executions"][0]["status"], "cancelled");
    }
    // And whoever stops reading: as with any pipe.
    let mut exec = server.sandbox([
        "exec",
        &id,
        "--timeout",
        "600",
        "while echo more; do sleep 0.01; done",
    ]);
    let (mut reader, writer) = pipe();
    let running = Running::start_into(&mut exec, writer);
    drop(exec);
    reader.read_exact(&mut [0; 5]).unwrap();
    drop(reader);
    running.end().succeeded();
    let last = server
        .get(&format!("/sessions/{id}/executions?limit=1"))
        .json(200);
    assert_eq!(last["executions"][0]["status"], "cancelled");
}

#[test]
fn a_sandboxs_name_is_still_a_sandboxs() {
    let server = Server::plain();
    let source = server.base().join("source");
    fs::create_dir(&source).unwrap();
    let local = |arguments: &[&str]| {
        let mut command = sandbox_api_tests::sandbox(&source, arguments);
        command.env("HOME", server.base());
        finish(command.env("SANDBOX_ROOT", server.base().join("root")))
    };
    local(&["create", "box"]).succeeded();
    assert_eq!(local(&["exec", "box", "echo hi; exit 3"]).code(), 3);
    assert_eq!(
        local(&["exec", "--env", "A=1", "box", "--", "printenv", "A"])
            .succeeded()
            .out(),
        "1\n"
    );
    // A name that looks like a session's is reached with `run`.
    local(&["create", "sess_0123456789abcdef"]).succeeded();
    assert_eq!(
        local(&["run", "sess_0123456789abcdef", "echo local"])
            .succeeded()
            .out(),
        "local\n"
    );
    local(&["exec", "sess_0123456789abcdef", "echo local"]).failed(3);
    for name in ["box", "sess_0123456789abcdef"] {
        local(&["discard", "--force", name]).succeeded();
    }
}
