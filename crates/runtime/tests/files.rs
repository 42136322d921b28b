//! The files of a session, from outside.
#![allow(clippy::unwrap_used)]

mod server;

use sandbox_executor::protocol::{Ask, RefusalKind};
use sandbox_model::execution::Language::Shell;
use sandbox_runtime::{Line, LineError};
use server::{id, spec, streamed, with_a_line};

async fn printed(line: &Line, code: &str) -> String {
    let outcome = line.execute(streamed(Shell, code), || {}).await.unwrap();
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
    outcome.result.stdout
}

#[test]
fn an_upload_that_was_never_finished_is_gone_when_the_session_is_raised_again() {
    with_a_line(async |local, line| {
        for path in ["one", "deep/two"] {
            line.ask(Ask::Write(path.into())).await.unwrap();
        }
        assert_eq!(printed(&line, "ls -A | wc -l").await, "3\n");
        local.end(&id('a')).await.unwrap();
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(printed(&line, "find . -mindepth 1").await, "./deep\n");
    });
}

#[test]
fn uploads_that_are_never_finished_do_not_pile_up() {
    with_a_line(async |_, line| {
        let refused = loop {
            if let Err(error) = line.ask(Ask::Write("file".into())).await {
                break error;
            }
        };
        let LineError::Refused(refusal) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refusal.kind, RefusalKind::Busy);
        assert_eq!(printed(&line, "ls -A | wc -l").await, "64\n");
    });
}

#[test]
fn a_tree_is_removed_and_nothing_that_its_links_lead_to() {
    with_a_line(async |_, line| {
        let make = "mkdir -p tree/a/b keep; echo > keep/file; ln -s ../keep tree/link; ln -s /usr tree/a/usr; \
                    mkfifo tree/a/pipe; mkdir -m 0 tree/closed; for i in $(seq 500); do echo > tree/a/b/$i; done";
        printed(&line, make).await;
        line.ask(Ask::RemoveAll("tree".into())).await.unwrap();
        assert_eq!(
            printed(&line, "find . -mindepth 1 | sort").await,
            "./keep\n./keep/file\n"
        );
        for path in ["tree", "../etc", "/etc"] {
            let refused = line.ask(Ask::RemoveAll(path.into())).await.unwrap_err();
            assert!(
                matches!(refused, LineError::Refused(_)),
                "{path}: {refused:?}"
            );
        }
    });
}
