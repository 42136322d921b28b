//! Two servers on one database: each has sessions of its own, and any of them answers for all.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Answer, Options, Server, Storage};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

/// Two servers on one database, and a key that both know.
fn pair(database: &Database) -> (Server, Server, String) {
    let url = database.fresh_database();
    let start = |node: &str| {
        let options = Options::on(Storage::SqliteAndFiles);
        options
            .with(&["--database", &url, "--node-id", node])
            .start()
    };
    let (one, other) = (start("one"), start("other"));
    let made = one
        .post("/api-keys", &json!({ "name": "both", "scope": "operate" }))
        .json(201);
    let key = made["secret"].as_str().unwrap().to_owned();
    (one, other, key)
}

fn ask(server: &Server, key: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let call = server.stranger(method, &format!("/api/v1{path}")).key(key);
    match body {
        Some(body) => call.json(body).send(),
        None => call.send(),
    }
}

fn each_answers_for_the_other(database: &Database) {
    let (one, other, key) = pair(database);
    let session = one.session();
    // What is in the records, any of them tells.
    let seen = ask(&other, &key, "GET", &format!("/sessions/{session}"), None).json(200);
    assert_eq!(
        (&seen["runtime_node"], &seen["status"]),
        (&json!("one"), &json!("running"))
    );
    // What needs the session itself is passed on.
    let code = json!({ "language": "shell", "code": "echo hello | tee said" });
    let path = format!("/sessions/{session}/execute?wait=true");
    let result = ask(&other, &key, "POST", &path, Some(&code)).json(200);
    assert_eq!(result["stdout"], "hello\n");
    let file = ask(
        &other,
        &key,
        "GET",
        &format!("/sessions/{session}/files/said"),
        None,
    )
    .expect(200);
    assert_eq!(file.text(), "hello\n");
    let execution = result["execution_id"].as_str().unwrap();
    let again = ask(
        &other,
        &key,
        "GET",
        &format!("/executions/{execution}/result"),
        None,
    )
    .json(200);
    assert_eq!(again, result);
    ask(
        &other,
        &key,
        "DELETE",
        &format!("/sessions/{session}"),
        None,
    )
    .json(200);
    assert_eq!(
        one.get(&format!("/sessions/{session}")).json(200)["status"],
        "terminated"
    );
    // Errors come through as they are.
    let path = format!("/sessions/{session}/execute");
    ask(&other, &key, "POST", &path, Some(&code)).error(409, "Sandbox.StateConflict");
    let nodes = ask(&other, &key, "GET", "/nodes", None).json(200);
    let names: Vec<_> = nodes["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["node_id"])
        .collect();
    assert_eq!(names, ["one", "other"]);
}

#[test]
fn each_answers_for_the_other_on_postgres() {
    each_answers_for_the_other(&Database::postgres());
}

#[test]
fn each_answers_for_the_other_on_mariadb() {
    each_answers_for_the_other(&Database::mariadb());
}

#[test]
fn a_server_that_is_gone_is_told_of() {
    let database = Database::postgres();
    let (mut one, other, key) = pair(&database);
    let session = one.session();
    one.stop();
    let code = json!({ "language": "shell", "code": "true" });
    let path = format!("/sessions/{session}/execute");
    ask(&other, &key, "POST", &path, Some(&code)).error(503, "Sandbox.Unavailable");
    // It comes back, and finds its session as it left it.
    one.start();
    let path = format!("/sessions/{session}/execute?wait=true");
    ask(&other, &key, "POST", &path, Some(&code)).json(200);
}

#[test]
fn a_key_that_is_used_once_runs_once_whoever_is_asked() {
    let database = Database::postgres();
    let (one, other, key) = pair(&database);
    let session = one.session();
    let path = format!("/api/v1/sessions/{session}/execute?wait=true");
    let code = json!({ "language": "shell", "code": "echo ran >> log; wc -l < log" });
    let send = |server: &Server| {
        let call = server.stranger("POST", &path).key(&key).json(&code);
        call.header("Idempotency-Key", "once").send().json(200)
    };
    let (first, second) = (send(&one), send(&other));
    assert_eq!(first, second);
    assert_eq!(first["stdout"], "1\n");
}
