//! A server that ends in the middle of everything, killed or told to: what was answered stands, what was not is told,
//! and nothing is done twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::load::{Crowd, under_load};
use sandbox_api_tests::{Options, Server, Storage, User, eventually, id_of};
use sandbox_tests::{as_both, finish};
use serde_json::{Value, json};

/// An execution that is to be run again when it crashes, and does not end by itself the first time.
struct Retried {
    session: String,
    first: String,
}

impl Retried {
    fn begin(server: &Server) -> Retried {
        let session = server.session();
        let first = Retried::submit(server, &session);
        server.until_file(&session, "log");
        Retried { session, first }
    }

    fn submit(server: &Server, session: &str) -> String {
        let code = "echo ran >> log; [ $(wc -l < log) -gt 1 ] || sleep 600";
        let fields = json!({ "language": "shell", "code": code, "timeout": 900, "retry": true });
        let call = server.posting(&format!("/sessions/{session}/execute"), &fields);
        let answer = call.header("Idempotency-Key", "retried").send().json(200);
        answer["execution_id"].as_str().unwrap().to_owned()
    }

    /// It was lost, and run again once; its key leads to the first attempt, and to no other.
    fn check(&self, server: &Server) {
        let Retried { session, first } = self;
        server.until(first, "crashed");
        let all = || {
            let path = format!("/sessions/{session}/executions");
            server.get(&path).json(200)["executions"].clone()
        };
        let second = eventually("it is run again", || {
            let is_next = |execution: &&Value| execution["parent_execution_id"] == json!(first);
            all().as_array().unwrap().iter().find(is_next).cloned()
        });
        assert_eq!(second["retry_count"], 1, "{second:#}");
        server.until(second["execution_id"].as_str().unwrap(), "completed");
        assert_eq!(Retried::submit(server, session), *first);
        assert_eq!(all().as_array().unwrap().len(), 2);
        assert_eq!(server.shell(session, "wc -l < log"), "2");
    }
}

/// What a directory holds, by name.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Every session that the records know, over or not.
fn sessions(server: &Server) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut path = String::from("/sessions?limit=200");
    loop {
        let page = server.get(&path).json(200);
        all.extend(page["sessions"].as_array().unwrap().iter().map(id_of));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/sessions?limit=200&cursor={cursor}"),
            None => return all,
        }
    }
}

fn a_server_that_is_killed_goes_on_where_it_was(options: Options) {
    let mut server = options.start();
    let mut crowd = Crowd::gather(&server);
    let retried = Retried::begin(&server);
    let (processes, pid) = (server.processes(), server.pid());
    under_load(&server, &mut crowd, 100, |_| {
        eventually("a session is half made", || {
            let creating = server.get("/sessions?status=creating").json(200);
            (creating["total"] != 0).then_some(())
        });
        kill_process(pid, Signal::KILL).unwrap();
    });
    server.wait();
    server.must_have_ended();
    server.start();
    crowd.check(&server);
    retried.check(&server);
    // The pool is filled again, and of the old one nothing is left.
    let asked = json!({ "template_id": "python-basic", "pool": "require" });
    eventually("a session of the pool", || {
        (server.post("/sessions", &asked).status == 201).then_some(())
    });
    eventually("the pool to be as it was", || {
        let known = sessions(&server);
        let there = names(&server.data().join("sessions/sandboxes"));
        let strange = there
            .iter()
            .filter(|name| name.starts_with("sess_") && !known.contains(*name));
        // Two for Python, one for JavaScript.
        (strange.count() == 3).then_some(())
    });
    server.stop();
    server.must_be_clean(&processes);
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was_with_sqlite() {
    a_server_that_is_killed_goes_on_where_it_was(Options::on(Storage::SqliteAndFiles));
}

#[test]
fn a_server_of_an_ordinary_user_that_is_killed_goes_on_where_it_was() {
    let options = Options::on(Storage::SqliteAndFiles).by(User::Tester);
    a_server_that_is_killed_goes_on_where_it_was(options);
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was_with_postgres() {
    a_server_that_is_killed_goes_on_where_it_was(Options::on(Storage::PostgresAndS3));
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was_with_mariadb() {
    a_server_that_is_killed_goes_on_where_it_was(Options::on(Storage::MariadbAndFiles));
}

/// An execution that runs, and goes on.
fn endless(server: &Server, session: &str) -> String {
    let code = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 900 });
    let execution = server.submit(session, code);
    server.until_file(session, "begun");
    execution
}

as_both! {
    fn a_supervisor_that_is_killed_is_started_again(user) {
        let mut server = Options::on(Storage::SqliteAndFiles).by(user).start();
        let (session, other) = (server.session(), server.session());
        server.upload(&session, "kept", b"kept").json(200);
        for _ in 0..2 {
            let execution = endless(&server, &session);
            let before = server.supervisor();
            kill_process(before, Signal::KILL).unwrap();
            // What ran is lost, and nothing else is.
            let crashed = server.until(&execution, "crashed");
            assert!(!crashed["error"].as_str().unwrap().is_empty());
            let well = || {
                let code = json!({ "language": "shell", "code": "cat kept", "timeout": 60 });
                let path = format!("/sessions/{session}/execute?wait=true");
                let answer = server.post(&path, &code);
                // For a moment there is nobody who could start it.
                (answer.status == 200 && answer.json(200)["stdout"] == "kept").then_some(())
            };
            eventually("it runs again", well);
            assert_eq!(server.shell(&other, "echo well"), "well");
            assert_eq!(server.shell(&server.session(), "echo well"), "well");
            assert_ne!(server.supervisor(), before);
        }
        let healthy = || (server.call("GET", "/health").send().json(200)["status"] == "healthy").then_some(());
        eventually("it is well", healthy);
        let log = server.log();
        assert!(log.contains("ended, and all sessions with it: it was killed by signal 9"), "{log}");
        assert!(log.contains("was started again"), "{log}");
        let processes = server.processes();
        server.stop();
        server.must_be_clean(&processes);
    }

    fn a_server_is_degraded_while_it_has_no_supervisor(user) {
        let server = Options::on(Storage::SqliteAndFiles).by(user).start();
        let session = server.session();
        // One that ends at once is not started again at once.
        let degraded = || {
            kill_process(server.supervisor(), Signal::KILL).ok()?;
            let health = server.call("GET", "/health").send().json(200);
            (health["status"] == "degraded").then_some(health)
        };
        let health = eventually("it is degraded", degraded);
        assert_eq!(health["components"]["runtime_local"]["status"], "unhealthy");
        assert_eq!(server.get(&format!("/sessions/{session}")).json(200)["status"], "running");
        let well = || (server.call("GET", "/health").send().json(200)["status"] == "healthy").then_some(());
        eventually("it is well", well);
        assert_eq!(server.shell(&session, "echo well"), "well");
    }
}

#[test]
fn a_server_that_is_told_to_end_lets_what_runs_come_to_its_end() {
    let mut server = Options::on(Storage::SqliteAndFiles).start();
    let session = server.session();
    let events = server.events(&session);
    let path = format!("/sessions/{session}/execute?wait=true");
    let code = "echo > begun; sleep 1; echo done";
    let call = server.posting(&path, &json!({ "language": "shell", "code": code }));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call.send().json(200));
        server.until_file(&session, "begun");
        server.signal(Signal::TERM);
        let result = waiting.join().unwrap();
        assert_eq!(
            (&result["status"], &result["stdout"]),
            (&json!("success"), &json!("done\n"))
        );
    });
    // A stream of events ends with it.
    assert!(
        events
            .map(|event| event.name)
            .any(|name| name == "execution")
    );
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
}

#[test]
fn what_does_not_come_to_its_end_in_time_is_told_as_interrupted() {
    let options = Options::on(Storage::SqliteAndFiles).with(&["--drain-timeout", "1s"]);
    let mut server = options.start();
    let session = server.session();
    let execution = endless(&server, &session);
    let processes = server.processes();
    let begin = Instant::now();
    server.signal(Signal::TERM);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    server.must_be_clean(&processes);
    server.start();
    let result = server
        .get(&format!("/executions/{execution}/result"))
        .json(200);
    assert_eq!(result["status"], "crashed");
    let error = result["error"].as_str().unwrap();
    assert!(
        error.contains("interrupted") && error.contains("shut"),
        "{error}"
    );
    assert_eq!(server.shell(&session, "ls"), "begun");
}

#[test]
fn a_server_that_is_told_twice_to_end_waits_for_nobody() {
    let options = Options::on(Storage::SqliteAndFiles).with(&["--drain-timeout", "10m"]);
    let mut server = options.start();
    let session = server.session();
    let execution = endless(&server, &session);
    let processes = server.processes();
    server.signal(Signal::TERM);
    eventually("it takes nothing new", || {
        let answer = server.call("GET", "/api/v1/sessions").try_send();
        answer.is_err().then_some(())
    });
    server.signal(Signal::TERM);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
    server.must_be_clean(&processes);
    server.start();
    let error = server.until(&execution, "crashed")["error"].clone();
    assert!(error.as_str().unwrap().contains("interrupted"), "{error}");
}

#[test]
fn two_servers_do_not_share_a_directory() {
    let server = Options::on(Storage::SqliteAndFiles).start();
    let session = server.session();
    let outcome = finish(&mut server.command());
    assert_ne!(outcome.code(), 0, "{outcome:?}");
    let said = outcome.err();
    assert!(
        said.contains("another server uses the data directory"),
        "{said}"
    );
    // The first did not notice.
    assert_eq!(server.shell(&session, "echo well"), "well");
}
