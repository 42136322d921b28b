//! Attempts to reach other processes: the sandbox's init, which has seen the outside, and
//! processes of the host.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;

use sandbox_tests::{BOX, Fixture, Running, as_both, finish, kernel, need};

/// Everything that one process can do to another.
const GRIPS: &[&[&str]] = &[
    &["trace", "PID"],
    &["read-memory", "PID"],
    &["write-memory", "PID"],
    &["steal-descriptor", "PID", "0"],
    &["compare", "PID"],
];

fn grip(words: &[&str], pid: &str) -> Vec<String> {
    words.iter().map(|word| word.replace("PID", pid)).collect()
}

as_both! {
    /// The init keeps descriptors of the outside; who steals one or writes its memory is out.
    fn the_init_cannot_be_traced_read_or_robbed(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut command = fixture.outside(fixture.attacker());
        let mut victim = Running::start(command.arg("wait-here"));
        victim.wait_for("waiting");
        let pid = victim.pid().as_raw_nonzero().to_string();
        for words in GRIPS {
            let control = grip(words, &pid);
            let control: Vec<&str> = control.iter().map(String::as_str).collect();
            fixture.control(&control).must_work();
            for descriptor in ["0", "1", "2", "3", "4", "5", "6", "7", "8"] {
                let attempt = grip(words, "1");
                let mut attempt: Vec<&str> = attempt.iter().map(String::as_str).collect();
                if words[0] == "steal-descriptor" {
                    attempt[2] = descriptor;
                } else if descriptor != "0" {
                    continue;
                }
                fixture.inside(&attempt).must_fail();
            }
        }
        victim.end();
    }

    fn processes_of_the_host_are_out_of_reach(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut command = fixture.outside(fixture.attacker());
        let mut victim = Running::start(command.arg("wait-here"));
        victim.wait_for("waiting");
        let pid = victim.pid().as_raw_nonzero().to_string();
        for words in GRIPS.iter().chain(&[
            &["signal", "PID", "9"][..],
            &["renice", "PID"],
            &["limit", "PID"],
        ]) {
            let attempt = grip(words, &pid);
            let attempt: Vec<&str> = attempt.iter().map(String::as_str).collect();
            fixture.inside(&attempt).must_fail();
        }
        for everything in ["-1", "1"] {
            let _ = fixture.sandbox(["run", BOX, "kill", "-9", everything]);
        }
        assert!(victim.end().out().contains("unharmed"));
    }

    /// A process group spans PID namespaces, and kill(0) reaches all of it: without a session of
    /// its own, or Landlock's signal scope, one line inside kills the caller's whole pipeline.
    fn a_signal_to_the_process_group_does_not_reach_the_caller(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let attacker = fixture.attacker();
        let leading = |command: &[&str]| {
            let mut leader = fixture.outside(&attacker);
            leader.args(["leading-a-group", "--"]).args(command);
            finish(&mut leader)
        };
        let attack = [attacker.to_str().unwrap(), "signal", "0", "9"];
        assert_eq!(leading(&attack).code(), 137, "the control: outside, the leader dies");
        let binary = fixture.binary();
        let mut command = vec![binary.to_str().unwrap(), "run", BOX, "--"];
        command.extend(attack);
        let outcome = leading(&command);
        match kernel::scopes() {
            true => assert!(outcome.out().contains("survived"), "{outcome}"),
            // As SECURITY.md says.
            false => assert_eq!(outcome.code(), 137, "{outcome}"),
        }
    }

    /// CVE-2019-5736: the runtime's own binary, reached through the init, overwritten for the
    /// next caller.
    fn the_binary_cannot_be_overwritten_through_the_init(user) {
        let fixture = Fixture::new(user);
        let binary = fixture.own_binary();
        let before = fs::read(&binary).unwrap();
        fixture.create(&[]);
        let attacker = fixture.attacker();
        fixture.control(&["write", "/proc/self/exe"]).must_fail(); // "text file busy" while it runs
        for path in ["/proc/1/exe", "/proc/1/root/proc/self/exe", binary.to_str().unwrap()] {
            fixture.inside(&["write", path]).must_fail();
        }
        // The real attack: hold a descriptor of it while the runtime runs, write when it has ended.
        let script = format!(
            "for try in $(seq 50); do exec 9</proc/1/exe && break; done 2>/dev/null; \
             {} write-through-descriptor 9",
            attacker.display()
        );
        let outcome = fixture.run(&script);
        assert!(!outcome.out().contains("done"), "{outcome}");
        assert!(fs::read(&binary).unwrap() == before, "the binary was changed");
    }

    /// The second run of a sandbox joins the first; it must not find the first's processes weaker.
    fn runs_of_one_sandbox_cannot_rob_each_others_init(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let mut first = fixture.start(["run", BOX, "sh", "-c", "echo up; cat"]);
        first.wait_for("up");
        for words in GRIPS {
            let attempt = grip(words, "1");
            let attempt: Vec<&str> = attempt.iter().map(String::as_str).collect();
            fixture.inside(&attempt).must_fail();
        }
        let seen = fixture.run("ls -d /proc/[0-9]* | wc -l; ls /proc/1/root 2>&1 | head -1");
        let count: usize = seen.out().lines().next().unwrap().trim().parse().unwrap();
        assert!(count <= 8, "a second run sees processes that are not its own: {seen}");
        first.end().succeeded();
    }

    fn only_its_own_processes_are_seen(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let seen = fixture.run("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'; hostname").succeeded();
        let own = std::env::current_exe().unwrap();
        let own = own.file_name().unwrap().to_str().unwrap();
        assert!(!seen.out().contains(own), "the test itself is visible: {seen}");
    }

    /// A mount made inside must not appear on a host whose mounts are shared, as systemd has them.
    fn mounts_do_not_spread_to_a_host_with_shared_mounts(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let binary = fixture.binary();
        let (uid, gid) = user.ids();
        let script = format!(
            "mount --make-rshared / && cat /proc/self/mountinfo > {base}/before && \
             setpriv --reuid {uid} --regid {gid} --clear-groups {binary} run {BOX} true && \
             cat /proc/self/mountinfo > {base}/after && cmp {base}/before {base}/after",
            base = fixture.base().display(),
            binary = binary.display(),
        );
        let mut command = fixture.outside(need("unshare"));
        // The mounts are root's to share, whoever runs the sandbox.
        use std::os::unix::process::CommandExt as _;
        command.uid(0).gid(0).args(["--mount", "--propagation", "unchanged", "sh", "-c", &script]);
        finish(&mut command).succeeded();
    }
}
