//! Executors that are killed: what they ran is told as lost, and nobody else notices.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use rustix::process::{Signal, kill_process};
use sandbox_api_tests::load::{A_FEW_SECONDS, CLIENTS, Crowd, under_load};
use sandbox_api_tests::process::{executor, unlikely};
use sandbox_api_tests::{Options, Server, Storage, User, eventually};
use serde_json::{Value, json};

/// How many sessions lose their executors.
const VICTIMS: usize = 6;

/// How often each of them does.
const ROUNDS: usize = 2;

/// An execution that runs until its executor is killed, beside whatever else that runs.
struct Endless {
    session: String,
    word: String,
    execution: String,
}

impl Endless {
    fn begin(server: &Server, session: &str, number: usize) -> Endless {
        let word = unlikely(600, u32::try_from(number).unwrap());
        let mut endless = Endless {
            session: session.to_owned(),
            word,
            execution: String::new(),
        };
        endless.execution = endless.submit(server);
        endless
    }

    fn submit(&self, server: &Server) -> String {
        let Endless { session, word, .. } = self;
        let code = format!("echo {word} >> endless; sleep {word}");
        let fields = json!({ "language": "shell", "code": code, "timeout": 900 });
        let call = server.posting(&format!("/sessions/{session}/execute"), &fields);
        let answer = call.header("Idempotency-Key", word).send().json(200);
        answer["execution_id"].as_str().unwrap().to_owned()
    }

    /// It is told as lost, and is not run again.
    fn check(&self, server: &Server) {
        let Endless {
            session,
            word,
            execution,
        } = self;
        let crashed = server.until(execution, "crashed");
        let error = crashed["error"].as_str().unwrap();
        assert!(error.contains("executor"), "{error}");
        assert_eq!(self.submit(server), *execution);
        assert_eq!(
            server.shell(session, &format!("grep -c '^{word}$' endless")),
            "1"
        );
    }
}

fn executors_that_are_killed_take_nothing_with_them_but_what_ran(options: Options) {
    let server = options.start();
    let mut crowd = Crowd::gather(&server);
    let victims = crowd.clients.iter().take(VICTIMS);
    let victims: Vec<_> = victims.map(|client| client.session.clone()).collect();
    let mut lost = Vec::new();
    let load = under_load(&server, &mut crowd, 100, |load| {
        for round in 0..ROUNDS {
            let begin = |(number, session): (usize, &String)| {
                Endless::begin(&server, session, 10 + round * VICTIMS + number)
            };
            let running: Vec<_> = victims.iter().enumerate().map(begin).collect();
            let executors: Vec<_> = running.iter().map(|it| executor(&it.word)).collect();
            for executor in executors {
                kill_process(executor, Signal::KILL).unwrap();
            }
            // They go on, with new ones.
            for session in &victims {
                assert_eq!(server.shell(session, "echo well"), "well");
            }
            load.until_answered_more(CLIENTS);
            lost.extend(running);
        }
    });
    // Nobody else noticed.
    for odd in load.odd() {
        let is_victim = odd.session.as_ref().is_some_and(|it| victims.contains(it));
        assert!(is_victim, "{odd:?}");
        assert!(odd.took < A_FEW_SECONDS, "{odd:?}");
        let error = odd.answer.error(503, "Sandbox.Unavailable");
        let told = error["description"].as_str().unwrap();
        assert!(told.contains("executor"), "{error}");
    }
    for client in &crowd.clients {
        assert!(client.lost() <= ROUNDS, "{client:#?}");
    }
    for endless in lost {
        endless.check(&server);
    }
    crowd.check_but_for(&server, &victims);
}

#[test]
fn executors_that_are_killed_take_nothing_with_them_but_what_ran_with_sqlite() {
    let options = Options::on(Storage::SqliteAndFiles);
    executors_that_are_killed_take_nothing_with_them_but_what_ran(options);
}

#[test]
fn executors_of_an_ordinary_user_that_are_killed_take_nothing_with_them_but_what_ran() {
    let options = Options::on(Storage::SqliteAndFiles).by(User::Tester);
    executors_that_are_killed_take_nothing_with_them_but_what_ran(options);
}

#[test]
fn executors_that_are_killed_take_nothing_with_them_but_what_ran_with_postgres() {
    let options = Options::on(Storage::PostgresAndS3);
    executors_that_are_killed_take_nothing_with_them_but_what_ran(options);
}

#[test]
fn executors_that_are_killed_take_nothing_with_them_but_what_ran_with_mariadb() {
    let options = Options::on(Storage::MariadbAndFiles);
    executors_that_are_killed_take_nothing_with_them_but_what_ran(options);
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
