//! What is told of an execution while it runs.
#![allow(clippy::unwrap_used)]

mod session;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sandbox_executor::protocol::{Answer, Ask, Question, Reply};
use sandbox_executor::{Ending, Happening, Link, Outcome, Request, Stream};
use sandbox_model::execution::Language::{self, Javascript, Python, Shell};
use session::{on_a_line, request, returned, upload};

/// What was told of one execution.
#[derive(Debug, Default)]
struct Told {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    parts: usize,
    heartbeats: Vec<Option<String>>,
}

fn streamed(language: Language, code: &str) -> Request {
    Request {
        stream: true,
        ..request(language, code)
    }
}

async fn begin(link: &Link, request: Request) {
    let ask = Ask::Execute(request);
    link.send(&Question { number: 1, ask }, &[]).await.unwrap();
    let (reply, _) = link.receive::<Reply>().await.unwrap().unwrap();
    assert_eq!(reply.answer, Ok(Answer::Begun));
}

async fn next(link: &Link) -> Happening {
    let (reply, _) = link.receive::<Reply>().await.unwrap().unwrap();
    match reply.answer {
        Ok(Answer::Happening(happening)) => happening,
        other => panic!("{other:?}"),
    }
}

async fn hear(link: &Link) -> (Told, Outcome) {
    let mut told = Told::default();
    loop {
        match next(link).await {
            Happening::Output { stream, bytes } => {
                told.parts += 1;
                match stream {
                    Stream::Stdout => told.stdout.extend(bytes),
                    Stream::Stderr => told.stderr.extend(bytes),
                }
            }
            Happening::Heartbeat { progress } => told.heartbeats.push(progress),
            Happening::Outcome(outcome) => return (told, *outcome),
        }
    }
}

/// The process of this machine that runs `command`.
fn running(command: &str) -> Option<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_it = |pid: &i32| {
        let found = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        found == command.as_bytes()
    };
    Pid::from_raw(pids.find(is_it)?)
}

async fn run(link: &Link, request: Request) -> (Told, Outcome) {
    begin(link, request).await;
    hear(link).await
}

#[test]
fn what_is_printed_is_told_before_it_is_over() {
    // Each prints, waits for a file, and prints again.
    let shell = "echo one; until [ -e shell ]; do :; done; echo two >&2";
    let python = "import os, sys\nprint('one')\nwhile not os.path.exists('python'): pass\n\
                  print('two', file=sys.stderr)";
    let javascript = "console.log('one'); while (!require('fs').existsSync('javascript')); \
                      console.error('two')";
    on_a_line(async |link| {
        for (language, code) in [(Shell, shell), (Python, python), (Javascript, javascript)] {
            begin(link, streamed(language, code)).await;
            let mut one = Vec::new();
            while one != b"one\n" {
                // An interpreter may print the end of the line for itself.
                match next(link).await {
                    Happening::Output {
                        stream: Stream::Stdout,
                        bytes,
                    } => one.extend(bytes),
                    other => panic!("{other:?}"),
                }
            }
            upload(link, language.as_str(), b"").await;
            let (told, outcome) = hear(link).await;
            assert_eq!(
                (&told.stdout[..], &told.stderr[..]),
                (&b""[..], &b"two\n"[..])
            );
            assert_eq!(outcome.result.stdout, "one\n");
            assert_eq!(outcome.result.stderr, "two\n");
        }
    });
}

#[test]
fn nothing_is_told_that_was_not_asked_for() {
    on_a_line(async |link| {
        let (told, outcome) = run(link, request(Shell, "echo one; echo two >&2")).await;
        assert_eq!(told.parts, 0);
        assert_eq!(outcome.result.stdout, "one\n");
    });
}

#[test]
fn any_bytes_are_told_as_they_are() {
    let code = "import sys\nfor _ in range(1000):\n    sys.stdout.buffer.write(bytes(range(256)))\n    \
                sys.stderr.buffer.write(bytes(range(255, -1, -1)))";
    on_a_line(async |link| {
        let (told, outcome) = run(link, streamed(Python, code)).await;
        assert_eq!(outcome.result.exit_code, 0, "{}", outcome.result.stderr);
        let up: Vec<u8> = (0..=255).collect();
        let down: Vec<u8> = (0..=255).rev().collect();
        assert!(told.stdout == up.repeat(1000) && told.stderr == down.repeat(1000));
    });
}

#[test]
fn of_gigabytes_the_first_is_told_and_nothing_twice() {
    let code = "seq 1 1000000 & seq 1 1000000 >&2 & wait; head -c 1G /dev/zero";
    on_a_line(async |link| {
        let (told, outcome) = run(link, streamed(Shell, code)).await;
        assert_eq!(told.stdout.len(), 1 << 20);
        assert!(told.stdout == outcome.result.stdout.as_bytes());
        assert!(told.stderr == outcome.result.stderr.as_bytes());
        assert!(outcome.result.stdout_truncated && outcome.result.stderr_truncated);
    });
}

#[test]
fn who_is_slow_to_hear_holds_nothing_up() {
    on_a_line(async |link| {
        // As nobody else sleeps.
        let word = format!("1000.{}", std::process::id());
        let print = "head -c 100M /dev/zero; head -c 100M /dev/zero >&2";
        let code = format!("{print}; exec sleep {word}");
        begin(link, streamed(Shell, &code)).await;
        // Everything is printed before anything is heard.
        let command = format!("sleep\0{word}\0");
        let deadline = Instant::now() + Duration::from_secs(60);
        let sleeper = loop {
            if let Some(sleeper) = running(&command) {
                break sleeper;
            }
            assert!(Instant::now() < deadline, "it is held up");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        kill_process(sleeper, Signal::TERM).unwrap();
        let (told, outcome) = hear(link).await;
        assert_eq!(outcome.result.exit_code, 128 + 15, "{outcome:?}");
        assert_eq!((told.stdout.len(), told.stderr.len()), (1 << 20, 1 << 20));
    });
}

#[test]
fn many_are_told_of_at_once() {
    on_a_line(async |link| {
        for number in 0..10 {
            let asked = Request {
                execution_id: format!("exec_20261116_{number:08}").parse().unwrap(),
                ..streamed(
                    Shell,
                    &format!("for i in $(seq 1000); do echo {number}; done"),
                )
            };
            let ask = Ask::Execute(asked);
            link.send(&Question { number, ask }, &[]).await.unwrap();
        }
        let mut told = vec![Vec::new(); 10];
        let mut over = 0;
        while over < 10 {
            let (reply, _) = link.receive::<Reply>().await.unwrap().unwrap();
            let number = usize::try_from(reply.number).unwrap();
            match reply.answer.unwrap() {
                Answer::Begun => {}
                Answer::Happening(Happening::Output { bytes, .. }) => told[number].extend(bytes),
                Answer::Happening(Happening::Outcome(outcome)) => {
                    assert_eq!(outcome.result.stdout.as_bytes(), told[number]);
                    assert_eq!(told[number], format!("{number}\n").repeat(1000).as_bytes());
                    over += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn streams_that_end_early_or_late_do_not_matter() {
    on_a_line(async |link| {
        let (told, outcome) = run(link, streamed(Shell, "echo x; exec >&- 2>&-; sleep 0.2")).await;
        assert_eq!(
            (&told.stdout[..], outcome.ending),
            (&b"x\n"[..], Ending::Finished)
        );
        let daemon = "setsid sh -c 'while :; do echo daemon; done' & disown; echo x >&2";
        let (told, outcome) = run(link, streamed(Shell, daemon)).await;
        assert_eq!(
            (&told.stderr[..], outcome.ending),
            (&b"x\n"[..], Ending::Finished)
        );
        assert!(outcome.result.execution_time < 5.0);
    });
}

#[test]
fn one_that_goes_on_is_told_to() {
    on_a_line(async |link| {
        let (told, outcome) = run(link, request(Shell, "sleep 5.5")).await;
        assert_eq!(told.heartbeats, [None], "{outcome:?}");
        let (told, _) = run(link, request(Shell, "sleep 0.1")).await;
        assert!(told.heartbeats.is_empty());
    });
}

#[test]
fn one_that_is_ended_was_told_of_until_then() {
    on_a_line(async |link| {
        let asked = Request {
            timeout_seconds: 1,
            ..streamed(Shell, "echo here; sleep 1000")
        };
        let (told, outcome) = run(link, asked).await;
        assert_eq!(told.stdout, b"here\n");
        assert_eq!(outcome.ending, Ending::TimedOut);
    });
}

#[test]
fn what_a_handler_yields_is_how_far_it_is() {
    let python = "import time\ndef handler(event):\n    yield {'done': 1}\n    yield ['half', event]\n    \
                  time.sleep(5.5)\n    yield 3\n    return 'all'";
    let javascript = "function* handler(event) { yield 1; yield ['half', event]; \
                      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5500); return 'all'; }";
    on_a_line(async |link| {
        for (language, code) in [(Python, python), (Javascript, javascript)] {
            let (told, outcome) = run(link, request(language, code)).await;
            assert_eq!(
                told.heartbeats,
                [Some("[\"half\",{}]".to_owned())],
                "{outcome:?}"
            );
            assert_eq!(returned(&outcome), serde_json::json!("all"));
        }
    });
}

#[test]
fn a_handler_that_only_returns_a_generator_has_no_result() {
    on_a_line(async |link| {
        let code = "def handler(event):\n    return (n for n in range(3))";
        let (_, outcome) = run(link, request(Python, code)).await;
        assert_eq!(
            (outcome.result.exit_code, &outcome.result.return_value),
            (1, &None)
        );
        let later = "async function* handler() { yield 1; await null; return 2; }";
        let (_, outcome) = run(link, request(Javascript, later)).await;
        assert_eq!(returned(&outcome), serde_json::json!(2));
        let talks = "def handler(event):\n    yield 'x' * 10_000\n    return 1";
        let (_, outcome) = run(link, request(Python, talks)).await;
        assert_eq!(returned(&outcome), serde_json::json!(1));
        let fails = "def handler(event):\n    yield 1\n    raise ValueError('no')";
        let (_, outcome) = run(link, request(Python, fails)).await;
        assert!(
            outcome.result.stderr.contains("ValueError: no"),
            "{outcome:?}"
        );
    });
}

#[test]
fn nonsense_about_progress_harms_nobody() {
    let say = "import os\nfor n in range(3, 100):\n    try:\n        \
               if os.readlink(f'/proc/self/fd/{n}').startswith('socket'): channel = n\n    except OSError: pass\n\
               def say(b): os.write(channel, len(b).to_bytes(4, 'big') + b)\n";
    on_a_line(async |link| {
        for nonsense in [
            "say(b'p' + b'1' * 5000)",
            "say(b'x1')",
            "say(b'pno')",
            "say(b'')",
            "say(b'p\\xff')",
            "os.write(channel, b'\\xff' * 4)",
            "os.close(channel)",
        ] {
            let code = format!("{say}{nonsense}\nprint('on')");
            let (_, outcome) = run(link, request(Python, &code)).await;
            assert_eq!(outcome.result.stdout, "on\n", "{nonsense}: {outcome:?}");
            assert_eq!(outcome.result.return_value, None, "{nonsense}");
        }
        let floods =
            format!("{say}for n in range(200_000): say(b'p%d' % n)\ndef handler(event): return 1");
        let (_, outcome) = run(link, request(Python, &floods)).await;
        assert_eq!(returned(&outcome), serde_json::json!(1));
    });
}
