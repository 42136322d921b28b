//! What waits for code before there is any, and what it is given.
#![allow(clippy::unwrap_used)]

mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sandbox_executor::protocol::{Answer, Ask, Question, RefusalKind, Reply};
use sandbox_executor::{Executor, Settings};
use sandbox_model::execution::Language::{self, Javascript, Python, Shell};
use session::{in_session, in_session_with, on_a_line, returned, run, settings};

/// Which processes run the handler.
const WHERE: &str = "import os\ndef handler(event):\n    return os.readlink('/proc/self/ns/pid')";

/// Among which processes each interpreter is that was started already, as seen from above.
fn waiting() -> BTreeSet<String> {
    namespaces("python3\0").collect()
}

/// How many interpreters there are.
fn interpreters() -> usize {
    namespaces("python3\0").count()
}

/// Among which processes each is whose command begins like this.
fn namespaces(command: &str) -> impl Iterator<Item = String> {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.filter_map(move |entry| {
        let process = entry.unwrap().path();
        let found = std::fs::read_to_string(process.join("cmdline")).ok()?;
        let namespace = std::fs::read_link(process.join("ns/pid")).ok()?;
        let is_one = found.starts_with(command);
        is_one.then(|| namespace.into_os_string().into_string().unwrap())
    })
}

/// Is code run by an interpreter that waited for it?
async fn is_warm(executor: &Executor) -> bool {
    is_warm_besides(executor, &BTreeSet::new()).await
}

/// The same, and not by one of these.
async fn is_warm_besides(executor: &Executor, others: &BTreeSet<String>) -> bool {
    let waits = first_besides(others).await;
    let ran = returned(&run(executor, Python, WHERE).await);
    waits.is_some_and(|waits| ran == *waits)
}

/// An interpreter that is none of these, as soon as one was started.
async fn first_besides(others: &BTreeSet<String>) -> Option<String> {
    let begin = Instant::now();
    loop {
        match waiting().difference(others).next().cloned() {
            None if begin.elapsed() < Duration::from_secs(3) => tokio::task::yield_now().await,
            waits => return waits,
        }
    }
}

async fn variable(executor: &Executor, language: Language, name: &str) -> String {
    let code = match language {
        Python => format!("import os\nprint(os.environ.get('{name}', 'none'))"),
        Javascript => format!("console.log(process.env.{name} ?? 'none')"),
        Shell => format!("echo ${{{name}-none}}"),
    };
    let outcome = run(executor, language, &code).await;
    outcome.result.stdout.trim().to_owned()
}

fn env<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

#[test]
fn an_interpreter_waits_for_the_first_code_where_that_is_wanted() {
    let with = Settings {
        warm: Some(Python),
        ..settings()
    };
    in_session_with(
        with,
        |_| (),
        async |executor| {
            assert!(is_warm(executor).await);
            assert!(is_warm(executor).await);
        },
    );
    in_session(async |executor| {
        assert!(!is_warm(executor).await);
        assert!(is_warm(executor).await);
    });
}

#[test]
fn an_interpreter_that_is_only_expected_to_be_wanted_does_not_wait_for_long() {
    let with = Settings {
        expected: Some(Python),
        ..settings()
    };
    let both = [Expecting::Code, Expecting::Nothing];
    for come in both {
        in_session_with(
            with.clone(),
            |_| (),
            async |executor| {
                if come == Expecting::Code {
                    assert!(is_warm(executor).await);
                }
                executor.expect_no_longer();
                // What waits after code was asked for, in a way.
                assert_eq!(is_warm(executor).await, come == Expecting::Code);
            },
        );
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expecting {
    Code,
    Nothing,
}

#[test]
fn where_both_are_used_a_shell_finds_its_walls_built_too() {
    in_session(async |executor| {
        run(executor, Shell, "true").await;
        run(executor, Python, "").await;
        for _ in 0..2 {
            let begin = Instant::now();
            // The executor's own, the interpreter's, and those of nobody yet.
            let built = loop {
                let built: BTreeSet<_> = namespaces("").collect();
                if built.len() == 3 {
                    break built;
                }
                assert!(begin.elapsed() < Duration::from_secs(10), "{built:?}");
                tokio::task::yield_now().await;
            };
            let ran = run(executor, Shell, "readlink /proc/self/ns/pid").await;
            assert!(
                built.contains(ran.result.stdout.trim()),
                "{built:?}: {ran:?}"
            );
            assert!(is_warm(executor).await);
        }
    });
}

#[test]
fn code_that_takes_its_time_does_not_keep_an_interpreter_from_waiting() {
    in_session(async |executor| {
        let code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)";
        let slow = run(executor, Python, code);
        let other = async {
            // The one that runs, and the one that waits for what is next.
            while interpreters() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            std::fs::write("/workspace/go", "").unwrap();
        };
        let (outcome, ()) = tokio::join!(slow, other);
        assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
        assert!(is_warm(executor).await);
    });
}

#[test]
fn what_is_configured_is_found_by_the_executions_to_come() {
    in_session(async |executor| {
        for language in [Python, Javascript, Shell] {
            // So that one waits.
            assert_eq!(variable(executor, language, "FIRST").await, "none");
            executor
                .configure(&env([("FIRST", "1"), ("LANG", "C")]))
                .unwrap();
            assert_eq!(variable(executor, language, "FIRST").await, "1");
            assert_eq!(variable(executor, language, "LANG").await, "C");
            assert_eq!(variable(executor, language, "HOME").await, "/workspace");
            executor.configure(&env([("SECOND", "a=b \n'\"")])).unwrap();
            assert_eq!(variable(executor, language, "FIRST").await, "none");
            assert_eq!(variable(executor, language, "LANG").await, "C.UTF-8");
            executor.configure(&env([])).unwrap();
        }
    });
}

#[test]
fn after_it_was_configured_an_interpreter_waits_again() {
    let with = Settings {
        warm: Some(Python),
        ..settings()
    };
    in_session_with(
        with,
        |_| (),
        async |executor| {
            // The one that waited is ended, which takes a moment; so does its start.
            let before = BTreeSet::from([first_besides(&BTreeSet::new()).await.unwrap()]);
            executor.configure(&env([("NEW", "1")])).unwrap();
            assert!(is_warm_besides(executor, &before).await);
            executor.configure(&env([("NEW", "2")])).unwrap();
            assert_eq!(variable(executor, Python, "NEW").await, "2");
        },
    );
}

#[test]
fn what_is_no_environment_is_refused() {
    on_a_line(async |link| {
        let ask = async |env| {
            let ask = Ask::Configure { env };
            link.send(&Question { number: 1, ask }, &[]).await.unwrap();
            link.receive::<Reply>().await.unwrap().unwrap().0.answer
        };
        let long = "x".repeat(1 << 20);
        for pair in [
            ("", "x"),
            ("A=B", "x"),
            ("A\0", "x"),
            ("A", "\0"),
            ("A", &long),
        ] {
            let refused = ask(env([pair])).await.unwrap_err();
            assert_eq!(refused.kind, RefusalKind::Wrong, "{}", refused.reason);
        }
        assert_eq!(ask(env([("A", "x")])).await, Ok(Answer::Done));
    });
}
