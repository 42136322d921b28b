//! Sessions: making, looking at, holding, copying and ending them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use sandbox_api_tests::process::{started_with, unlikely};
use sandbox_api_tests::{Form, Server, eventually, id_of, is_time, like, on_every_storage};
use serde_json::{Value, json};

/// Every field that a session has.
const FIELDS: [&str; 25] = [
    "agent_id",
    "container_id",
    "created_at",
    "env_vars",
    "error",
    "executor_url",
    "expires_at",
    "isolation",
    "last_activity_at",
    "limits_enforced",
    "mode",
    "network",
    "pod_name",
    "resources",
    "runtime_node",
    "runtime_type",
    "session_id",
    "started_at",
    "status",
    "template_id",
    "terminated_at",
    "timeout",
    "updated_at",
    "uptime_seconds",
    "workspace_path",
];

fn time(value: &Value) -> Timestamp {
    assert!(is_time(value), "{value}");
    value.as_str().unwrap().parse().unwrap()
}

fn lifetime(session: &Value) -> i64 {
    let (from, to) = (time(&session["created_at"]), time(&session["expires_at"]));
    to.duration_since(from).as_secs()
}

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn listed(page: &Value) -> Vec<String> {
    page["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(id_of)
        .collect()
}

/// A name that no other promise uses on the same server.
fn agent(purpose: &str) -> String {
    format!("agent of {purpose}")
}

/// Has code count in a session, and somebody sleep for `word` beside it: the execution.
fn counting(server: &Server, session: &str, word: &str) -> String {
    // Renamed, so that whoever reads it finds it whole.
    let code = format!(
        "sleep {word} & i=0; while true; do i=$((i+1)); echo $i > .tick; mv .tick tick; sleep 0.01; done"
    );
    let asked = json!({ "language": "shell", "code": code, "timeout": 600 });
    let execution = server.submit(session, asked);
    server.until_file(session, "tick");
    execution
}

/// How far it counted, as the sleeper beside it would read it: a session that stands still answers nobody.
fn counted(word: &str) -> u64 {
    let sleeper = eventually("somebody sleeps beside it", || started_with(word).pop());
    let tick = format!("/proc/{}/root/workspace/tick", sleeper.as_raw_nonzero());
    let text = std::fs::read_to_string(tick).unwrap();
    text.trim().parse().unwrap()
}

on_every_storage! {
    fn a_session_is_running_when_it_is_answered_and_has_every_field(server: &Server) {
        let asked = json!({
            "template_id": "nodejs-basic",
            "timeout": 90,
            "mode": "persistent",
            "agent_id": agent("every field"),
            "resources": { "cpu": "0.5", "memory": "256Mi", "disk": "2Gi", "max_processes": 64 },
            "env_vars": { "GREETING": "hello", "API_TOKEN": "sesame", "DB_PWD": "sesame", "SENTRY_DSN": "sesame" },
            "network": { "enabled": false, "allow": [] },
            "source": { "files": { "a/b.txt": "content" } },
        });
        let session = server.post("/sessions", &asked).json(201);
        assert_eq!(names(&session), FIELDS.into());
        assert!(like(Form::Session, &session["session_id"]), "{session:#}");
        let id = id_of(&session);
        for (field, value) in [
            ("template_id", json!("nodejs-basic")),
            ("status", json!("running")),
            ("mode", json!("persistent")),
            ("agent_id", json!(agent("every field"))),
            ("runtime_type", json!("local")),
            ("runtime_node", server.get("/nodes").json(200)["nodes"][0]["node_id"].clone()),
            ("pod_name", Value::Null),
            ("workspace_path", json!(format!("workspace/{id}"))),
            ("resources", asked["resources"].clone()),
            ("env_vars", json!({ "GREETING": "hello", "API_TOKEN": "[redacted]", "DB_PWD": "[redacted]", "SENTRY_DSN": "[redacted]" })),
            ("network", asked["network"].clone()),
            ("terminated_at", Value::Null),
            ("timeout", json!(90)),
            ("error", Value::Null),
        ] {
            assert_eq!(session[field], value, "{field}");
        }
        let limits = &session["limits_enforced"];
        assert_eq!(names(limits), ["cpu", "disk", "max_processes", "memory"].into());
        assert!(limits.as_object().unwrap().values().all(|limit| limit == true), "{limits}");
        let walls = &session["isolation"];
        let expected = ["between_executions", "between_sessions", "executor", "network"];
        assert_eq!(names(walls), expected.into());
        assert_eq!(walls["between_sessions"], "namespaces");
        for field in ["created_at", "started_at", "updated_at", "last_activity_at"] {
            assert!(is_time(&session[field]), "{field}: {session:#}");
        }
        assert_eq!(lifetime(&session), 90);
        assert!(session["uptime_seconds"].as_f64().unwrap() >= 0.0);

        let mut again = server.get(&format!("/sessions/{id}")).json(200);
        assert!(again["uptime_seconds"].as_f64() > session["uptime_seconds"].as_f64());
        again["uptime_seconds"] = session["uptime_seconds"].clone();
        assert_eq!(again, session);
    }

    fn a_session_that_asks_for_nothing_has_its_templates_defaults(server: &Server) {
        let session = server.post("/sessions", &json!({ "template_id": "python-basic" })).json(201);
        let expected = json!({ "cpu": "1", "memory": "512Mi", "disk": "1Gi", "max_processes": 128 });
        assert_eq!(session["resources"], expected);
        assert_eq!(session["mode"], "ephemeral");
        assert_eq!(session["timeout"], 300);
        assert_eq!(lifetime(&session), 300);
        assert_eq!(session["env_vars"], json!({}));
        assert_eq!(session["network"], json!({ "enabled": false, "allow": [] }));
        assert_eq!(session["agent_id"], Value::Null);
        assert_eq!(server.shell(&id_of(&session), "ls -A"), "");
    }

    fn a_session_that_ended_stays_ended(server: &Server) {
        let id = server.session_with(json!({ "source": { "files": { "kept": "as it was" } } }));
        let path = format!("/sessions/{id}");
        let message = server.delete(&path).json(200);
        assert_eq!(names(&message), ["message"].into());
        let ended = server.get(&path).json(200);
        assert_eq!(ended["status"], "terminated");
        assert!(time(&ended["terminated_at"]) >= time(&ended["started_at"]));
        let lived = time(&ended["terminated_at"]).duration_since(time(&ended["started_at"]));
        assert_eq!(ended["uptime_seconds"].as_f64().unwrap(), lived.as_secs_f64());

        let again = server.delete(&path).json(200);
        assert_eq!(names(&again), ["message"].into());
        assert_ne!(again, message, "it says that it had ended");
        assert_eq!(server.get(&path).json(200), ended);

        for (method, action, body) in [
            ("POST", "execute", json!({ "language": "shell", "code": "true" })),
            ("POST", "pause", json!({})),
            ("POST", "resume", json!({})),
            ("POST", "renew", json!({})),
        ] {
            let target = format!("/api/v1{path}/{action}");
            let answer = server.call(method, &target).json(&body).send();
            let error = answer.error(409, "Sandbox.StateConflict");
            assert!(error["error_detail"].as_str().unwrap().contains("terminated"), "{error}");
        }
        server.upload(&id, "new", b"x").error(409, "Sandbox.StateConflict");
        // Its files are still there.
        assert_eq!(server.get(&format!("{path}/files/kept")).expect(200).text(), "as it was");
        assert_eq!(server.get(&format!("{path}/changes")).json(200)["total"], 1);
        assert_eq!(server.get(&path).json(200)["status"], "terminated");
    }

    fn what_is_not_a_session_is_not_found(server: &Server) {
        let unknown = "sess_0000000000000000";
        let long = format!("sess_{}", "a".repeat(500));
        let ids = [unknown, "-", "sess_", "SESS_0000000000000000", "exec_20260101_00000000", "..", "%2e%2e"];
        let strange = ["sess_%00", "sess_'--", "%ff%fe", &long, "%F0%9F%98%80"];
        for id in ids.into_iter().chain(strange) {
            for (method, rest) in [
                ("GET", ""),
                ("DELETE", ""),
                ("POST", "/renew"),
                ("POST", "/pause"),
                ("POST", "/resume"),
                ("POST", "/fork"),
                ("GET", "/changes"),
                ("GET", "/events"),
                ("GET", "/executions"),
                ("GET", "/files"),
                ("GET", "/files/a"),
                ("DELETE", "/files/a"),
                ("GET", "/archive"),
            ] {
                let answer = server.call(method, &format!("/api/v1/sessions/{id}{rest}")).send();
                if id == "%ff%fe" {
                    answer.error(400, "Sandbox.InvalidParameter");
                } else {
                    let error = answer.error(404, "Sandbox.SessionNotFound");
                    assert!(error.to_string().len() < 1000, "{error}");
                }
            }
            let code = json!({ "language": "shell", "code": "true" });
            let target = format!("/api/v1/sessions/{id}/execute");
            let answer = server.call("POST", &target).json(&code).send();
            assert!([404, 400].contains(&answer.status), "{}", answer.text());
            let target = format!("/api/v1/sessions/{id}/files/upload");
            let answer = server.call("POST", &target).form(Some("a"), "a", b"a").send();
            assert!([404, 400].contains(&answer.status), "{}", answer.text());
        }
        let error = server.get(&format!("/sessions/{unknown}")).error(404, "Sandbox.SessionNotFound");
        assert!(error["description"].as_str().unwrap().contains(unknown));
    }

    fn a_session_lives_for_a_minute_to_an_hour(server: &Server) {
        for timeout in [60, 3600] {
            let asked = json!({ "template_id": "python-basic", "timeout": timeout });
            let session = server.post("/sessions", &asked).json(201);
            assert_eq!((session["timeout"].clone(), lifetime(&session)), (json!(timeout), timeout));
        }
        for timeout in [json!(59), json!(3601), json!(0), json!(-1), json!(60.5), json!("60"), json!(1u64 << 40)] {
            let asked = json!({ "template_id": "python-basic", "timeout": timeout });
            server.post("/sessions", &asked).invalid("timeout");
        }
    }

    fn resources_have_bounds(server: &Server) {
        for resources in [
            json!({ "cpu": "0.5", "memory": "256Mi", "disk": "1Gi", "max_processes": 32 }),
            json!({ "cpu": "4", "memory": "8Gi", "disk": "50Gi", "max_processes": 1024 }),
        ] {
            let asked = json!({ "template_id": "python-basic", "resources": resources });
            let session = server.post("/sessions", &asked).json(201);
            assert_eq!(session["resources"], resources);
        }
        for (field, values) in [
            ("cpu", [json!("0.499"), json!("4.001"), json!("-1"), json!("much"), json!("")]),
            ("memory", [json!("255Mi"), json!("8193Mi"), json!("0"), json!("1 elephant"), json!("-1Gi")]),
            ("disk", [json!("1023Mi"), json!("51Gi"), json!("99999999999999999999Gi"), json!("Gi"), json!("")]),
            ("max_processes", [json!(31), json!(1025), json!(-1), json!("64"), json!(1.5)]),
        ] {
            for value in values {
                let asked = json!({ "template_id": "python-basic", "resources": { field: value } });
                server.post("/sessions", &asked).invalid("resources");
            }
        }
        let asked = json!({ "template_id": "python-basic", "resources": { "gpu": 1 } });
        server.post("/sessions", &asked).invalid("gpu");
    }

    fn the_environment_has_bounds(server: &Server) {
        let with = |variables: Value| {
            let asked = json!({ "template_id": "python-basic", "env_vars": variables });
            server.post("/sessions", &asked)
        };
        let many = |count: usize| -> Value {
            (0..count).map(|number| (format!("V{number}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
        };
        let full = id_of(&with(many(64)).json(201));
        assert_eq!(server.shell(&full, "env | grep -c ^V"), "64");
        with(many(65)).invalid("env_vars");

        let value = "x".repeat(10 * 1024 - 1);
        let large = id_of(&with(json!({ "A": value })).json(201));
        assert_eq!(server.shell(&large, "printf %s \"$A\" | wc -c"), (10 * 1024 - 1).to_string());
        with(json!({ "A": format!("{value}x") })).invalid("env_vars");

        for name in ["", "1A", "A-B", "A B", "A=B", "Ä", "A\0", "SANDBOX_", "SANDBOX_TOKEN"] {
            with(json!({ name: "x" })).invalid("env_vars");
        }
        with(json!({ "A": "x\0y" })).invalid("env_vars");
        with(json!({ "A": 1 })).invalid("env_vars");
        let fine = id_of(&with(json!({ "_a1": "a b\n'\"$ü", "sandbox_x": "" })).json(201));
        assert_eq!(server.shell(&fine, "printf %s \"$_a1\""), "a b\n'\"$ü");
    }

    fn what_looks_secret_is_not_shown_but_is_there(server: &Server) {
        let secrets = ["MY_API_KEY", "github_token", "DB_PASSWORD", "PASSPHRASE", "Credential", "AUTHORIZATION"];
        let variables: serde_json::Map<_, _> =
            secrets.iter().map(|&name| (name.to_owned(), json!("open sesame"))).collect();
        let asked = json!({ "template_id": "python-basic", "env_vars": variables });
        let answer = server.post("/sessions", &asked).expect(201);
        assert!(!answer.text().contains("sesame"), "{}", answer.text());
        let id = id_of(&answer.json(201));
        let shown = server.get(&format!("/sessions/{id}")).expect(200).text();
        assert!(!shown.contains("sesame"), "{shown}");
        assert_eq!(server.shell(&id, "echo $DB_PASSWORD"), "open sesame");
        assert!(!server.log().contains("sesame"));
    }

    fn the_workspace_of_an_agent_is_reattached(server: &Server) {
        let mine = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent("reattach") });
        let first = id_of(&server.post("/sessions", &mine).json(201));
        server.shell(&first, "echo remembered > note; mkdir -p a/b; ln -s note link");
        let error = server.post("/sessions", &mine).error(409, "Sandbox.StateConflict");
        assert!(error["error_detail"].as_str().unwrap().contains(&first), "{error}");
        // One that is held still lives.
        server.post(&format!("/sessions/{first}/pause"), &json!({})).json(200);
        server.post("/sessions", &mine).error(409, "Sandbox.StateConflict");
        server.delete(&format!("/sessions/{first}")).json(200);

        let second = id_of(&server.post("/sessions", &mine).json(201));
        assert_ne!(first, second);
        assert_eq!(server.shell(&second, "cat link; ls -d a/b"), "remembered\na/b");
        let other = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent("another") });
        let other = id_of(&server.post("/sessions", &other).json(201));
        assert_eq!(server.shell(&other, "ls"), "");
        let short = json!({ "template_id": "python-basic", "agent_id": agent("reattach") });
        let short = id_of(&server.post("/sessions", &short).json(201));
        assert_eq!(server.shell(&short, "ls"), "");
        server.shell(&second, "echo more >> note");
        server.delete(&format!("/sessions/{second}")).json(200);
        let third = id_of(&server.post("/sessions", &mine).json(201));
        assert_eq!(server.shell(&third, "cat note"), "remembered\nmore");
        let kept = server.get(&format!("/sessions/{second}/files/note")).expect(200);
        assert_eq!(kept.text(), "remembered\nmore\n");
        server.delete(&format!("/sessions/{third}")).json(200);
    }

    fn a_persistent_session_is_somebodys(server: &Server) {
        let with = |agent: Value| {
            let asked = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent });
            server.post("/sessions", &asked)
        };
        with(Value::Null).invalid("agent_id");
        with(json!("")).invalid("agent_id");
        with(json!("  ")).invalid("agent_id");
        with(json!("a".repeat(129))).invalid("agent_id");
        with(json!("a".repeat(128))).json(201);
        let asked = json!({ "template_id": "python-basic", "mode": "eternal" });
        server.post("/sessions", &asked).invalid("mode");
    }

    fn two_sessions_of_one_agent_at_once_are_one(server: &Server) {
        let asked = json!({ "template_id": "python-basic", "mode": "persistent", "agent_id": agent("at once") });
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..4).map(|_| scope.spawn(|| server.post("/sessions", &asked))).collect();
            asking.into_iter().map(|asking| asking.join().unwrap()).collect()
        });
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(made, 1, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        for refused in answers.into_iter().filter(|answer| answer.status != 201) {
            refused.error(409, "Sandbox.StateConflict");
        }
    }

    fn a_workspace_starts_with_the_files_it_is_given(server: &Server) {
        let files = json!({
            "main.py": "print('hi')\n",
            "a/deep/er/file.txt": "deep",
            "name with spaces, ü and 'quotes\"": "strange",
            "empty": "",
        });
        let id = server.session_with(json!({ "source": { "files": files } }));
        assert_eq!(server.shell(&id, "python3 main.py; cat a/deep/er/file.txt"), "hi\ndeep");
        for (name, content) in files.as_object().unwrap() {
            let result = server.run_with(&id, json!({
                "language": "python",
                "code": "def handler(event):\n    return open(event).read()",
                "event": name,
            }));
            assert_eq!(result["return_value"], *content, "{name}");
        }
        for path in ["../out", "/etc/passwd", "a/../../b", "", ".", "..", "a\0b", &"a/".repeat(3000)] {
            let asked = json!({ "template_id": "python-basic", "source": { "files": { path: "x" } } });
            server.post("/sessions", &asked).invalid("source.files");
        }
        let large = json!({ "template_id": "python-basic", "source": { "files": { "a": "x".repeat((2 << 20) + 1) } } });
        server.post("/sessions", &large).invalid("source.files");
    }

    fn a_directory_outside_the_roots_is_refused_and_nothing_is_told_of_it(server: &Server) {
        let refusal = |source: Value| {
            let asked = json!({ "template_id": "python-basic", "source": source });
            let error = server.post("/sessions", &asked).invalid("source");
            error["error_detail"].as_str().unwrap().to_owned()
        };
        let missing = refusal(json!({ "directory": "/there/is/nothing" }));
        for directory in ["/", "/etc", "/etc/passwd", "/root", "relative", "", "/srv/../etc"] {
            assert_eq!(refusal(json!({ "directory": directory })), missing, "{directory}");
        }
        refusal(json!({ "directory": "/etc", "files": {} }));
        refusal(json!({}));
        refusal(json!({ "url": "https://example.org" }));
    }

    fn a_paused_session_stands_still_and_goes_on(server: &Server) {
        let (id, other) = (server.session(), server.session());
        let path = format!("/sessions/{id}");
        let (word, others) = (unlikely(6000, 1), unlikely(6000, 2));
        let ticker = counting(server, &id, &word);
        counting(server, &other, &others);
        let paused = server.post(&format!("{path}/pause"), &json!({})).json(200);
        assert_eq!(paused["status"], "paused");
        assert_eq!(server.get(&path).json(200)["status"], "paused");
        // While another one counts on.
        let (still, begin) = (counted(&word), counted(&others));
        eventually("the other counts on", || (counted(&others) > begin + 20).then_some(()));
        assert_eq!(counted(&word), still);
        server.delete(&format!("/sessions/{other}")).json(200);

        for (method, action, body) in [
            ("POST", "pause", json!({})),
            ("POST", "execute", json!({ "language": "shell", "code": "true" })),
            ("GET", "files/tick", json!({})),
            ("GET", "files", json!({})),
            ("GET", "archive", json!({})),
            ("DELETE", "files/tick", json!({})),
        ] {
            let target = format!("/api/v1{path}/{action}");
            let answer = server.call(method, &target).json(&body).send();
            let error = answer.error(409, "Sandbox.StateConflict");
            assert!(error.to_string().contains("paused"), "{action}: {error}");
        }
        server.upload(&id, "new", b"x").error(409, "Sandbox.StateConflict");
        server.until(&ticker, "running");
        assert_eq!(counted(&word), still);

        let resumed = server.post(&format!("{path}/resume"), &json!({})).json(200);
        assert_eq!(resumed["status"], "running");
        server.post(&format!("{path}/resume"), &json!({})).error(409, "Sandbox.StateConflict");
        // The same process goes on: it does not count from the beginning.
        let next = eventually("it counts on", || Some(counted(&word)).filter(|next| *next != still));
        assert!(next > still, "{next} after {still}");
        server.post(&format!("/executions/{ticker}/cancel"), &json!({})).json(200);

        server.post(&format!("{path}/pause"), &json!({})).json(200);
        server.delete(&path).json(200);
        assert_eq!(server.get(&path).json(200)["status"], "terminated");
    }

    fn a_renewed_session_lives_on(server: &Server) {
        let id = server.session_with(json!({ "timeout": 60 }));
        let before = server.get(&format!("/sessions/{id}")).json(200);
        let renew = |body: Value| server.post(&format!("/sessions/{id}/renew"), &body);
        let renewed = renew(json!({})).json(200);
        assert_eq!(renewed["timeout"], 60);
        assert!(time(&renewed["expires_at"]) > time(&before["expires_at"]));
        let renewed = renew(json!({ "timeout": 600 })).json(200);
        assert_eq!(renewed["timeout"], 600);
        let left = time(&renewed["expires_at"]).duration_since(time(&renewed["updated_at"]));
        assert_eq!(left.as_secs(), 600);
        renew(json!({ "timeout": 59 })).invalid("timeout");
        renew(json!({ "timeout": 3601 })).invalid("timeout");
        renew(json!({ "forever": true })).invalid("forever");
        renew(json!(null)).invalid("expected an object");
        // Nothing at all says as much as an empty object.
        server.call("POST", &format!("/api/v1/sessions/{id}/renew")).send().json(200);
    }

    fn a_fork_starts_as_a_copy_and_goes_its_own_way(server: &Server) {
        let id = server.session_with(json!({
            "source": { "files": { "shared": "from the start" } },
            "env_vars": { "GREETING": "hello" },
            "resources": { "max_processes": 77 },
            "timeout": 120,
        }));
        server.shell(&id, "echo before > note; chmod 700 note; ln -s note link; mkdir d; rm shared");
        let forked = server.post(&format!("/sessions/{id}/fork"), &json!({})).json(201);
        let fork = id_of(&forked);
        assert_ne!(fork, id);
        assert_eq!(forked["status"], "running");
        assert_eq!(forked["resources"]["max_processes"], 77);
        assert_eq!(forked["timeout"], 120);
        assert_eq!(forked["workspace_path"], format!("workspace/{fork}"));
        let seen = server.shell(&fork, "cat link; stat -c %a note; ls; echo $GREETING");
        assert_eq!(seen, "before\n700\nd\nlink\nnote\nhello");
        server.shell(&fork, "echo fork > note");
        server.shell(&id, "echo parent > note");
        assert_eq!(server.shell(&fork, "cat note"), "fork");
        assert_eq!(server.shell(&id, "cat note"), "parent");
        // What has ended can be forked for as long as its workspace is there.
        server.delete(&format!("/sessions/{id}")).json(200);
        let late = id_of(&server.post(&format!("/sessions/{id}/fork"), &json!({})).json(201));
        assert_eq!(server.shell(&late, "cat note"), "parent");
    }

    fn changes_tell_what_became_of_the_workspace(server: &Server) {
        let id = server.session();
        let changes = || server.get(&format!("/sessions/{id}/changes")).json(200);
        let none = changes();
        let expected = json!({ "changes": [], "total": 0, "diff": "", "not_in_diff": "", "truncated": false });
        assert_eq!(none, expected);
        server.shell(&id, "echo one > file; mkdir d; echo two > d/other");
        let some = changes();
        let paths: Vec<_> = some["changes"].as_array().unwrap().iter().map(|change| change["path"].clone()).collect();
        assert_eq!(paths, ["d", "d/other", "file"]);
        assert_eq!(some["total"], 3);
        let diff = some["diff"].as_str().unwrap();
        assert!(diff.contains("+++ b/file\n@@ -0,0 +1 @@\n+one\n"), "{diff}");
        assert!(diff.contains("+++ b/d/other\n"), "{diff}");
    }

    fn changes_of_a_deep_tree_are_cut_and_marked(server: &Server) {
        let id = server.session();
        // Their paths are hundreds of megabytes together.
        let nest = "import os\nfor _ in range(1500): os.mkdir('n' * 250); os.chdir('n' * 250)";
        server.shell(&id, &format!("python3 -c \"{nest}\""));
        let ask = || {
            let told = server.get(&format!("/sessions/{id}/changes")).json(200);
            assert_eq!(told["truncated"], true);
            let listed = told["changes"].as_array().unwrap();
            assert!(listed.len() > 100 && told["total"].as_u64().unwrap() > listed.len() as u64);
            let bytes: usize = listed.iter().map(|change| change["path"].as_str().unwrap().len()).sum();
            assert!(bytes <= 8 << 20, "{bytes}");
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            asked.into_iter().for_each(|asked| asked.join().unwrap());
        });
    }

    fn a_session_whose_asker_hangs_up_is_made_all_the_same(server: &Server) {
        let files: serde_json::Map<_, _> = (0..500).map(|n| (format!("file-{n}"), json!("content"))).collect();
        let agent = agent("hangs up");
        let asked = json!({
            "template_id": "python-basic", "agent_id": agent, "pool": "never", "source": { "files": files },
        });
        let connection = server.posting("/sessions", &asked).write().unwrap();
        let listed = || server.get(&format!("/sessions?agent_id={}", agent.replace(' ', "%20"))).json(200);
        eventually("it is begun", || (listed()["total"] == 1).then_some(()));
        drop(connection);
        eventually("it is made", || (listed()["sessions"][0]["status"] == "running").then_some(()));
    }

    fn lists_are_pages_newest_first(server: &Server) {
        let agent = agent("pages");
        let ids: Vec<String> =
            (0..5).map(|_| server.session_with(json!({ "agent_id": agent }))).collect();
        let newest: Vec<String> = ids.iter().rev().cloned().collect();
        let agent = agent.replace(' ', "+");
        let list = |query: &str| server.get(&format!("/sessions?agent_id={agent}&{query}")).json(200);

        let all = list("");
        assert_eq!(names(&all), ["next_cursor", "sessions", "total"].into());
        assert_eq!((listed(&all), &all["total"], &all["next_cursor"]), (newest.clone(), &json!(5), &Value::Null));
        let first = list("limit=2");
        assert_eq!((listed(&first), &first["total"]), (newest[..2].to_vec(), &json!(5)));
        let second = list("limit=2&offset=2");
        assert_eq!((listed(&second), &second["total"]), (newest[2..4].to_vec(), &json!(5)));
        assert_eq!(listed(&list("offset=4")), newest[4..]);
        assert_eq!(listed(&list("offset=5")), [""; 0]);
        assert_eq!(listed(&list("limit=200&offset=4294967295")), [""; 0]);

        // By cursors, while another one is made: each is there once.
        let late = server.session_with(json!({ "agent_id": agent.replace('+', " ") }));
        let (mut page, mut seen) = (first, Vec::new());
        loop {
            seen.extend(listed(&page));
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            page = list(&format!("limit=2&cursor={cursor}"));
            assert_eq!(page["total"], 6);
        }
        assert_eq!(seen, newest);
        server.delete(&format!("/sessions/{late}")).json(200);
    }

    fn lists_are_filtered(server: &Server) {
        let agent = "filter-agent";
        let running = server.session_with(json!({ "agent_id": agent }));
        let ended = server.session_with(json!({ "agent_id": agent, "template_id": "nodejs-basic" }));
        server.delete(&format!("/sessions/{ended}")).json(200);
        let list = |query: &str| listed(&server.get(&format!("/sessions?agent_id={agent}&{query}")).json(200));
        assert_eq!(list("status=running"), std::slice::from_ref(&running));
        assert_eq!(list("status=terminated"), std::slice::from_ref(&ended));
        assert_eq!(list("status=failed"), [""; 0]);
        assert_eq!(list("template_id=nodejs-basic"), std::slice::from_ref(&ended));
        assert_eq!(list("template_id=nodejs-basic&status=running"), [""; 0]);
        assert_eq!(list("template_id=not-there"), [""; 0]);
        for (query, field) in [
            ("status=asleep", "status"),
            ("template_id=a%20b", "template_id"),
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=-1", "limit"),
            ("limit=many", "limit"),
            ("offset=-1", "offset"),
            ("offset=x", "offset"),
            ("cursor=", "cursor"),
            ("cursor=nonsense", "cursor"),
            ("cursor=AAAA", "cursor"),
            ("offset=1&cursor=AAAA", "cursor"),
        ] {
            server.get(&format!("/sessions?{query}")).invalid(field);
        }
    }

    fn a_session_is_made_once_for_an_idempotency_key(server: &Server) {
        let agent = "idempotent-agent";
        let asked = json!({ "template_id": "python-basic", "agent_id": agent });
        let with = |key: &str, body: &Value| server.posting("/sessions", body).header("Idempotency-Key", key).send();
        let first = with("key-of-sessions", &asked).json(201);
        let again = with("key-of-sessions", &asked).json(201);
        assert_eq!(again, first);
        let count = || server.get(&format!("/sessions?agent_id={agent}")).json(200)["total"].clone();
        assert_eq!(count(), 1);
        let other = json!({ "template_id": "python-basic", "agent_id": agent, "timeout": 61 });
        with("key-of-sessions", &other).error(409, "Sandbox.StateConflict");
        assert_eq!(count(), 1);
        with("another-key-of-sessions", &asked).json(201);
        assert_eq!(count(), 2);
        // What failed is not remembered.
        let bad = json!({ "template_id": "not-there-yet", "agent_id": agent });
        with("key-of-a-failure", &bad).error(404, "Sandbox.TemplateNotFound");
        with("key-of-a-failure", &asked).json(201);
        for key in ["", " ", "ä", &"k".repeat(129)] {
            with(key, &asked).invalid("Idempotency-Key");
        }
        with(&"k".repeat(128), &asked).json(201);
    }

    fn the_same_request_at_once_is_done_once(server: &Server) {
        let agent = "impatient-agent";
        let asked = json!({ "template_id": "python-basic", "agent_id": agent });
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| server.posting("/sessions", &asked).header("Idempotency-Key", "at-once").send()))
                .collect();
            asking.into_iter().map(|asking| asking.join().unwrap()).collect()
        });
        let mut made = BTreeSet::new();
        for answer in answers {
            match answer.status {
                201 => drop(made.insert(id_of(&answer.json(201)))),
                _ => drop(answer.error(409, "Sandbox.StateConflict")),
            }
        }
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(server.get(&format!("/sessions?agent_id={agent}")).json(200)["total"], 1);
    }

    fn a_session_needs_a_template_that_is_there_active_and_for_this_runtime(server: &Server) {
        let with = |template: &str| server.post("/sessions", &json!({ "template_id": template }));
        let error = with("not-there").error(404, "Sandbox.TemplateNotFound");
        assert!(error["solution"].as_str().unwrap().contains("template"), "{error}");
        with("a b").invalid("template_id");
        with("").invalid("template_id");
        server.post("/sessions", &json!({})).invalid("template_id");
        server.post("/templates", &json!({ "id": "retired", "name": "Old", "image": "host", "is_active": false })).json(201);
        with("retired").invalid("template_id");
        let docker = json!({ "id": "for-docker", "name": "Docker", "image": "python:3", "runtime_type": "docker" });
        server.post("/templates", &docker).json(201);
        with("for-docker").invalid("template_id");
    }

    fn the_network_is_asked_for_by_host_and_port(server: &Server) {
        let with = |network: Value| server.post("/sessions", &json!({ "template_id": "python-basic", "network": network }));
        with(json!({ "enabled": false, "allow": ["example.org:443"] })).invalid("network.allow");
        for entry in ["example.org", "example.org:", "example.org:0", "example.org:65536", ":443", "a b:1", "http://a:1", ""] {
            with(json!({ "enabled": true, "allow": [entry] })).invalid("network.allow");
        }
        with(json!({ "enabled": true, "allow": vec!["example.org:443"; 65] })).invalid("network.allow");
        with(json!({ "enabled": "yes" })).invalid("network.enabled");
        let session = with(json!({ "enabled": true, "allow": ["example.org:443"] })).json(201);
        assert_eq!(session["network"], json!({ "enabled": true, "allow": ["example.org:443"] }));
    }

    fn events_tell_everything_and_are_resumed_with_nothing_missed(server: &Server) {
        let id = server.session();
        let mut watch = server.events(&id);
        let creating = watch.until_status("creating");
        let running = watch.until_status("running");
        let number = |event: &sandbox_api_tests::Event| event.id.as_deref().unwrap().parse::<i64>().unwrap();
        assert!(number(&creating) < number(&running));
        assert!(is_time(&running.data["at"]), "{running:?}");

        // While this one is away, much happens.
        drop(watch);
        let execution = server.submit(&id, json!({ "language": "shell", "code": "true" }));
        server.until(&execution, "completed");
        server.post(&format!("/sessions/{id}/renew"), &json!({})).json(200);
        server.post(&format!("/sessions/{id}/pause"), &json!({})).json(200);
        server.post(&format!("/sessions/{id}/resume"), &json!({})).json(200);
        let target = format!("/api/v1/sessions/{id}/events");
        let after = |last: &str| server.call("GET", &target).header("Last-Event-ID", last).open().events();
        let mut resumed = after(running.id.as_deref().unwrap());
        let mut seen: Vec<_> = Vec::new();
        while seen.len() < 4 {
            seen.push(resumed.next().unwrap());
        }
        let names: Vec<_> = seen.iter().map(|event| {
            (event.name.as_str(), event.data["detail"]["status"].as_str().unwrap_or_default().to_owned())
        }).collect();
        let expected = [("execution", "completed"), ("renewed", ""), ("status", "paused"), ("status", "running")];
        assert_eq!(names, expected.map(|(name, status)| (name, status.to_owned())));
        assert_eq!(seen[0].data["detail"]["execution_id"], execution);
        assert!(seen.windows(2).all(|pair| number(&pair[0]) < number(&pair[1])), "{seen:?}");

        // And what is still to come, at once.
        let begin = std::time::Instant::now();
        server.delete(&format!("/sessions/{id}")).json(200);
        let ended = resumed.until_status("terminated");
        assert!(begin.elapsed() < Duration::from_secs(5));
        // After the last one comes nothing but what is new.
        let mut last = after(ended.id.as_deref().unwrap());
        let fork = id_of(&server.post(&format!("/sessions/{id}/fork"), &json!({})).json(201));
        let next = last.next().unwrap();
        assert_eq!((next.name.as_str(), &next.data["detail"]), ("forked", &json!({ "forked_to": fork })));

        for last in ["x", "-1", "1.5", ""] {
            server.call("GET", &target).header("Last-Event-ID", last).send().invalid("Last-Event-ID");
        }
    }
}
