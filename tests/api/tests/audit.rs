//! Who changed what is written down.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Options, Storage};
use sandbox_test_servers::Database;
use serde_json::json;

#[test]
fn every_change_is_written_down_with_who_made_it_and_by_which_request() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let name = url.rsplit('/').next().unwrap().to_owned();
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--database", &url])
        .start();
    let call = |method: &str, path: &str| {
        let call = server.call(method, &format!("/api/v1{path}"));
        call.header("X-Request-Id", "req_0123456789abcdef").send()
    };
    let made = server.post("/api-keys", &json!({ "name": "other", "scope": "operate" }));
    let made = made.json(201);
    let key = made["key_id"].as_str().unwrap().to_owned();
    let session = server.session();
    server.upload(&session, "a.txt", b"a").expect(201);
    call("DELETE", &format!("/sessions/{session}/files/a.txt")).expect(204);
    server.shell(&session, "true");
    let endless =
        json!({ "language": "shell", "code": "echo > started; sleep 600", "timeout": 700 });
    let execution = server.submit(&session, endless);
    server.until_file(&session, "started");
    call("POST", &format!("/executions/{execution}/cancel")).expect(200);
    server
        .post(&format!("/sessions/{session}/renew"), &json!({}))
        .expect(200);
    call("POST", &format!("/sessions/{session}/pause")).expect(200);
    call("POST", &format!("/sessions/{session}/resume")).expect(200);
    call("POST", &format!("/sessions/{session}/fork")).expect(201);
    call("DELETE", &format!("/sessions/{session}")).expect(200);
    let template = json!({ "id": "mine", "name": "Mine", "image": "host" });
    server.post("/templates", &template).expect(201);
    server
        .put("/templates/mine", &json!({ "name": "My own" }))
        .expect(200);
    call("DELETE", "/templates/mine").expect(204);
    call("DELETE", &format!("/api-keys/{key}")).expect(204);
    let node = server.get("/nodes").json(200)["nodes"][0]["node_id"]
        .as_str()
        .unwrap()
        .to_owned();
    call("POST", &format!("/nodes/{node}/drain")).expect(200);

    let rows = |sql: &str| {
        let rows = database.query(&name, sql);
        rows.lines()
            .map(|row| row.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let actions = rows("SELECT DISTINCT action FROM audit ORDER BY action");
    let expected = [
        "execution.cancel",
        "execution.submit",
        "file.delete",
        "file.upload",
        "key.create",
        "key.revoke",
        "node.drain",
        "session.create",
        "session.end",
        "session.pause",
        "session.renew",
        "session.resume",
        "template.create",
        "template.delete",
        "template.update",
    ];
    assert_eq!(actions, expected);
    // The admin made them all; the requests that had a name are found by it.
    let keys = rows("SELECT DISTINCT key_id FROM audit");
    assert!(keys.len() == 1 && keys[0].starts_with("key_"), "{keys:?}");
    let named = rows("SELECT action FROM audit WHERE request_id = 'req_0123456789abcdef'");
    assert_eq!(named.len(), 9, "{named:?}");
    // To look changes nothing.
    let count = || rows("SELECT COUNT(*) FROM audit");
    let before = count();
    server.get("/sessions").expect(200);
    call("GET", &format!("/sessions/{session}")).expect(200);
    assert_eq!(count(), before);
}
