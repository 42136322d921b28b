//! Time, output and everything else that code may take too much of.
#![allow(clippy::unwrap_used)]

mod session;

use std::path::Path;
use std::time::{Duration, Instant};

use sandbox_executor::{Ending, Request};
use sandbox_model::execution::FailureCause;
use sandbox_model::execution::Language::{Javascript, Python, Shell};
use session::{in_session, request, returned, run};

/// How many processes sleep for 1000.5 seconds. Code sees nobody but itself; whoever keeps the session, all of them.
fn sleepers() -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    commands
        .filter(|command| command == b"sleep\x001000.5\0")
        .count()
}

/// Waits until it is so.
async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn time_is_up_when_it_is_up_whatever_the_code_does() {
    let stubborn = [
        (Shell, "sleep 1000.5"),
        (
            Shell,
            "trap '' TERM INT HUP; sleep 1000.5 & while :; do :; done",
        ),
        (Shell, "setsid sleep 1000.5 & (sleep 1000.5 & disown); wait"),
        (
            Python,
            "import os, time\nwhile os.fork(): time.sleep(0.01)\nos.execlp('sleep', 'sleep', '1000.5')",
        ),
        (
            Python,
            "import time\ndef handler(event):\n    time.sleep(1000)",
        ),
    ];
    in_session(async |executor| {
        // One that is there is seen.
        let asked = request(Shell, "sleep 1000.5");
        tokio::join!(executor.execute(&asked), async {
            until(|| sleepers() == 1).await;
            assert!(executor.cancel(&asked.execution_id));
        });
        for (language, code) in stubborn {
            let asked = Request {
                timeout_seconds: 1,
                ..request(language, code)
            };
            let begin = Instant::now();
            let outcome = executor.execute(&asked).await;
            let took = begin.elapsed();
            assert_eq!(outcome.ending, Ending::TimedOut, "{code}");
            assert_eq!(outcome.result.exit_code, -1);
            let last = outcome.result.stderr.lines().last();
            assert_eq!(last, Some("Execution timeout after 1 seconds"));
            assert!(took >= Duration::from_secs(1), "{took:?}");
            assert!(outcome.result.execution_time < 5.0, "{outcome:?}");
            assert_eq!(sleepers(), 0, "{code}");
        }
    });
}

#[test]
fn gigabytes_of_output_are_read_and_the_first_of_it_kept() {
    in_session(async |executor| {
        let code =
            "head -c 500M /dev/zero | tr '\\0' x; head -c 3M /dev/zero | tr '\\0' y >&2; exit 3";
        let outcome = run(executor, Shell, code).await;
        assert_eq!(outcome.result.exit_code, 3);
        assert_eq!(outcome.result.stdout.len(), 1 << 20);
        assert_eq!(outcome.result.stderr.len(), 1 << 20);
        assert!(outcome.result.stdout_truncated && outcome.result.stderr_truncated);
    });
}

#[test]
fn what_is_not_text_does_not_hurt() {
    in_session(async |executor| {
        let outcome = run(
            executor,
            Shell,
            "head -c 100000 /dev/urandom; printf '\\0\\377'",
        )
        .await;
        assert_eq!(outcome.ending, Ending::Finished);
        assert!(!outcome.result.stdout.is_empty());
    });
}

#[test]
fn what_was_said_before_the_end_is_kept() {
    in_session(async |executor| {
        let asked = Request {
            timeout_seconds: 1,
            ..request(Python, "print('so far', flush=True)\nwhile True: pass")
        };
        let outcome = executor.execute(&asked).await;
        assert_eq!(outcome.result.stdout, "so far\n");
        assert_eq!(outcome.ending, Ending::TimedOut);
    });
}

#[test]
fn a_signal_is_told_as_shells_tell_it() {
    in_session(async |executor| {
        let outcome = run(executor, Shell, "kill -SEGV $$").await;
        assert_eq!(outcome.result.exit_code, 128 + 11);
        let outcome = run(executor, Python, "import os\nos.kill(os.getpid(), 9)").await;
        assert_eq!(
            (outcome.ending, outcome.result.exit_code),
            (Ending::Finished, 137)
        );
    });
}

#[test]
fn one_can_be_cancelled_and_others_go_on() {
    in_session(async |executor| {
        let id = request(Shell, "").execution_id;
        assert!(!executor.cancel(&id));
        let other = Request {
            execution_id: "exec_20261116_zzzzzzzz".parse().unwrap(),
            ..request(
                Shell,
                "echo > other; until [ -e go ]; do sleep 0.01; done; echo done",
            )
        };
        let asked = request(Shell, "echo > one; sleep 1000");
        let one = async {
            let outcome = executor.execute(&asked).await;
            // The other had no reason to end before.
            std::fs::write("/workspace/go", "").unwrap();
            outcome
        };
        let (outcome, other, ()) = tokio::join!(one, executor.execute(&other), async {
            let begun = |name| Path::new("/workspace").join(name).exists();
            until(|| begun("one") && begun("other")).await;
            assert!(executor.cancel(&id));
        });
        assert_eq!(outcome.ending, Ending::Cancelled);
        assert_eq!(other.result.stdout, "done\n");
        assert!(!executor.cancel(&id));
    });
}

#[test]
fn many_run_at_once() {
    in_session(async |executor| {
        let square = async |number: u32| {
            let asked = Request {
                event: number.into(),
                ..request(Python, "def handler(event):\n    return event * event")
            };
            returned(&executor.execute(&asked).await)
        };
        let squares = tokio::join!(
            square(1),
            square(2),
            square(3),
            square(4),
            square(5),
            square(6)
        );
        let expected = [1, 4, 9, 16, 25, 36].map(serde_json::Value::from);
        assert_eq!(<[_; 6]>::from(squares), expected);
    });
}

#[test]
fn what_it_used_is_measured_on_its_processes() {
    in_session(async |executor| {
        let code =
            "import time\nblock = bytearray(100 << 20)\nwhile time.process_time() < 0.3: pass";
        let metrics = run(executor, Python, code).await.result.metrics;
        assert!(
            (300.0..2000.0).contains(&metrics.cpu_time_ms),
            "{metrics:?}"
        );
        assert!(
            (100.0..400.0).contains(&metrics.peak_memory_mb),
            "{metrics:?}"
        );
        assert!(metrics.duration_ms >= 300.0, "{metrics:?}");
        let idle = run(executor, Shell, "sleep 0.3").await.result.metrics;
        assert!(
            idle.cpu_time_ms < 100.0 && idle.peak_memory_mb < 50.0,
            "{idle:?}"
        );
    });
}

#[test]
fn a_full_disk_is_told_from_other_failures() {
    in_session(async |executor| {
        for (language, code) in [
            (Shell, "echo much > /dev/full"),
            (Shell, "ulimit -f 1; head -c 100000 /dev/zero > large"),
            (
                Python,
                "with open('/dev/full', 'w') as full: full.write('much')",
            ),
            (
                Javascript,
                "require('fs').writeFileSync('/dev/full', 'much')",
            ),
        ] {
            let outcome = run(executor, language, code).await;
            assert_eq!(outcome.ending, Ending::Finished, "{outcome:?}");
            assert_eq!(
                outcome.result.cause,
                Some(FailureCause::DiskFull),
                "{outcome:?}"
            );
            let error = outcome.error.unwrap();
            assert!(error.contains("resources.disk"), "{error}");
        }
        for (code, exit_code) in [("echo much > /dev/full; true", 0), ("exit 1", 1)] {
            let outcome = run(executor, Shell, code).await;
            assert_eq!(outcome.result.exit_code, exit_code);
            assert_eq!((outcome.result.cause, outcome.error), (None, None));
        }
    });
}

#[test]
fn a_missing_interpreter_is_told() {
    in_session(async |executor| {
        let outcome = run(executor, Shell, "exec /nonexistent").await;
        assert_eq!(outcome.result.exit_code, 127);
        // The session is none the worse for it.
        let outcome = run(executor, Shell, "echo on").await;
        assert_eq!(outcome.result.stdout, "on\n");
    });
}
