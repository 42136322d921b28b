//! What a session changed, applied to the directory it started from.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use sandbox_api_tests::{Options, Server, Storage, User};
use serde_json::{Value, json};

/// A directory that sessions may start from, and a server that may change it or not.
fn with_source(promote: &str, test: impl FnOnce(&Server, &Path)) {
    let roots = tempfile::Builder::new()
        .prefix("sandbox-promotion.")
        .tempdir_in("/srv")
        .unwrap();
    let source = roots.path().join("project");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("kept.txt"), "kept\n").unwrap();
    fs::write(source.join("changed.txt"), "before\n").unwrap();
    for path in [roots.path(), &source] {
        User::Tester.own(path);
    }
    for name in ["kept.txt", "changed.txt"] {
        User::Tester.own(&source.join(name));
    }
    let root = roots.path().to_str().unwrap();
    let options = Options::on(Storage::SqliteAndFiles).by(User::Tester);
    let server = options
        .with(&["--source-root", root, "--promote", promote])
        .start();
    test(&server, &source);
}

/// A session that starts from `source`, and has changed it.
fn changed(server: &Server, source: &Path) -> String {
    let session = server.session_with(json!({ "source": { "directory": source } }));
    let code = "cat kept.txt && echo after > changed.txt && mkdir new && echo made > new/made.txt";
    assert_eq!(server.shell(&session, code), "kept");
    session
}

fn promote(server: &Server, session: &str, body: &Value) -> sandbox_api_tests::Answer {
    server.post(&format!("/sessions/{session}/promote"), body)
}

#[test]
fn what_a_session_changed_is_planned_and_applied() {
    with_source("on", |server, source| {
        let session = changed(server, source);
        let planned = promote(server, &session, &json!({ "dry_run": true })).json(200);
        assert_eq!(planned["applied"], false);
        assert_eq!(
            planned["plan"]["steps"].as_array().unwrap().len(),
            3,
            "{planned:#}"
        );
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "before\n"
        );

        let one = promote(server, &session, &json!({ "paths": ["new"] })).json(200);
        assert_eq!(one["applied"], true);
        assert_eq!(
            fs::read_to_string(source.join("new/made.txt")).unwrap(),
            "made\n"
        );
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "before\n"
        );

        promote(server, &session, &json!({})).json(200);
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "after\n"
        );
        // The session goes on, and has nothing more to tell.
        let changes = server
            .get(&format!("/sessions/{session}/changes"))
            .json(200);
        assert_eq!(changes["total"], 0, "{changes:#}");
        let both = server.shell(&session, "cat changed.txt new/made.txt");
        assert_eq!(both, "after\nmade");
        let audit = server.get("/audit").json(200);
        let actions: Vec<_> = audit["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| &record["action"])
            .collect();
        assert_eq!(
            actions
                .iter()
                .filter(|action| **action == "session.promote")
                .count(),
            2,
            "{audit:#}"
        );
    });
}

#[test]
fn what_was_changed_meanwhile_is_not_written_over() {
    with_source("on", |server, source| {
        let session = changed(server, source);
        fs::write(source.join("changed.txt"), "by hand\n").unwrap();
        let refused = promote(server, &session, &json!({})).error(409, "Sandbox.StateConflict");
        assert!(
            refused["error_detail"]
                .as_str()
                .unwrap()
                .contains("changed.txt"),
            "{refused:#}"
        );
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "by hand\n"
        );
        assert!(!source.join("new").exists());
        promote(server, &session, &json!({ "resolve": "theirs" })).json(200);
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "by hand\n"
        );
        assert!(source.join("new/made.txt").exists());
    });
}

#[test]
fn nothing_is_applied_unless_the_operator_allows_it() {
    with_source("off", |server, source| {
        let session = changed(server, source);
        for body in [json!({}), json!({ "dry_run": true })] {
            promote(server, &session, &body).error(403, "Sandbox.Forbidden");
        }
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "before\n"
        );
    });
}

#[test]
fn only_a_session_at_rest_that_started_from_something_is_promoted() {
    with_source("on", |server, source| {
        let empty = server.session();
        promote(server, &empty, &json!({})).error(409, "Sandbox.StateConflict");
        let session = changed(server, source);
        let running = server.submit(
            &session,
            json!({ "language": "shell", "code": "sleep 600", "timeout": 900 }),
        );
        server.until(&running, "running");
        promote(server, &session, &json!({})).error(409, "Sandbox.StateConflict");
        server
            .post(&format!("/executions/{running}/cancel"), &json!({}))
            .json(200);
        for path in ["../out", "/etc"] {
            promote(server, &session, &json!({ "paths": [path] }))
                .error(400, "Sandbox.InvalidParameter");
        }
        server.delete(&format!("/sessions/{session}")).json(200);
        promote(server, &session, &json!({})).json(200);
        assert_eq!(
            fs::read_to_string(source.join("changed.txt")).unwrap(),
            "after\n"
        );
    });
}

#[test]
fn many_paths_can_be_named() {
    with_source("on", |server, source| {
        let session = changed(server, source);
        // Far more than one message between processes holds.
        let mut paths: Vec<_> = (0..9_000)
            .map(|number| format!("{}/{number}", "x".repeat(200)))
            .collect();
        paths.push("new".to_owned());
        let answer = promote(
            server,
            &session,
            &json!({ "paths": paths, "dry_run": true }),
        );
        assert!([200, 400].contains(&answer.status), "{}", answer.text());
        let paths: Vec<_> = std::iter::repeat_n("new".to_owned(), 10_000).collect();
        let applied = promote(server, &session, &json!({ "paths": paths })).json(200);
        assert_eq!(applied["applied"], true);
        assert_eq!(
            fs::read_to_string(source.join("new/made.txt")).unwrap(),
            "made\n"
        );
        assert_eq!(server.shell(&session, "echo well"), "well");
    });
}
