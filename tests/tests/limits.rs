//! Limits hold or are refused with the reason; they are never ignored.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use sandbox_tests::{Attempt, BOX, Fixture, User, as_both};

/// As an ordinary user this machine delegates no control group, so memory and processors cannot be
/// limited: the command must not start.
fn refused(fixture: &Fixture, option: &str, value: &str) {
    let outcome = fixture.sandbox(["run", option, value, BOX, "sh", "-c", "echo started"]);
    assert!((1..=3).contains(&outcome.code()), "{outcome}");
    assert!(
        !outcome.out().contains("started"),
        "it ran without its limit: {outcome}"
    );
    assert!(
        outcome.err().contains(option),
        "which limit is not said: {outcome}"
    );
    assert!(
        outcome.err().contains("hint: "),
        "no way out is shown: {outcome}"
    );
}

as_both! {
    fn memory_is_limited_or_refused(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        if user == User::Tester {
            return refused(&fixture, "--memory", "64M");
        }
        fixture.inside_with(&["--memory", "512M"], &["eat-memory", "128"]).must_work();
        let mut command = fixture.command(["run", "--memory", "64M", BOX, "--"]);
        command.arg(fixture.attacker()).args(["eat-memory", "256"]);
        let outcome = sandbox_tests::finish(&mut command);
        assert_eq!(outcome.code(), 137, "{outcome}");
        assert!(outcome.err().contains("memory"), "why it was killed is not said: {outcome}");
    }

    fn processors_are_limited_or_refused(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        if user == User::Tester {
            return refused(&fixture, "--cpus", "0.2");
        }
        let used: u64 =
            fixture.inside_with(&["--cpus", "0.2"], &["burn", "1500"]).must_work().parse().unwrap();
        // 300 ms are its share; a period or two more is how the kernel counts.
        assert!(used < 600, "{used} ms of processor time in 1500");
    }

    fn processes_are_limited(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        fixture.inside_with(&["--pids", "200"], &["fork", "100"]).must_work();
        match fixture.inside_with(&["--pids", "20"], &["fork", "100"]) {
            Attempt::Refused(errno, at) => {
                assert_eq!(errno, libc::EAGAIN, "{at}");
                let made: u32 = at.rsplit(' ').next().unwrap().parse().unwrap();
                assert!((10..=20).contains(&made), "{made} of 20 were allowed");
            }
            other => panic!("{other:?}"),
        }
    }

    /// A limit given at create holds at every run: the classic flag that is stored and forgotten.
    fn a_stored_limit_is_enforced(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--pids", "20", "--size", "8M"]);
        fixture.inside(&["fork", "100"]).must_fail();
        let outcome = fixture.run("dd if=/dev/zero of=filler bs=1M count=200 2>/dev/null; sleep 100");
        assert_eq!(outcome.code(), 6, "{outcome}");
        fixture.inside_with(&["--pids", "none"], &["fork", "100"]).must_work();
    }

    /// The limit is on all processes of the sandbox, not on each run.
    fn a_second_run_shares_the_firsts_limit(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--pids", "40"]);
        let mut first = fixture.start(["run", BOX, "sh", "-c",
            "i=0; while [ $i -lt 25 ]; do sleep 1000 & i=$((i+1)); done; echo up; cat"]);
        first.wait_for("up");
        fixture.inside(&["fork", "30"]).must_fail();
        first.end();
    }

    fn a_fork_bomb_ends_with_a_clear_error(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--pids", "60"]);
        let outcome = fixture.run("i=0; while [ $i -lt 500 ]; do sleep 1000 & i=$((i+1)); done; echo lived");
        assert_ne!(outcome.code(), 0, "{outcome}");
        assert!(outcome.err().to_lowercase().contains("fork"), "{outcome}");
        fixture.must_be_clean();
    }

    /// One that does not end by itself goes with its CLI.
    fn a_raging_fork_bomb_dies_with_the_cli(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--pids", "60"]);
        fixture.inside(&["fork", "100"]).must_fail();
        let mut command = fixture.command(["run", BOX, "--"]);
        command.arg(fixture.attacker()).arg("fork-bomb");
        let mut bomb = sandbox_tests::Running::start(&mut command);
        bomb.wait_for("lit");
        bomb.signal(rustix::process::Signal::KILL);
        bomb.end();
        fixture.must_be_clean();
    }

    fn a_disk_filler_is_stopped_with_exit_6(user) {
        for backend in ["overlay", "copy"] {
            let fixture = Fixture::new(user);
            fixture.write("source/kept", "kept");
            fixture.create(&["--backend", backend, "--size", "16M"]);
            fixture.run("dd if=/dev/zero of=small bs=1M count=1 2>/dev/null").succeeded();
            let outcome = fixture.run("for i in $(seq 300); do dd if=/dev/zero bs=1M count=8 2>/dev/null >> filler; done");
            let outcome = outcome.failed(6);
            assert!(outcome.err().contains("16"), "the limit is named: {outcome}");
            // Many small files fill a disk as well.
            let changes = fixture.changes();
            assert!(changes.contains_key("filler") && changes.contains_key("small"), "{changes:?}");
            let outcome = fixture.run("echo more > more; sleep 1000");
            assert_eq!(outcome.code(), 6, "already over its limit: {outcome}");
            fixture.run("rm filler; echo fits > fits").succeeded();
            fixture.must_be_clean();
        }
    }

    fn what_is_hidden_counts_against_the_size(user) {
        for hide in [
            "mkdir d; chmod 300 d; cd d; fill; chmod 000 .; sleep 60",
            "for i in $(seq 30); do n=$(printf %0200d 0); mkdir $n; cd -P $n 2>/dev/null || cd $n; done; fill; sleep 60",
        ] {
            let fixture = Fixture::new(user);
            fixture.create(&["--size", "16M"]);
            let script = format!("fill() {{ head -c 24M /dev/zero > f; }}; {hide}");
            let outcome = fixture.run(&script);
            assert_eq!(outcome.code(), 6, "{hide}: {outcome}");
        }
    }

    /// What is written to the home layer uses the same disk.
    fn the_home_counts_against_the_size(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--size", "16M"]);
        let outcome = fixture.run("for i in $(seq 300); do dd if=/dev/zero bs=1M count=8 2>/dev/null >> ~/filler; done");
        outcome.failed(6);
    }

    fn info_shows_which_limits_hold(user) {
        let fixture = Fixture::new(user);
        fixture.create(&["--pids", "33", "--size", "77M"]);
        let info = fixture.ok(["info", BOX]);
        assert!(info.out().contains("33") && info.out().contains("77"), "{info}");
        let json = fixture.ok(["info", BOX, "--json"]).json();
        let limits = json["limits"].to_string();
        assert!(limits.contains("33") && limits.contains("pids"), "{limits}");
    }

    fn nonsense_limits_are_usage_errors(user) {
        let fixture = Fixture::new(user);
        for (option, value) in [
            ("--memory", "lots"), ("--memory", "-1"), ("--memory", "0"), ("--cpus", "0"),
            ("--cpus", "-1"), ("--pids", "0"), ("--pids", "x"), ("--size", ""), ("--size", "1Q"),
            ("--memory", "99999999999999999999G"),
        ] {
            fixture.sandbox(["create", "never", option, value]).failed(1);
        }
        assert!(!fixture.root().join("never").exists());
    }
}

/// The control groups called after a launcher.
fn groups_of(launcher: rustix::process::Pid) -> Vec<String> {
    let name = format!("sandbox-run-{launcher}");
    let mut find = std::process::Command::new("find");
    find.args(["/sys/fs/cgroup", "-type", "d", "-name", &name]);
    let found = sandbox_tests::finish(&mut find).out();
    found.lines().map(str::to_owned).collect()
}

#[test]
fn gc_removes_the_groups_of_a_run_that_was_killed() {
    let fixture = Fixture::new(User::Root);
    fixture.create(&["--pids", "20"]);
    // Any limited run on the machine sweeps, too: then it is tried again.
    for _ in 0..20 {
        let mut run = fixture.start(["run", BOX, "sh", "-c", "echo up; sleep 1000"]);
        run.wait_for("up");
        let launcher = run.pid();
        let groups = groups_of(launcher);
        assert!(!groups.is_empty(), "the limit is held by a group");
        let live = fixture.ok(["gc", "--json"]).out();
        assert!(groups.iter().all(|group| !live.contains(group)), "{live}");
        run.signal(rustix::process::Signal::KILL);
        run.end();
        fixture.must_be_clean();
        let found = fixture.ok(["gc", "--dry-run", "--json"]).out();
        let deleted = fixture.ok(["gc", "--json"]).out();
        assert_eq!(groups_of(launcher), Vec::<String>::new());
        let named = |told: &str| groups.iter().any(|group| told.contains(group));
        if named(&found) && named(&deleted) {
            return;
        }
    }
    panic!("gc never found what a killed run left");
}
