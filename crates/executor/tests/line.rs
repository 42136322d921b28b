//! What is asked and answered on the line to an executor.
#![allow(clippy::unwrap_used)]

mod session;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit};
use sandbox_executor::listing::Page;
use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use sandbox_executor::{Ending, Happening, Link, Outcome, Request, link};
use sandbox_linux::message;
use sandbox_model::execution::Language::{Python, Shell};
use serde_json::json;
use session::{on_a_line, on_a_line_after, request, returned, upload, upload_path_last};

type Answered = Result<(Answer, Option<OwnedFd>), Refusal>;

async fn next(link: &Link) -> (u64, Answered) {
    let (reply, mut descriptors) = link.receive::<Reply>().await.unwrap().unwrap();
    (
        reply.number,
        reply.answer.map(|answer| (answer, descriptors.pop())),
    )
}

async fn ask(link: &Link, ask: Ask) -> Answered {
    let question = Question { number: 7, ask };
    link.send(&question, &[]).await.unwrap();
    let (number, answered) = next(link).await;
    assert_eq!(number, 7);
    answered
}

fn list(path: &str) -> Ask {
    Ask::List {
        path: path.into(),
        after: None,
        limit: 100,
    }
}

async fn execute(link: &Link, request: Request) -> Outcome {
    let (begun, _) = ask(link, Ask::Execute(request)).await.unwrap();
    assert_eq!(begun, Answer::Begun);
    match next(link).await.1.unwrap() {
        (Answer::Happening(Happening::Outcome(outcome)), None) => *outcome,
        other => panic!("{other:?}"),
    }
}

async fn download(link: &Link, path: &str) -> Vec<u8> {
    match ask(link, Ask::Read(path.into())).await.unwrap() {
        (Answer::File(size), Some(file)) => {
            let mut content = Vec::new();
            File::from(file).read_to_end(&mut content).unwrap();
            assert_eq!(content.len() as u64, size);
            content
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn executions_are_begun_and_then_told() {
    on_a_line(async |link| {
        assert_eq!(ask(link, Ask::Ping).await.unwrap().0, Answer::Done);
        let outcome = execute(link, request(Python, "def handler(event):\n    return 3")).await;
        assert_eq!(returned(&outcome), json!(3));
        // Too long for the socket, both ways.
        let long = Request {
            event: "e".repeat(1_000_000).into(),
            code: format!("# {}\ncat", "c".repeat(99_000)),
            ..request(Shell, "")
        };
        let outcome = execute(link, long).await;
        assert_eq!(
            outcome.result.stdout.len(),
            1_000_002,
            "{:?}",
            outcome.error
        );
    });
}

#[test]
fn what_cannot_be_read_is_refused_and_ends_nothing() {
    on_a_line(async |link| {
        let slow = Ask::Execute(request(Shell, "sleep 0.5; echo done"));
        let question = Question {
            number: 1,
            ask: slow,
        };
        link.send(&question, &[]).await.unwrap();
        assert_eq!(next(link).await.1.unwrap().0, Answer::Begun);
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        for long in [0, 100_000] {
            let asked = Request {
                event: nested(126),
                ..request(Shell, &"#".repeat(long))
            };
            let refusal = ask(link, Ask::Execute(asked)).await.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Failed);
            assert!(refusal.reason.contains("recursion limit"), "{refusal:?}");
        }
        // Nobody is known who could be answered.
        link.send(&json!({ "ask": "ping" }), &[]).await.unwrap();
        link.send(&json!({ "number": 7, "ask": "dance" }), &[])
            .await
            .unwrap();
        let (number, refused) = next(link).await;
        assert_eq!(number, 7);
        assert_eq!(refused.unwrap_err().kind, RefusalKind::Failed);
        assert_eq!(ask(link, Ask::Ping).await.unwrap().0, Answer::Done);
        match next(link).await {
            (1, Ok((Answer::Happening(Happening::Outcome(outcome)), None))) => {
                assert_eq!(outcome.result.stdout, "done\n")
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn one_that_runs_can_be_cancelled() {
    on_a_line(async |link| {
        let asked = request(Shell, "sleep 1000");
        let id = asked.execution_id.clone();
        let begun = ask(link, Ask::Execute(asked)).await.unwrap().0;
        assert_eq!(begun, Answer::Begun);
        let cancelled = ask(link, Ask::Cancel(id)).await.unwrap().0;
        assert_eq!(cancelled, Answer::Cancelled(true));
        match next(link).await.1.unwrap().0 {
            Answer::Happening(Happening::Outcome(outcome)) => {
                assert_eq!(outcome.ending, Ending::Cancelled)
            }
            other => panic!("{other:?}"),
        }
    });
}

/// A field of a process's `stat`, by its number there.
fn stat(pid: &str, number: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.split(' ').nth(number - 1).map(str::to_owned)
}

/// When an interpreter began that is there somewhere below this process, in ticks of the clock.
fn interpreter() -> Option<String> {
    let own = std::process::id().to_string();
    let is_below = |pid: &String| {
        let mut above = std::iter::successors(Some(pid.clone()), |pid| stat(pid, 4));
        above.any(|pid| pid == own)
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().into_string().ok());
    let pid = pids.find(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.starts_with(b"python3\0") && is_below(pid)
    });
    stat(&pid?, 22)
}

#[test]
fn code_that_is_foreseen_finds_its_interpreter_started() {
    on_a_line(async |link| {
        assert_eq!(interpreter(), None);
        let foreseen = ask(link, Ask::Foresee(Python)).await.unwrap().0;
        assert_eq!(foreseen, Answer::Done);
        let deadline = Instant::now() + Duration::from_secs(60);
        let started = loop {
            if let Some(started) = interpreter() {
                break started;
            }
            assert!(Instant::now() < deadline, "nothing was started");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        // By the one that was there before it was wanted.
        let code = "def handler(event):\n    return open('/proc/self/stat').read().split()[21]";
        let ran = returned(&execute(link, request(Python, code)).await);
        assert_eq!(ran, json!(started));
    });
}

#[test]
fn files_go_in_and_out_and_code_sees_them() {
    on_a_line(async |link| {
        upload(link, "data/in.csv", b"a,b\n1,2\n").await;
        upload_path_last(link, "data/last/in.csv", b"c\n").await;
        assert_eq!(download(link, "data/last/in.csv").await, b"c\n");
        let outcome = execute(link, request(Shell, "wc -l < data/in.csv > out; ls -la")).await;
        assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
        assert_eq!(download(link, "out").await, b"2\n");
        let listed = ask(link, list("")).await.unwrap().0;
        let Answer::Entries(Page { entries, next }) = listed else {
            panic!("{listed:?}");
        };
        assert_eq!(next, None);
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["data", "out"]);
        let refused = ask(link, Ask::Remove("data".into())).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Wrong);
        assert!(ask(link, Ask::RemoveAll("data".into())).await.is_ok());
        assert!(ask(link, Ask::Remove("out".into())).await.is_ok());
        let refused = ask(link, Ask::Read("out".into())).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::NotFound);
    });
}

#[test]
fn links_that_code_planted_lead_nowhere() {
    on_a_line(async |link| {
        let plant = "ln -s /etc/passwd passwd; ln -s / root; ln -s /proc/1/root magic; mkfifo pipe";
        execute(link, request(Shell, plant)).await;
        for path in [
            "passwd",
            "root/etc/passwd",
            "magic/etc/passwd",
            "../etc/passwd",
            "/etc/passwd",
        ] {
            let refused = ask(link, Ask::Read(path.into())).await.unwrap_err();
            assert_eq!(refused.kind, RefusalKind::NotFound, "{path}");
            assert!(ask(link, list(path)).await.is_err(), "{path}");
        }
        for path in ["root/tmp/x", "magic/x", "../x", "/tmp/x"] {
            assert!(ask(link, Ask::Write(path.into())).await.is_err(), "{path}");
            let (Answer::Upload(upload), _) = ask(link, Ask::Begin).await.unwrap() else {
                panic!("nothing was begun");
            };
            let path = path.into();
            let refused = ask(link, Ask::CommitAt { upload, path }).await;
            assert_eq!(refused.unwrap_err().kind, RefusalKind::NotFound);
        }
        let left = execute(link, request(Shell, "ls -A")).await;
        assert_eq!(left.result.stdout, "magic\npasswd\npipe\nroot\n");
        let refused = ask(link, Ask::Read("pipe".into())).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Wrong);
    });
}

#[test]
fn an_answer_that_cannot_be_sent_is_refused() {
    let many_on_their_way = || {
        // There may be as many on their way as one may have open.
        let (here, there) = link::pair().unwrap();
        let limit = Rlimit {
            current: Some(100),
            ..rustix::process::getrlimit(Resource::Nofile)
        };
        rustix::process::setrlimit(Resource::Nofile, limit).unwrap();
        message::send(&here, b"x", &[here.as_fd(); 120]).unwrap();
        std::mem::forget((here, there));
        std::fs::write("/workspace/file", "").unwrap();
    };
    on_a_line_after(many_on_their_way, async |link| {
        let refused = ask(link, Ask::Read("file".into())).await.unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Failed, "{}", refused.reason);
        assert_eq!(ask(link, Ask::Ping).await.unwrap().0, Answer::Done);
    });
}
