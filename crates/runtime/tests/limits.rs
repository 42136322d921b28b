//! What a session may use up, and what becomes of code that wants more.
#![allow(clippy::unwrap_used)]

mod server;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandbox_executor::protocol::{Answer, Ask};
use sandbox_executor::{Ending, Outcome, Request};
use sandbox_model::execution::{FailureCause, Language};
use sandbox_model::resources::{Cpu, Quantity, Resources};
use sandbox_model::runtime::LimitsEnforced;
use sandbox_runtime::{Line, Local, SessionSpec};
use server::{
    Ends, children, id, nursery, printed, request, send, serve, served, served_by_tester, shell,
    spec,
};

const ALL: LimitsEnforced = LimitsEnforced {
    cpu: true,
    memory: true,
    disk: true,
    max_processes: true,
};

fn with(letter: char, change: impl FnOnce(&mut Resources)) -> SessionSpec {
    let mut spec = spec(letter);
    change(&mut spec.resources);
    spec
}

async fn answers(line: &Line) {
    line.ask(Ask::Ping).await.unwrap();
    assert_eq!(printed(line, "echo on").await, "on");
}

/// How many processes code can have at once.
async fn started(line: &Line) -> u32 {
    let code = "import subprocess
started = 0
try:
    for _ in range(200):
        subprocess.Popen(['sleep', '1000'])
        started += 1
except OSError:
    pass
print(started)";
    let outcome = line.execute(request(Language::Python, code), || {}).await;
    outcome.unwrap().result.stdout.trim().parse().unwrap()
}

#[test]
fn code_may_have_far_fewer_descriptors_than_its_executor() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    let ended = server::process(|| {
        let few = Rlimit {
            current: Some(123),
            ..getrlimit(Resource::Nofile)
        };
        setrlimit(Resource::Nofile, few).unwrap();
        server::live(&state, Some(server::users()), &async |_, local, _| {
            let limits = std::fs::read_to_string(format!("/proc/{}/limits", nursery())).unwrap();
            let line = limits
                .lines()
                .find(|line| line.starts_with("Max open files"));
            let mut words = line.unwrap().split_whitespace().skip(3);
            assert_eq!(words.next(), words.next(), "{limits}");
            let raised = local.raise(spec('a')).await.unwrap();
            let of_code = printed(&raised.line, "ulimit -Sn; ulimit -Hn; ulimit -q; ulimit -i");
            assert_eq!(of_code.await, "1024\n4096\n204800\n4096");
        });
    });
    assert_eq!(ended, Some(0));
}

#[test]
fn a_server_that_is_root_enforces_every_limit_though_its_sessions_have_no_power() {
    served(async |_, local, _| {
        assert_eq!(local.enforceable(), ALL);
        let raised = local.raise(spec('a')).await.unwrap();
        assert_eq!(raised.limits_enforced, ALL);
        assert_eq!(raised.walls.between_sessions, "namespaces");
        answers(&raised.line).await;
    });
}

#[test]
fn an_ordinary_users_server_says_what_it_cannot_enforce_and_raises_all_the_same() {
    served_by_tester(async |_, local, _| {
        let enforceable = local.enforceable();
        assert!(enforceable.disk && enforceable.max_processes);
        let raised = local.raise(spec('a')).await.unwrap();
        assert_eq!(raised.limits_enforced, enforceable);
        answers(&raised.line).await;
    });
}

#[test]
fn code_that_eats_memory_is_killed_and_nobody_else() {
    served(async |_, local, _| {
        let small = with('a', |resources| resources.memory = Quantity(64 << 20));
        let line = local.raise(small).await.unwrap().line;
        let waiting = tokio::spawn({
            let line = line.clone();
            async move { shell(&line, "while [ ! -e go ]; do sleep 0.05; done; echo still").await }
        });
        let code = request(
            Language::Python,
            "x = []\nwhile True: x.append(bytearray(1 << 20))",
        );
        let outcome = line.execute(code, || {}).await.unwrap();
        assert_eq!(outcome.result.exit_code, 128 + 9, "{outcome:?}");
        assert!(outcome.result.metrics.peak_memory_mb < 100.0);
        answers(&line).await;
        printed(&line, "echo > go").await;
        assert_eq!(waiting.await.unwrap().result.stdout, "still\n");
    });
}

#[test]
fn many_small_ones_that_eat_memory_together_do_not_outlive_the_executor() {
    served(async |_, local, mut ends| {
        let small = with('a', |resources| {
            resources.memory = Quantity(48 << 20);
            resources.max_processes = 500;
        });
        let line = local.raise(small).await.unwrap().line;
        // Each less than the executor has, and as unlikely to be killed as it can make itself.
        let code = "for i in $(seq 300); do
                (echo 0 > /proc/self/oom_score_adj; sleep 1000) 2>/dev/null &
            done; wait";
        let asked = Request {
            timeout_seconds: 3,
            ..request(Language::Shell, code)
        };
        let outcome = line.execute(asked, || {}).await.unwrap();
        assert_ne!(outcome.result.exit_code, 0, "{outcome:?}");
        answers(&line).await;
        assert!(ends.try_recv().is_err());
    });
}

#[test]
fn memory_in_files_of_the_moment_counts_and_comes_back() {
    served(async |_, local, _| {
        let small = with('a', |resources| resources.memory = Quantity(64 << 20));
        let line = local.raise(small).await.unwrap().line;
        for place in ["/tmp", "/dev/shm", "/run", "/var/tmp"] {
            let code = format!("head -c 200M /dev/zero > {place}/large");
            let outcome = shell(&line, &code).await;
            assert_ne!(outcome.result.exit_code, 0, "{place}: {outcome:?}");
            answers(&line).await;
        }
    });
}

#[test]
fn a_fork_bomb_meets_its_limit_and_the_session_still_answers() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let bomb = Request {
            timeout_seconds: 2,
            ..request(Language::Shell, "b() { b | b & b | b; }; b; sleep 1000")
        };
        let bombing = tokio::spawn({
            let line = line.clone();
            async move { line.execute(bomb, || {}).await.unwrap() }
        });
        let begin = Instant::now();
        while !bombing.is_finished() {
            line.ask(Ask::Ping).await.unwrap();
            tokio::task::yield_now().await;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
        let outcome = bombing.await.unwrap();
        assert!(
            outcome.ending == Ending::TimedOut || outcome.result.exit_code != 0,
            "{outcome:?}"
        );
        answers(&line).await;
        let started = started(&line).await;
        assert!((20..64).contains(&started), "{started}");
    });
}

#[test]
fn a_fork_bomb_can_be_frozen_and_ended() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let bombing = tokio::spawn({
            let line = line.clone();
            let bomb = request(Language::Shell, "b() { b | b & b | b; }; b; sleep 1000");
            async move { line.execute(bomb, || {}).await }
        });
        while local.usage(&id('a')).await.unwrap().tasks < 60 {}
        local.freeze(&id('a')).await.unwrap();
        let before = local.usage(&id('a')).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            local.usage(&id('a')).await.unwrap().cpu_time_ms,
            before.cpu_time_ms
        );
        local.discard(&id('a')).await.unwrap();
        assert!(bombing.await.unwrap().is_err());
    });
}

#[test]
fn a_crash_is_nobody_elses_business() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let code = "def handler(event):
    import resource
    return list(resource.getrlimit(resource.RLIMIT_CORE))";
        let outcome = line.execute(request(Language::Python, code), || {}).await;
        let limit = outcome.unwrap().result.return_value.unwrap();
        // Nothing where the server itself has no more than that.
        assert!(limit == "[1,1]" || limit == "[0,0]", "{limit}");
        let own = rustix::process::getrlimit(rustix::process::Resource::Core);
        assert_eq!(limit == "[0,0]", own.maximum == Some(0));
        assert_eq!(printed(&line, "sh -c 'kill -SEGV $$'; ls").await, "");
    });
}

#[test]
fn processes_are_counted_without_control_groups_too() {
    served_by_tester(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let started = started(&line).await;
        assert!((20..64).contains(&started), "{started}");
        answers(&line).await;
    });
}

#[test]
fn processors_are_shared_out() {
    served(async |_, local, _| {
        // So little that even a busy machine would give them more.
        let tenth = with('a', |resources| resources.cpu = Cpu(100));
        let line = local.raise(tenth).await.unwrap().line;
        let busy =
            "timeout 2 sh -c 'while :; do :; done' & timeout 2 sh -c 'while :; do :; done' & wait";
        let outcome = shell(&line, busy).await;
        // Two that would have had two seconds each.
        let used = outcome.result.metrics.cpu_time_ms;
        assert!(used < 1000.0, "{used}");
        // It is the group that made them wait.
        assert!(groups_of_code().iter().any(|group| is_throttled(group)));
    });
}

/// The groups of what session `a` runs.
fn groups_of_code() -> Vec<PathBuf> {
    let grounds = grounds(&nursery().to_string()).into_iter();
    grounds
        .map(|ground| ground.join(id('a').as_str()).join("started"))
        .collect()
}

/// Was somebody in this group made to wait for a processor?
fn is_throttled(group: &Path) -> bool {
    let text = std::fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
    let mut lines = text.lines();
    let times = lines.find_map(|line| line.strip_prefix("nr_throttled "));
    times.is_some_and(|times| times != "0")
}

/// Who is in this group.
fn members(group: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn a_session_whose_processors_are_busy_answers_and_ends_its_executions_in_time() {
    served(async |_, local, _| {
        // So little that on a busy machine it is used up, too.
        let tenth = with('a', |resources| resources.cpu = Cpu(100));
        let others = children(nursery());
        let line = local.raise(tenth).await.unwrap().line;
        let mut keepers = children(nursery());
        keepers.retain(|pid| !others.contains(pid));
        let groups = groups_of_code();
        let busy = "for i in $(seq 40); do while :; do :; done & done; wait";
        let busy = Request {
            timeout_seconds: 3,
            ..request(Language::Shell, busy)
        };
        let begin = Instant::now();
        let running = tokio::spawn({
            let line = line.clone();
            async move { line.execute(busy, || {}).await.unwrap() }
        });
        let (mut answers, mut held) = (Vec::new(), Vec::new());
        while !running.is_finished() {
            let asked = Instant::now();
            line.ask(Ask::Ping).await.unwrap();
            answers.push(asked.elapsed());
            held.extend(groups.iter().flat_map(|group| members(group)));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(running.await.unwrap().ending, Ending::TimedOut);
        // How exactly is measured where nobody else is busy.
        let late = begin.elapsed() - Duration::from_secs(3);
        assert!(late < Duration::from_secs(5), "{late:?}");
        answers.sort();
        let median = answers[answers.len() / 2];
        assert!(median < Duration::from_secs(1), "{median:?}");
        // Only what runs code is made to wait, and not who answers.
        assert!(groups.iter().any(|group| is_throttled(group)));
        assert!(!held.is_empty() && !keepers.is_empty());
        let is_free = |keeper: &u32| !held.contains(keeper);
        assert!(keepers.iter().all(is_free), "{keepers:?} {held:?}");
    });
}

/// It failed, so that it is not run again, and says for what.
fn must_be_out_of_disk(outcome: &Outcome) {
    assert_eq!(outcome.ending, Ending::Finished, "{outcome:?}");
    assert_ne!(outcome.result.exit_code, 0, "{outcome:?}");
    let cause = Some(FailureCause::DiskFull);
    assert_eq!(outcome.result.cause, cause, "{outcome:?}");
}

#[test]
fn files_without_a_name_fill_the_disk_too() {
    served(async |_, local, _| {
        let small = with('a', |resources| resources.disk = Quantity(64 << 20));
        let line = local.raise(small).await.unwrap().line;
        let code = "import os, time
held = []
for number in range(100):
    file = open(str(number), 'wb')
    os.unlink(str(number))
    file.write(bytes(8 << 20))
    file.flush()
    held.append(file)
time.sleep(1000)";
        let outcome = line.execute(request(Language::Python, code), || {}).await;
        let outcome = outcome.unwrap();
        must_be_out_of_disk(&outcome);
        answers(&line).await;
    });
}

#[test]
fn what_fills_the_disk_is_killed_and_may_be_removed() {
    served(async |_, local, _| {
        let small = with('a', |resources| resources.disk = Quantity(64 << 20));
        let line = local.raise(small).await.unwrap().line;
        let code = "for i in $(seq 100); do head -c 8M /dev/zero > $i; done; sleep 1000";
        let outcome = shell(&line, code).await;
        must_be_out_of_disk(&outcome);
        // Growing goes on being forbidden, shrinking is not.
        let outcome = shell(&line, "head -c 60M /dev/zero > more; sleep 1000").await;
        must_be_out_of_disk(&outcome);
        let list = Ask::List {
            path: "".into(),
            after: None,
            limit: 100,
        };
        let (answer, _) = line.ask(list).await.unwrap();
        let Answer::Entries(entries) = answer else {
            panic!("{answer:?}");
        };
        let entries = entries.entries;
        // Whoever watches may be kept from it for a while, and not for so long that all would be written.
        assert!((8..80).contains(&entries.len()), "{entries:?}");
        for entry in entries {
            line.ask(Ask::Remove(entry.name.into())).await.unwrap();
        }
        answers(&line).await;
        printed(&line, "head -c 8M /dev/zero > fits; sleep 1").await;
    });
}

/// The bytes and the entries in the workspace of session `a`.
fn in_workspace(state: &Path) -> (u64, usize) {
    let sandbox = state.join("sandboxes").join(id('a').as_str());
    let found = std::fs::read_dir(sandbox.join("upper")).unwrap();
    let sizes: Vec<u64> = found
        .map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512)
        .collect();
    (sizes.iter().sum(), sizes.len())
}

#[test]
fn empty_files_and_directories_reach_the_disk_limit() {
    served(async |state, local, _| {
        let small = with('a', |resources| resources.disk = Quantity(16 << 20));
        let line = local.raise(small).await.unwrap().line;
        // As many as fit at once, and then slowly, so that nobody who counts can be too late.
        let code = "import os, time
for number in range(100_000):
    (os.mkdir if number % 2 else os.mknod)(str(number))
    if number > 4000:
        time.sleep(0.002)";
        let outcome = line.execute(request(Language::Python, code), || {}).await;
        let outcome = outcome.unwrap();
        assert_eq!(
            outcome.result.cause,
            Some(FailureCause::DiskFull),
            "{outcome:?}"
        );
        // Each counts for four kibibytes.
        let (_, entries) = in_workspace(state);
        assert!((4_000..10_000).contains(&entries), "{entries}");
    });
}

#[test]
fn executions_cannot_fill_a_full_disk_bit_by_bit() {
    served(async |state, local, _| {
        let small = || with('a', |resources| resources.disk = Quantity(32 << 20));
        let mut line = local.raise(small()).await.unwrap().line;
        let code = "for i in $(seq 100); do head -c 8M /dev/zero > $i; done; sleep 1000";
        let cause = shell(&line, code).await.result.cause;
        assert_eq!(cause, Some(FailureCause::DiskFull));
        let (full, _) = in_workspace(state);
        for number in 0..20 {
            let more = format!("head -c 16M /dev/zero > more-{number}");
            shell(&line, &more).await;
            // One that is started again is as full as it was.
            if number % 4 == 3 {
                local.end(&id('a')).await.unwrap();
                line = local.raise(small()).await.unwrap().line;
            }
        }
        let grown = in_workspace(state).0.saturating_sub(full);
        assert!(grown <= 64 << 20, "{} MiB more", grown >> 20);
        let outcome = shell(&line, "true").await;
        let why = outcome.error.clone().unwrap_or_default();
        assert!(why.contains("disk is full"), "{outcome:?}");
    });
}

#[test]
fn whoever_watches_the_disk_is_replaced_when_it_is_killed() {
    served(async |_, local, _| {
        let [accountant] = children(nursery())[..] else {
            panic!("there is more than one child");
        };
        let small = with('a', |resources| resources.disk = Quantity(32 << 20));
        let line = local.raise(small).await.unwrap().line;
        send(accountant, rustix::process::Signal::KILL);
        let code = "for i in $(seq 100); do head -c 8M /dev/zero > $i; done; sleep 1000";
        let outcome = shell(&line, code).await;
        must_be_out_of_disk(&outcome);
        local.raise(spec('b')).await.unwrap();
    });
}

#[test]
fn a_single_file_larger_than_the_disk_is_not_even_written() {
    served(async |_, local, _| {
        let small = with('a', |resources| resources.disk = Quantity(16 << 20));
        let line = local.raise(small).await.unwrap().line;
        must_be_out_of_disk(&shell(&line, "truncate -s 1G sparse").await);
    });
}

/// The pieces of control groups that are called after nursery `pid`.
fn grounds(pid: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut look = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = look.pop() {
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_str() == Some(&format!("sandbox-nursery-{pid}")) {
                found.push(entry.path());
            }
            look.push(entry.path());
        }
    }
    found
}

#[test]
fn groups_go_with_their_session_and_their_server_even_when_it_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let state = directory.path().join("state");
    let told = directory.path().join("nursery");
    let life = |end: fn()| {
        let told = told.clone();
        serve(&state, &async |_: &Path, local: Local, _: Ends| {
            let _line = local.raise(spec('a')).await.unwrap().line;
            let nursery = nursery().to_string();
            let grounds = grounds(&nursery);
            assert!(!grounds.is_empty());
            let of_session = |ground: &PathBuf| ground.join(id('a').as_str()).exists();
            assert!(grounds.iter().all(of_session), "{grounds:?}");
            // One that was just ended is no obstacle.
            local.end(&id('a')).await.unwrap();
            let _line = local.raise(spec('a')).await.unwrap().line;
            assert!(grounds.iter().all(of_session), "{grounds:?}");
            local.end(&id('a')).await.unwrap();
            let begin = Instant::now();
            // When there is nothing else to do.
            while grounds.iter().any(of_session) {
                assert!(begin.elapsed() < Duration::from_secs(10), "{grounds:?}");
                tokio::task::yield_now().await;
            }
            let _line = local.raise(spec('a')).await.unwrap().line;
            std::fs::write(&told, nursery).unwrap();
            end();
        })
    };
    assert_eq!(life(|| {}), Some(0));
    let first = std::fs::read_to_string(&told).unwrap();
    assert_eq!(grounds(&first), Vec::<PathBuf>::new());
    let killed = life(|| {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    });
    assert_eq!(killed, None);
    let second = std::fs::read_to_string(&told).unwrap();
    let begin = Instant::now();
    // Whoever starts after it has ended.
    while Path::new(&format!("/proc/{second}")).exists() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::yield_now();
    }
    assert_eq!(life(|| {}), Some(0));
    assert_eq!(grounds(&second), Vec::<PathBuf>::new());
}

#[test]
fn nothing_inside_leads_to_the_control_groups() {
    served(async |_, local, _| {
        let line = local.raise(spec('a')).await.unwrap().line;
        let groups = printed(&line, "cut -d: -f3 /proc/self/cgroup | sort -u").await;
        assert_eq!(groups, "/");
        for attempt in [
            "ls /sys/fs/cgroup",
            "mkdir /tmp/c && mount -t cgroup2 none /tmp/c",
            "grep cgroup /proc/self/mounts",
            "echo 0 > /proc/self/oom_score_adj",
            "echo -1000 > /proc/$$/oom_score_adj",
            "ulimit -f unlimited",
        ] {
            let outcome = shell(&line, attempt).await;
            assert_ne!(outcome.result.exit_code, 0, "{attempt}: {outcome:?}");
        }
        assert_eq!(printed(&line, "cat /proc/self/oom_score_adj").await, "1000");
    });
}
