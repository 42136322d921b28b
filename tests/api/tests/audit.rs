//! Who changed what is written down.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use jiff::Timestamp;
use sandbox_api_tests::{Options, Server, Storage, id_of, on_every_storage};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn records(page: &Value) -> Vec<Value> {
    page["records"].as_array().unwrap().clone()
}

on_every_storage! {
    fn the_audit_is_read_newest_first_and_a_page_at_a_time(server: &Server) {
        let begin = Timestamp::now();
        let made = server.post("/api-keys", &json!({ "name": "another's", "scope": "admin" })).json(201);
        let (key, secret) = (&made["key_id"], made["secret"].as_str().unwrap());
        let ask = |method: &str, path: &str, request: &str, body: Value| {
            let call = server.stranger(method, &format!("/api/v1{path}")).key(secret);
            call.header("X-Request-Id", request).json(&body).send()
        };
        let session = ask("POST", "/sessions", "the-session", json!({ "template_id": "python-basic" })).json(201);
        let session = id_of(&session);
        let template = json!({ "id": "audited", "name": "Audited", "image": "host" });
        ask("POST", "/templates", "the-template", template).json(201);
        // More than a page has that does not say.
        for number in 0..60 {
            ask("PUT", "/templates/audited", &format!("update-{number:02}"), json!({ "name": number.to_string() })).json(200);
        }
        ask("DELETE", &format!("/sessions/{session}"), "the-end-of-it", json!({})).json(200);

        let list = |query: &str| server.get(&format!("/audit?{query}")).json(200);
        let whole = list("limit=200");
        assert_eq!(names(&whole), ["next_cursor", "records", "total"].into());
        let all = records(&whole);
        assert_eq!((&whole["total"], &whole["next_cursor"]), (&json!(all.len()), &Value::Null));
        let updates = (0..60).rev().map(|number| ("template.update".to_owned(), "audited".to_owned(), format!("update-{number:02}")));
        let expected: Vec<_> = [("session.end".to_owned(), session.clone(), "the-end-of-it".to_owned())].into_iter()
            .chain(updates)
            .chain([
                ("template.create".to_owned(), "audited".to_owned(), "the-template".to_owned()),
                ("session.create".to_owned(), session.clone(), "the-session".to_owned()),
            ])
            .collect();
        let text = |record: &Value, field: &str| record[field].as_str().unwrap().to_owned();
        let by_key: Vec<_> = all.iter().filter(|record| record["key_id"] == *key).collect();
        let told: Vec<_> = by_key.iter()
            .map(|record| (text(record, "action"), text(record, "object"), text(record, "request_id")))
            .collect();
        assert_eq!(told, expected);
        let mut last = Timestamp::now();
        for record in &by_key {
            assert_eq!(names(record), ["action", "at", "detail", "key_id", "object", "request_id"].into());
            let at = text(record, "at").parse().unwrap();
            assert!((begin..=last).contains(&at), "{record:#}");
            last = at;
        }
        let made = by_key.last().unwrap();
        let expected = json!({ "template_id": "python-basic", "mode": "ephemeral", "forked_from": null });
        assert_eq!(made["detail"], expected);

        let usual = list("");
        assert_eq!((records(&usual), &usual["total"]), (all[..50].to_vec(), &whole["total"]));
        let some = list("limit=7&offset=3");
        assert_eq!((records(&some), &some["total"]), (all[3..10].to_vec(), &whole["total"]));
        assert_eq!(records(&list(&format!("offset={}", all.len()))), [Value::Null; 0]);
        let (mut page, mut seen) = (list("limit=25"), Vec::new());
        while let Some(cursor) = page["next_cursor"].as_str().map(str::to_owned) {
            assert_eq!(records(&page).len(), 25);
            seen.extend(records(&page));
            page = list(&format!("limit=25&cursor={cursor}"));
            assert_eq!(page["total"], whole["total"]);
        }
        seen.extend(records(&page));
        assert_eq!(seen, all);
        for (query, field) in [("limit=0", "limit"), ("limit=201", "limit"), ("offset=-1", "offset"), ("cursor=!", "cursor"),
            ("offset=1&cursor=x", "cursor"), ("action=session.end", "action")]
        {
            server.get(&format!("/audit?{query}")).invalid(field);
        }
    }
}

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
    server.upload(&session, "a.txt", b"a").expect(200);
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
