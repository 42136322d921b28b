//! Two servers on one database: each has sessions of its own, and any of them answers for all.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Barrier;

use sandbox_api_tests::{Answer, Call, Event, Events, Options, Server, Storage, eventually, id_of};
use sandbox_test_servers::Database;
use serde_json::{Value, json};

/// How many ask at once, half of them each server.
const AT_ONCE: usize = 8;

/// How often they do: not every time do two of them meet.
const ROUNDS: usize = 5;

/// Two servers on one database, and a key that both know.
struct Pair {
    one: Server,
    other: Server,
    key: String,
    /// What the database is called on its server.
    name: String,
}

impl Pair {
    fn on(database: &Database, arguments: &[&str]) -> Pair {
        let url = database.fresh_database();
        let start = |node: &str| {
            let options = Options::on(Storage::SqliteAndFiles).with(arguments);
            options
                .with(&["--database", &url, "--node-id", node])
                .start()
        };
        let (one, other) = (start("one"), start("other"));
        let named = json!({ "name": "both", "scope": "operate" });
        let made = one.post("/api-keys", &named).json(201);
        Pair {
            one,
            other,
            key: made["secret"].as_str().unwrap().to_owned(),
            name: url.rsplit('/').next().unwrap().to_owned(),
        }
    }

    fn call(&self, server: &Server, method: &str, path: &str) -> Call {
        let target = format!("/api/v1{path}");
        server.stranger(method, &target).key(&self.key)
    }

    fn get(&self, server: &Server, path: &str) -> Answer {
        self.call(server, "GET", path).send()
    }

    fn delete(&self, server: &Server, path: &str) -> Answer {
        self.call(server, "DELETE", path).send()
    }

    fn post(&self, server: &Server, path: &str, body: &Value) -> Answer {
        self.call(server, "POST", path).json(body).send()
    }

    /// Runs a shell script in a session, asking `server`.
    fn shell(&self, server: &Server, session: &str, script: &str) -> Answer {
        let path = format!("/sessions/{session}/execute?wait=true");
        let code = json!({ "language": "shell", "code": script });
        self.post(server, &path, &code)
    }

    fn events(&self, server: &Server, session: &str, after: Option<&str>) -> Events {
        let call = self.call(server, "GET", &format!("/sessions/{session}/events"));
        let call = match after {
            Some(id) => call.header("Last-Event-ID", id),
            None => call,
        };
        call.open().events()
    }

    /// Many ask both servers at once: who was answered with `status`, and what. All others must be told that they
    /// were not the first.
    fn at_once(&self, status: u16, ask: impl Fn(&Server) -> Answer + Sync) -> Vec<Value> {
        let start = Barrier::new(AT_ONCE);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let (start, ask) = (&start, &ask);
            let begin = |server| {
                scope.spawn(move || {
                    start.wait();
                    ask(server)
                })
            };
            let servers = [&self.one, &self.other].into_iter().cycle().take(AT_ONCE);
            let asking: Vec<_> = servers.map(begin).collect();
            let answered = asking.into_iter().map(|it| it.join().unwrap());
            answered.collect()
        });
        let (done, refused): (Vec<_>, Vec<_>) = answers
            .into_iter()
            .partition(|answer| answer.status == status);
        for answer in refused {
            answer.error(409, "Sandbox.StateConflict");
        }
        done.into_iter().map(|answer| answer.json(status)).collect()
    }

    /// How a node is, as `server` sees it.
    fn status(&self, server: &Server, node: &str) -> Value {
        let nodes = self.get(server, "/nodes").json(200);
        let mut nodes = nodes["nodes"].as_array().unwrap().iter();
        let node = nodes.find(|found| found["node_id"] == node).unwrap();
        node["status"].clone()
    }
}

/// On each database that servers can share.
macro_rules! on_both {
    ($(fn $promise:ident($database:ident: $kind:ty) $body:block)+) => {$(
        mod $promise {
            use super::*;

            fn holds_on($database: $kind) $body

            #[test]
            fn postgres() {
                holds_on(&Database::postgres());
            }

            #[test]
            fn mariadb() {
                holds_on(&Database::mariadb());
            }
        }
    )+};
}

on_both! {
    fn each_answers_for_the_other(database: &Database) {
        let pair = Pair::on(database, &[]);
        let Pair { one, other, .. } = &pair;
        // Also the one that was there first, and at once.
        for (host, asked, node) in [(one, other, "one"), (other, one, "other")] {
            let session = host.session();
            // What is in the records, any of them tells.
            let seen = pair.get(asked, &format!("/sessions/{session}")).json(200);
            assert_eq!((&seen["runtime_node"], &seen["status"]), (&json!(node), &json!("running")));
            // What needs the session itself is passed on.
            let result = pair.shell(asked, &session, "echo hello | tee said").json(200);
            assert_eq!(result["stdout"], "hello\n");
            let file = pair.get(asked, &format!("/sessions/{session}/files/said")).expect(200);
            assert_eq!(file.text(), "hello\n");
            let execution = result["execution_id"].as_str().unwrap();
            let again = pair.get(asked, &format!("/executions/{execution}/result")).json(200);
            assert_eq!(again, result);
            pair.delete(asked, &format!("/sessions/{session}")).json(200);
            assert_eq!(host.get(&format!("/sessions/{session}")).json(200)["status"], "terminated");
            // Errors come through as they are.
            pair.shell(asked, &session, "true").error(409, "Sandbox.StateConflict");
            assert_eq!(pair.status(asked, node), "online");
        }
    }

    fn a_server_that_is_killed_is_missed_and_welcome_when_it_comes_back(database: &Database) {
        let mut pair = Pair::on(database, &[]);
        let session = pair.one.session();
        let endless = |retry: bool| json!({
            "language": "shell", "code": format!("echo ran >> log; echo > begun-{retry}; sleep 600"), "timeout": 900, "retry": retry,
        });
        let executions = [false, true].map(|retry| {
            let execution = pair.one.submit(&session, endless(retry));
            pair.one.until_file(&session, &format!("begun-{retry}"));
            pair.one.until(&execution, "running");
            execution
        });
        pair.one.kill();
        // It may only be slow.
        assert_eq!(pair.status(&pair.other, "one"), "online");
        let error = pair.shell(&pair.other, &session, "true").error(503, "Sandbox.Unavailable");
        assert!(error["description"].as_str().unwrap().contains("node one"), "{error}");
        // As if three of its beats had been missed.
        let missed = "UPDATE nodes SET last_heartbeat_at = last_heartbeat_at - 31000000 WHERE id = 'one'";
        database.query(&pair.name, missed);
        eventually("somebody misses it", || (pair.status(&pair.other, "one") == "unhealthy").then_some(()));
        for execution in &executions {
            let crashed = eventually("its end", || {
                let found = pair.get(&pair.other, &format!("/executions/{execution}/status")).json(200);
                (found["status"] == "crashed").then_some(found)
            });
            assert!(crashed["error"].as_str().unwrap().contains("node"), "{crashed}");
        }
        let error = pair.shell(&pair.other, &session, "true").error(503, "Sandbox.Unavailable");
        assert!(error["description"].as_str().unwrap().contains("node one"), "{error}");
        // What does not need it goes on.
        assert_eq!(pair.get(&pair.other, &format!("/sessions/{session}")).json(200)["status"], "running");
        pair.other.session();

        pair.one.start();
        assert_eq!(pair.status(&pair.other, "one"), "online");
        // Each ran once, and was told of once.
        let result = pair.shell(&pair.other, &session, "wc -l < log").json(200);
        assert_eq!(result["stdout"], "2\n");
        let page = pair.get(&pair.other, &format!("/sessions/{session}/executions")).json(200);
        assert_eq!(page["total"], 3, "{page:#}");
        let last = result["execution_id"].as_str().unwrap();
        let told: Vec<_> = pair
            .events(&pair.other, &session, None)
            .filter(|event| event.name == "execution")
            .map(|event| event.data["detail"]["execution_id"].as_str().unwrap().to_owned())
            .take_while(|id| id != last)
            .collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(executions.iter().all(|execution| told.contains(execution)), "{told:?}");
    }

    fn an_agents_files_are_found_wherever_it_asks(database: &Database) {
        let mut pair = Pair::on(database, &[]);
        let asked = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": "ada" });
        let first = id_of(&pair.post(&pair.one, "/sessions", &asked).json(201));
        pair.one.upload(&first, "diary", b"dear diary").json(200);
        // Two at once are refused, wherever the second is asked for.
        pair.post(&pair.other, "/sessions", &asked).error(409, "Sandbox.StateConflict");
        pair.delete(&pair.other, &format!("/sessions/{first}")).json(200);
        let second = pair.post(&pair.other, "/sessions", &asked).json(201);
        assert_eq!(second["runtime_node"], "one");
        let second = id_of(&second);
        let file = pair.get(&pair.other, &format!("/sessions/{second}/files/diary")).expect(200);
        assert_eq!(file.text(), "dear diary");
        pair.delete(&pair.other, &format!("/sessions/{second}")).json(200);

        pair.one.stop();
        let error = pair.post(&pair.other, "/sessions", &asked).error(503, "Sandbox.Unavailable");
        assert!(error["description"].as_str().unwrap().contains("node one"), "{error}");
        // Whoever needs nothing of it does not miss it.
        let another = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": "eve" });
        assert_eq!(pair.post(&pair.other, "/sessions", &another).json(201)["runtime_node"], "other");
        pair.one.start();
        let third = id_of(&pair.post(&pair.other, "/sessions", &asked).json(201));
        let file = pair.get(&pair.other, &format!("/sessions/{third}/files/diary")).expect(200);
        assert_eq!(file.text(), "dear diary");
    }

    fn a_request_with_a_key_is_done_once_whoever_is_asked(database: &Database) {
        let pair = Pair::on(database, &[]);
        let send = |server: &Server, path: &str, body: &Value, status: u16| {
            let call = pair.call(server, "POST", path).json(body);
            call.header("Idempotency-Key", "once").send().json(status)
        };
        let asked = json!({ "template_id": "python-basic" });
        let made = [&pair.one, &pair.other].map(|server| send(server, "/sessions", &asked, 201));
        assert_eq!(made[0], made[1]);
        let path = format!("/sessions/{}/execute?wait=true", id_of(&made[0]));
        let code = json!({ "language": "shell", "code": "echo ran >> log; wc -l < log" });
        let ran = [&pair.other, &pair.one].map(|server| send(server, &path, &code, 200));
        assert_eq!(ran[0], ran[1]);
        assert_eq!(ran[0]["stdout"], "1\n");
    }

    fn a_key_leads_to_one_execution_though_both_are_asked_at_once(database: &Database) {
        let pair = Pair::on(database, &[]);
        for round in 0..ROUNDS {
            let host = [&pair.one, &pair.other][round % 2];
            let session = host.session();
            let path = format!("/sessions/{session}/execute?wait=true");
            let code = json!({ "language": "shell", "code": "echo ran >> log; wc -l < log" });
            let ask = |server: &Server| {
                let call = pair.call(server, "POST", &path).json(&code);
                call.header("Idempotency-Key", "once").send()
            };
            let ran = pair.at_once(200, ask);
            let first = ran.first().expect("one of them is answered");
            assert_eq!(first["stdout"], "1\n");
            assert!(ran.iter().all(|answer| answer == first), "{ran:#?}");
            for server in [&pair.one, &pair.other] {
                assert_eq!(ask(server).json(200), *first);
                let page = pair.get(server, &format!("/sessions/{session}/executions")).json(200);
                assert_eq!(page["total"], 1, "{page:#}");
            }
            assert_eq!(host.shell(&session, "cat log"), "ran");
        }
    }

    fn a_key_leads_to_one_session_though_both_are_asked_at_once(database: &Database) {
        let pair = Pair::on(database, &[]);
        let asked = json!({ "template_id": "python-basic" });
        for round in 0..ROUNDS {
            let ask = |server: &Server| {
                let call = pair.call(server, "POST", "/sessions").json(&asked);
                call.header("Idempotency-Key", format!("once-{round}")).send()
            };
            let made = pair.at_once(201, ask);
            let first = id_of(made.first().expect("one of them is answered"));
            assert!(made.iter().all(|answer| id_of(answer) == first), "{made:#?}");
            for server in [&pair.one, &pair.other] {
                assert_eq!(id_of(&ask(server).json(201)), first);
                let page = pair.get(server, "/sessions").json(200);
                assert_eq!(page["total"], round + 1, "{page:#}");
            }
        }
    }

    fn an_agent_has_one_session_though_both_are_asked_at_once(database: &Database) {
        let pair = Pair::on(database, &[]);
        for round in 0..ROUNDS {
            let agent = format!("agent-{round}");
            let asked = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent });
            // First it has a workspace nowhere, then on one of them.
            for time in 1..3 {
                let made = pair.at_once(201, |server| pair.post(server, "/sessions", &asked));
                assert_eq!(made.len(), 1, "{made:#?}");
                let session = id_of(&made[0]);
                for server in [&pair.one, &pair.other] {
                    let list = |query: &str| pair.get(server, &format!("/sessions?agent_id={agent}{query}")).json(200);
                    let running = list("&status=running");
                    assert_eq!((&running["total"], id_of(&running["sessions"][0])), (&json!(1), session.clone()));
                    // Nothing was begun for the others.
                    assert_eq!(list("")["total"], time);
                }
                assert_eq!(pair.shell(&pair.one, &session, "echo well").json(200)["stdout"], "well\n");
                pair.delete(&pair.other, &format!("/sessions/{session}")).json(200);
            }
        }
    }

    fn each_ends_its_own_sessions_and_each_session_ends_once(database: &Database) {
        let ending = ["--idle-timeout", "1s", "--reap-interval", "1s"];
        let pair = Pair::on(database, &ending);
        let servers = [&pair.one, &pair.other];
        let sessions: Vec<_> = (0..3).flat_map(|_| servers.map(Server::session)).collect();
        for session in &sessions {
            // Asked of one of them, whoever has it.
            pair.events(&pair.one, session, None).until_status("timeout");
        }
        for session in &sessions {
            let detail = "SELECT count(*) FROM session_notices WHERE kind = 'status' AND detail LIKE '%timeout%'";
            let mine = format!("{detail} AND session_id = '{session}'");
            assert_eq!(database.query(&pair.name, &mine).trim(), "1");
            let audit = format!("SELECT count(*) FROM audit WHERE action = 'session.end' AND object = '{session}'");
            assert_eq!(database.query(&pair.name, &audit).trim(), "1");
        }
    }

    fn events_of_one_are_heard_at_the_other_and_resumed_there(database: &Database) {
        let pair = Pair::on(database, &[]);
        let session = pair.one.session();
        let mut there = pair.events(&pair.other, &session, None);
        let ready = there.until_status("running");
        pair.shell(&pair.one, &session, "true").json(200);
        let ran = there.until("execution");
        drop(there);
        for _ in 0..3 {
            pair.shell(&pair.other, &session, "true").json(200);
        }
        pair.delete(&pair.one, &format!("/sessions/{session}")).json(200);
        let all: Vec<_> = until_the_end(pair.events(&pair.one, &session, None));
        for (server, after) in [(&pair.other, &ran), (&pair.one, &ran), (&pair.other, &ready)] {
            let rest = until_the_end(pair.events(server, &session, after.id.as_deref()));
            let place = all.iter().position(|event| event == after).unwrap();
            assert_eq!(rest, all[place + 1..]);
        }
    }
}

#[test]
fn nodes_are_listed_by_name_a_page_at_a_time() {
    let database = Database::postgres();
    let pair = Pair::on(&database, &[]);
    let list = |query: &str| pair.get(&pair.one, &format!("/nodes?{query}")).json(200);
    let first = list("limit=1");
    assert_eq!(
        (&first["nodes"][0]["node_id"], &first["total"]),
        (&json!("one"), &json!(2))
    );
    assert_eq!(first["nodes"].as_array().unwrap().len(), 1);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = list(&format!("limit=1&cursor={cursor}"));
    assert_eq!(
        (&second["nodes"][0]["node_id"], &second["next_cursor"]),
        (&json!("other"), &Value::Null)
    );
    assert_eq!(list("offset=1")["nodes"][0]["node_id"], "other");
}

#[test]
fn each_takes_from_its_own_pool() {
    let database = Database::postgres();
    let pair = Pair::on(&database, &[]);
    let asked = json!({ "template_id": "python-basic", "pool": "require" });
    for _ in 0..3 {
        for (server, node) in [(&pair.one, "one"), (&pair.other, "other")] {
            let session = eventually("a session of the pool", || {
                let answer = pair.post(server, "/sessions", &asked);
                (answer.status == 201).then(|| answer.json(201))
            });
            assert_eq!(session["runtime_node"], node);
            let session = id_of(&session);
            let first = pair.events(server, &session, None).next().unwrap();
            assert_eq!(first.data["detail"]["from_pool"], true);
            let ran = pair.shell(server, &session, "ls -A").json(200);
            assert_eq!(ran["stdout"], "");
        }
    }
}

/// Events up to the one that tells of the session's end.
fn until_the_end(events: Events) -> Vec<Event> {
    let mut all = Vec::new();
    for event in events {
        let is_last = event.data["detail"]["status"] == "terminated" && event.name == "status";
        all.push(event);
        if is_last {
            break;
        }
    }
    all
}
