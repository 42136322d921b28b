//! What the kernel counts for a user as a whole: whether one session can take it from another.
#![allow(clippy::unwrap_used)]

mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use sandbox_executor::protocol::Ask;
use sandbox_model::execution::Language;
use sandbox_runtime::{Line, Local};
use server::{Ends, id, printed, request, served, served_by_tester, spec};

/// Code that uses something up, and code that needs a little of it.
const COUNTERS: &str = include_str!("counters.py");

/// What is counted, and how far one gets: not at all where the filter of system calls forbids it.
const KINDS: [(&str, bool); 8] = [
    ("flight", true),
    ("inotify", true),
    ("pipes", true),
    ("signals", true),
    ("queues", true),
    ("locked", true),
    ("keys", false),
    ("namespaces", false),
];

/// What sessions of an ordinary user's server share, because they share that user.
const SHARED: [&str; 2] = ["flight", "pipes"];

/// Uses up what there is of one kind in the session at the end of `line`, until that is ended: how much it was.
async fn used_up(line: &Line, kind: &str) -> (u64, String) {
    let mut code = request(Language::Python, &format!("{COUNTERS}\ntake_all('{kind}')"));
    code.timeout_seconds = 600;
    let using = line.clone();
    tokio::spawn(async move { using.execute(code, || {}).await });
    let begin = Instant::now();
    loop {
        let said = printed(line, "cat said 2>/dev/null || true").await;
        if let Some((number, error)) = said.split_once(' ') {
            return (number.parse().unwrap(), error.to_owned());
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{kind}");
    }
}

/// What code in another session says that needs a little of it.
async fn needed(line: &Line, kind: &str) -> String {
    let code = request(Language::Python, &format!("{COUNTERS}\ntake_one('{kind}')"));
    let outcome = line.execute(code, || {}).await.unwrap();
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
    outcome.result.stdout.trim().to_owned()
}

/// One session uses up each kind in turn. Whatever happens, its executor, the supervisor and another session go on.
async fn one_after_the_other(local: &Local, check: impl AsyncFn(&str, &Line)) {
    let other = local.raise(spec('b')).await.unwrap().line;
    for (kind, is_allowed) in KINDS {
        let line = local.raise(spec('a')).await.unwrap().line;
        let (number, error) = used_up(&line, kind).await;
        assert_eq!(number > 0, is_allowed, "{kind}: {number} {error}");
        assert!(!error.is_empty(), "{kind}");
        assert_eq!(printed(&line, "echo well").await, "well", "{kind}");
        assert_eq!(printed(&other, "echo well").await, "well", "{kind}");
        line.ask(Ask::Ping).await.unwrap();
        let new = local.raise(spec('c')).await.unwrap().line;
        assert_eq!(printed(&new, "echo well").await, "well", "{kind}");
        local.fork(&id('a'), &id('d')).await.unwrap();
        local.changes(&id('a')).await.unwrap();
        if is_allowed {
            check(kind, &other).await;
        }
        for used in ['a', 'c', 'd'] {
            local.discard(&id(used)).await.unwrap();
        }
    }
}

#[test]
fn no_session_takes_from_another_what_is_counted_by_user() {
    served(async |_: &Path, local: Local, _: Ends| {
        one_after_the_other(&local, async |kind, other| {
            assert_eq!(needed(other, kind).await, "well", "{kind}");
        })
        .await;
    });
}

#[test]
fn sessions_of_an_ordinary_user_share_what_is_counted_by_user() {
    served_by_tester(async |_, local, _| {
        one_after_the_other(&local, async |kind, other| {
            let is_shared = needed(other, kind).await != "well";
            assert_eq!(is_shared, SHARED.contains(&kind), "{kind}");
        })
        .await;
    });
}
