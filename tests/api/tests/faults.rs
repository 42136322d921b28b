//! What breaks, breaks in the middle of everything: what was answered stands, what was not is told, and nothing
//! is done twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::process::{executor, parent, started_with, unlikely};
use sandbox_api_tests::{Answer, Call, Options, Server, Storage, User, eventually, id_of};
use sandbox_test_servers::{Database, S3};
use sandbox_tests::{finish, unmount};
use serde_json::{Value, json};

/// How many ask at once.
const CLIENTS: usize = 16;

/// How long a request may take while something that it needs is away.
const A_FEW_SECONDS: Duration = Duration::from_secs(15);

/// Somebody who has code run and files kept, one after the other, and remembers what was answered.
#[derive(Debug)]
struct Client {
    session: String,
    /// What was answered to each execution that was, by its key.
    ran: BTreeMap<String, Value>,
    /// Files that were taken.
    kept: BTreeMap<String, String>,
    /// The executions and files that were not answered.
    open: Vec<usize>,
    next: usize,
}

/// What clients do until they are told to stop.
#[derive(Debug, Default)]
struct Load {
    is_over: AtomicBool,
    answered: AtomicUsize,
    /// Answers other than those hoped for.
    odd: Mutex<Vec<(Answer, Duration)>>,
}

impl Client {
    fn new(server: &Server) -> Client {
        Client {
            session: server.session(),
            ran: BTreeMap::new(),
            kept: BTreeMap::new(),
            open: Vec::new(),
            next: 0,
        }
    }

    fn execution(&self, server: &Server, number: usize) -> Call {
        let path = format!("/sessions/{}/execute?wait=true", self.session);
        let code = format!("echo {number} >> log; echo {number}");
        let fields = json!({ "language": "shell", "code": code, "timeout": 60 });
        let call = server.posting(&path, &fields);
        call.header("Idempotency-Key", format!("run-{number}"))
    }

    fn upload(&self, server: &Server, number: usize) -> Call {
        let target = format!("/api/v1/sessions/{}/files/upload", self.session);
        let content = format!("the content of {number}");
        let call = server.call("POST", &target);
        call.form(Some(&format!("file-{number}")), "file", content.as_bytes())
    }

    /// Asks until there is nobody who answers, or enough was asked.
    fn go_on(&mut self, server: &Server, load: &Load) {
        while !load.is_over.load(Ordering::SeqCst) {
            let number = self.next;
            self.next += 1;
            self.open.push(number);
            let begin = Instant::now();
            let Ok(answer) = self.execution(server, number).try_send() else {
                return;
            };
            if answer.status == 200 {
                self.ran.insert(format!("run-{number}"), answer.json(200));
                self.open.retain(|open| *open != number);
                load.answered.fetch_add(1, Ordering::SeqCst);
            } else {
                load.odd.lock().unwrap().push((answer, begin.elapsed()));
            }
            let begin = Instant::now();
            let Ok(answer) = self.upload(server, number).try_send() else {
                return;
            };
            if answer.status == 201 {
                let content = format!("the content of {number}");
                self.kept.insert(format!("file-{number}"), content);
                load.answered.fetch_add(1, Ordering::SeqCst);
            } else {
                load.odd.lock().unwrap().push((answer, begin.elapsed()));
            }
        }
    }

    /// Everything that was answered is there, and everything else is told; nothing ran twice.
    fn check(&self, server: &Server) {
        let Client { session, .. } = self;
        let found = server.get(&format!("/sessions/{session}")).json(200);
        assert_eq!(found["status"], "running", "{found:#}");
        for (key, answer) in &self.ran {
            assert_eq!(answer["status"], "success", "{answer:#}");
            let execution = answer["execution_id"].as_str().unwrap();
            let found = server.get(&format!("/executions/{execution}/result"));
            assert_eq!(found.json(200), *answer);
            let number = key.strip_prefix("run-").unwrap().parse().unwrap();
            let again = self.execution(server, number).send();
            assert_eq!(again.json(200), *answer);
        }
        for number in &self.open {
            // It was done, or was not, or broke off: whichever it is, it is not done again.
            let again = eventually("an answer to what was left open", || {
                let answer = self.execution(server, *number).send();
                (answer.status != 409).then_some(answer)
            });
            let again = again.json(200);
            assert!(
                ["success", "crashed"].contains(&again["status"].as_str().unwrap()),
                "{again:#}"
            );
            if again["status"] == "crashed" {
                assert!(!again["error"].as_str().unwrap().is_empty(), "{again:#}");
            }
        }
        for (path, content) in &self.kept {
            let found = server.get(&format!("/sessions/{session}/files/{path}"));
            assert_eq!(found.expect(200).text(), *content);
        }
        let mut completed = 0;
        for status in [
            "pending",
            "running",
            "completed",
            "crashed",
            "failed",
            "timeout",
            "cancelled",
        ] {
            let page = server
                .get(&format!("/sessions/{session}/executions?status={status}"))
                .json(200);
            match status {
                "completed" => completed = page["total"].as_u64().unwrap(),
                "crashed" => {
                    for crashed in page["executions"].as_array().unwrap() {
                        assert!(
                            !crashed["error"].as_str().unwrap().is_empty(),
                            "{crashed:#}"
                        );
                    }
                }
                _ => assert_eq!(page["total"], 0, "{page:#}"),
            }
        }
        let lines = server.shell(session, "cat log 2>/dev/null; true");
        let lines: Vec<_> = lines.lines().collect();
        let unique: BTreeSet<_> = lines.iter().collect();
        assert_eq!(lines.len(), unique.len(), "twice: {lines:?}");
        assert!(lines.len() as u64 >= completed, "{completed}: {lines:?}");
        for key in self.ran.keys() {
            assert!(
                unique.contains(&key.strip_prefix("run-").unwrap()),
                "{key}: {lines:?}"
            );
        }
    }
}

/// Ends a load when it is dropped, whatever else happened.
struct Over<'l>(&'l Load);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// Lets clients work until `enough` was answered, then does `fault`; and stops them when that is done.
fn under_load(
    server: &Server,
    clients: &mut [Client],
    enough: usize,
    fault: impl FnOnce(&Load),
) -> Load {
    let load = Load::default();
    std::thread::scope(|scope| {
        for client in clients.iter_mut() {
            scope.spawn(|| client.go_on(server, &load));
        }
        let _over = Over(&load);
        let answered = || load.answered.load(Ordering::SeqCst);
        eventually("enough answers", || (answered() >= enough).then_some(()));
        fault(&load);
    });
    load
}

fn clients(server: &Server) -> Vec<Client> {
    (0..CLIENTS).map(|_| Client::new(server)).collect()
}

/// What a directory holds, by name.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn a_server_that_is_killed_goes_on_where_it_was(storage: Storage) {
    let mut server = Options::on(storage).start();
    let mut clients = clients(&server);
    let processes = server.processes();
    let pid = server.pid();
    under_load(&server, &mut clients, 100, |_| {
        kill_process(pid, Signal::KILL).unwrap()
    });
    server.wait();
    server.must_have_ended();
    server.start();
    for client in &clients {
        client.check(&server);
    }
    // The pool is filled again, and of the old one nothing is left.
    let asked = json!({ "template_id": "python-basic", "pool": "require" });
    eventually("a session of the pool", || {
        (server.post("/sessions", &asked).status == 201).then_some(())
    });
    eventually("the pool to be as it was", || {
        let page = server.get("/sessions?limit=200").json(200);
        let sessions = page["sessions"].as_array().unwrap().iter();
        let known: BTreeSet<_> = sessions.map(id_of).collect();
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
    a_server_that_is_killed_goes_on_where_it_was(Storage::SqliteAndFiles);
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was_with_postgres() {
    a_server_that_is_killed_goes_on_where_it_was(Storage::PostgresAndS3);
}

#[test]
fn a_server_that_is_killed_goes_on_where_it_was_with_mariadb() {
    a_server_that_is_killed_goes_on_where_it_was(Storage::MariadbAndFiles);
}

/// An execution that runs, and goes on.
fn endless(server: &Server, session: &str) -> String {
    let code = json!({ "language": "shell", "code": "echo > begun; sleep 600", "timeout": 900 });
    let execution = server.submit(session, code);
    server.until_file(session, "begun");
    execution
}

fn executions(server: &Server, session: &str) -> Vec<Value> {
    let page = server
        .get(&format!("/sessions/{session}/executions"))
        .json(200);
    page["executions"].as_array().unwrap().clone()
}

#[test]
fn an_executor_that_is_killed_takes_nothing_with_it_but_what_ran() {
    for user in [User::Root, User::Tester] {
        let server = Options::on(Storage::SqliteAndFiles).by(user).start();
        let (session, other) = (server.session(), server.session());
        let word = unlikely(600, 1);
        let code = format!("echo ran >> log; [ $(wc -l < log) -gt 2 ] || sleep {word}");
        let fields = |retry: bool| json!({ "language": "shell", "code": code, "timeout": 900, "retry": retry });
        let once = server.submit(&session, fields(false));
        kill_process(executor(&word), Signal::KILL).unwrap();
        let crashed = server.until(&once, "crashed");
        let error = crashed["error"].as_str().unwrap();
        assert!(error.contains("executor"), "{error}");
        // At once.
        assert_eq!(server.shell(&session, "cat log"), "ran");
        assert_eq!(executions(&server, &session).len(), 2);

        let first = server.submit(&session, fields(true));
        kill_process(executor(&word), Signal::KILL).unwrap();
        server.until(&first, "crashed");
        let second = eventually("it is run again", || {
            let all = executions(&server, &session);
            let is_next = |execution: &Value| execution["parent_execution_id"] == json!(first);
            all.into_iter().find(is_next)
        });
        assert_eq!(second["retry_count"], 1);
        server.until(second["execution_id"].as_str().unwrap(), "completed");
        assert_eq!(server.shell(&session, "wc -l < log"), "3");
        // Nobody else noticed.
        assert_eq!(server.shell(&other, "echo well"), "well");
    }
}

#[test]
fn a_server_whose_nursery_is_killed_says_so_and_ends() {
    let mut server = Options::on(Storage::SqliteAndFiles).start();
    let session = server.session();
    server.upload(&session, "kept", b"kept").json(201);
    let execution = endless(&server, &session);
    let processes = server.processes();
    let own = Some(server.pid());
    let nursery = processes.iter().find(|pid| parent(**pid) == own).unwrap();
    kill_process(*nursery, Signal::KILL).unwrap();
    let status = server.wait();
    assert!(!status.success(), "{status}");
    assert!(
        server.log().contains("the process that raises sessions"),
        "{}",
        server.log()
    );
    server.must_have_ended();
    server.start();
    let crashed = server.until(&execution, "crashed");
    assert!(!crashed["error"].as_str().unwrap().is_empty());
    assert_eq!(server.shell(&session, "cat kept"), "kept");
    server.stop();
    server.must_be_clean(&processes);
}

/// How many make sessions meanwhile.
const MAKERS: usize = 4;

/// Makes sessions and ends them until it is told to stop: which ones it has no answer for.
fn make_sessions(server: &Server, maker: usize, load: &Load) -> Vec<usize> {
    let mut open = Vec::new();
    for number in 0.. {
        if load.is_over.load(Ordering::SeqCst) {
            break;
        }
        match making(server, maker, number).try_send() {
            Ok(answer) if answer.status == 201 => {
                let session = id_of(&answer.json(201));
                let _ = server
                    .call("DELETE", &format!("/api/v1/sessions/{session}"))
                    .try_send();
            }
            _ => open.push(number),
        }
    }
    open
}

fn making(server: &Server, maker: usize, number: usize) -> Call {
    let call = server.posting("/sessions", &json!({ "template_id": "python-basic" }));
    call.header("Idempotency-Key", format!("session-{maker}-{number}"))
}

/// What was left open is there once, however often it is asked for, and nothing is half made.
fn check_sessions(server: &Server, maker: usize, open: &[usize]) {
    for number in open {
        let ask = || {
            eventually("an answer to what was left open", || {
                let answer = making(server, maker, *number).send();
                (answer.status != 409).then(|| id_of(&answer.json(201)))
            })
        };
        let session = ask();
        assert_eq!(ask(), session);
        assert_eq!(server.shell(&session, "echo well"), "well");
    }
}

#[test]
fn what_a_key_promised_is_not_done_again_because_its_result_was_lost() {
    let database = Database::postgres();
    let url = database.fresh_database();
    let name = url.rsplit('/').next().unwrap();
    let options = Options::on(Storage::SqliteAndFiles);
    let mut server = options.with(&["--database", &url]).start();
    let session = server.session();
    let code = "echo ran >> log; echo > begun; until [ -e go ]; do sleep 0.01; done";
    let fields = json!({ "language": "shell", "code": code });
    let path = format!("/sessions/{session}/execute?wait=true");
    let ask = |server: &Server| {
        let call = server.posting(&path, &fields);
        call.header("Idempotency-Key", "once").send()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&server));
        server.until_file(&session, "begun");
        database.query(name, "ALTER TABLE results RENAME TO hidden");
        server.upload(&session, "go", b"x").json(201);
        first.join().unwrap().error(409, "Sandbox.StateConflict");
    });
    database.query(name, "ALTER TABLE hidden RENAME TO results");
    ask(&server).error(409, "Sandbox.StateConflict");
    assert_eq!(server.shell(&session, "cat log"), "ran");
    // Whoever starts next tells what became of it.
    server.stop();
    server.start();
    let result = ask(&server).json(200);
    assert_eq!(result["status"], "crashed", "{result:#}");
    assert_eq!(server.shell(&session, "cat log"), "ran");
}

fn a_database_that_is_killed_is_waited_for(mut database: Database) {
    let url = database.fresh_database();
    let options = Options::on(Storage::SqliteAndFiles);
    let server = options.with(&["--database", &url]).start();
    let mut clients = clients(&server);
    let session = server.session();
    let word = unlikely(4, 2);
    let code = format!("echo ran >> log; sleep {word}; echo 'the result'");
    let mut slow = String::new();
    let mut open = Vec::new();
    let load = under_load(&server, &mut clients, 100, |load| {
        std::thread::scope(|scope| {
            let server = &server;
            let make = |maker| scope.spawn(move || make_sessions(server, maker, load));
            let makers: Vec<_> = (0..MAKERS).map(make).collect();
            let over = Over(load);
            let fields = json!({ "language": "shell", "code": code, "timeout": 300 });
            slow = server.submit(&session, fields);
            eventually("it runs", || {
                (!started_with(&word).is_empty()).then_some(())
            });
            database.kill();
            let health = server.stranger("GET", "/health").send();
            assert_eq!(health.status, 503, "{}", health.text());
            let health: Value = serde_json::from_slice(&health.body).unwrap();
            let part = &health["components"]["database"];
            assert_eq!(
                (&health["status"], &part["status"]),
                (&json!("unhealthy"), &json!("unhealthy"))
            );
            assert_eq!(server.stranger("GET", "/ready").send().status, 503);
            // It ends while nobody can write that down.
            eventually("it ends", || started_with(&word).is_empty().then_some(()));
            // Whoever's code has run waits for its result to be kept; who asks for more is told.
            let begin = Instant::now();
            let execute = format!("/sessions/{session}/execute");
            let more = json!({ "language": "shell", "code": "true" });
            let answer = server.posting(&execute, &more).send();
            let asked = (answer, begin.elapsed());
            load.odd.lock().unwrap().push(asked);
            database.restart();
            // And they go on.
            let answered = || load.answered.load(Ordering::SeqCst);
            let enough = answered() + CLIENTS;
            eventually("answers again", || (answered() > enough).then_some(()));
            drop(over);
            open.extend(makers.into_iter().map(|maker| maker.join().unwrap()));
        });
    });
    for (answer, took) in load.odd.into_inner().unwrap() {
        assert!(took < A_FEW_SECONDS, "{took:?}: {}", answer.text());
        let error = answer.error(503, "Sandbox.Unavailable");
        let told = error["description"].as_str().unwrap();
        assert!(told.contains("the database"), "{error}");
    }
    server.until(&slow, "completed");
    let result = server.get(&format!("/executions/{slow}/result")).json(200);
    assert_eq!(result["stdout"], "the result\n");
    assert_eq!(server.shell(&session, "cat log"), "ran");
    for client in &clients {
        client.check(&server);
    }
    for (maker, open) in open.iter().enumerate() {
        check_sessions(&server, maker, open);
    }
    let creating = server.get("/sessions?status=creating").json(200);
    assert_eq!(creating["total"], 0, "{creating:#}");
    // Before the database is.
    drop(server);
}

#[test]
fn postgres_that_is_killed_is_waited_for() {
    a_database_that_is_killed_is_waited_for(Database::postgres());
}

#[test]
fn mariadb_that_is_killed_is_waited_for() {
    a_database_that_is_killed_is_waited_for(Database::mariadb());
}

#[test]
fn an_object_store_that_is_killed_is_missed_only_by_who_needs_it() {
    let mut s3 = S3::start();
    let bucket = s3.fresh_bucket();
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--objects", &format!("s3:{bucket}")])
        .env("S3_ENDPOINT", s3.url())
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", s3.access_key())
        .env("AWS_SECRET_ACCESS_KEY", s3.secret_key())
        .start();
    let mut clients = clients(&server);
    let session = server.session();
    server.shell(
        &session,
        "head -c 12M /dev/zero > .large; head -c 1K /dev/zero > .small",
    );
    let large = format!("/sessions/{session}/files/.large");
    assert_eq!(server.get(&large).status, 307);
    let load = under_load(&server, &mut clients, 50, |_| {
        s3.kill();
        let begin = Instant::now();
        let error = server.get(&large).error(503, "Sandbox.Unavailable");
        assert!(
            error["description"]
                .as_str()
                .unwrap()
                .contains("the object store"),
            "{error}"
        );
        assert!(begin.elapsed() < A_FEW_SECONDS, "{:?}", begin.elapsed());
        assert_eq!(
            server
                .get(&format!("/sessions/{session}/files/.small"))
                .expect(200)
                .body
                .len(),
            1024
        );
        let health = server.stranger("GET", "/health").send().json(200);
        assert_eq!(
            (
                &health["status"],
                &health["components"]["object_store"]["status"]
            ),
            (&json!("degraded"), &json!("unhealthy"))
        );
    });
    // Nobody else noticed.
    let odd = load.odd.into_inner().unwrap();
    assert!(odd.is_empty(), "{odd:?}");
    s3.restart();
    eventually("it is there again", || {
        (server.get(&large).status == 307).then_some(())
    });
    for client in &clients {
        client.check(&server);
    }
}

/// A small disk where a server has its data.
struct Disk<'d>(&'d Path);

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        unmount(self.0);
    }
}

#[test]
fn a_full_disk_is_told_and_everything_goes_on_when_there_is_room() {
    let mut server = Options::on(Storage::SqliteAndFiles).start();
    server.stop();
    let data = server.data();
    let mounted = finish(
        Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=48m,mode=0755", "tmpfs"])
            .arg(&data),
    );
    assert_eq!(mounted.code(), 0, "{mounted:?}");
    let disk = Disk(&data);
    server.start();
    let session = server.session();
    server.upload(&session, "before", b"before").json(201);
    let code = "echo > begun; until [ -e go ]; do sleep 0.05; done; echo 'the result'";
    let slow = server.submit(
        &session,
        json!({ "language": "shell", "code": code, "timeout": 300 }),
    );
    server.until_file(&session, "begun");
    server.until(&slow, "running");
    // Not an empty one: it needs no room.
    server.upload(&session, "go", b"").json(201);
    let filler = data.join("filler");
    fill(&filler);

    let begin = Instant::now();
    let mut told = Vec::new();
    told.push(server.post(
        "/sessions",
        &json!({ "template_id": "python-basic", "pool": "never" }),
    ));
    told.push(server.upload(&session, "more", &[7; 1 << 16]));
    let execute = format!("/sessions/{session}/execute?wait=true");
    told.push(server.post(
        &execute,
        &json!({ "language": "shell", "code": "head -c 1M /dev/zero > more" }),
    ));
    assert!(begin.elapsed() < 3 * A_FEW_SECONDS);
    for answer in told {
        // Code is told by its own system call, if it came that far.
        let is_told_inside = answer.status == 200 && answer.text().contains("No space left");
        assert!(
            is_told_inside || answer.status == 503,
            "{}: {}",
            answer.status,
            answer.text()
        );
        let text = answer.text().to_lowercase();
        let words = ["full", "no space", "no room"];
        assert!(words.iter().any(|word| text.contains(word)), "{text}");
    }
    // What needs no room is answered.
    assert_eq!(
        server.get(&format!("/sessions/{session}")).json(200)["status"],
        "running"
    );

    fs::remove_file(&filler).unwrap();
    server.until(&slow, "completed");
    assert_eq!(
        server.get(&format!("/executions/{slow}/result")).json(200)["stdout"],
        "the result\n"
    );
    assert_eq!(
        server
            .get(&format!("/sessions/{session}/files/before"))
            .expect(200)
            .text(),
        "before"
    );
    server
        .get(&format!("/sessions/{session}/files/more"))
        .error(404, "Sandbox.FileNotFound");
    server.upload(&session, "more", &[7; 1 << 16]).json(201);
    assert_eq!(server.shell(&session, "wc -c < more"), "65536");
    server.session();
    // It is all readable by the next life, too.
    end(&mut server);
    server.start();
    assert_eq!(server.shell(&session, "wc -c < more"), "65536");
    end(&mut server);
    drop(disk);
}

/// Ends it in order. Everybody on the machine sees its disk, so nobody is one of its processes for that.
fn end(server: &mut Server) {
    server.signal(Signal::TERM);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
}

/// Fills the disk that a file is on with it.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).unwrap();
    for size in [1 << 20, 4096] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    file.sync_all().unwrap();
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
