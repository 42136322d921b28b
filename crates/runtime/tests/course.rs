//! An execution as its asker sees it.
#![allow(clippy::unwrap_used)]

mod server;

use sandbox_executor::protocol::{Answer, Ask};
use sandbox_executor::{Happening, Stream};
use sandbox_model::execution::Language::Shell;
use sandbox_runtime::{Course, LineError};
use server::{id, streamed, with_a_line};

/// Everything that is printed until the end.
async fn printed(course: &mut Course) -> Vec<u8> {
    let mut printed = Vec::new();
    loop {
        match course.next().await.unwrap().unwrap() {
            Happening::Output { bytes, .. } => printed.extend(bytes),
            Happening::Heartbeat { .. } => {}
            Happening::Outcome(outcome) => {
                assert_eq!(outcome.result.stdout.as_bytes(), printed);
                return printed;
            }
        }
    }
}

#[test]
fn it_is_told_as_it_happens_and_the_outcome_is_the_last_of_it() {
    with_a_line(async |_, line| {
        let waits = "echo here; until [ -e go ]; do :; done; echo gone";
        let mut course = line.begin(streamed(Shell, waits)).await.unwrap();
        let first = course.next().await.unwrap().unwrap();
        let here = Happening::Output {
            stream: Stream::Stdout,
            bytes: b"here\n".to_vec(),
        };
        assert_eq!(first, here);
        // The line is free meanwhile.
        let (answer, _) = line.ask(Ask::Write("go".into())).await.unwrap();
        let Answer::Upload(number) = answer else {
            panic!("{answer:?}");
        };
        line.ask(Ask::Commit(number)).await.unwrap();
        let outcome = loop {
            match course.next().await.unwrap().unwrap() {
                Happening::Output { bytes, .. } => assert_eq!(bytes, b"gone\n"),
                Happening::Heartbeat { .. } => {}
                Happening::Outcome(outcome) => break outcome,
            }
        };
        assert_eq!(outcome.result.stdout, "here\ngone\n");
        assert!(course.next().await.is_none());
    });
}

#[test]
fn one_that_nobody_listens_to_disturbs_nobody() {
    with_a_line(async |_, line| {
        let floods = "yes | head -c 50M; yes | head -c 50M >&2; touch flooded";
        let mut slow = line.begin(streamed(Shell, floods)).await.unwrap();
        let dropped = line.begin(streamed(Shell, floods)).await.unwrap();
        drop(dropped);
        let mut other = line.begin(streamed(Shell, "echo other")).await.unwrap();
        assert_eq!(printed(&mut other).await, b"other\n");
        let waits = line.begin(streamed(Shell, "until [ -e flooded ]; do :; done"));
        let outcome = waits.await.unwrap().outcome().await.unwrap();
        assert_eq!(outcome.result.exit_code, 0);
        let mut told = [0, 0];
        while let Some(happening) = slow.next().await {
            if let Happening::Output { stream, bytes } = happening.unwrap() {
                told[usize::from(stream == Stream::Stderr)] += bytes.len();
            }
        }
        assert_eq!(told, [1 << 20, 1 << 20]);
    });
}

#[test]
fn when_the_session_ends_its_courses_do() {
    with_a_line(async |local, line| {
        let waits = line.begin(streamed(Shell, "sleep 1000"));
        let mut course = waits.await.unwrap();
        local.end(&id('a')).await.unwrap();
        let last = course.next().await.unwrap();
        assert!(matches!(last, Err(LineError::Cut)), "{last:?}");
        assert!(course.next().await.is_none());
        let refused = line.begin(streamed(Shell, "true")).await;
        assert!(refused.is_err());
    });
}

#[test]
fn a_course_holds_the_line() {
    with_a_line(async |_, line| {
        let course = line.begin(streamed(Shell, "sleep 0.2; echo on")).await;
        drop(line);
        let outcome = course.unwrap().outcome().await.unwrap();
        assert_eq!(outcome.result.stdout, "on\n");
    });
}
