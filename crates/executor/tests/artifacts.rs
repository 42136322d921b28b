//! Files that executions made.
#![allow(clippy::unwrap_used)]

mod session;

use std::time::Instant;

use sandbox_executor::protocol::{Answer, Ask, Question, Reply};
use sandbox_executor::{Ending, Executor, Happening, Outcome, Request, Stream};
use sandbox_model::execution::Language::{Python, Shell};
use session::{in_session, in_session_of, on_a_line, request, run, upload, upload_path_last};

fn paths(outcome: &Outcome) -> Vec<&str> {
    assert_eq!(outcome.ending, Ending::Finished, "{outcome:?}");
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
    let artifacts = outcome.artifacts.iter();
    artifacts.map(|artifact| artifact.path.as_str()).collect()
}

async fn made(executor: &Executor, code: &str) -> Vec<String> {
    let outcome = run(executor, Shell, code).await;
    assert!(!outcome.result.artifacts_truncated, "{code}");
    paths(&outcome).into_iter().map(str::to_owned).collect()
}

#[test]
fn what_is_new_is_told_with_what_is_in_it() {
    in_session(async |executor| {
        let before = jiff::Timestamp::now();
        let code = "import os\nos.makedirs('out/deep')\nopen('out/deep/table.csv', 'w').write('a,b\\n')\n\
                    open('plot.png', 'wb').write(bytes(100_000))\nopen('empty', 'w')";
        let outcome = run(executor, Python, code).await;
        assert_eq!(paths(&outcome), ["empty", "out/deep/table.csv", "plot.png"]);
        let [empty, table, plot] = &outcome.artifacts[..] else {
            panic!("{outcome:?}");
        };
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((empty.size_bytes, empty.sha256.as_str()), (0, nothing));
        assert_eq!(
            (table.size_bytes, table.mime_type.as_str()),
            (4, "text/csv")
        );
        assert_eq!(
            (plot.size_bytes, plot.mime_type.as_str()),
            (100_000, "image/png")
        );
        let sums = run(
            executor,
            Shell,
            "sha256sum empty out/deep/table.csv plot.png",
        )
        .await;
        let sums = sums.result.stdout;
        let sums: Vec<_> = sums
            .lines()
            .map(|line| line.split_once(' ').unwrap().0)
            .collect();
        assert_eq!(sums, [&empty.sha256, &table.sha256, &plot.sha256]);
        let made = plot.created_at.duration_since(before).as_secs_f64();
        assert!((-0.1..10.0).contains(&made), "{made}");
    });
}

#[test]
fn compiled_modules_are_no_artifacts() {
    in_session(async |executor| {
        let code = "mkdir lib; echo > lib/mine.py; PYTHONDONTWRITEBYTECODE= python3 -c 'import lib.mine'; \
                    ls lib/__pycache__/mine.*.pyc > compiled";
        assert_eq!(made(executor, code).await, ["compiled", "lib/mine.py"]);
    });
}

#[test]
fn only_what_is_new_is_told_and_that_once() {
    in_session(async |executor| {
        assert_eq!(
            made(executor, "echo 1 > a; mkdir d; echo 1 > d/b").await,
            ["a", "d/b"]
        );
        assert!(made(executor, "true").await.is_empty());
        // Written to, but not made; and read.
        assert!(
            made(executor, "echo 2 >> a; echo 2 > d/b; cat a")
                .await
                .is_empty()
        );
        assert_eq!(made(executor, "echo 1 > c; touch a d/b").await, ["c"]);
        assert!(made(executor, "rm a; mv d e").await.is_empty());
        assert_eq!(
            made(executor, "echo 3 > a; mkdir d; echo 3 > d/b").await,
            ["a", "d/b"]
        );
        // Replaced as a whole, it is another file.
        assert_eq!(made(executor, "echo 4 > t; mv t a").await, ["a"]);
    });
}

#[test]
fn one_execution_is_not_credited_with_the_files_of_the_one_before() {
    in_session(async |executor| {
        for number in 0..30 {
            let name = format!("file{number}");
            assert_eq!(made(executor, &format!("echo > {name}")).await, [name]);
            assert!(made(executor, "true").await.is_empty());
        }
    });
}

#[test]
fn files_that_a_workspace_starts_with_do_not_become_new() {
    let fill = |source: &std::path::Path| {
        std::fs::create_dir_all(source.join("sub/deep")).unwrap();
        std::fs::write(source.join("sub/deep/old"), "old").unwrap();
        std::fs::write(source.join("old"), "old").unwrap();
    };
    in_session_of(fill, async |executor| {
        let change =
            "echo more >> old; echo more >> sub/deep/old; chmod 600 old; echo > sub/deep/new";
        assert_eq!(made(executor, change).await, ["sub/deep/new"]);
        assert!(made(executor, "echo again >> old").await.is_empty());
    });
}

#[test]
fn hidden_names_links_and_what_is_no_file_are_left_out() {
    in_session(async |executor| {
        let code = "mkdir -p .git/objects d/.cache; echo > .git/objects/x; echo > d/.cache/x; echo > .env; \
                    echo > d/.env; ln -s /etc/passwd link; ln -s /usr/bin bin; ln -s d same; mkfifo pipe; \
                    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; echo > d/real";
        assert_eq!(made(executor, code).await, ["d/real"]);
        // Another name of the same file is told of once.
        assert_eq!(made(executor, "echo > e; ln e f").await.len(), 1);
    });
}

#[test]
fn times_that_code_sets_hide_nothing() {
    in_session(async |executor| {
        let code =
            "mkdir d; echo > d/x; touch -d 1990-01-01 d/x d .; echo > y; touch -d 2090-01-01 y";
        assert_eq!(made(executor, code).await, ["d/x", "y"]);
        assert!(made(executor, "touch -d 2090-01-01 d/x d").await.is_empty());
        assert_eq!(
            made(executor, "echo > d/z; touch -d 1990-01-01 d").await,
            ["d/z"]
        );
    });
}

#[test]
fn directories_that_change_places_are_kept_track_of() {
    in_session(async |executor| {
        made(executor, "mkdir -p a/x b/x/y").await;
        assert!(made(executor, "mv a c; mv b a").await.is_empty());
        assert_eq!(
            made(executor, "echo > a/x/y/new; echo > c/x/new").await,
            ["a/x/y/new", "c/x/new"]
        );
        assert!(
            made(
                executor,
                "mv c a/x/y/c; rm -r a/x/y/c/x; ln -s /usr a/x/y/c/x"
            )
            .await
            .is_empty()
        );
        assert_eq!(
            made(
                executor,
                "echo > a/x/y/c/more; mkdir -p c/x; echo > c/x/other"
            )
            .await,
            ["a/x/y/c/more", "c/x/other"]
        );
        // A directory that was made while nobody looked.
        made(executor, "rm -r a; mkdir -p a/x/y").await;
        assert_eq!(made(executor, "echo > a/x/y/last").await, ["a/x/y/last"]);
    });
}

#[test]
fn what_is_brought_from_outside_is_no_artifact() {
    on_a_line(async |link| {
        upload(link, "before/file", b"").await;
        let waits = Request {
            stream: true,
            ..request(
                Shell,
                "echo here; until [ -e during/file ]; do :; done; echo > before/mine; echo > mine",
            )
        };
        let ask = Ask::Execute(waits);
        link.send(&Question { number: 1, ask }, &[]).await.unwrap();
        let next = async || {
            link.receive::<Reply>()
                .await
                .unwrap()
                .unwrap()
                .0
                .answer
                .unwrap()
        };
        assert_eq!(next().await, Answer::Begun);
        let here = Happening::Output {
            stream: Stream::Stdout,
            bytes: b"here\n".to_vec(),
        };
        assert_eq!(next().await, Answer::Happening(here));
        upload_path_last(link, "during/last", b"").await;
        upload(link, "during/file", b"").await;
        let Answer::Happening(Happening::Outcome(outcome)) = next().await else {
            panic!("something else happened");
        };
        assert_eq!(paths(&outcome), ["before/mine", "mine"]);
        upload(link, "after/file", b"").await;
        let ask = Ask::Execute(request(Shell, "echo > after/mine"));
        link.send(&Question { number: 1, ask }, &[]).await.unwrap();
        assert_eq!(next().await, Answer::Begun);
        let Answer::Happening(Happening::Outcome(outcome)) = next().await else {
            panic!("something else happened");
        };
        assert_eq!(paths(&outcome), ["after/mine"]);
    });
}

#[test]
fn of_those_that_run_at_once_each_file_is_told_by_one() {
    in_session(async |executor| {
        let each = async |number: u32| {
            let asked = Request {
                execution_id: format!("exec_20261116_{number:08}").parse().unwrap(),
                ..request(
                    Shell,
                    &format!("for i in $(seq 20); do echo > {number}-$i; sleep 0.01; done"),
                )
            };
            executor.execute(&asked).await
        };
        let (one, two, three, four) = tokio::join!(each(1), each(2), each(3), each(4));
        let mut told: Vec<_> = [&one, &two, &three, &four]
            .into_iter()
            .flat_map(paths)
            .collect();
        told.sort_unstable();
        let count = told.len();
        told.dedup();
        assert_eq!((told.len(), count), (80, 80));
    });
}

#[test]
fn too_many_are_told_of_in_part_and_nobody_waits_long() {
    in_session(async |executor| {
        let code = "import os\nfor d in range(20):\n    os.mkdir(str(d))\n    \
                    for n in range(150):\n        os.close(os.open(f'{d}/{n}', os.O_CREAT))";
        let outcome = run(executor, Python, code).await;
        assert_eq!(paths(&outcome).len(), 1_000);
        assert!(outcome.result.artifacts_truncated);
        let begin = Instant::now();
        assert!(run(executor, Shell, "true").await.artifacts.is_empty());
        let took = begin.elapsed();
        assert!(took.as_secs() < 10, "{took:?}");
        assert_eq!(
            paths(&run(executor, Shell, "echo > 19/new").await),
            ["19/new"]
        );
    });
}

#[test]
fn too_deep_or_too_large_is_left_out_and_that_is_told() {
    in_session(async |executor| {
        let outcome = run(executor, Shell, "truncate -s 2G sparse; echo > small").await;
        assert_eq!(paths(&outcome), ["small"]);
        assert!(outcome.result.artifacts_truncated);
        let after = run(executor, Shell, "true").await;
        assert!(!after.result.artifacts_truncated);
        let deep = "import os\nfor _ in range(200):\n    os.mkdir('d')\n    os.chdir('d')\nopen('x', 'w')\n\
                    os.chdir('/workspace')\nopen('x', 'w')";
        let outcome = run(executor, Python, deep).await;
        assert_eq!(paths(&outcome), ["x"]);
        assert!(outcome.result.artifacts_truncated);
    });
}

#[test]
fn any_name_is_coped_with() {
    in_session(async |executor| {
        let code = "import os\nopen('new\\nline \"quoted\" \\\\', 'w')\nopen(b'\\xff\\xfe', 'w')\n\
                    os.mkdir(b'\\xff')\nopen(b'\\xff/x', 'w')";
        let outcome = run(executor, Python, code).await;
        assert_eq!(paths(&outcome), ["new\nline \"quoted\" \\"]);
        // Those could not be asked for.
        assert!(outcome.result.artifacts_truncated);
    });
}

#[test]
fn one_that_was_ended_made_what_it_made() {
    in_session(async |executor| {
        let asked = Request {
            timeout_seconds: 1,
            ..request(Shell, "echo > x; sleep 1000")
        };
        let outcome = executor.execute(&asked).await;
        assert_eq!(outcome.ending, Ending::TimedOut);
        assert_eq!(outcome.artifacts[0].path, "x");
    });
}

#[test]
fn a_tree_that_changes_while_it_is_looked_at_does_no_harm() {
    in_session(async |executor| {
        let swaps = "import os, threading\nos.makedirs('d/e', exist_ok=True)\nwhile True:\n    \
                     open('d/e/inside', 'w').close()\n    os.rename('d', 'aside')\n    os.symlink('/usr', 'd')\n    \
                     os.unlink('d')\n    os.rename('aside', 'd')\n    os.unlink('d/e/inside')";
        let swapping = Request {
            timeout_seconds: 3,
            ..request(Python, swaps)
        };
        let looking = async {
            for number in 0..50 {
                let asked = Request {
                    execution_id: format!("exec_20261116_{number:08}").parse().unwrap(),
                    ..request(Shell, "mkdir -p bin; echo > bin/$$; rm -r bin")
                };
                let outcome = executor.execute(&asked).await;
                for path in paths(&outcome) {
                    assert!(path.ends_with("e/inside"), "{path}");
                }
            }
        };
        let (outcome, ()) = tokio::join!(executor.execute(&swapping), looking);
        assert_eq!(outcome.ending, Ending::TimedOut);
    });
}
