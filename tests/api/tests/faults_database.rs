//! A database that is killed is waited for, and what it does not know is not made up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Instant;

use sandbox_api_tests::load::{A_FEW_SECONDS, CLIENTS, Crowd, under_load};
use sandbox_api_tests::process::{started_with, unlikely};
use sandbox_api_tests::{Options, Server, Storage, eventually};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

#[test]
fn what_a_key_promised_is_not_done_again_because_its_result_was_lost() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let name = url.rsplit('/').next().unwrap();
    let options = Options::on(Storage::SqliteAndFiles);
    let mut server = options.with(&["--database", &url]).start();
    let session = server.session();
    let code = "echo ran >> log; echo > begun; until [ -e go ]; do sleep 0.01; done";
    let fields = json!({ "language": "shell", "code": code });
    let path = format!("/sessions/{session}/execute?wait=true");
    let ask = |server: &Server| {
        let call = server.posting(&path, &fields);
        call.header("Idempotency-Key", "once").send()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&server));
        server.until_file(&session, "begun");
        database.query(name, "ALTER TABLE results RENAME TO hidden");
        server.upload(&session, "go", b"x").json(200);
        first.join().unwrap().error(409, "Sandbox.StateConflict");
    });
    database.query(name, "ALTER TABLE hidden RENAME TO results");
    ask(&server).error(409, "Sandbox.StateConflict");
    assert_eq!(server.shell(&session, "cat log"), "ran");
    // Whoever starts next tells what became of it.
    server.stop();
    server.start();
    let result = ask(&server).json(200);
    assert_eq!(result["status"], "crashed", "{result:#}");
    assert_eq!(server.shell(&session, "cat log"), "ran");
}

fn a_database_that_is_killed_is_waited_for(mut database: Database) {
    let url = database.fresh_database();
    let options = Options::on(Storage::SqliteAndFiles);
    let server = options.with(&["--database", &url]).start();
    let mut crowd = Crowd::gather(&server);
    let session = server.session();
    let word = unlikely(4, 2);
    let code = format!("echo ran >> log; sleep {word}; echo 'the result'");
    let mut slow = String::new();
    let load = under_load(&server, &mut crowd, 100, |load| {
        let fields = json!({ "language": "shell", "code": code, "timeout": 300 });
        slow = server.submit(&session, fields);
        eventually("it runs", || {
            (!started_with(&word).is_empty()).then_some(())
        });
        database.kill();
        let health = server.stranger("GET", "/health").send();
        assert_eq!(health.status, 503, "{}", health.text());
        let health: Value = serde_json::from_slice(&health.body).unwrap();
        let part = &health["components"]["database"];
        assert_eq!(
            (&health["status"], &part["status"]),
            (&json!("unhealthy"), &json!("unhealthy"))
        );
        assert_eq!(server.stranger("GET", "/ready").send().status, 503);
        // It ends while nobody can write that down.
        eventually("it ends", || started_with(&word).is_empty().then_some(()));
        // Whoever's code has run waits for its result to be kept; who asks for more is told.
        let begin = Instant::now();
        let execute = format!("/sessions/{session}/execute");
        let more = json!({ "language": "shell", "code": "true" });
        let answer = server.posting(&execute, &more).send();
        load.note(Some(&session), answer, begin);
        database.restart();
        // And they go on.
        load.until_answered_more(CLIENTS);
    });
    for odd in load.odd() {
        assert!(odd.took < A_FEW_SECONDS, "{odd:?}");
        let error = odd.answer.error(503, "Sandbox.Unavailable");
        let told = error["description"].as_str().unwrap();
        assert!(told.contains("the database"), "{error}");
    }
    server.until(&slow, "completed");
    let result = server.get(&format!("/executions/{slow}/result")).json(200);
    assert_eq!(result["stdout"], "the result\n");
    assert_eq!(server.shell(&session, "cat log"), "ran");
    crowd.check(&server);
    let creating = server.get("/sessions?status=creating").json(200);
    assert_eq!(creating["total"], 0, "{creating:#}");
    // Before the database is.
    drop(server);
}

#[test]
fn postgres_that_is_killed_is_waited_for() {
    a_database_that_is_killed_is_waited_for(Database::postgres());
}

#[test]
fn mariadb_that_is_killed_is_waited_for() {
    a_database_that_is_killed_is_waited_for(Database::mariadb());
}
