//! Servers on one database that lose each other: whose a node is, and what becomes of sessions whose node is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use sandbox_api_tests::{Options, Server, Storage, eventually, id_of};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

/// How long a server that was killed has its node.
const TENURE: Duration = Duration::from_secs(30);

/// A server on a database.
fn options(database: &str, arguments: &[&str]) -> Options {
    Options::on(Storage::SqliteAndFiles)
        .with(&["--database", database])
        .with(arguments)
}

/// Two servers on a database: the nodes `one` and `other`.
fn two(database: &str, arguments: &[&str]) -> (Server, Server) {
    let start = |node: &str| {
        let options = options(database, arguments);
        options.with(&["--node-id", node]).start()
    };
    (start("one"), start("other"))
}

/// What a database is called on its server.
fn name(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// What is said when it does not start.
#[track_caller]
fn refusal(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn status(server: &Server, session: &str) -> Value {
    let session = server.get(&format!("/sessions/{session}")).json(200);
    session["status"].clone()
}

/// Which node a server would be that is started so, and where that is said.
fn checked(start: &mut Command) -> (String, String) {
    let check = start.args(["--check", "--json"]).stdout(Stdio::piped());
    let output = check.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut settings = report["settings"].as_array().unwrap().iter();
    let node = settings.find(|it| it["setting"] == "node_id").unwrap();
    let text = |field: &str| node[field].as_str().unwrap().to_owned();
    (text("value"), text("from"))
}

#[test]
fn a_server_that_is_made_anew_on_its_data_is_the_same_node_whatever_its_machine_is_called() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let mut server = options(&url, &[]).called("first").start();
    let session = server.session();
    server.upload(&session, "diary", b"dear diary").json(200);
    server.stop();
    let kept = server.data().join("node.id");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "first\n");
    server.options = server.options.clone().called("second");
    let from = format!("{}:1", kept.display());
    assert_eq!(checked(&mut server.command()), ("first".to_owned(), from));
    server.start();
    let found = server.get(&format!("/sessions/{session}")).json(200);
    assert_eq!(found["runtime_node"], "first");
    assert_eq!(server.shell(&session, "cat diary"), "dear diary");
    assert_eq!(server.get("/nodes").json(200)["total"], 1);

    // Under another name nobody would find it: that is refused, before anything is touched.
    let expected = format!(
        "error: the data directory {0} is that of node first, not of second\n\
         hint: leave --node-id out, or remove {0}/node.id if the sessions of first may be lost\n",
        server.data().display()
    );
    for arguments in [
        &["--node-id", "second"][..],
        &["--node-id", "second", "--check"],
    ] {
        let output = server.command().args(arguments).output().unwrap();
        let said = refusal(&output);
        assert!(said.contains(&expected), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "first\n");
}

#[test]
fn before_its_first_start_a_server_would_be_called_as_its_machine_is_and_a_check_keeps_nothing() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    // On SQLite it needs no name.
    assert!(!server.data().join("node.id").exists());
    let elsewhere = server.base().join("elsewhere");
    let mut start = Command::new(server.command().get_program());
    let database = "postgres://ada@127.0.0.1:1/sandbox";
    start.args(["serve", "--database", database, "--data"]);
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let expected = (hostname.trim().to_owned(), "default".to_owned());
    assert_eq!(checked(start.arg(&elsewhere)), expected);
    assert!(!elsewhere.exists());
}

fn a_node_is_one_servers_at_a_time(database: &Database) {
    let url = database.fresh_database();
    let arguments = ["--node-id", "one"];
    let mut first = options(&url, &arguments).start();
    let session = first.session();
    let code = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 900 });
    let execution = first.submit(&session, code);
    first.until_file(&session, "begun");
    first.until(&execution, "running");
    let elsewhere = first.base().join("elsewhere");
    let second = Command::new(first.command().get_program())
        .args(["serve", "--bind", "127.0.0.1:0", "--database", &url])
        .args(arguments)
        .arg("--data")
        .arg(&elsewhere)
        .output()
        .unwrap();
    let said = refusal(&second);
    let expected = format!(
        "error: node one is that of another server, at http://{}\n\
         hint: end that server, or choose another name with --node-id; one that was killed has it for 30 seconds more\n",
        first.address()
    );
    assert!(said.contains(&expected), "{said}");
    assert_eq!(second.status.code(), Some(5));
    // A name that it could not have is not what it is called from now on.
    assert!(!elsewhere.join("node.id").exists());
    // What is the first one's goes on.
    let found = first.get(&format!("/executions/{execution}/status"));
    assert_eq!(found.json(200)["status"], "running");

    first.kill();
    let begin = Instant::now();
    first.start();
    let elapsed = begin.elapsed();
    assert!(elapsed < TENURE / 2, "{elapsed:?}");
    first.until(&execution, "crashed");
    assert_eq!(first.shell(&session, "ls"), "begun");
    // One that was told to end leaves its node to whoever comes next.
    first.stop();
    let begin = Instant::now();
    let next = options(&url, &arguments).start();
    let elapsed = begin.elapsed();
    assert!(elapsed < TENURE / 2, "{elapsed:?}");
    assert_eq!(next.get("/nodes").json(200)["nodes"][0]["status"], "online");
}

#[test]
fn a_node_is_one_servers_at_a_time_on_postgres() {
    a_node_is_one_servers_at_a_time(&Database::postgres());
}

#[test]
fn a_node_is_one_servers_at_a_time_on_mariadb() {
    a_node_is_one_servers_at_a_time(&Database::mariadb());
}

fn a_session_whose_node_is_gone_is_ended_at_any_other(database: &Database) {
    let url = database.fresh_database();
    let (mut one, other) = two(&url, &["--retention", "1s", "--reap-interval", "1s"]);
    let template = json!({ "id": "mine", "name": "Mine", "image": "host" });
    one.post("/templates", &template).json(201);
    let plain = one.session_with(json!({ "template_id": "mine" }));
    let asked = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": "ada" });
    let agents = id_of(&one.post("/sessions", &asked).json(201));
    one.upload(&agents, "diary", b"dear diary").json(200);
    one.stop();
    let away = "Sandbox.Unavailable";
    let renew = format!("/sessions/{plain}/renew");
    other.post(&renew, &json!({})).error(503, away);
    other.post("/sessions", &asked).error(503, away);
    other
        .delete("/templates/mine")
        .error(400, "Sandbox.InvalidParameter");
    for session in [&plain, &agents] {
        // A second time it has ended already.
        for _ in 0..2 {
            other.delete(&format!("/sessions/{session}")).json(200);
            assert_eq!(status(&other, session), "terminated");
        }
    }
    other.delete("/templates/mine").expect(204);
    // What its agent left is kept no longer than elsewhere.
    let next = eventually("a new workspace", || {
        let answer = other.post("/sessions", &asked);
        (answer.status == 201).then(|| answer.json(201))
    });
    assert_eq!(next["runtime_node"], "other");
    assert_eq!(other.shell(&id_of(&next), "ls -A"), "");

    one.start();
    for session in [&plain, &agents] {
        assert_eq!(status(&one, session), "terminated");
        eventually("its workspace is removed", || {
            let files = one.get(&format!("/sessions/{session}/files"));
            (files.status == 409).then_some(())
        });
    }
}

#[test]
fn a_session_whose_node_is_gone_is_ended_at_any_other_on_postgres() {
    a_session_whose_node_is_gone_is_ended_at_any_other(&Database::postgres());
}

#[test]
fn a_session_whose_node_is_gone_is_ended_at_any_other_on_mariadb() {
    a_session_whose_node_is_gone_is_ended_at_any_other(&Database::mariadb());
}

#[test]
fn sessions_of_a_node_that_was_stopped_expire_all_the_same() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let (mut one, other) = two(&url, &["--reap-interval", "1s"]);
    let (due, spared) = (one.session(), one.session());
    one.stop();
    let hour = "UPDATE sessions SET expires_at = expires_at - 3600000000";
    database.query(name(&url), &format!("{hour} WHERE id = '{due}'"));
    let ended = other.events(&due).until_status("timeout");
    assert_eq!(ended.data["detail"]["cause"], "expired");
    one.start();
    assert_eq!(status(&one, &due), "timeout");
    assert_eq!(one.shell(&spared, "echo there"), "there");
}

#[test]
fn those_who_watch_a_session_hear_that_its_node_is_lost() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let (mut one, other) = two(&url, &[]);
    let (ended, kept) = (one.session(), one.session());
    one.kill();
    // As if three of its beats had been missed.
    let missed =
        "UPDATE nodes SET last_heartbeat_at = last_heartbeat_at - 31000000 WHERE id = 'one'";
    database.query(name(&url), missed);
    for session in [&ended, &kept] {
        let lost = other.events(session).until("node_lost");
        assert_eq!(lost.data["detail"], json!({ "node_id": "one" }));
    }
    other.delete(&format!("/sessions/{ended}")).json(200);
    one.start();
    assert_eq!(status(&one, &ended), "terminated");
    assert_eq!(one.shell(&kept, "echo there"), "there");
}

#[test]
fn a_node_that_is_drained_gives_up_its_pool() {
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--pool", "python-basic=2"])
        .start();
    let until_raised = |count: usize| {
        let line = format!("sandbox_sessions_raised {count}");
        eventually(&line, || {
            let metrics = server.stranger("GET", "/metrics").send().text();
            metrics.lines().any(|it| it == line).then_some(())
        });
    };
    until_raised(2);
    server.post("/nodes/local/drain", &json!({})).json(200);
    until_raised(0);
}
