//! Executions that are lost half-way, or that nobody wants any more: that is told, nothing waits for them, and they
//! run again only where that was asked for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::process::{executor, unlikely};
use sandbox_api_tests::{Options, Server, Storage, eventually};
use serde_json::{Value, json};

fn plain() -> Server {
    Options::on(Storage::SqliteAndFiles).start()
}

/// The attempt after this one.
fn next(server: &Server, session: &str, execution: &str) -> String {
    eventually("it is run again", || {
        let page = server
            .get(&format!("/sessions/{session}/executions"))
            .json(200);
        let all = page["executions"].as_array().unwrap().clone();
        let is_next = |it: &Value| it["parent_execution_id"] == json!(execution);
        let found = all.into_iter().find(is_next)?;
        Some(found["execution_id"].as_str().unwrap().to_owned())
    })
}

#[test]
fn an_executor_that_says_nothing_is_given_up() {
    let server = plain();
    let session = server.session();
    let word = unlikely(800, 7);
    let code = format!("echo ran >> log; sleep {word}");
    let execution = server.submit(
        &session,
        json!({ "language": "shell", "code": code, "timeout": 900 }),
    );
    let silent = executor(&word);
    kill_process(silent, Signal::STOP).unwrap();
    let begin = Instant::now();
    let crashed = server.until(&execution, "crashed");
    let took = begin.elapsed();
    assert!((10..30).contains(&took.as_secs()), "{took:?}");
    let error = crashed["error"].as_str().unwrap();
    assert!(error.contains("nothing was heard"), "{error}");
    // What it ran is gone, and the session goes on.
    assert_eq!(server.shell(&session, "cat log"), "ran");
    eventually("it is gone", || {
        sandbox_api_tests::process::started_with(&word)
            .is_empty()
            .then_some(())
    });
}

#[test]
fn a_session_that_stands_still_is_not_taken_for_silent() {
    let server = plain();
    let session = server.session();
    let code = json!({ "language": "shell", "code": "echo > begun; until [ -e go ]; do sleep 0.1; done; echo done" });
    let execution = server.submit(&session, code);
    server.until_file(&session, "begun");
    server
        .post(&format!("/sessions/{session}/pause"), &json!({}))
        .json(200);
    sandbox_api_tests::pause(Duration::from_secs(18));
    server
        .post(&format!("/sessions/{session}/resume"), &json!({}))
        .json(200);
    server.upload(&session, "go", b"").json(200);
    server.until(&execution, "completed");
}

#[test]
fn nothing_is_cancelled_in_a_session_that_stands_still_and_nobody_waits_for_it() {
    let server = plain();
    let session = server.session();
    let code = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 900 });
    let execution = server.submit(&session, code);
    server.until_file(&session, "begun");
    server
        .post(&format!("/sessions/{session}/pause"), &json!({}))
        .json(200);
    let cancel = format!("/executions/{execution}/cancel");
    server
        .post(&cancel, &json!({}))
        .error(409, "Sandbox.StateConflict");
    server
        .post(&format!("/sessions/{session}/resume"), &json!({}))
        .json(200);
    let cancelled = server.post(&cancel, &json!({})).json(200);
    assert_eq!(cancelled["status"], "cancelled");
}

#[test]
fn what_waits_for_its_turn_is_cancelled_too() {
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--hibernate-after", "1s", "--pool", "none"])
        .start();
    let session = server.session();
    server.shell(&session, "true");
    // What comes when they are given up waits until they are there again.
    eventually("its processes are given up", || {
        let metrics = server.stranger("GET", "/metrics").send().text();
        let mut lines = metrics.lines();
        lines.find(|line| *line == "sandbox_sessions_raised 0")?;
        Some(())
    });
    let event = "x".repeat(1_000_000);
    let code = json!({ "language": "shell", "code": "sleep 600", "timeout": 900, "event": event });
    let execution = server.submit(&session, code);
    let begin = Instant::now();
    let cancelled = server
        .post(&format!("/executions/{execution}/cancel"), &json!({}))
        .json(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn what_a_server_was_told_to_end_is_run_again_by_the_next() {
    let options = Options::on(Storage::SqliteAndFiles).with(&["--drain-timeout", "1s"]);
    let mut server = options.start();
    let session = server.session();
    let code = "echo ran >> log; [ $(wc -l < log) -gt 1 ] || sleep 600";
    let first = server.submit(
        &session,
        json!({ "language": "shell", "code": code, "timeout": 900, "retry": true }),
    );
    server.until_file(&session, "log");
    server.stop();
    server.start();
    server.until(&first, "crashed");
    let mut last = next(&server, &session, &first);
    // One that was kept for the next server was never begun, and is no attempt.
    while server.get(&format!("/executions/{last}/status")).json(200)["status"] == "crashed" {
        last = next(&server, &session, &last);
    }
    let completed = server.until(&last, "completed");
    assert_eq!(completed["retry_count"], 1);
    assert_eq!(server.shell(&session, "wc -l < log"), "2");
    let audit = server.get("/audit?limit=200").json(200).to_string();
    assert!(audit.contains("execution.retry"), "{audit}");
}

#[test]
fn what_crashes_again_and_again_is_given_up() {
    let mut server = plain();
    let session = server.session();
    let word = unlikely(900, 3);
    let code = json!({ "language": "shell", "code": format!("sleep {word}"), "timeout": 900, "retry": true });
    let mut execution = server.submit(&session, code);
    for attempt in 0..4 {
        let shown = server.until(&execution, "running");
        assert_eq!(shown["retry_count"], attempt);
        kill_process(executor(&word), Signal::KILL).unwrap();
        server.until(&execution, "crashed");
        if attempt < 3 {
            execution = next(&server, &session, &execution);
        }
    }
    // A server that ends waits until what crashed is to be run again, or is not; the next one has what is.
    server.stop();
    server.start();
    let all = server
        .get(&format!("/sessions/{session}/executions"))
        .json(200);
    assert_eq!(all["total"], 4);
}
