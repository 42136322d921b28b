//! What is expected of every runtime, by somebody who knows nothing but [`Runtime`] and the line.

use std::time::{Duration, Instant};

use sandbox_executor::protocol::Ask;
use sandbox_executor::{Ending, Request};
use sandbox_model::change::ChangeKind;
use sandbox_model::execution::Language;
use sandbox_model::runtime::LimitsEnforced;
use sandbox_runtime::{Line, LineError, Runtime, RuntimeError, SessionSpec};

use crate::server::{id, printed, request, shell, spec};

async fn raised(runtime: &dyn Runtime, letter: char) -> Line {
    runtime.raise(spec(letter)).await.unwrap().line
}

pub async fn a_session_runs_code_and_remembers_files_only(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let first = "id -u; pwd; echo $GREETING; echo kept > kept; echo > /tmp/gone; sleep 1000 & cd /";
    assert_eq!(printed(&line, first).await, "1000\n/workspace\nhello");
    let code = "def handler(event):\n    return open('kept').read()";
    let outcome = line.execute(request(Language::Python, code), || {}).await;
    let returned = outcome.unwrap().result.return_value;
    assert_eq!(returned.as_deref(), Some("\"kept\\n\""));
    let second = "pwd; ls /tmp; pgrep sleep; true";
    assert_eq!(printed(&line, second).await, "/workspace");
}

pub async fn what_is_enforced_is_what_can_be(runtime: &dyn Runtime) {
    let enforceable = runtime.enforceable();
    let raised = runtime.raise(spec('a')).await.unwrap();
    assert_eq!(raised.limits_enforced, enforceable);
    let walls = raised.walls;
    for wall in [
        walls.between_sessions,
        walls.executor,
        walls.between_executions,
        walls.network,
    ] {
        assert!(!wall.is_empty());
    }
}

pub async fn what_was_promised_is_enforced_or_nothing_is_raised(runtime: &dyn Runtime) {
    let all = LimitsEnforced {
        cpu: true,
        memory: true,
        disk: true,
        max_processes: true,
    };
    let promised = |promised| SessionSpec {
        promised,
        ..spec('a')
    };
    let enforceable = runtime.enforceable();
    if enforceable != all {
        let error = runtime.raise(promised(all)).await.unwrap_err();
        assert!(matches!(error, RuntimeError::Unlimited { .. }), "{error:?}");
        let nothing = runtime.usage(&id('a')).await.unwrap_err();
        assert!(
            matches!(nothing, RuntimeError::NotFound { .. }),
            "{nothing:?}"
        );
    }
    let raised = runtime.raise(promised(enforceable)).await.unwrap();
    assert_eq!(raised.limits_enforced, enforceable);
}

pub async fn what_is_free_is_part_of_what_there_is(runtime: &dyn Runtime) {
    let room = runtime.room().unwrap();
    assert!(room.free.memory_bytes <= room.total.memory_bytes);
    assert!(room.free.disk_bytes <= room.total.disk_bytes);
    assert!(room.free.cpu_thousandths <= room.total.cpu_thousandths);
    assert!(room.total.cpu_thousandths > 0 && room.total.memory_bytes > 0);
}

pub async fn a_session_that_is_raised_cannot_be_raised(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let again = runtime.raise(spec('a')).await.unwrap_err();
    assert!(matches!(again, RuntimeError::Conflict { .. }), "{again:?}");
    line.ask(Ask::Ping).await.unwrap();
}

pub async fn ending_and_discarding_may_be_repeated(runtime: &dyn Runtime) {
    runtime.end(&id('a')).await.unwrap();
    runtime.discard(&id('a')).await.unwrap();
    let line = raised(runtime, 'a').await;
    for _ in 0..2 {
        runtime.end(&id('a')).await.unwrap();
        assert!(matches!(line.ask(Ask::Ping).await, Err(LineError::Cut)));
    }
    for _ in 0..2 {
        runtime.discard(&id('a')).await.unwrap();
    }
}

pub async fn a_workspace_outlives_its_session_until_it_is_discarded(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    printed(&line, "echo kept > kept").await;
    runtime.end(&id('a')).await.unwrap();
    let line = raised(runtime, 'a').await;
    assert_eq!(printed(&line, "cat kept").await, "kept");
    runtime.discard(&id('a')).await.unwrap();
    let line = raised(runtime, 'a').await;
    assert_eq!(printed(&line, "ls -A").await, "");
}

pub async fn sessions_are_strangers(runtime: &dyn Runtime) {
    let (one, other) = (raised(runtime, 'a').await, raised(runtime, 'b').await);
    let server = "echo secret > secret; python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1000";
    let serving = tokio::spawn({
        let one = one.clone();
        async move { one.execute(request(Language::Shell, server), || {}).await }
    });
    while !printed(&one, "ls").await.contains("secret") {}
    assert_eq!(printed(&other, "ls -A").await, "");
    let reach = "exec 9<>/dev/tcp/127.0.0.1/8000";
    assert_ne!(shell(&other, reach).await.result.exit_code, 0);
    assert_eq!(printed(&other, "pgrep python; true").await, "");
    serving.abort();
}

/// Counts in a file until it is told to stop, and says so.
async fn counting(line: &Line, timeout_seconds: u32) -> tokio::task::JoinHandle<Ending> {
    let code = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > count; sleep 0.01; done";
    let asked = Request {
        timeout_seconds,
        ..request(Language::Shell, code)
    };
    let task = tokio::spawn({
        let line = line.clone();
        async move { line.execute(asked, || {}).await.unwrap().ending }
    });
    while count(line).await == 0 {}
    task
}

async fn count(line: &Line) -> u64 {
    let text = printed(line, "cat count 2>/dev/null; true").await;
    text.parse().unwrap_or(0)
}

pub async fn a_frozen_session_stands_still_and_goes_on(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let other = raised(runtime, 'b').await;
    let counting = counting(&line, 30).await;
    runtime.freeze(&id('a')).await.unwrap();
    runtime.freeze(&id('a')).await.unwrap();
    // A question waits; who is not frozen is not kept waiting.
    let waiting = tokio::spawn({
        let line = line.clone();
        async move { line.ask(Ask::Ping).await }
    });
    let before = runtime.usage(&id('a')).await.unwrap();
    assert_eq!(printed(&other, "sleep 0.3; echo on").await, "on");
    assert!(!waiting.is_finished() && !counting.is_finished());
    let after = runtime.usage(&id('a')).await.unwrap();
    assert_eq!(before.cpu_time_ms, after.cpu_time_ms);
    assert_eq!(before.tasks, after.tasks);
    runtime.thaw(&id('a')).await.unwrap();
    runtime.thaw(&id('a')).await.unwrap();
    waiting.await.unwrap().unwrap();
    let now = count(&line).await;
    while count(&line).await <= now {}
    printed(&line, "echo > stop").await;
    assert_eq!(counting.await.unwrap(), Ending::Finished);
}

pub async fn a_deadline_that_passes_while_frozen_is_kept_afterwards(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let other = raised(runtime, 'b').await;
    let begin = Instant::now();
    let counting = counting(&line, 2).await;
    runtime.freeze(&id('a')).await.unwrap();
    let left = Duration::from_millis(2500).saturating_sub(begin.elapsed());
    printed(&other, &format!("sleep {}", left.as_secs_f64())).await;
    assert!(!counting.is_finished());
    runtime.thaw(&id('a')).await.unwrap();
    assert_eq!(counting.await.unwrap(), Ending::TimedOut);
    assert_eq!(printed(&line, "echo on").await, "on");
}

pub async fn a_frozen_session_can_be_ended_and_discarded(runtime: &dyn Runtime) {
    for discard in [false, true] {
        let line = raised(runtime, 'a').await;
        counting(&line, 30).await;
        runtime.freeze(&id('a')).await.unwrap();
        match discard {
            false => runtime.end(&id('a')).await.unwrap(),
            true => runtime.discard(&id('a')).await.unwrap(),
        }
        line.cut().await;
    }
    let line = raised(runtime, 'a').await;
    assert_eq!(printed(&line, "ls -A; echo on").await, "on");
}

pub async fn what_is_not_raised_cannot_be_frozen_or_measured(runtime: &dyn Runtime) {
    let nobody = id('n');
    let failed = [
        runtime.freeze(&nobody).await.unwrap_err(),
        runtime.thaw(&nobody).await.unwrap_err(),
        runtime.usage(&nobody).await.map(drop).unwrap_err(),
        runtime.changes(&nobody).await.map(drop).unwrap_err(),
        runtime.fork(&nobody, &id('m')).await.unwrap_err(),
    ];
    for error in failed {
        assert!(matches!(error, RuntimeError::NotFound { .. }), "{error:?}");
        assert!(error.to_string().contains(nobody.as_str()), "{error}");
    }
}

pub async fn a_fork_is_a_copy_and_both_go_on_alone(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let write = "mkdir d; echo deep > d/file; echo x > shut; chmod 000 shut; ln -s d link";
    printed(&line, write).await;
    let counting = counting(&line, 30).await;
    runtime.fork(&id('a'), &id('b')).await.unwrap();
    // It went on by itself.
    let now = count(&line).await;
    while count(&line).await <= now {}
    let fork = raised(runtime, 'b').await;
    let look = "cat link/file; stat -c %a shut; cat count | wc -l";
    assert_eq!(printed(&fork, look).await, "deep\n0\n1");
    printed(&fork, "echo changed > d/file; echo > new").await;
    printed(&line, "echo > stop").await;
    assert_eq!(counting.await.unwrap(), Ending::Finished);
    assert_eq!(
        printed(&line, "cat d/file; ls new 2>&1 | wc -l").await,
        "deep\n1"
    );
    assert_eq!(
        printed(&fork, "ls stop 2>/dev/null; cat d/file").await,
        "changed"
    );
}

pub async fn a_fork_of_one_that_ended_and_of_one_that_is_frozen(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    printed(&line, "echo kept > kept").await;
    runtime.freeze(&id('a')).await.unwrap();
    runtime.fork(&id('a'), &id('b')).await.unwrap();
    // It is frozen still.
    let waiting = tokio::spawn({
        let line = line.clone();
        async move { line.ask(Ask::Ping).await }
    });
    let fork = raised(runtime, 'b').await;
    assert_eq!(printed(&fork, "sleep 0.2; cat kept").await, "kept");
    assert!(!waiting.is_finished());
    runtime.thaw(&id('a')).await.unwrap();
    waiting.await.unwrap().unwrap();
    runtime.end(&id('a')).await.unwrap();
    runtime.fork(&id('a'), &id('c')).await.unwrap();
    runtime.discard(&id('a')).await.unwrap();
    let fork = raised(runtime, 'c').await;
    assert_eq!(printed(&fork, "cat kept").await, "kept");
}

pub async fn a_fork_of_one_that_is_raised_meanwhile_ends_nothing(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    printed(&line, "echo kept > kept").await;
    for copy in ['b', 'c', 'd', 'e', 'f'] {
        runtime.end(&id('a')).await.unwrap();
        let (from, to) = (id('a'), id(copy));
        let (forked, line) = tokio::join!(runtime.fork(&from, &to), raised(runtime, 'a'));
        forked.unwrap();
        assert_eq!(printed(&line, "cat kept").await, "kept");
        let copy = raised(runtime, copy).await;
        assert_eq!(printed(&copy, "cat kept").await, "kept");
    }
}

pub async fn a_fork_has_no_place_where_something_is(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let other = raised(runtime, 'b').await;
    printed(&other, "echo own > own").await;
    let error = runtime.fork(&id('a'), &id('b')).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Conflict { .. }), "{error:?}");
    assert_eq!(printed(&other, "cat own").await, "own");
    assert_eq!(printed(&line, "echo on").await, "on");
}

pub async fn changes_are_told_of_running_and_ended_sessions(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    let nothing = runtime.changes(&id('a')).await.unwrap().read().unwrap();
    assert_eq!((nothing.total, nothing.diff.as_str()), (0, ""));
    printed(&line, "echo one > text; mkdir d; printf '\\0\\1' > d/data").await;
    for is_raised in [true, false] {
        if !is_raised {
            runtime.end(&id('a')).await.unwrap();
        }
        let told = runtime.changes(&id('a')).await.unwrap().read().unwrap();
        let paths: Vec<String> = told.changes.iter().map(|c| c.path.to_string()).collect();
        assert!(paths.contains(&"text".to_owned()), "{paths:?}");
        assert!(paths.contains(&"d/data".to_owned()), "{paths:?}");
        let is_created = |change: &sandbox_model::Change| change.kind == ChangeKind::Created;
        assert!(told.changes.iter().all(is_created));
        assert!(told.diff.contains("\n+one\n"), "{}", told.diff);
        assert!(!told.truncated);
    }
}

pub async fn usage_follows_what_runs(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    printed(&line, "true").await;
    let idle = runtime.usage(&id('a')).await.unwrap();
    assert!(idle.tasks >= 1 && idle.memory_bytes > 0, "{idle:?}");
    let code = "import time
x = bytearray(b'x') * (64 << 20)
sum(range(3000000))
open('on', 'w').close()
time.sleep(1000)";
    let running = tokio::spawn({
        let line = line.clone();
        async move { line.execute(request(Language::Python, code), || {}).await }
    });
    while !printed(&line, "ls").await.contains("on") {}
    let busy = runtime.usage(&id('a')).await.unwrap();
    assert!(
        busy.memory_bytes > idle.memory_bytes + (60 << 20),
        "{busy:?}"
    );
    assert!(busy.tasks > idle.tasks, "{busy:?}");
    if let (Some(idle), Some(busy)) = (idle.cpu_time_ms, busy.cpu_time_ms) {
        assert!(busy > idle);
    }
    running.abort();
}

pub async fn code_has_no_power_and_finds_no_secrets(runtime: &dyn Runtime) {
    let line = raised(runtime, 'a').await;
    for attempt in [
        "mount -t tmpfs none /tmp",
        "unshare -U true",
        "kill -9 1",
        "cat /proc/1/environ",
        "readlink /proc/1/fd/*",
        "ls /proc/1/root/",
        "echo x > /proc/sys/kernel/hostname",
        "echo c > /proc/sysrq-trigger",
        "dd if=/dev/mem of=/dev/null bs=1 count=1",
        "touch /usr/x || touch /etc/x",
        "cat /etc/shadow",
        "dmesg",
    ] {
        let outcome = shell(&line, attempt).await;
        assert_ne!(outcome.result.exit_code, 0, "{attempt}: {outcome:?}");
    }
    // What is open is one's own streams and the channel; what is in the environment was put there.
    let descriptors = printed(
        &line,
        "for f in /proc/self/fd/*; do readlink $f; done; true",
    )
    .await;
    assert!(descriptors.lines().count() <= 6, "{descriptors}");
    assert!(!descriptors.contains("memfd") && !descriptors.contains("cgroup"));
    let known = [
        "PATH",
        "HOME",
        "LANG",
        "USER",
        "NODE_PATH",
        "NPM_CONFIG_PREFIX",
        "PIP_BREAK_SYSTEM_PACKAGES",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUSERBASE",
        "GREETING",
        "EVENT_JSON",
        "SANDBOX_CHANNEL",
        "PWD",
        "SHLVL",
        "OLDPWD",
        "_",
    ];
    for line in printed(&line, "env").await.lines() {
        let name = line.split('=').next().unwrap();
        assert!(known.contains(&name), "{line}");
    }
}
