//! Sessions on this machine, raised by a server that is root and belonging to the user `tester`.
#![allow(clippy::unwrap_used)]

mod server;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sandbox_executor::protocol::{Answer, Ask};
use sandbox_executor::{Ending, Request};
use sandbox_model::execution::Language;
use sandbox_runtime::{LineError, Local, SessionSpec, Workspace};
use server::{Ends, id, nursery, printed, request, send, serve, served, shell, spec, tester};

#[test]
fn a_session_runs_code_as_nobody_in_particular() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(
            printed(&line, "id -u; pwd; echo $GREETING").await,
            "1000\n/workspace\nhello"
        );
        let mut begun = false;
        let code = request(Language::Python, "def handler(event):\n    return 6 * 7");
        let outcome = line.execute(code, || begun = true).await.unwrap();
        assert_eq!(outcome.result.return_value.as_deref(), Some("42"));
        assert!(begun);
        local.end(&id('a')).await.unwrap();
        assert!(matches!(line.ask(Ask::Ping).await, Err(LineError::Cut)));
    });
}

#[test]
fn a_workspace_outlives_its_session_and_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    let first = serve(&state, &async |_: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        printed(&line, "echo kept > kept; mkdir d; echo deep > d/file").await;
        local.end(&id('a')).await.unwrap();
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(
            printed(&line, "cat kept d/file; echo more >> kept").await,
            "kept\ndeep"
        );
        // It ends with this server.
    });
    let second = serve(&state, &async |_: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(printed(&line, "cat kept").await, "kept\nmore");
        local.discard(&id('a')).await.unwrap();
        local.discard(&id('a')).await.unwrap();
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(printed(&line, "ls -A").await, "");
    });
    assert_eq!((first, second), (Some(0), Some(0)));
}

#[test]
fn sessions_do_not_see_each_other() {
    served(async |state, local, _| {
        let one = local.raise(spec('a')).await.unwrap().line;
        let other = local.raise(spec('b')).await.unwrap().line;
        printed(&one, "echo secret > secret").await;
        assert_eq!(
            printed(&other, "ls -A; echo /proc/[0-9]*").await,
            "/proc/1 /proc/2"
        );
        // Not even by its path on the host.
        let look = format!("ls {}", state.display());
        assert_ne!(shell(&other, &look).await.result.exit_code, 0);
    });
}

#[test]
fn a_session_may_start_from_a_copy_of_a_directory() {
    served(async |state, local, _| {
        let source = state.parent().unwrap().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), "original").unwrap();
        let with = SessionSpec {
            workspace: Workspace::Source(source.clone()),
            ..spec('a')
        };
        let line = local.raise(with).await.unwrap().line;
        assert_eq!(printed(&line, "cat file").await, "original");
        let missing = SessionSpec {
            workspace: Workspace::Source(source.join("missing")),
            ..spec('b')
        };
        let error = local.raise(missing).await.unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    });
}

#[test]
fn files_are_handed_over() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let (answer, file) = line.ask(Ask::Write("in/data".into())).await.unwrap();
        let Answer::Upload(number) = answer else {
            panic!("{answer:?}");
        };
        File::from(file.unwrap()).write_all(b"content").unwrap();
        line.ask(Ask::Commit(number)).await.unwrap();
        assert_eq!(
            printed(&line, "cat in/data; tr a-z A-Z < in/data > out").await,
            "content"
        );
        let (answer, file) = line.ask(Ask::Read("out".into())).await.unwrap();
        assert_eq!(answer, Answer::File(7));
        let mut text = String::new();
        File::from(file.unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "CONTENT");
        let refused = line.ask(Ask::Read("../etc/passwd".into())).await;
        assert!(matches!(refused, Err(LineError::Refused(_))), "{refused:?}");
    });
}

#[test]
fn many_ask_at_once_and_each_gets_its_answer() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let mut all = tokio::task::JoinSet::new();
        for number in 0..20 {
            let line = line.clone();
            all.spawn(async move { (number, printed(&line, &format!("echo {number}")).await) });
        }
        while let Some(answered) = all.join_next().await {
            let (number, text) = answered.unwrap();
            assert_eq!(text, number.to_string());
        }
    });
}

#[test]
fn an_executor_that_is_killed_is_told_of() {
    served(async |state, local, mut ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let sleep = line.begin(request(Language::Shell, "sleep 1000"));
        let course = sleep.await.unwrap();
        let runs = state.join(format!("sandboxes/{}/runs", id('a')));
        let keeper = std::fs::read_dir(runs)
            .unwrap()
            .find_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
        let keeper = rustix::process::Pid::from_raw(keeper.unwrap()).unwrap();
        rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
        let ended = ends.recv().await.unwrap();
        assert_eq!(ended.session, id('a'));
        assert_eq!(ended.status, 128 + 9);
        let outcome = course.outcome().await;
        assert!(matches!(outcome, Err(LineError::Cut)), "{outcome:?}");
        // It can be raised again.
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(printed(&line, "echo on").await, "on");
    });
}

#[test]
fn a_session_ends_when_nobody_is_left_to_ask() {
    served(async |_, local, mut ends| {
        drop(local.raise(spec('a')).await.unwrap().line);
        let ended = ends.recv().await.unwrap();
        assert_eq!((ended.session, ended.status), (id('a'), 0));
    });
}

#[test]
fn everything_ends_with_the_server_whatever_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    let keeper = directory.path().join("keeper");
    let life = serve(&state, &async |state: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        printed(&line, "sleep 1000 & echo").await;
        let runs = state.join(format!("sandboxes/{}/runs", id('a')));
        let names = std::fs::read_dir(runs).unwrap();
        let pid = names.map(|entry| entry.unwrap().file_name());
        let pid = pid
            .filter_map(|name| name.to_str()?.parse::<i32>().ok())
            .next();
        std::fs::write(&keeper, pid.unwrap().to_string()).unwrap();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    });
    assert_eq!(life, None);
    let pid = std::fs::read_to_string(&keeper).unwrap();
    let begin = Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{pid} is still there"
        );
        std::thread::yield_now();
    }
}

#[test]
fn the_server_after_one_that_was_killed_need_not_wait() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    for life in 0..8 {
        let killed = serve(&state, &async |_: &Path, local: Local, _: Ends| {
            if life % 4 == 3 {
                local.discard(&id('a')).await.unwrap();
            }
            let line = local.raise(spec('a')).await.unwrap().line;
            let lives = printed(&line, "echo >> lives; wc -l < lives").await;
            assert_eq!(
                lives,
                (if life < 3 {
                    life + 1
                } else {
                    (life - 3) % 4 + 1
                })
                .to_string()
            );
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        });
        assert_eq!(killed, None, "life {life}");
    }
}

#[test]
fn orders_for_one_session_are_answered_each_for_itself() {
    served(async |_, local, mut ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let (again, other) = tokio::join!(local.raise(spec('a')), local.raise(spec('b')));
        let refused = again.unwrap_err().to_string();
        assert!(refused.contains("already"), "{refused}");
        let session = id('a');
        let (one, two, three) = tokio::join!(
            local.end(&session),
            local.discard(&session),
            local.discard(&session)
        );
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        line.cut().await;
        // Who was ended by an order did not end by itself; the other goes on.
        assert!(ends.try_recv().is_err());
        assert_eq!(printed(&other.unwrap().line, "echo on").await, "on");
    });
}

#[test]
fn who_cannot_tell_the_nursery_yet_keeps_nobody_waiting() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let nursery = nursery();
        send(nursery, Signal::STOP);
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..3000 {
            let local = local.clone();
            all.spawn(async move { local.usage(&id('a')).await });
        }
        // On the same threads.
        let asked = line.clone();
        let others = tokio::spawn(async move { asked.ask(Ask::Ping).await });
        let others = tokio::time::timeout(Duration::from_secs(10), others).await;
        send(nursery, Signal::CONT);
        others.unwrap().unwrap().unwrap();
        while let Some(told) = all.join_next().await {
            told.unwrap().unwrap();
        }
    });
}

#[test]
fn who_stops_waiting_leaves_nothing_behind() {
    served(async |_, local, _| {
        let nursery = nursery();
        send(nursery, Signal::STOP);
        let raising = tokio::time::timeout(Duration::from_millis(50), local.raise(spec('a')));
        assert!(raising.await.is_err());
        send(nursery, Signal::CONT);
        // It was raised for nobody, and ends for that.
        let begin = Instant::now();
        while local.usage(&id('a')).await.is_ok() || local.raise(spec('a')).await.is_err() {
            assert!(begin.elapsed() < Duration::from_secs(10));
        }
    });
}

#[test]
fn a_frozen_session_ends_with_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    for _ in 0..2 {
        let killed = serve(&state, &async |_: &Path, local: Local, _: Ends| {
            let line = local.raise(spec('a')).await.unwrap().line;
            printed(&line, "echo >> lives").await;
            local.freeze(&id('a')).await.unwrap();
            send(std::process::id(), Signal::KILL);
        });
        assert_eq!(killed, None);
    }
    let last = serve(&state, &async |_: &Path, local: Local, _: Ends| {
        let line = local.raise(spec('a')).await.unwrap().line;
        assert_eq!(printed(&line, "wc -l < lives").await, "2");
    });
    assert_eq!(last, Some(0));
}

#[test]
fn changes_are_those_to_the_source_and_the_source_stays() {
    served(async |state, local, _| {
        let source = state.parent().unwrap().join("source");
        std::fs::create_dir(&source).unwrap();
        for (name, text) in [("changed", "before\n"), ("gone", "x"), ("same", "y")] {
            std::fs::write(source.join(name), text).unwrap();
            let file = source.join(name);
            std::os::unix::fs::chown(file, Some(tester().user), Some(tester().group)).unwrap();
        }
        let with = SessionSpec {
            workspace: Workspace::Source(source.clone()),
            ..spec('a')
        };
        let line = local.raise(with).await.unwrap().line;
        printed(&line, "echo after > changed; rm gone; touch same").await;
        let told = local.changes(&id('a')).await.unwrap().read().unwrap();
        let kinds: Vec<(String, char)> = told
            .changes
            .iter()
            .map(|change| (change.path.to_string(), change.kind.letter()))
            .collect();
        assert_eq!(
            kinds,
            [("changed".to_owned(), 'M'), ("gone".to_owned(), 'D')]
        );
        assert!(told.diff.contains("-before\n+after\n"), "{}", told.diff);
        assert_eq!(
            std::fs::read_to_string(source.join("changed")).unwrap(),
            "before\n"
        );
        // What the source has become since is not the session's doing.
        std::fs::write(source.join("changed"), "meanwhile\n").unwrap();
        std::fs::write(source.join("more"), "meanwhile\n").unwrap();
        let told = local.changes(&id('a')).await.unwrap().read().unwrap();
        assert_eq!(told.total, 2, "{:?}", told.changes);
    });
}

#[test]
fn a_large_diff_is_cut_and_keeps_nobody_waiting() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let write = "for i in $(seq 3); do seq 1100000 > lines-$i; done; head -c 30M /dev/urandom | \
            base64 > more; mkdir many; cd many; python3 -c 'for i in range(11000): open(str(i), \"w\")'; \
            truncate -s 900M sparse; mkdir -p $(printf 'd/%.0s' $(seq 300))";
        printed(&line, write).await;
        let begin = Instant::now();
        let (told, raised) = tokio::join!(
            async { (local.changes(&id('a')).await, begin.elapsed()) },
            async { (local.raise(spec('b')).await, begin.elapsed()) },
        );
        raised.0.unwrap();
        assert!(raised.1 < told.1, "{:?} before {:?}", raised.1, told.1);
        let told = told.0.unwrap().read().unwrap();
        assert!(told.truncated && told.total > 11_000);
        assert!(told.diff.len() <= 8 << 20 && told.changes.len() <= 10_000);
        printed(&line, "echo on").await;
    });
}

#[test]
fn changes_of_a_deep_tree_are_bounded_by_bytes() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        // Together, their paths are longer than a gigabyte.
        let nest = "python3 -c '
import os
for _ in range(3000):
    os.mkdir(\"n\" * 250)
    os.chdir(\"n\" * 250)
open(\"last\", \"w\").write(\"one\")
print(\"done\")'";
        assert_eq!(printed(&line, nest).await, "done");
        let told = async || local.changes(&id('a')).await;
        let reports = tokio::join!(told(), told(), told(), told());
        for report in [reports.0, reports.1, reports.2, reports.3] {
            let report = report.unwrap();
            assert!(report.length() < 24 << 20, "{}", report.length());
            let told = report.read().unwrap();
            assert!(told.truncated && told.total > told.changes.len() as u64);
            assert!(told.changes.len() > 100, "{}", told.changes.len());
        }
    });
}

#[test]
fn only_so_many_change_reports_exist_at_a_time() {
    served(async |_, local, _| {
        let _line = local.raise(spec('a')).await.unwrap().line;
        let mut reports = Vec::new();
        for _ in 0..4 {
            reports.push(local.changes(&id('a')).await.unwrap());
        }
        let (this, other) = (id('a'), id('a'));
        let next = local.changes(&this);
        tokio::pin!(next);
        // What is asked for meanwhile is done before it.
        tokio::select! {
            early = &mut next => panic!("{early:?}"),
            usage = local.usage(&other) => drop(usage.unwrap()),
        }
        reports.pop();
        next.await.unwrap();
    });
}

#[test]
fn a_timeout_is_told_as_such() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let asked = Request {
            timeout_seconds: 1,
            ..request(Language::Shell, "sleep 1000")
        };
        let outcome = line.execute(asked, || {}).await.unwrap();
        assert_eq!(outcome.ending, Ending::TimedOut);
    });
}
