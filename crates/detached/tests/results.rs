//! What the real server hears of code that runs elsewhere.
//!
//! A session of the server runs the execution itself, too; so there it waits, and the executor under test, which
//! runs other code under the same identifier, is the first to tell.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod stage;

use rustix::process::Signal;
use sandbox_api_tests::{Options as ServerOptions, Server, Storage};
use serde_json::{Value, json};
use stage::{Executor, Options, Relay, until};

fn server() -> Server {
    // What waits in its own sessions is not waited for.
    let options = ServerOptions::on(Storage::SqliteAndFiles);
    options.with(&["--drain-timeout", "1s"]).start()
}

/// A session, and an execution in it that goes on until somebody ends it.
fn execution(server: &Server) -> (String, String) {
    let session = server.session();
    let code = json!({ "language": "shell", "code": "sleep 600", "timeout": 900 });
    let execution = server.submit(&session, code);
    server.until(&execution, "running");
    (session, execution)
}

fn result(server: &Server, execution: &str) -> Value {
    server
        .get(&format!("/executions/{execution}/result"))
        .json(200)
}

/// Code that prints and ends when it is let go.
const WAITING: &str = "echo begun > begun; until [ -e go ]; do sleep 0.02; done; echo done";

fn let_go(executor: &Executor) {
    std::fs::write(executor.workspace().join("go"), "go").unwrap();
}

#[test]
fn a_result_travels_with_what_was_made() {
    let server = server();
    let (session, execution) = execution(&server);
    let executor = Options::of(&server, &session).start();
    let code = "import sys\n\
        def handler(event):\n    print('out'); print('err', file=sys.stderr)\n    \
        open('plot.png', 'w').write('x')\n    return {'sum': event['a'] + 1}\n";
    let body = json!({
        "execution_id": execution, "language": "python", "code": code, "event_data": { "a": 41 }, "timeout": 60,
    });
    let accepted = executor.execute_with(body).json(202);
    assert_eq!(accepted["execution_id"], execution.as_str());
    server.until(&execution, "completed");
    let result = result(&server, &execution);
    assert_eq!(result["status"], "success", "{result:#}");
    assert_eq!(
        (&result["stdout"], &result["stderr"]),
        (&json!("out\n"), &json!("err\n"))
    );
    assert_eq!(result["return_value"], json!({ "sum": 42 }));
    assert!(result["metrics"]["duration_ms"].as_f64().unwrap() > 0.0);
    let [artifact] = &result["artifacts"].as_array().unwrap()[..] else {
        panic!("{result:#}");
    };
    assert_eq!(
        (&artifact["path"], &artifact["mime_type"]),
        (&json!("plot.png"), &json!("image/png"))
    );
    assert_eq!(
        artifact["sha256"],
        "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    );
    executor.until_spooled(&format!("{execution}.told"));
    assert_eq!(executor.spooled(), [format!("{execution}.told")]);
}

#[test]
fn heartbeats_arrive_with_what_code_says_of_its_progress() {
    let server = server();
    let (session, execution) = execution(&server);
    let executor = Options::of(&server, &session).start();
    let code = "import os, time\n\
        def handler(event):\n    yield {'percent': 40}\n    \
        while not os.path.exists('go'): time.sleep(0.02)\n    return 1\n";
    executor.execute(&execution, "python", code).json(202);
    let status = || {
        server
            .get(&format!("/executions/{execution}/status"))
            .json(200)
    };
    until(
        || (status()["progress"] == json!({ "percent": 40 })).then_some(()),
        || format!("{:#}", status()),
    );
    let_go(&executor);
    server.until(&execution, "completed");
    assert_eq!(result(&server, &execution)["return_value"], 1);
}

#[test]
fn a_result_waits_for_a_server_that_was_killed_and_arrives_once() {
    let mut server = server();
    let (session, execution) = execution(&server);
    let relay = Relay::to(server.address());
    let mut options = Options::of(&server, &session);
    options.control = relay.address;
    let executor = options.start();
    executor.execute(&execution, "shell", WAITING).json(202);
    executor.until_file("begun");
    server.kill();
    let_go(&executor);
    executor.until_said(&format!("the result of {execution} waits"));
    // A server that finds executions of its own at its start holds them for lost: they end with it. One on
    // another machine does not, and neither do those that run elsewhere.
    server.options = server.options.clone().with(&["--node-id", "other"]);
    server.start();
    relay.lead(Some(server.address()));
    server.until(&execution, "completed");
    assert_eq!(result(&server, &execution)["stdout"], "done\n");
    executor.until_spooled(&format!("{execution}.told"));
    assert_eq!(executor.spooled(), [format!("{execution}.told")]);
    assert!(!executor.log().contains("refuses"), "{}", executor.log());
}

#[test]
fn a_result_outlives_an_executor_that_was_killed() {
    let server = server();
    let (session, execution) = execution(&server);
    let relay = Relay::to(server.address());
    let mut options = Options::of(&server, &session);
    options.control = relay.address;
    let mut executor = options.start();
    executor.execute(&execution, "shell", "echo done").json(202);
    relay.lead(None);
    executor.until_spooled(&format!("{execution}.report"));
    executor.kill();
    relay.lead(Some(server.address()));
    executor.start();
    server.until(&execution, "completed");
    assert_eq!(result(&server, &execution)["stdout"], "done\n");
    executor.until_spooled(&format!("{execution}.told"));
    // It ran, and does not run again.
    executor
        .execute(&execution, "shell", "echo again")
        .error(409, "Internal.StateConflict");
}

#[test]
fn what_is_told_twice_is_told_in_the_same_words() {
    let server = server();
    let (session, execution) = execution(&server);
    let relay = Relay::to(server.address());
    let mut options = Options::of(&server, &session);
    options.control = relay.address;
    let mut executor = options.start();
    relay.lead(None);
    executor
        .execute(&execution, "shell", "echo done > made; echo done")
        .json(202);
    let (report, told) = (format!("{execution}.report"), format!("{execution}.told"));
    executor.until_spooled(&report);
    let spool = executor.state().join("spool");
    std::fs::copy(spool.join(&report), executor.base().join("copy")).unwrap();
    relay.lead(Some(server.address()));
    executor.until_spooled(&told);
    let first = result(&server, &execution);
    executor.kill();
    // As if it had been killed before it knew that its report was taken.
    std::fs::remove_file(spool.join(&told)).unwrap();
    std::fs::copy(executor.base().join("copy"), spool.join(&report)).unwrap();
    executor.options.user.own(&spool.join(&report));
    executor.start();
    executor.until_spooled(&told);
    assert_eq!(result(&server, &execution), first);
    assert!(!executor.log().contains("refuses"), "{}", executor.log());
}

#[test]
fn what_ran_when_the_executor_was_killed_is_told_as_crashed() {
    let server = server();
    let (session, execution) = execution(&server);
    let mut executor = Options::of(&server, &session).start();
    executor
        .execute(&execution, "shell", "echo begun > begun; sleep 601")
        .json(202);
    executor.until_file("begun");
    executor.kill();
    executor.start();
    let status = server.until(&execution, "crashed");
    assert_eq!(status["error"], "its executor ended before it did");
    executor
        .execute(&execution, "shell", "echo again")
        .error(409, "Internal.StateConflict");
}

#[test]
fn a_wrong_token_is_refused_both_ways() {
    let server = server();
    let (session, execution) = execution(&server);
    let other = server.session();
    let mut options = Options::of(&server, &session);
    // Another session's.
    options.token = stage::token(&server, &other);
    let executor = Executor::made(options);
    let (code, said) = executor.fail();
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("error: the control plane refuses session"),
        "{said}"
    );
    assert!(said.contains("401") && said.contains("hint: "), "{said}");
    assert!(!said.contains(&executor.options.token), "{said}");
    let executor = Options::of(&server, &session).start();
    let body = json!({ "execution_id": execution, "language": "shell", "code": "true" });
    for key in ["", "0", &stage::token(&server, &other), server.admin()] {
        for (method, target) in [
            ("GET", "/health"),
            ("POST", "/execute"),
            ("GET", "/files"),
            ("PUT", "/files/a"),
            ("GET", "/nothing"),
        ] {
            let call = executor.stranger(method, target).json(&body).key(key);
            call.send().error(401, "Internal.Unauthorized");
        }
    }
    executor
        .stranger("GET", "/health")
        .send()
        .error(401, "Internal.Unauthorized");
    assert!(executor.spooled().is_empty());
}

#[test]
fn a_sigterm_ends_what_runs_and_is_told() {
    let server = server();
    let (session, execution) = execution(&server);
    let mut executor = Options::of(&server, &session)
        .with(&["--grace", "30"])
        .start();
    executor
        .execute(
            &execution,
            "shell",
            "echo begun > begun; echo so far; sleep 602",
        )
        .json(202);
    executor.until_file("begun");
    let status = executor.terminate();
    assert!(status.success(), "{status}: {}", executor.log());
    let found = server
        .get(&format!("/executions/{execution}/status"))
        .json(200);
    assert_eq!(found["status"], "crashed", "{found:#}");
    assert_eq!(
        found["error"],
        "it was interrupted by the end of its container"
    );
    assert_eq!(result(&server, &execution)["stdout"], "so far\n");
    let found = server.get(&format!("/sessions/{session}")).json(200);
    assert_eq!(found["status"], "completed", "{found:#}");
}

#[test]
fn one_that_the_control_plane_holds_for_over_is_ended() {
    let server = server();
    let (session, execution) = execution(&server);
    let executor = Options::of(&server, &session).start();
    executor
        .execute(&execution, "shell", "echo begun > begun; sleep 603")
        .json(202);
    executor.until_file("begun");
    server
        .post(&format!("/executions/{execution}/cancel"), &json!({}))
        .json(200);
    executor.until_spooled(&format!("{execution}.told"));
    assert!(executor.log().contains("409"), "{}", executor.log());
    assert_eq!(result(&server, &execution)["status"], "cancelled");
}

#[test]
fn one_that_the_control_plane_does_not_know_is_ended() {
    let server = server();
    let session = server.session();
    let executor = Options::of(&server, &session).start();
    let unknown = stage::id(1);
    executor
        .execute(&unknown, "shell", "echo begun > begun; sleep 608")
        .json(202);
    // Its result is for nobody, and nobody goes on bringing it.
    executor.until_spooled(&format!("{unknown}.told"));
    assert!(executor.log().contains("404"), "{}", executor.log());
}

#[test]
fn a_lost_executor_process_is_told_and_ends_the_program() {
    let server = server();
    let (session, execution) = execution(&server);
    let mut executor = Options::of(&server, &session).start();
    executor
        .execute(&execution, "shell", "echo begun > begun; sleep 604")
        .json(202);
    executor.until_file("begun");
    let door = executor.pid().as_raw_nonzero().get();
    let keeper = executor.children(door)[0];
    rustix::process::kill_process(keeper, Signal::KILL).unwrap();
    let status = executor.wait();
    assert_eq!(status.code(), Some(1), "{}", executor.log());
    assert!(
        executor.log().contains("was killed by signal 9"),
        "{}",
        executor.log()
    );
    let found = server
        .get(&format!("/executions/{execution}/status"))
        .json(200);
    assert_eq!(found["status"], "crashed", "{found:#}");
    let found = server.get(&format!("/sessions/{session}")).json(200);
    assert_eq!(found["status"], "failed", "{found:#}");
}
