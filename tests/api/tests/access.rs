//! Who may ask, how often, and what is said to those who may not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sandbox_api_tests::{Answer, Options, Server, Storage, is_time, on_every_storage, pause};
use serde_json::{Value, json};

/// What a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    Nothing,
    Read,
    Operate,
    Admin,
}
use Needs::{Admin, Nothing, Operate, Read};

/// Every route, and what it needs.
const ROUTES: [(&str, &str, Needs); 45] = [
    ("POST", "/api/v1/sessions", Operate),
    ("GET", "/api/v1/sessions", Read),
    ("GET", "/api/v1/sessions/SESSION", Read),
    ("DELETE", "/api/v1/sessions/SESSION", Operate),
    ("POST", "/api/v1/sessions/SESSION/renew", Operate),
    ("POST", "/api/v1/sessions/SESSION/pause", Operate),
    ("POST", "/api/v1/sessions/SESSION/resume", Operate),
    ("POST", "/api/v1/sessions/SESSION/fork", Operate),
    ("GET", "/api/v1/sessions/SESSION/changes", Read),
    ("POST", "/api/v1/sessions/SESSION/promote", Operate),
    ("GET", "/api/v1/sessions/SESSION/events", Read),
    ("POST", "/api/v1/sessions/SESSION/execute", Operate),
    ("GET", "/api/v1/sessions/SESSION/executions", Read),
    ("GET", "/api/v1/executions/EXECUTION", Read),
    ("GET", "/api/v1/executions/EXECUTION/status", Read),
    ("GET", "/api/v1/executions/EXECUTION/result", Read),
    ("POST", "/api/v1/executions/EXECUTION/cancel", Operate),
    ("POST", "/api/v1/sessions/SESSION/files/upload", Operate),
    ("GET", "/api/v1/sessions/SESSION/files/upload", Read),
    ("DELETE", "/api/v1/sessions/SESSION/files/upload", Operate),
    ("GET", "/api/v1/sessions/SESSION/files/a/b", Read),
    ("DELETE", "/api/v1/sessions/SESSION/files/a/b", Operate),
    ("GET", "/api/v1/sessions/SESSION/files", Read),
    ("GET", "/api/v1/sessions/SESSION/archive", Read),
    ("GET", "/api/v1/sessions/SESSION/terminal", Operate),
    ("GET", "/api/v1/sessions/SESSION/ports/8000", Operate),
    ("GET", "/api/v1/sessions/SESSION/ports/8000/", Operate),
    ("GET", "/api/v1/sessions/SESSION/ports/8000/a/b", Operate),
    ("POST", "/api/v1/sessions/SESSION/ports/8000/a/b", Operate),
    ("POST", "/api/v1/templates", Admin),
    ("GET", "/api/v1/templates", Read),
    ("GET", "/api/v1/templates/TEMPLATE", Read),
    ("PUT", "/api/v1/templates/TEMPLATE", Admin),
    ("DELETE", "/api/v1/templates/TEMPLATE", Admin),
    ("GET", "/api/v1/nodes", Read),
    ("POST", "/api/v1/nodes/NODE/drain", Admin),
    ("POST", "/api/v1/api-keys", Admin),
    ("GET", "/api/v1/api-keys", Admin),
    ("DELETE", "/api/v1/api-keys/KEY", Admin),
    ("GET", "/api/v1/audit", Admin),
    ("GET", "/health", Nothing),
    ("GET", "/ready", Nothing),
    ("GET", "/metrics", Nothing),
    ("GET", "/api/v1/openapi.json", Nothing),
    ("GET", "/api/v1/docs", Nothing),
];

/// What the description of the API tells of: every method and path, written as above, and what it needs.
fn described() -> Vec<(String, String, Needs)> {
    let path = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests")
        + "/../../openapi/sandbox.json";
    let text = std::fs::read_to_string(path).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method, path, &operation["security"]))
    });
    operations
        .map(|(method, path, security)| {
            let needed = [Nothing, Read, Operate, Admin].into_iter().find(|needed| {
                let requirement = match needed {
                    Nothing => json!({}),
                    scope => json!({ "api_key": [format!("{scope:?}").to_lowercase()] }),
                };
                *security == json!([requirement])
            });
            let needed = needed.unwrap_or_else(|| panic!("{method} {path}: {security}"));
            let path = path
                .replace("{session_id}", "SESSION")
                .replace("{execution_id}", "EXECUTION")
                .replace("{template_id}", "TEMPLATE")
                .replace("{node_id}", "NODE")
                .replace("{key_id}", "KEY")
                .replace("{port}", "8000")
                .replace("{path}", "a/b");
            (method.to_uppercase(), path, needed)
        })
        .collect()
}

#[test]
fn every_route_that_is_described_is_asked_here_and_needs_what_is_told() {
    let described = described();
    assert!(described.len() > 30, "{described:?}");
    for (method, path, told) in described {
        let mut routes = ROUTES.into_iter();
        let route = routes.find(|(listed, at, _)| *listed == method && *at == path);
        let (.., needed) = route.unwrap_or_else(|| panic!("nobody asks {method} {path}"));
        assert_eq!(needed, told, "{method} {path}");
    }
}

/// The same, with identifiers of nothing that is there.
fn target(path: &str) -> String {
    path.replace("SESSION", "sess_0000000000000000")
        .replace("EXECUTION", "exec_20260101_00000000")
        .replace("TEMPLATE", "no-template")
        .replace("NODE", "no-node")
        .replace("KEY", "key_0000000000000000")
}

/// Makes a key: its identifier and secret.
#[track_caller]
fn key(server: &Server, scope: &str) -> (String, String) {
    let made = server
        .post(
            "/api-keys",
            &json!({ "name": format!("a {scope} key"), "scope": scope }),
        )
        .json(201);
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("key_id"), text("secret"))
}

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// A cursor as the server writes them, to a record that no list has.
fn forged(list: &str, id: &str) -> String {
    let inner = format!("{list}\n0\n{id}");
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let sum = inner.bytes().fold(0x811c_9dc5, mix);
    let bytes = inner.bytes().chain(sum.to_be_bytes());
    let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    format!("c1{digits}")
}

/// Waits as a stranger who is told to, and gives the answer after that.
fn patiently(ask: impl Fn() -> Answer) -> Answer {
    loop {
        let answer = ask();
        if answer.status != 429 {
            return answer;
        }
        pause(Duration::from_millis(60));
    }
}

on_every_storage! {
    fn every_route_needs_its_scope_and_a_greater_one_will_do(server: &Server) {
        let keys = [(Read, "read"), (Operate, "operate"), (Admin, "admin")]
            .map(|(scope, name)| (scope, key(server, name).1));
        for (method, path, needed) in ROUTES {
            let target = target(path);
            for (scope, key) in &keys {
                let answer = server.stranger(method, &target).key(key).send();
                if *scope < needed {
                    let error = answer.error(403, "Sandbox.Forbidden");
                    let detail = error["error_detail"].as_str().unwrap();
                    assert!(detail.contains(&format!("{needed:?}").to_lowercase()), "{detail}");
                } else {
                    assert!(![401, 403].contains(&answer.status), "{method} {target}: {}", answer.text());
                }
            }
        }
    }

    fn a_stranger_is_told_nothing(server: &Server) {
        for (method, path, needed) in ROUTES {
            let target = target(path);
            let answer = patiently(|| server.stranger(method, &target).from(Ipv4Addr::new(127, 0, 1, 1)).send());
            if needed == Nothing {
                assert_eq!(answer.status, 200, "{target}");
                continue;
            }
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            answer.error(401, "Sandbox.Unauthorized");
        }
    }

    fn only_a_key_that_is_known_opens(server: &Server) {
        let (id, secret) = key(server, "read");
        let with = |value: &str| {
            patiently(|| {
                let call = server.stranger("GET", "/api/v1/sessions").from(Ipv4Addr::new(127, 0, 1, 2));
                call.header("Authorization", value).send()
            })
        };
        with(&format!("Bearer {secret}")).json(200);
        with(&format!("bearer  {secret} ")).json(200);
        let (most, last) = secret.split_at(secret.len() - 1);
        let other = if last == "0" { "1" } else { "0" };
        for wrong in [
            format!("Bearer {most}"),
            format!("Bearer {most}{other}"),
            format!("Bearer {secret}0"),
            format!("Bearer {}", secret.to_uppercase()),
            format!("Basic {secret}"),
            secret.clone(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            "Bearer sbx_".to_owned(),
            format!("Bearer {id}"),
            format!("Bearer {}", "a".repeat(5000)),
            "Bearer \u{fc}".to_owned(),
            "Bearer ' OR 1=1 --".to_owned(),
        ] {
            with(&wrong).error(401, "Sandbox.Unauthorized");
        }
        assert!(!server.log().contains(&secret) && !server.log().contains(most));
    }

    fn a_key_is_shown_once_and_opens_nothing_when_it_is_revoked(server: &Server) {
        let made = server.post("/api-keys", &json!({ "name": "short-lived", "scope": "operate" })).json(201);
        assert_eq!(names(&made), ["created_at", "key_id", "name", "revoked_at", "scope", "secret"].into());
        assert_eq!((&made["name"], &made["scope"]), (&json!("short-lived"), &json!("operate")));
        assert!(is_time(&made["created_at"]) && made["revoked_at"].is_null());
        let (id, secret) = (made["key_id"].as_str().unwrap(), made["secret"].as_str().unwrap());
        assert!(secret.starts_with("sbx_") && secret.len() > 40, "{secret}");

        let find = || {
            let list = server.get("/api-keys?limit=200").expect(200);
            assert!(!list.text().contains("secret") && !list.text().contains(secret));
            let list = list.json(200);
            list["keys"].as_array().unwrap().iter().find(|key| key["key_id"] == id).unwrap().clone()
        };
        let mut listed = made.clone();
        listed.as_object_mut().unwrap().remove("secret");
        assert_eq!(find(), listed);

        let ask = || {
            let call = server.stranger("GET", "/api/v1/sessions").from(Ipv4Addr::new(127, 0, 1, 3));
            call.key(secret).send()
        };
        ask().json(200);
        server.delete(&format!("/api-keys/{id}")).expect(204);
        ask().error(401, "Sandbox.Unauthorized");
        assert!(is_time(&find()["revoked_at"]));
        for id in ["key_0000000000000000", "not-a-key"] {
            server.delete(&format!("/api-keys/{id}")).error(404, "Sandbox.KeyNotFound");
        }
    }

    fn keys_are_listed_newest_first_a_page_at_a_time(server: &Server) {
        let made: Vec<_> = (0..3).map(|_| key(server, "read").0).collect();
        let list = |query: &str| server.get(&format!("/api-keys{query}")).json(200);
        let all = list("");
        assert_eq!(names(&all), ["keys", "next_cursor", "total"].into());
        assert!(all["total"].as_u64() >= Some(3), "{all}");
        assert_eq!(list("?limit=1")["keys"].as_array().unwrap().len(), 1);
        // Others make keys meanwhile: those that are older stay where they are.
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = list(&format!("?limit=2{cursor}"));
            seen.extend(page["keys"].as_array().unwrap().iter().map(|key| key["key_id"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let place = |id: &String| seen.iter().position(|seen| seen == id).unwrap();
        assert!(place(&made[2]) < place(&made[1]) && place(&made[1]) < place(&made[0]), "{seen:?}");
        for (query, field) in [("limit=0", "limit"), ("limit=201", "limit"), ("cursor=!", "cursor"), ("offset=-1", "offset"),
            ("scope=read", "scope")]
        {
            server.get(&format!("/api-keys?{query}")).invalid(field);
            server.get(&format!("/nodes?{query}")).invalid(field);
        }
        let nodes = server.get("/nodes?limit=1").json(200);
        assert_eq!(names(&nodes), ["next_cursor", "nodes", "total"].into());
        assert_eq!((&nodes["total"], &nodes["next_cursor"]), (&json!(1), &Value::Null));
        assert_eq!(server.get("/nodes?offset=1").json(200)["nodes"], json!([]));
    }

    fn a_key_has_a_name_and_one_of_three_scopes(server: &Server) {
        let with = |body: Value| server.post("/api-keys", &body);
        with(json!({ "scope": "read" })).invalid("name");
        with(json!({ "name": "x" })).invalid("scope");
        with(json!({ "name": "x", "scope": "root" })).invalid("scope");
        with(json!({ "name": "", "scope": "read" })).invalid("name");
        with(json!({ "name": "x".repeat(129), "scope": "read" })).invalid("name");
        with(json!({ "name": "x", "scope": "read", "secret": "mine" })).invalid("secret");
    }

    fn strangers_are_slowed_down_and_holders_of_keys_are_not(server: &Server) {
        let ask = |from: Ipv4Addr| server.stranger("GET", "/api/v1/sessions").from(from).send();
        let here = Ipv4Addr::new(127, 0, 1, 4);
        let begin = Instant::now();
        let refused = loop {
            let answer = ask(here);
            if answer.status == 429 {
                break answer;
            }
            answer.error(401, "Sandbox.Unauthorized");
            assert!(begin.elapsed() < Duration::from_secs(20), "never slowed down");
        };
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=10).contains(&wait), "{wait}");
        refused.error(429, "Sandbox.TooManyRequests");
        // A wrong key is a stranger's; a right one is not, wherever it comes from, nor is another stranger.
        let wrong = || server.stranger("GET", "/api/v1/sessions").from(here).key("sbx_wrong").send();
        assert!((0..100).any(|_| wrong().status == 429));
        server.call("GET", "/api/v1/sessions").from(here).send().json(200);
        ask(Ipv4Addr::new(127, 0, 1, 5)).error(401, "Sandbox.Unauthorized");
        pause(Duration::from_secs(wait));
        ask(here).error(401, "Sandbox.Unauthorized");
    }

    fn good_keys_use_up_nothing_of_what_strangers_may_ask(server: &Server) {
        let here = Ipv4Addr::new(127, 0, 1, 6);
        let ask = |secret: &str| server.stranger("GET", "/api/v1/sessions?limit=1").from(here).key(secret).send();
        let keys: Vec<_> = (0..60).map(|_| key(server, "read").1).collect();
        for key in &keys {
            ask(key).json(200);
        }
        let (_, fresh) = key(server, "read");
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..60).map(|_| scope.spawn(|| ask(&fresh))).collect();
            for asked in asking {
                asked.join().unwrap().json(200);
            }
        });
    }

    fn no_more_keys_are_looked_up_than_strangers_may_send(server: &Server) {
        let here = Ipv4Addr::new(127, 0, 1, 7);
        let ask = |secret: &str| server.stranger("GET", "/api/v1/sessions?limit=1").from(here).key(secret).send();
        let is_over = AtomicBool::new(false);
        let flood = || {
            for number in 0.. {
                let answer = ask(&format!("sbx_{number:064x}"));
                assert!([401, 429].contains(&answer.status), "{}", answer.text());
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let flooding: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
            // Nobody knows of a key that was never used whether it is good: it waits with the others.
            let waited = (0..100).any(|_| ask(&key(server, "read").1).status == 429);
            is_over.store(true, Ordering::Relaxed);
            flooding.into_iter().for_each(|flooding| flooding.join().unwrap());
            assert!(waited, "every key was looked up");
        });
    }

    fn wrong_keys_do_not_lock_out_a_valid_one(server: &Server) {
        let here = Ipv4Addr::new(127, 0, 1, 10);
        let ask = |secret: &str| server.stranger("GET", "/api/v1/sessions?limit=1").from(here).key(secret).send();
        let (id, good) = key(server, "read");
        let spare: Vec<_> = (0..20).map(|_| key(server, "read").0).collect();
        patiently(|| ask(&good)).json(200);
        let (is_over, is_refused) = (AtomicBool::new(false), AtomicBool::new(false));
        let flood = || {
            for number in 0.. {
                let answer = ask(&format!("sbx_{number:064x}"));
                is_refused.fetch_or(answer.status == 429, Ordering::Relaxed);
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let flooding: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
            while !is_refused.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            // A key that is revoked makes the server look up all others again.
            let answers: Vec<_> = spare.iter().map(|spare| {
                server.delete(&format!("/api-keys/{spare}")).expect(204);
                ask(&good).status
            }).collect();
            server.delete(&format!("/api-keys/{id}")).expect(204);
            let revoked: Vec<_> = (0..20).map(|_| ask(&good).status).collect();
            is_over.store(true, Ordering::Relaxed);
            flooding.into_iter().for_each(|flooding| flooding.join().unwrap());
            assert_eq!(answers, [200; 20]);
            // It was looked up once more as one that had been valid; from then on it is a stranger's.
            assert_eq!(revoked[0], 401);
            assert!(revoked.iter().all(|status| [401, 429].contains(status)), "{revoked:?}");
            assert!(revoked.contains(&429), "{revoked:?}");
        });
    }

    fn strangers_do_not_use_up_what_a_load_balancer_may_ask(server: &Server) {
        let here = Ipv4Addr::new(127, 0, 1, 8);
        let ask = |target: &str| server.stranger("GET", target).from(here).send();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flooding = scope.spawn(|| {
                let mut refused = 0;
                while !is_over.load(Ordering::Relaxed) || refused == 0 {
                    refused += usize::from(ask("/api/v1/sessions").status == 429);
                }
            });
            let probes = ["/ready", "/health"].repeat(20);
            let answers: Vec<_> = probes.into_iter().map(ask).collect();
            is_over.store(true, Ordering::Relaxed);
            flooding.join().unwrap();
            for answer in answers {
                answer.expect(200);
            }
        });
    }

    fn the_admins_key_is_for_its_owners_eyes(server: &Server) {
        use std::os::unix::fs::MetadataExt as _;
        let mut seen = 0;
        for entry in std::fs::read_dir(server.data()).unwrap().flatten() {
            if entry.path().extension().is_some_and(|end| end == "key") {
                assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.path());
                seen += 1;
            }
        }
        assert!(seen >= 2, "{seen}");
        assert!(!server.log().contains(server.admin()));
    }

    fn a_request_keeps_its_name_or_gets_one(server: &Server) {
        let named = |name: &str| {
            let answer = server.call("GET", "/api/v1/sessions/nothing").header("X-Request-Id", name).send();
            answer.error(404, "Sandbox.SessionNotFound")["request_id"].as_str().unwrap().to_owned()
        };
        for name in ["abcdefgh", "01234567-89ab-cdef-0123-456789abcdef", "A.b_C-1.2", &"a".repeat(64)] {
            assert_eq!(named(name), name);
        }
        let mut made = BTreeSet::new();
        for name in ["short", "with space", "a;b;c;d;e", "<script>alert(1)</script>", &"a".repeat(65), "-abcdefgh", ""] {
            let given = named(name);
            assert!(given != name && given.starts_with("req_"), "{given}");
            made.insert(given);
        }
        assert_eq!(made.len(), 7);
        assert!(server.log().contains("A.b_C-1.2"));
        let fine = server.call("GET", "/health").header("X-Request-Id", "also-on-success").send();
        assert_eq!(fine.header("x-request-id"), Some("also-on-success"));
    }

    fn what_is_no_route_or_not_its_method_is_said_so(server: &Server) {
        for target in ["/", "/api", "/api/v1", "/api/v1/", "/api/v2/sessions", "/api/v1/session", "/api/v1/sessions/", "//",
            "/api/v1/sessions/sess_0000000000000000/nothing", "/favicon.ico", "/.env", "/api/v1/%2e%2e/health"]
        {
            server.call("GET", target).send().error(404, "Sandbox.NotFound");
        }
        for (method, target, allowed) in [
            ("PATCH", "/api/v1/sessions", "POST"),
            ("PUT", "/api/v1/sessions/sess_0000000000000000", "DELETE"),
            ("GET", "/api/v1/sessions/sess_0000000000000000/execute", "POST"),
            ("POST", "/health", "GET"),
            ("TRACE", "/api/v1/templates", "POST"),
        ] {
            let answer = server.call(method, target).send();
            let allow = answer.header("allow").unwrap_or_default().to_owned();
            assert!(allow.contains(allowed), "{method} {target}: {allow}");
            answer.error(405, "Sandbox.MethodNotAllowed");
        }
    }

    fn a_method_that_somebody_made_up_is_counted_with_all_others(server: &Server) {
        for made_up in ["BREW", "b0gus-METHOD"] {
            server.call(made_up, "/api/v1/sessions").send().error(405, "Sandbox.MethodNotAllowed");
            server.call(made_up, "/nowhere").send().error(404, "Sandbox.NotFound");
        }
        let measured = server.call("GET", "/metrics").send().expect(200).text();
        assert!(!measured.contains("BREW") && !measured.contains("b0gus"), "{measured}");
        for route in ["/api/v1/sessions", "none"] {
            let counted = |line: &str| {
                line.starts_with("sandbox_http_requests_total") && line.contains(r#"method="other""#)
                    && line.contains(&format!("route=\"{route}\""))
            };
            assert!(measured.lines().any(counted), "{measured}");
        }
        assert!(!server.log().contains("BREW"));
    }

    fn text_that_not_every_database_takes_is_refused_before_one_is_asked(server: &Server) {
        let session = server.session();
        for (query, field) in [
            ("sessions?agent_id=%00", "agent_id"),
            ("sessions?agent_id=a%00b", "agent_id"),
            ("sessions?agent_id=a%1Bb", "agent_id"),
            ("sessions?agent_id=", "agent_id"),
            (&format!("sessions?agent_id={}", "a".repeat(129)), "agent_id"),
            ("sessions?template_id=%00", "template_id"),
            ("sessions?status=%00", "status"),
            ("sessions?cursor=%00", "cursor"),
            (&format!("sessions?cursor={}", forged("sessions", "sess_\0")), "cursor"),
            ("templates?include_inactive=%00", "include_inactive"),
            (&format!("templates?cursor={}", forged("templates", "\0")), "cursor"),
            ("audit?cursor=%00", "cursor"),
            (&format!("sessions/{session}/executions?status=%00"), "status"),
            (&format!("sessions/{session}/files?path=%00"), "path"),
            (&format!("sessions/{session}/archive?path=%00"), "path"),
        ] {
            server.get(&format!("/{query}")).invalid(field);
        }
        let agent_of_128 = "a".repeat(128);
        assert_eq!(server.get(&format!("/sessions?agent_id={agent_of_128}")).json(200)["total"], 0);
        for agent in ["\0", "a\0b", "a\u{1b}[2J", "\u{85}", " ", "", &"a".repeat(129)] {
            for mode in ["ephemeral", "persistent"] {
                let asked = json!({ "template_id": "python-basic", "mode": mode, "agent_id": agent });
                server.post("/sessions", &asked).invalid("agent_id");
                let keyed = server.posting("/sessions", &asked).header("Idempotency-Key", "unkeepable");
                keyed.send().invalid("agent_id");
            }
        }
    }

    fn a_parameter_that_is_not_known_is_refused_by_its_name(server: &Server) {
        let session = server.session();
        let refused = |method: &str, path: &str, name: &str| {
            let call = server.call(method, &format!("/api/v1/{path}"));
            let error = call.json(&json!({ "language": "shell", "code": "true" })).send().invalid(name);
            error["solution"].as_str().unwrap().to_owned()
        };
        let solution = refused("GET", "sessions?statsu=running", "statsu");
        assert_eq!(solution, "use status, template_id, agent_id, limit, offset or cursor");
        assert_eq!(refused("GET", "sessions?status=running&%00=1", "\\0"), solution);
        refused("GET", "sessions?Limit=1", "Limit");
        refused("GET", "templates?inactive=true", "inactive");
        refused("GET", "audit?since=1", "since");
        refused("GET", &format!("sessions/{session}/files?dir=x"), "dir");
        refused("GET", &format!("sessions/{session}/archive?limit=1"), "limit");
        refused("GET", &format!("sessions/{session}/terminal?colums=80"), "colums");
        refused("GET", &format!("sessions/{session}/executions?state=failed"), "state");
        let solution = refused("GET", &format!("sessions/{session}?verbose=1"), "verbose");
        assert_eq!(solution, "leave it out: this takes no parameters");
        refused("DELETE", &format!("sessions/{session}?force=true"), "force");
        refused("POST", &format!("sessions/{session}/execute?wiat=true"), "wiat");
        assert_eq!(server.get(&format!("/sessions/{session}/executions")).json(200)["total"], 0);
        assert_eq!(server.get(&format!("/sessions/{session}?")).json(200)["status"], "running");
        // Who may not ask is not told what there is to ask; who asks how the server is may be a balancer of any kind.
        let stranger = |target: &str| patiently(|| server.stranger("GET", target).from(Ipv4Addr::new(127, 0, 1, 9)).send());
        stranger("/api/v1/sessions?statsu=running").error(401, "Sandbox.Unauthorized");
        stranger("/ready?now=1").expect(200);
    }

    fn a_body_that_is_not_what_it_should_be_is_refused(server: &Server) {
        let post = |body: &[u8]| server.call("POST", "/api/v1/sessions").body("application/json", body).send();
        for body in [
            &b"{"[..], b"null", b"[]", b"\"\"", b"1", b"{}{}", b"{\"template_id\":\"python-basic\"} x",
            b"{\"template_id\":\"python-basic\",}", b"{\"template_id\":\"a\",\"template_id\":\"b\"}", b"\xff\xfe", b"{\"a\":\xff}",
            b"template_id=python-basic", b"\0", b"{\"template_id\":{}}", b"{\"template_id\":null}",
        ] {
            post(body).error(400, "Sandbox.InvalidParameter");
        }
        post(b"").invalid("template_id");
        let deep = format!("{{\"template_id\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        post(deep.as_bytes()).error(400, "Sandbox.InvalidParameter");
        post(b"{\"template_id\":\"python-basic\",\"colour\":\"red\"}").invalid("colour");
        let kind = |kind: &str| server.call("POST", "/api/v1/sessions").body(kind, "{}").send();
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonp", "garbage"] {
            kind(wrong).error(400, "Sandbox.InvalidParameter");
        }
        kind("application/json; charset=utf-8").invalid("template_id");
        kind("APPLICATION/JSON").invalid("template_id");
    }

    fn a_list_is_no_object_and_an_object_no_word(server: &Server) {
        let post = |path: &str, body: Value| server.post(path, &body).invalid("expected");
        post("/api-keys", json!(["x", "read"]));
        post("/api-keys", json!({ "name": "x", "scope": { "read": null } }));
        let session = |field: &str, value: Value| json!({ "template_id": "python-basic", field: value });
        for (field, value) in [
            ("resources", json!([null, null])),
            ("network", json!([false, []])),
            ("source", json!([null, {}])),
            ("mode", json!({ "ephemeral": null })),
        ] {
            server.post("/sessions", &session(field, value)).invalid(&format!("{field}: "));
        }
        let id = server.session();
        post(&format!("/sessions/{id}/renew"), json!([600]));
        post(&format!("/sessions/{id}/execute"), json!(["true", "shell"]));
        server.put("/templates/python-basic", &json!([])).invalid("expected an object");
    }

    fn no_error_names_a_type_of_ours(server: &Server) {
        let detail = |error: Value| error["error_detail"].as_str().unwrap().to_owned();
        for body in [json!(null), json!(1), json!([]), json!("x")] {
            let said = detail(server.post("/sessions", &body).invalid("expected an object"));
            assert!(!said.contains("struct") && !said.contains("Request"), "{said}");
        }
        let asked = json!({ "template_id": "python-basic", "timeout": -1 });
        let said = detail(server.post("/sessions", &asked).invalid("timeout"));
        assert!(said.contains("expected an integer from 0 to 4294967295"), "{said}");
    }

    fn a_body_has_a_largest_size(server: &Server) {
        let large = json!({ "template_id": "x".repeat(4 << 20) });
        server.post("/sessions", &large).error(400, "Sandbox.PayloadTooLarge");
        let much = json!({ "template_id": "x".repeat(16 << 20) });
        server.post("/sessions", &much).error(400, "Sandbox.PayloadTooLarge");
        let fits = json!({ "template_id": "x".repeat((4 << 20) - 100) });
        let error = server.post("/sessions", &fits).error(400, "Sandbox.InvalidParameter");
        assert!(error.to_string().len() < 10_000, "an answer of {} bytes", error.to_string().len());
    }

    fn the_server_tells_how_it_is(server: &Server) {
        let health = server.stranger("GET", "/health").send().json(200);
        assert_eq!(names(&health), ["components", "status", "uptime_seconds", "version"].into());
        assert_eq!(health["status"], "healthy");
        let parts = &health["components"];
        assert!(names(parts).is_superset(&["database", "object_store", "runtime_local"].into()), "{parts}");
        for part in parts.as_object().unwrap().values() {
            assert_eq!((&part["status"], &part["error"]), (&json!("healthy"), &Value::Null));
            assert!(part["latency_ms"].as_f64().unwrap() >= 0.0);
        }
        assert_eq!(server.stranger("GET", "/ready").send().expect(200).text(), "ready\n");
        let id = server.session();
        server.shell(&id, "true");
        server.delete(&format!("/sessions/{id}")).json(200);
        let metrics = server.stranger("GET", "/metrics").send().expect(200);
        assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
        let text = metrics.text();
        for name in [
            "sandbox_sessions_created_total", "sandbox_sessions_deleted_total", "sandbox_session_creation_duration_seconds",
            "sandbox_submission_duration_seconds", "sandbox_execution_duration_seconds", "sandbox_http_requests_total",
        ] {
            assert!(text.contains(name), "no {name} in {text}");
        }
    }
}

/// Floods the server through `from` as the client that `flood` names, and gives whether requests with another header are
/// all answered meanwhile: fewer than an address that is not flooded may send at once.
fn is_answered_beside(server: &Server, from: Ipv4Addr, flood: &str, header: (&str, &str)) -> bool {
    let ask = |(name, value): (&str, &str)| {
        let call = server.stranger("GET", "/api/v1/sessions").from(from);
        call.header(name, value).send().status
    };
    let (is_over, is_refused) = (AtomicBool::new(false), AtomicBool::new(false));
    let flooding = || {
        while !is_over.load(Ordering::Relaxed) {
            let status = ask(("X-Forwarded-For", flood));
            is_refused.fetch_or(status == 429, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(flooding);
        scope.spawn(flooding);
        while !is_refused.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let is_answered = (0..30).all(|_| ask(header) == 401);
        is_over.store(true, Ordering::Relaxed);
        is_answered
    })
}

#[test]
fn clients_of_a_trusted_proxy_are_told_apart() {
    let options = Options::on(Storage::SqliteAndFiles).with(&["--trusted-proxy", "127.0.2.0/24"]);
    let server = options.start();
    let flood = "192.0.2.1, 198.51.100.1";
    let by = |from: Ipv4Addr, name, value| is_answered_beside(&server, from, flood, (name, value));
    let proxy = Ipv4Addr::new(127, 0, 2, 1);
    assert!(by(proxy, "X-Forwarded-For", "198.51.100.2"));
    assert!(by(proxy, "Forwarded", "for=198.51.100.3;proto=https"));
    // What a client writes itself is to the left of what the proxy adds.
    assert!(!by(proxy, "X-Forwarded-For", "203.0.113.9, 198.51.100.1"));
    // Anybody else speaks for themselves.
    let other = Ipv4Addr::new(127, 0, 3, 1);
    assert!(!by(other, "X-Forwarded-For", "198.51.100.4"));
}
