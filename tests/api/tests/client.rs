//! The commands that speak to a server, as people and scripts use them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use sandbox_api_tests::{Form, Options, Server, Storage, beside, like, rows};
use sandbox_tests::{Running, finish};
use serde_json::{Value, json};

#[test]
fn a_session_is_made_looked_at_used_and_ended() {
    let server = Server::plain();
    let made = server
        .ask(["session", "create", "python-basic"])
        .succeeded();
    let id = made.out().trim_end().to_owned();
    assert!(like(Form::Session, &json!(id)), "{made}");
    assert!(made.err().contains(&format!("sandbox exec {id}")), "{made}");

    let listed = server.ask(["session", "list"]).succeeded();
    assert_eq!(
        rows(&listed)[0][..4],
        [id.as_str(), "python-basic", "running", "ephemeral"]
    );
    let shown = server.ask(["session", "get", &id]).succeeded();
    assert_eq!(beside(&shown, "Session"), id);
    assert_eq!(beside(&shown, "Status"), "running");
    assert_eq!(beside(&shown, "Network"), "none");
    let json = server
        .ask(["session", "get", &id, "--json"])
        .succeeded()
        .json();
    assert_eq!(
        json,
        server
            .get(&format!("/sessions/{id}"))
            .json(200)
            .with_uptime_of(&json)
    );

    let renewed = server.ask(["session", "renew", &id, "--timeout", "900", "--json"]);
    assert_eq!(renewed.succeeded().json()["timeout"], 900);
    assert!(
        server
            .ask(["session", "renew", &id])
            .succeeded()
            .err()
            .contains("lives until")
    );
    assert_eq!(
        server
            .ask(["session", "pause", &id, "--json"])
            .succeeded()
            .json()["status"],
        "paused"
    );
    server.ask(["session", "pause", &id]).failed(5);
    assert!(
        server
            .ask(["session", "resume", &id])
            .succeeded()
            .err()
            .contains("Resumed")
    );
    server.ask(["session", "resume", &id]).failed(5);

    server.shell(&id, "echo one > a.txt; mkdir empty");
    let fork = server.line(["session", "fork", &id]);
    assert_eq!(server.shell(&fork, "cat a.txt"), "one");
    let forked = server
        .ask(["session", "fork", &id, "--json"])
        .succeeded()
        .json();
    assert_eq!(forked["template_id"], "python-basic");

    let changes = server.ask(["session", "changes", &id]).succeeded();
    assert!(
        changes.out().contains("+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"),
        "{changes}"
    );
    assert!(changes.err().contains("empty"), "{changes}");
    assert_eq!(
        server
            .ask(["session", "changes", &id, "--files"])
            .succeeded()
            .out(),
        "A\ta.txt\nA\tempty\n"
    );
    let changes = server
        .ask(["session", "changes", &id, "--json"])
        .succeeded()
        .json();
    assert_eq!(
        (&changes["total"], &changes["truncated"]),
        (&json!(2), &json!(false))
    );

    let ended = server.ask(["session", "delete", &id, &fork]).succeeded();
    assert_eq!(ended.err().lines().count(), 2, "{ended}");
    let again = server
        .ask(["session", "rm", &id, "--json"])
        .succeeded()
        .json();
    assert_eq!(again["message"], format!("session {id} had ended already"));
    assert_eq!(
        beside(&server.ask(["session", "get", &id]).succeeded(), "Status"),
        "terminated"
    );
}

/// Two answers about the same session differ in how long it runs.
trait Uptime {
    fn with_uptime_of(self, other: &Value) -> Value;
}

impl Uptime for Value {
    fn with_uptime_of(mut self, other: &Value) -> Value {
        self["uptime_seconds"] = other["uptime_seconds"].clone();
        self
    }
}

#[test]
fn everything_that_a_session_can_be_asked_for_has_a_flag() {
    let server = Options::on(Storage::SqliteAndFiles);
    let roots = tempfile::Builder::new()
        .prefix("sandbox-test-roots.")
        .tempdir_in("/srv")
        .unwrap();
    let root = roots.path().to_str().unwrap();
    fs::write(roots.path().join("given.txt"), "given\n").unwrap();
    let server = server.with(&["--source-root", root]).start();
    let variables = server.file_beside("variables", b"# of all\nB=2\nC=three=3\n");
    let main = server.file_beside("main.py", b"print('hello')\n");
    let mut create = server.sandbox([
        "session",
        "create",
        "python-basic",
        "--timeout",
        "600",
        "--mode",
        "persistent",
        "--agent",
        "ada",
        "--cpu",
        "0.5",
        "--memory",
        "256Mi",
        "--disk",
        "2Gi",
        "--max-processes",
        "64",
        "--env",
        "A=1",
        "--env",
        "TOKEN",
        "--env-file",
        &variables,
        "--allow",
        "example.com:443",
        "--pool",
        "never",
        "--file",
        &format!("src/main.py={main}"),
        "--idempotency-key",
        "only-once",
        "--json",
    ]);
    let session = finish(create.env("TOKEN", "hunter2")).succeeded().json();
    let id = session["session_id"].as_str().unwrap();
    for (field, value) in [
        ("timeout", json!(600)),
        ("mode", json!("persistent")),
        ("agent_id", json!("ada")),
        (
            "resources",
            json!({ "cpu": "0.5", "memory": "256Mi", "disk": "2Gi", "max_processes": 64 }),
        ),
        (
            "env_vars",
            json!({ "A": "1", "B": "2", "C": "three=3", "TOKEN": "[redacted]" }),
        ),
        (
            "network",
            json!({ "enabled": true, "allow": ["example.com:443"] }),
        ),
    ] {
        assert_eq!(session[field], value, "{field}");
    }
    assert_eq!(
        server.shell(id, "cat src/main.py; echo $TOKEN"),
        "print('hello')\nhunter2"
    );
    // The same key is the same session.
    let again = finish(create.env("TOKEN", "hunter2")).succeeded().json();
    assert_eq!(again["session_id"], id);

    let found = |arguments: &[&str]| {
        let all = [&["session", "list", "--json"], arguments].concat();
        server.ask(all).succeeded().json()["total"].clone()
    };
    let copied = server.line([
        "session",
        "create",
        "python-basic",
        "--network",
        "--source",
        root,
    ]);
    assert_eq!(server.shell(&copied, "cat given.txt"), "given");
    assert_eq!(
        server.get(&format!("/sessions/{copied}")).json(200)["network"],
        json!({ "enabled": true, "allow": [] })
    );
    assert_eq!(found(&[]), 2);
    assert_eq!(found(&["--agent", "ada"]), 1);
    assert_eq!(found(&["--template", "nodejs-basic"]), 0);
    assert_eq!(found(&["--status", "running"]), 2);
    assert_eq!(found(&["--status", "paused"]), 0);
}

#[test]
fn lists_come_page_by_page_or_whole() {
    let server = Server::plain();
    let mut all: Vec<String> = (0..5).map(|_| server.session()).collect();
    all.reverse();
    let ids = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap();
        sessions
            .iter()
            .map(|session| session["session_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = server
        .ask(["session", "list", "--limit", "2", "--json"])
        .succeeded()
        .json();
    assert_eq!(ids(&first), all[..2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = server
        .ask([
            "session", "list", "--limit", "2", "--cursor", cursor, "--json",
        ])
        .succeeded()
        .json();
    assert_eq!(ids(&second), all[2..4]);
    let skipped = server
        .ask(["session", "list", "--limit", "2", "--offset", "3", "--json"])
        .succeeded()
        .json();
    assert_eq!(ids(&skipped), all[3..]);
    let whole = server
        .ask(["session", "list", "--limit", "2", "--all", "--json"])
        .succeeded()
        .json();
    assert_eq!(ids(&whole), all);
    assert_eq!(
        (&whole["total"], &whole["next_cursor"]),
        (&json!(5), &Value::Null)
    );
    let table = server.ask(["session", "list", "--limit", "2"]).succeeded();
    assert_eq!(rows(&table).len(), 2);
    assert!(table.err().contains("2 of 5 shown"), "{table}");
    server.ask(["session", "list", "--limit", "0"]).failed(1);
    server
        .ask(["session", "list", "--cursor", "x", "--offset", "1"])
        .failed(1);
}

#[test]
fn events_are_told_until_the_session_has_ended() {
    let server = Server::plain();
    let id = server.session();
    let mut watching = Running::start(&mut server.sandbox(["session", "events", &id, "--json"]));
    watching.wait_for(r#""status":"running""#);
    server.shell(&id, "true");
    watching.wait_for(r#""event":"execution""#);
    server.delete(&format!("/sessions/{id}")).expect(200);
    let told = watching.end().succeeded();
    let events: Vec<Value> = told
        .out()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["detail"]["status"], "creating");
    assert_eq!(events.last().unwrap()["detail"]["status"], "terminated");
    assert!(events.iter().all(|event| event["at"].is_string()), "{told}");

    // From one on; and of a session that has ended, to its end.
    let second = events[1]["id"].to_string();
    let rest = server
        .ask(["session", "events", &id, "--after", &second])
        .succeeded();
    assert_eq!(rest.out().lines().count(), events.len() - 2, "{rest}");
    let last = events.last().unwrap()["id"].to_string();
    assert_eq!(
        server
            .ask(["session", "events", &id, "--after", &last])
            .succeeded()
            .out(),
        ""
    );
    server
        .ask(["session", "events", "sess_0000000000000000"])
        .failed(2);
}

#[test]
fn templates_are_made_changed_and_deleted() {
    let server = Server::plain();
    let listed = server.ask(["template", "list"]).succeeded();
    assert_eq!(rows(&listed).len(), 3, "{listed}");
    let made = server.ask([
        "template",
        "create",
        "mine",
        "--name",
        "My own",
        "--image",
        "host",
        "--base-image",
        "debian:12",
        "--runtime",
        "local",
        "--package",
        "pip",
        "--package",
        "setuptools==1",
        "--user",
        "1000:1000",
        "--inactive",
        "--cpu",
        "2",
        "--memory",
        "1Gi",
        "--disk",
        "3Gi",
        "--max-processes",
        "99",
        "--json",
    ]);
    let made = made.succeeded().json();
    for (field, value) in [
        ("id", json!("mine")),
        ("name", json!("My own")),
        ("image", json!("host")),
        ("base_image", json!("debian:12")),
        ("runtime_type", json!("local")),
        (
            "default_resources",
            json!({ "cpu": "2", "memory": "1Gi", "disk": "3Gi", "max_processes": 99 }),
        ),
        ("pre_installed_packages", json!(["pip", "setuptools==1"])),
        (
            "security_context",
            json!({ "user": "1000:1000", "privileged": false }),
        ),
        ("is_active", json!(false)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    assert_eq!(
        server.ask(["template", "create", "mine"]).failed(5).out(),
        ""
    );
    assert_eq!(server.line(["template", "create", "plain"]), "plain");
    server
        .ask(["template", "create", "worse", "--privileged"])
        .failed(1);
    server
        .ask(["template", "create", "worse", "--user", "0:0"])
        .failed(1);
    server
        .ask(["template", "create", "worse", "--memory", "1"])
        .failed(1);
    server.ask(["session", "create", "mine"]).failed(1);

    let update = |arguments: &[&str]| {
        let all = [&["template", "update", "mine", "--json"], arguments].concat();
        server.ask(all).succeeded().json()
    };
    assert_eq!(
        update(&["--no-packages", "--active"])["pre_installed_packages"],
        json!([])
    );
    assert_eq!(update(&["--name", "Ours"])["name"], "Ours");
    assert_eq!(
        update(&["--package", "pip"])["pre_installed_packages"],
        json!(["pip"])
    );
    let changed = update(&["--memory", "2Gi", "--image", "host", "--user", "1000:1000"]);
    assert_eq!(
        changed["default_resources"],
        json!({ "cpu": "2", "memory": "2Gi", "disk": "3Gi", "max_processes": 99 })
    );
    assert_eq!(
        (&changed["name"], &changed["is_active"]),
        (&json!("Ours"), &json!(true))
    );
    server
        .ask(["template", "update", "mine", "--privileged"])
        .failed(1);
    let nothing = server.ask(["template", "update", "mine"]).failed(1);
    assert!(
        nothing
            .err()
            .contains("nothing of template mine is to change"),
        "{nothing}"
    );
    server
        .ask(["template", "update", "none", "--active"])
        .failed(2);

    assert_eq!(update(&["--inactive"])["is_active"], false);
    let count = |arguments: &[&str]| {
        let all = [&["template", "list", "--json"], arguments].concat();
        server.ask(all).succeeded().json()["total"].clone()
    };
    assert_eq!(
        (count(&[]), count(&["--include-inactive"])),
        (json!(4), json!(5))
    );
    assert_eq!(
        beside(
            &server.ask(["template", "get", "mine"]).succeeded(),
            "Active"
        ),
        "no"
    );
    assert_eq!(
        server
            .ask(["template", "get", "mine", "--json"])
            .succeeded()
            .json()["id"],
        "mine"
    );
    assert_eq!(
        server
            .ask(["template", "delete", "mine", "--json"])
            .succeeded()
            .json(),
        json!({ "id": "mine" })
    );
    server.ask(["template", "delete", "mine"]).failed(2);
    server.session();
    server.ask(["template", "rm", "python-basic"]).failed(1);

    // What a server starts with can be brought back.
    server
        .ask(["template", "delete", "nodejs-basic"])
        .succeeded();
    let before = server.get("/templates/python-datascience").json(200);
    server
        .ask(["template", "delete", "python-datascience"])
        .succeeded();
    assert_eq!(
        server.ask(["template", "seed"]).succeeded().out(),
        "python-datascience\nnodejs-basic\n"
    );
    let after = server.get("/templates/python-datascience").json(200);
    for field in [
        "name",
        "image",
        "default_resources",
        "pre_installed_packages",
        "security_context",
        "is_active",
    ] {
        assert_eq!(before[field], after[field], "{field}");
    }
    let seeded = server
        .ask(["template", "seed", "--json"])
        .succeeded()
        .json();
    let all = json!(["python-basic", "python-datascience", "nodejs-basic"]);
    assert_eq!(seeded, json!({ "created": [], "existing": all }));
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let server = Server::plain();
    let secret = server.line(["key", "create", "dashboard", "--scope", "read"]);
    server
        .call("GET", "/api/v1/sessions")
        .key(&secret)
        .send()
        .expect(200);
    let made = server
        .ask(["key", "create", "ci", "--scope", "operate", "--json"])
        .succeeded()
        .json();
    assert_eq!(
        (&made["name"], &made["scope"]),
        (&json!("ci"), &json!("operate"))
    );
    let id = made["key_id"].as_str().unwrap();

    // Into a file that nobody else can read, and that was not there before.
    let written = server
        .ask([
            "key", "create", "ops", "--scope", "admin", "--output", "ops.key",
        ])
        .succeeded();
    assert_eq!(written.out(), "");
    let file = server.base().join("ops.key");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    server
        .ask([
            "key", "create", "ops", "--scope", "admin", "--output", "ops.key",
        ])
        .failed(1);
    let used = |file: &str| server.ask(["key", "list", "--key-file", file]);
    let listed = used("ops.key").succeeded();
    assert_eq!(rows(&listed).len(), 3, "{listed}");
    assert!(!listed.out().contains(&secret));

    let read = server.file_beside("read.key", secret.as_bytes());
    assert!(used(&read).failed(3).err().contains("its scope is read"));
    server
        .ask(["session", "list", "--key-file", &read])
        .succeeded();
    server
        .ask([
            "key",
            "create",
            "more",
            "--scope",
            "read",
            "--output",
            "more.key",
            "--key-file",
            &read,
        ])
        .failed(3);
    assert!(!server.base().join("more.key").exists());
    assert_eq!(
        server
            .ask(["key", "revoke", id, "--json"])
            .succeeded()
            .json(),
        json!({ "key_id": id })
    );
    server
        .ask(["key", "revoke", "key_0000000000000000"])
        .failed(2);
    server
        .ask(["key", "create", "x", "--scope", "everything"])
        .failed(1);
    let keys = server.ask(["key", "list", "--json"]).succeeded().json();
    let revoked = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| !key["revoked_at"].is_null());
    assert_eq!(revoked.count(), 1);
}

#[test]
fn nodes_and_health_are_told() {
    let mut server = Server::plain();
    let nodes = server.ask(["node", "list"]).succeeded();
    assert_eq!(rows(&nodes)[0][0], "local");
    assert_eq!(
        server.ask(["node", "list", "--json"]).succeeded().json()["total"],
        1
    );

    // Nobody needs a key for it, and none is sent.
    let stranger = |arguments: &[&str]| {
        let url = format!("http://{}", server.address());
        let mut command = sandbox_api_tests::sandbox(server.base(), arguments);
        finish(command.env("SANDBOX_SERVER", url))
    };
    let health = stranger(&["health"]).succeeded();
    assert_eq!(rows(&health).len(), 3, "{health}");
    assert!(health.err().starts_with("healthy, version "), "{health}");
    assert_eq!(
        stranger(&["health", "--json"]).succeeded().json()["status"],
        "healthy"
    );
    assert_eq!(
        stranger(&["health", "--ready", "--json"])
            .succeeded()
            .json(),
        json!({ "ready": true })
    );
    assert!(
        stranger(&["health", "--metrics"])
            .succeeded()
            .out()
            .contains("# TYPE sandbox_")
    );

    assert_eq!(
        server
            .ask(["node", "drain", "local", "--json"])
            .succeeded()
            .json()["status"],
        "draining"
    );
    server.ask(["session", "create", "python-basic"]).failed(6);
    server.ask(["node", "drain", "elsewhere"]).failed(2);
    let address = server.address();
    server.stop();
    let mut asked = sandbox_api_tests::sandbox(server.base(), ["health"]);
    let told = finish(asked.env("SANDBOX_SERVER", format!("http://{address}"))).failed(1);
    assert!(
        told.err()
            .contains(&format!("cannot reach the server at http://{address}")),
        "{told}"
    );
}
