//! What executors in containers report: who may, and what is believed of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ring::hmac;
use rustix::process::{Signal, kill_process};
use sandbox_api_tests::{
    Answer, Options, Server, Storage, eventually, id_of, is_time, on_every_storage,
};
use sandbox_test_servers::S3;
use serde_json::{Value, json};

/// The token of a session, as its container would be given it.
fn token(server: &Server, session: &str) -> String {
    let secret = std::fs::read_to_string(server.data().join("internal.token")).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim().as_bytes());
    let tag = hmac::sign(
        &key,
        format!("sandbox session token 1\n{session}").as_bytes(),
    );
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reports something, with the token of `session`.
fn report(server: &Server, session: &str, path: &str, body: &Value) -> Answer {
    let call = server
        .stranger("POST", &format!("/internal{path}"))
        .json(body);
    call.key(&token(server, session)).send()
}

fn report_result(server: &Server, session: &str, execution: &str, body: &Value) -> Answer {
    let path = format!("/internal/executions/{execution}/result");
    let call = server.stranger("POST", &path).json(body);
    let call = call.header("Idempotency-Key", format!("{execution}_result"));
    call.key(&token(server, session)).send()
}

/// It must be refused as not valid, in words that name `field`.
#[track_caller]
fn invalid(answer: Answer, field: &str) {
    let error = answer.error(400, "Internal.InvalidParameter");
    let detail = error["error_detail"].as_str().unwrap();
    assert!(detail.contains(field), "{field}: {error}");
}

fn success(stdout: &str) -> Value {
    json!({ "status": "success", "exit_code": 0, "execution_time": 0.5, "stdout": stdout })
}

/// An execution that goes on until somebody ends it.
fn endless(server: &Server, session: &str) -> String {
    let code = json!({ "language": "shell", "code": "sleep 600", "timeout": 900 });
    server.submit(session, code)
}

/// Ends a session, and with it what goes on in it: a server waits for that before it ends.
fn end(server: &Server, session: &str) {
    server.delete(&format!("/sessions/{session}")).json(200);
}

on_every_storage! {
    fn nobody_reports_without_the_sessions_own_token(server: &Server) {
        let (session, other) = (server.session(), server.session());
        let execution = endless(server, &session);
        let paths = [
            (format!("/internal/executions/{execution}/status"), json!({ "status": "crashed" })),
            (format!("/internal/executions/{execution}/heartbeat"), json!({})),
            (format!("/internal/executions/{execution}/artifacts"), json!({ "artifacts": [] })),
            (format!("/internal/executions/{execution}/result"), success("forged")),
            (
                format!("/internal/sessions/{session}/container_ready"),
                json!({ "container_id": "c", "executor_url": "http://c", "ready_at": "2026-11-16T00:00:00Z" }),
            ),
            (
                format!("/internal/sessions/{session}/container_exited"),
                json!({ "exit_code": 0, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "normal" }),
            ),
        ];
        for (path, body) in &paths {
            // Strangers are told apart by their address, and are not to ask often.
            let call = || server.stranger("POST", path).json(body).from(Ipv4Addr::new(127, 0, 2, 1));
            call().send().error(401, "Internal.Unauthorized");
            call().key("0").send().error(401, "Internal.Unauthorized");
            // Neither another session's nor the admin's.
            call().key(&token(server, &other)).send().error(401, "Internal.Unauthorized");
            call().key(server.admin()).send().error(401, "Internal.Unauthorized");
        }
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert_ne!(status["status"], "crashed");
        assert_eq!(server.get(&format!("/sessions/{session}")).json(200)["status"], "running");
        end(server, &session);
    }

    fn who_has_no_token_hears_the_same_whatever_is_there(server: &Server) {
        let (session, other) = (server.session(), server.session());
        let execution = endless(server, &session);
        let report = |path: &str| {
            let call = server.stranger("POST", &format!("/internal{path}")).json(&json!({}));
            let mut error = call
                .from(Ipv4Addr::new(127, 0, 2, 2))
                .key(&token(server, &other))
                .send()
                .error(401, "Internal.Unauthorized");
            error.as_object_mut().unwrap().remove("request_id");
            error
        };
        let there = report(&format!("/executions/{execution}/heartbeat"));
        for path in [
            "/executions/exec_20261116_aaaaaaaa/heartbeat",
            "/executions/exec_20261116_aaaaaaaa/result",
            "/executions/nothing/status",
            "/executions/%ff/artifacts",
            "/sessions/sess_aaaaaaaaaaaaaaaa/container_exited",
            "/sessions/nothing/container_ready",
            &format!("/sessions/{session}/container_ready"),
        ] {
            assert_eq!(report(path), there, "{path}");
        }
        end(server, &session);
    }

    fn nothing_of_a_report_is_read_before_its_token(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let body = success(&"x".repeat(1000)).to_string();
        let path = format!("/internal/executions/{execution}/result");
        // More is promised than ever comes: whoever waited for it would not answer.
        let call = server.stranger("POST", &path).body("application/json", body).cut(10);
        let begin = Instant::now();
        call.from(Ipv4Addr::new(127, 0, 2, 3)).send().error(401, "Internal.Unauthorized");
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        end(server, &session);
    }

    fn those_without_a_token_are_slowed_down_and_executors_are_not(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        let here = Ipv4Addr::new(127, 0, 2, 4);
        let path = format!("/internal/executions/{execution}/heartbeat");
        let call = || server.stranger("POST", &path).json(&json!({})).from(here);
        let begin = Instant::now();
        let refused = loop {
            let answer = call().send();
            if answer.status == 429 {
                break answer;
            }
            answer.error(401, "Internal.Unauthorized");
            assert!(begin.elapsed() < Duration::from_secs(20), "never slowed down");
        };
        assert!(refused.header("retry-after").is_some());
        refused.error(429, "Internal.TooManyRequests");
        // Code that runs beside an executor cannot silence it.
        for _ in 0..50 {
            let call = call().key(&token(server, &session));
            call.header("X-Session-Id", &session).send().json(200);
        }
        end(server, &session);
    }

    fn no_more_executions_are_looked_up_than_strangers_may_send(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let here = Ipv4Addr::new(127, 0, 2, 6);
        let ask = |execution: &str, key: &str| {
            let path = format!("/internal/executions/{execution}/heartbeat");
            server.stranger("POST", &path).json(&json!({})).from(here).key(key).send()
        };
        let is_over = AtomicBool::new(false);
        let flood = || {
            for number in 0.. {
                let answer = ask(&format!("exec_20261116_{number:08}"), &format!("{number:064x}"));
                assert!([401, 429].contains(&answer.status), "{}", answer.text());
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        std::thread::scope(|scope| {
            let flooding: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
            // Nobody knows whether a token is good that comes without the name of its session: it waits with the others.
            let good = token(server, &session);
            let waited = (0..1000).any(|_| ask(&execution, &good).status == 429);
            is_over.store(true, Ordering::Relaxed);
            flooding.into_iter().for_each(|flooding| flooding.join().unwrap());
            assert!(waited, "everything was looked up");
        });
        end(server, &session);
    }

    fn an_executor_is_told_that_what_is_not_its_sessions_is_not_there(server: &Server) {
        let (session, other) = (server.session(), server.session());
        let execution = endless(server, &other);
        let ask = |execution: &str, named: &str| {
            let path = format!("/internal/executions/{execution}/heartbeat");
            let call = server.stranger("POST", &path).json(&json!({})).from(Ipv4Addr::new(127, 0, 2, 7));
            call.key(&token(server, &session)).header("X-Session-Id", named).send()
        };
        let told = |execution: &str| {
            let error = ask(execution, &session).error(404, "Internal.InvalidExecution").to_string();
            let error: Value = serde_json::from_str(&error.replace(execution, "")).unwrap();
            (error["description"].clone(), error["error_detail"].clone(), error["solution"].clone())
        };
        assert_eq!(told(&execution), told("exec_20261116_aaaaaaaa"));
        // The token of the one does not speak for the other, whoever is named.
        ask(&execution, &other).error(401, "Internal.Unauthorized");
        ask(&execution, "nothing").error(401, "Internal.Unauthorized");
        end(server, &other);
    }

    fn a_report_that_is_not_what_it_should_be_is_refused(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let key = token(server, &session);
        let path = format!("/internal/executions/{execution}/status");
        let call = || server.stranger("POST", &path).key(&key);
        invalid(call().body("application/json", "{").send(), "EOF");
        invalid(call().body("application/json", "[]").send(), "the body");
        invalid(call().body("text/plain", "{}").send(), "the body");
        invalid(call().json(&json!({ "status": "well" })).send(), "status");
        invalid(call().json(&json!({ "status": "running", "unknown": 1 })).send(), "unknown");
        let large = call().body("application/json", vec![b' '; (4 << 20) + 1]);
        large.send().error(400, "Internal.PayloadTooLarge");
        end(server, &session);
    }

    fn what_is_not_there_is_told_as_everything_here(server: &Server) {
        let here = Ipv4Addr::new(127, 0, 2, 8);
        let ask = |method: &str, path: &str| server.stranger(method, path).from(here).send();
        let paths = ["/internal", "/internal/", "/internal/nothing", "/internal/sessions/a/b/c"];
        for path in paths {
            ask("POST", path).error(404, "Internal.NotFound");
        }
        let answer = ask("GET", "/internal/executions/exec_20261116_aaaaaaaa/result");
        assert_eq!(answer.header("allow"), Some("POST"));
        answer.error(405, "Internal.MethodNotAllowed");
        // And no more often than strangers may ask.
        let refused = (0..1000).map(|_| ask("POST", "/internal/nothing"));
        let refused = refused.into_iter().find(|answer| answer.status == 429).unwrap();
        refused.error(429, "Internal.TooManyRequests");
    }

    fn a_sessions_token_is_no_key(server: &Server) {
        let session = server.session();
        let call = server.stranger("GET", &format!("/api/v1/sessions/{session}")).from(Ipv4Addr::new(127, 0, 2, 5));
        call.key(&token(server, &session)).send().error(401, "Sandbox.Unauthorized");
    }

    fn the_first_result_stands(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        report_result(server, &session, &execution, &success("first")).json(201);
        report_result(server, &session, &execution, &success("first")).json(200);
        report_result(server, &session, &execution, &success("second"))
            .error(409, "Internal.StateConflict");
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!((&result["status"], &result["stdout"]), (&json!("success"), &json!("first")));
        end(server, &session);
    }

    fn a_result_that_says_the_same_and_ended_otherwise_is_another_one(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let body = |status: &str, error: &str| {
            json!({ "status": status, "exit_code": -1, "execution_time": 0.5, "stdout": "x", "error": error })
        };
        let report = |body: &Value| report_result(server, &session, &execution, body);
        report(&body("crashed", "lost")).json(201);
        report(&body("crashed", "lost")).json(200);
        report(&body("timeout", "lost")).error(409, "Internal.StateConflict");
        report(&body("crashed", "found")).error(409, "Internal.StateConflict");
        let mut slower = body("crashed", "lost");
        slower["execution_time"] = json!(0.75);
        report(&slower).error(409, "Internal.StateConflict");
        let mut cut = body("crashed", "lost");
        cut["stdout_truncated"] = json!(true);
        report(&cut).error(409, "Internal.StateConflict");
        end(server, &session);
    }

    fn how_it_ended_may_be_told_before_its_result(server: &Server) {
        for (ending, at) in [("timeout", "timeout_at"), ("crashed", "crashed_at")] {
            let session = server.session();
            let execution = endless(server, &session);
            server.until(&execution, "running");
            let tell = |what: &str, body: &Value| {
                report(server, &session, &format!("/executions/{execution}/{what}"), body)
            };
            tell("status", &json!({ "status": "running" })).json(200);
            let told = json!({ "status": ending, "error": "it took too long" });
            tell("status", &told).json(201);
            tell("status", &told).json(200);
            let status = || server.get(&format!("/executions/{execution}/status")).json(200);
            let before = status();
            assert_eq!((&before["status"], &before["error"]), (&json!(ending), &json!("it took too long")));
            assert!(is_time(&before[at]), "{before}");
            let result = || server.get(&format!("/executions/{execution}/result")).json(200);
            assert_eq!((&result()["status"], &result()["exit_code"]), (&json!(ending), &json!(-1)));
            // It is over, and how stands.
            tell("status", &json!({ "status": "running" })).error(409, "Internal.StateConflict");
            tell("heartbeat", &json!({})).error(409, "Internal.StateConflict");
            let conclude = |body: &Value| report_result(server, &session, &execution, body);
            conclude(&success("too late")).error(409, "Internal.StateConflict");
            // What it made and printed is still to come.
            let file = json!({ "path": "a", "size": 1, "mime_type": "text/plain", "sha256": "0".repeat(64) });
            tell("artifacts", &json!({ "artifacts": [file] })).json(201);
            let body = |stdout: &str| {
                json!({ "status": ending, "exit_code": -1, "execution_time": 0.5, "stdout": stdout })
            };
            conclude(&body("so far")).json(201);
            conclude(&body("so far")).json(200);
            conclude(&body("otherwise")).error(409, "Internal.StateConflict");
            tell("status", &told).json(200);
            let kept = result();
            assert_eq!((&kept["status"], &kept["stdout"]), (&json!(ending), &json!("so far")));
            assert_eq!((&kept["error"], &kept["artifacts"][0]["path"]), (&json!("it took too long"), &json!("a")));
            assert_eq!(status()[at], before[at]);
            end(server, &session);
        }
    }

    fn a_result_names_itself(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let path = format!("/executions/{execution}/result");
        invalid(report(server, &session, &path, &success("unnamed")), "Idempotency-Key");
        end(server, &session);
    }

    fn a_result_that_contradicts_itself_is_refused(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let body = json!({ "status": "success", "exit_code": 1, "execution_time": 0.5 });
        invalid(report_result(server, &session, &execution, &body), "status");
        end(server, &session);
    }

    fn all_that_an_executor_keeps_is_taken(server: &Server) {
        let session = server.session();
        let worst = "\0".repeat(1 << 20);
        // A byte that is no text becomes three.
        let replaced = "\u{fffd}".repeat(1 << 20);
        for (stdout, stderr) in [(&worst, &worst), (&replaced, &worst)] {
            let execution = endless(server, &session);
            server.until(&execution, "running");
            let mut body = success(stdout);
            body["stderr"] = json!(stderr);
            body["return_value"] = json!("x".repeat((1 << 20) - 2));
            report_result(server, &session, &execution, &body).json(201);
            report_result(server, &session, &execution, &body).json(200);
            let result = server.get(&format!("/executions/{execution}/result")).json(200);
            for field in ["stdout", "stderr", "return_value"] {
                assert!(result[field] == body[field], "{field}");
            }
        }
        let execution = endless(server, &session);
        invalid(report_result(server, &session, &execution, &success(&"x".repeat(4 << 20))), "stdout");
        let large = success(&"x".repeat(14 << 20));
        report_result(server, &session, &execution, &large).error(400, "Internal.PayloadTooLarge");
        end(server, &session);
    }

    fn what_is_reported_has_bounds(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        let tell = |what: &str, body: &Value| {
            report(server, &session, &format!("/executions/{execution}/{what}"), body)
        };
        // As JSON, a text has two quotes.
        let most = |length: usize| json!("x".repeat(length - 2));
        let more = |length: usize| json!("x".repeat(length - 1));
        tell("heartbeat", &json!({ "progress": most(4 << 10) })).json(200);
        invalid(tell("heartbeat", &json!({ "progress": more(4 << 10) })), "progress");
        let long = "x".repeat((8 << 10) + 1);
        invalid(tell("status", &json!({ "status": "crashed", "error": long })), "error");
        let with = |name: &str, value: Value| {
            let mut body = success("");
            body[name] = value;
            report_result(server, &session, &execution, &body)
        };
        invalid(with("error", json!(long)), "error");
        invalid(with("return_value", more(1 << 20)), "return_value");
        invalid(with("execution_time", json!(-0.5)), "execution_time");
        let metrics = json!({
            "duration_ms": 1.0, "cpu_time_ms": 1.0, "peak_memory_mb": 1.0, "io_read_bytes": 1, "io_write_bytes": 1,
        });
        for name in metrics.as_object().unwrap().keys() {
            let mut less = metrics.clone();
            less[name] = json!(-1);
            invalid(with("metrics", less), name);
        }
        assert_eq!(server.get(&format!("/executions/{execution}/status")).json(200)["status"], "running");
        with("return_value", most(1 << 20)).json(201);
        end(server, &session);
    }

    fn heartbeats_tell_of_progress(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        let path = format!("/executions/{execution}/heartbeat");
        let begin = jiff::Timestamp::now();
        report(server, &session, &path, &json!({ "progress": { "percent": 40 } })).json(200);
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert_eq!(status["progress"], json!({ "percent": 40 }));
        let heard: jiff::Timestamp = status["last_heartbeat_at"].as_str().unwrap().parse().unwrap();
        assert!((begin..=jiff::Timestamp::now()).contains(&heard), "{heard}: {status:#}");
        server.post(&format!("/executions/{execution}/cancel"), &json!({})).json(200);
        report(server, &session, &path, &json!({})).error(409, "Internal.StateConflict");
    }

    fn artifacts_come_before_the_result(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        let path = format!("/executions/{execution}/artifacts");
        let file = json!({
            "path": "out/plot.png", "size": 3, "content_type": "image/png", "sha256": "0".repeat(64),
        });
        let body = json!({ "artifacts": [file.clone()] });
        report(server, &session, &path, &body).json(201);
        report(server, &session, &path, &body).json(200);
        report_result(server, &session, &execution, &success("")).json(201);
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        let [artifact] = &result["artifacts"].as_array().unwrap()[..] else {
            panic!("{result}");
        };
        assert_eq!((&artifact["name"], &artifact["mime_type"]), (&json!("plot.png"), &json!("image/png")));
        // From here on they stay as they are.
        report(server, &session, &path, &body).json(200);
        report(server, &session, &path, &json!({ "artifacts": [] })).json(200);
        let mut other = file.clone();
        other["sha256"] = json!("1".repeat(64));
        let mut more = file.clone();
        more["path"] = json!("out/more.png");
        for late in [other, more] {
            report(server, &session, &path, &json!({ "artifacts": [file, late] })).error(409, "Internal.StateConflict");
        }
        let after = server.get(&format!("/executions/{execution}/result")).json(200);
        assert_eq!(after["artifacts"], result["artifacts"]);
        end(server, &session);
    }

    fn artifacts_have_bounds(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let path = format!("/executions/{execution}/artifacts");
        let file = |path: &str| json!({ "path": path, "size": 3, "mime_type": "text/plain", "sha256": "0".repeat(64) });
        let report = |files: Vec<Value>| report(server, &session, &path, &json!({ "artifacts": files }));
        for wrong in ["", "/etc/passwd", "../a", "a/../../b", "./a", "a/.hidden", "a//b", "a/", "a\0b", &"x".repeat(4097)] {
            invalid(report(vec![file("good"), file(wrong)]), "path");
        }
        let wrong = |name: &str, value: Value| {
            let mut file = file("a");
            file[name] = value;
            report(vec![file])
        };
        invalid(wrong("sha256", json!("0")), "sha256");
        invalid(wrong("size", json!(-1)), "size");
        invalid(wrong("mime_type", json!("x".repeat(256))), "mime_type");
        invalid(wrong("artifact_type", json!("film")), "artifact_type");
        // A thousand of one execution, however they come.
        let some = |numbers: std::ops::Range<u32>| numbers.map(|number| file(&format!("{number}"))).collect();
        report(some(0..600)).json(201);
        invalid(report(some(400..1001)), "1000");
        report(some(400..1000)).json(201);
        invalid(report(some(1000..1001)), "1000");
        report(some(0..1000)).json(200);
        end(server, &session);
    }

    fn a_container_that_exits_takes_its_session_with_it(server: &Server) {
        for (code, status) in [(0, "completed"), (137, "failed")] {
            let session = server.session();
            let execution = endless(server, &session);
            server.until(&execution, "running");
            let body = json!({ "exit_code": code, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "oom_killed" });
            let path = format!("/sessions/{session}/container_exited");
            let ended = || {
                let metrics = server.stranger("GET", "/metrics").send().expect(200).text();
                let of = |line: &str| line.strip_prefix("sandbox_sessions_deleted_total ")?.parse::<u64>().ok();
                metrics.lines().find_map(of).unwrap_or(0)
            };
            let before = ended();
            let first = report(server, &session, &path, &body);
            let request = first.header("x-request-id").unwrap().to_owned();
            first.json(201);
            report(server, &session, &path, &body).json(200);
            assert!(ended() > before);
            assert_eq!(server.get(&format!("/sessions/{session}")).json(200)["status"], status);
            let crashed = server.until(&execution, "crashed");
            assert_eq!(crashed["error"], "its container exited");
            // As any end of a session, it is written down, once, with the request that told of it.
            let audit = server.get("/audit?limit=200").json(200);
            let records = audit["records"].as_array().unwrap().iter();
            let of_it: Vec<_> =
                records.filter(|record| record["object"] == session.as_str() && record["action"] == "session.end").collect();
            let [record] = of_it[..] else {
                panic!("{audit:#}");
            };
            assert_eq!((&record["request_id"], &record["key_id"]), (&json!(request), &Value::Null));
            let reason = record["detail"]["reason"].as_str().unwrap();
            assert_eq!(reason, format!("its container exited with status {code} (oom_killed)"));
        }
    }

    fn a_session_that_is_not_there_any_more_is_told_to_whoever_has_its_token(server: &Server) {
        let session = "sess_aaaaaaaaaaaaaaaa";
        let body = json!({ "exit_code": 0, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "normal" });
        report(server, session, &format!("/sessions/{session}/container_exited"), &body)
            .error(404, "Internal.InvalidSession");
    }
}

#[test]
fn files_are_kept_when_a_container_exits() {
    let s3 = S3::shared();
    let bucket = s3.fresh_bucket();
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--objects", &format!("s3:{bucket}")])
        .env("S3_ENDPOINT", s3.url())
        .env("AWS_ACCESS_KEY_ID", s3.access_key())
        .env("AWS_SECRET_ACCESS_KEY", s3.secret_key())
        .start();
    let session = server.session();
    server.upload(&session, "kept", b"kept").expect(200);
    let body =
        json!({ "exit_code": 0, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "normal" });
    let path = format!("/sessions/{session}/container_exited");
    report(&server, &session, &path, &body).json(201);
    let stored = s3
        .directory()
        .join(format!("data/{bucket}/workspace/{session}/kept"));
    eventually("it is kept", || stored.exists().then_some(()));
}

/// A session that is being made for as long as the process that raises sessions is stopped.
fn creating(server: &Server) -> String {
    let list = || server.get("/sessions?status=creating").json(200);
    let found = eventually("a session is being made", || {
        list()["sessions"].as_array().unwrap().first().cloned()
    });
    id_of(&found)
}

#[test]
fn a_container_that_comes_up_makes_its_session_run() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    let other = server.session();
    let supervisor = server.supervisor();
    // Told by clocks that are wrong both ways.
    for ready_at in ["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
        kill_process(supervisor, Signal::STOP).unwrap();
        let new = json!({ "template_id": "python-basic", "pool": "never" });
        std::thread::scope(|scope| {
            let making = scope.spawn(|| server.posting("/sessions", &new).try_send());
            let session = creating(&server);
            let path = format!("/sessions/{session}/container_ready");
            let ready = |container: &str| json!({ "container_id": container, "executor_url": "http://127.0.0.1:9", "ready_at": ready_at });
            report(&server, &other, &path, &ready("c")).error(401, "Internal.Unauthorized");
            let call = server
                .stranger("POST", &format!("/internal{path}"))
                .json(&ready("c"));
            call.send().error(401, "Internal.Unauthorized");
            report(&server, &session, &path, &ready("c")).json(201);
            report(&server, &session, &path, &ready("c")).json(200);
            report(&server, &session, &path, &ready("d")).error(409, "Internal.StateConflict");
            let long = "c".repeat(513);
            invalid(
                report(&server, &session, &path, &ready(&long)),
                "container_id",
            );
            let found = server.get(&format!("/sessions/{session}")).json(200);
            assert_eq!(
                (&found["status"], &found["container_id"]),
                (&json!("running"), &json!("c"))
            );
            let time =
                |name: &str| -> jiff::Timestamp { found[name].as_str().unwrap().parse().unwrap() };
            assert!(
                time("created_at") <= time("started_at")
                    && time("started_at") <= jiff::Timestamp::now(),
                "{found:#}"
            );
            kill_process(supervisor, Signal::CONT).unwrap();
            // Whoever made it is told that it runs already.
            making.join().unwrap().unwrap();
            end(&server, &session);
        });
    }
}
