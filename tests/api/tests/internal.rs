//! What executors in containers report: who may, and what is believed of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use ring::hmac;
use sandbox_api_tests::{Answer, Server, on_every_storage};
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
                format!("/internal/sessions/{session}/container_exited"),
                json!({ "exit_code": 0, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "normal" }),
            ),
        ];
        for (path, body) in &paths {
            let call = || server.stranger("POST", path).json(body);
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

    fn a_sessions_token_is_no_key(server: &Server) {
        let session = server.session();
        let call = server.stranger("GET", &format!("/api/v1/sessions/{session}"));
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

    fn a_result_names_itself(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let path = format!("/executions/{execution}/result");
        report(server, &session, &path, &success("unnamed")).invalid("Idempotency-Key");
        end(server, &session);
    }

    fn a_result_that_contradicts_itself_is_refused(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        let body = json!({ "status": "success", "exit_code": 1, "execution_time": 0.5 });
        report_result(server, &session, &execution, &body).invalid("status");
        end(server, &session);
    }

    fn heartbeats_tell_of_progress(server: &Server) {
        let session = server.session();
        let execution = endless(server, &session);
        server.until(&execution, "running");
        let path = format!("/executions/{execution}/heartbeat");
        report(server, &session, &path, &json!({ "progress": { "percent": 40 } })).json(200);
        let status = server.get(&format!("/executions/{execution}/status")).json(200);
        assert_eq!(status["progress"], json!({ "percent": 40 }));
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
        let body = json!({ "artifacts": [file] });
        report(server, &session, &path, &body).json(201);
        report(server, &session, &path, &body).json(201);
        report_result(server, &session, &execution, &success("")).json(201);
        let result = server.get(&format!("/executions/{execution}/result")).json(200);
        let [artifact] = &result["artifacts"].as_array().unwrap()[..] else {
            panic!("{result}");
        };
        assert_eq!((&artifact["name"], &artifact["mime_type"]), (&json!("plot.png"), &json!("image/png")));
        end(server, &session);
    }

    fn a_container_that_exits_takes_its_session_with_it(server: &Server) {
        for (code, status) in [(0, "completed"), (137, "failed")] {
            let session = server.session();
            let execution = endless(server, &session);
            server.until(&execution, "running");
            let body = json!({ "exit_code": code, "exited_at": "2026-11-16T00:00:00Z", "exit_reason": "oom_killed" });
            let path = format!("/sessions/{session}/container_exited");
            report(server, &session, &path, &body).json(201);
            report(server, &session, &path, &body).json(200);
            assert_eq!(server.get(&format!("/sessions/{session}")).json(200)["status"], status);
            let crashed = server.until(&execution, "crashed");
            assert_eq!(crashed["error"], "its container exited");
        }
    }

    fn what_is_not_there_is_told(server: &Server) {
        let session = server.session();
        let path = "/executions/exec_20261116_aaaaaaaa/heartbeat";
        report(server, &session, path, &json!({})).error(404, "Internal.InvalidExecution");
    }
}
