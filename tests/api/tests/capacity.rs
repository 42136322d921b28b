//! What a server takes on: as many sessions as it may, limits that it can enforce, and templates as they are now.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::process::{executor, unlikely};
use sandbox_api_tests::{Options, Server, Storage, User, id_of};
use serde_json::json;

fn with(arguments: &[&str]) -> Server {
    Options::on(Storage::SqliteAndFiles).with(arguments).start()
}

#[test]
fn there_are_no_more_sessions_than_there_may_be_whatever_they_do() {
    let server = with(&["--max-sessions", "2", "--pool", "none"]);
    let (one, other) = (server.session(), server.session());
    let plain = json!({ "template_id": "python-basic" });
    let full = || {
        let error = server
            .post("/sessions", &plain)
            .error(503, "Sandbox.CapacityExhausted");
        assert!(
            error["solution"].as_str().unwrap().contains("max_sessions"),
            "{error}"
        );
    };
    full();
    // One that stands still is there all the same.
    server
        .post(&format!("/sessions/{one}/pause"), &json!({}))
        .json(200);
    full();
    server.delete(&format!("/sessions/{other}")).json(200);
    server.session();
    full();
}

#[test]
fn no_more_is_promised_than_the_operator_allows() {
    let server = with(&["--overcommit", "1", "--pool", "none"]);
    let asked = json!({ "template_id": "python-basic", "resources": { "memory": "8Gi" } });
    let error = server
        .post("/sessions", &asked)
        .error(503, "Sandbox.CapacityExhausted");
    assert!(
        error["solution"].as_str().unwrap().contains("overcommit"),
        "{error}"
    );
}

#[test]
fn a_limit_that_cannot_be_enforced_is_refused_where_it_is_asked_for_or_the_operator_is_strict() {
    let plain = json!({ "template_id": "python-basic" });
    let server = Options::on(Storage::SqliteAndFiles)
        .by(User::Tester)
        .with(&["--pool", "none"])
        .start();
    let session = server.post("/sessions", &plain).json(201);
    // Of an ordinary user's limits, memory and processors need a control group that was delegated to it.
    let enforced = &session["limits_enforced"];
    for (limit, value) in [("memory", "1Gi"), ("cpu", "2")] {
        let asked = json!({ "template_id": "python-basic", "resources": { limit: value } });
        let answer = server.post("/sessions", &asked);
        match enforced[limit] == true {
            true => drop(answer.json(201)),
            false => drop(answer.invalid(&format!("resources.{limit}"))),
        }
    }
    drop(server);
    let strict = Options::on(Storage::SqliteAndFiles)
        .by(User::Tester)
        .with(&["--strict-limits", "on", "--pool", "none"])
        .start();
    let answer = strict.post("/sessions", &plain);
    let mut all = enforced.as_object().unwrap().values();
    match all.all(|is_enforced| is_enforced == true) {
        true => drop(answer.json(201)),
        false => drop(answer.error(400, "Sandbox.InvalidParameter")),
    }
}

#[test]
fn a_session_keeps_the_image_that_it_was_made_from() {
    let server = with(&["--pool", "none"]);
    let template = json!({ "id": "moving", "name": "Moving", "image": "host" });
    server.post("/templates", &template).json(201);
    let from = |template: &str| json!({ "template_id": template });
    let session = id_of(&server.post("/sessions", &from("moving")).json(201));
    for _ in 0..2 {
        // One that is there, and is gone when the next session is made.
        let image = tempfile::Builder::new()
            .prefix("sandbox-image.")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in("/srv")
            .unwrap();
        std::fs::create_dir(image.path().join("bin")).unwrap();
        let path = image.path().to_str().unwrap().to_owned();
        server
            .put("/templates/moving", &json!({ "image": path }))
            .json(200);
        image.close().unwrap();
        assert_eq!(server.shell(&session, "echo well"), "well");
        // Also when its processes are started anew.
        let word = unlikely(850, 9);
        let sleeping =
            json!({ "language": "shell", "code": format!("sleep {word}"), "timeout": 900 });
        let execution = server.submit(&session, sleeping);
        kill_process(executor(&word), Signal::KILL).unwrap();
        server.until(&execution, "crashed");
        assert_eq!(server.shell(&session, "echo again"), "again");
        let fork = server
            .post(&format!("/sessions/{session}/fork"), &json!({}))
            .json(201);
        assert_eq!(server.shell(&id_of(&fork), "echo forked"), "forked");
        // Those that are made now have what it has now.
        let error = server
            .post("/sessions", &from("moving"))
            .invalid("template_id");
        assert!(
            error["error_detail"].as_str().unwrap().contains(&path),
            "{error}"
        );
    }
}

#[test]
fn the_pool_has_nothing_of_a_template_as_it_was() {
    let server = with(&["--pool", "python-basic=2", "--reap-interval", "60s"]);
    let pooled = json!({ "template_id": "python-basic", "pool": "require" });
    let made = sandbox_api_tests::eventually("the pool is full", || {
        let answer = server.post("/sessions", &pooled);
        (answer.status == 201).then_some(answer)
    });
    drop(made);
    let missing = json!({ "pre_installed_packages": ["no-such-package-at-all"] });
    server.put("/templates/python-basic", &missing).json(200);
    server
        .post("/sessions", &pooled)
        .error(503, "Sandbox.CapacityExhausted");
}

#[test]
fn what_no_session_of_the_pool_can_be_is_not_waited_for() {
    let server = with(&["--pool", "python-basic=1"]);
    for more in [
        json!({ "resources": { "memory": "1Gi" } }),
        json!({ "network": { "enabled": true } }),
        json!({ "mode": "persistent", "agent_id": "ada" }),
    ] {
        let mut asked = json!({ "template_id": "python-basic", "pool": "require" });
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        server.post("/sessions", &asked).invalid("pool");
    }
}

#[test]
fn a_name_without_end_is_refused_and_everybody_else_goes_on() {
    let server = with(&["--pool", "none"]);
    let session = server.session();
    for length in [300, 140_000, 500_000] {
        let allow = format!("{}:443", "a".repeat(length));
        let asked = json!({ "template_id": "python-basic", "network": { "enabled": true, "allow": [allow] } });
        server.post("/sessions", &asked).invalid("network.allow");
    }
    assert_eq!(server.shell(&session, "echo well"), "well");
}
