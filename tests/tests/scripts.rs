//! The scripts behind `make`: they stop when something fails, and blame nobody else for it.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_tests::{Running, await_exit, finish, need};

fn script(name: &str) -> PathBuf {
    let tests = std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    Path::new(&tests).join("../scripts").join(name)
}

/// A directory of programs that stands for PATH, with bash's own tools and what a test adds.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Programs {
        let programs = Programs(tempfile::tempdir().unwrap());
        for name in ["bash", "env", "id", "mkdir", "sleep", "cat"] {
            symlink(need(name), programs.path().join(name)).unwrap();
        }
        programs.add("cargo", "exit 0");
        programs
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn add(&self, name: &str, body: &str) {
        let path = self.path().join(name);
        fs::write(&path, format!("#!{}\n{body}\n", need("bash").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn set_up(&self, target: &str) -> Command {
        let mut command = Command::new(need("bash"));
        command
            .arg(script("set-up"))
            .arg(target)
            .env_clear()
            .env("PATH", self.path())
            .env("HOME", self.path())
            .env("SET_UP_RETRY_SECONDS", "0");
        command
    }
}

#[test]
fn set_up_stops_when_an_install_fails() {
    let programs = Programs::new();
    // Everything is there but musl, which only makes the binary quicker.
    programs.add("gcc", "exit 0");
    programs.add("apt-get", "echo 'E: no such package' >&2; exit 100");
    let outcome = finish(&mut programs.set_up("build"));
    assert_ne!(outcome.code(), 0, "{outcome}");
    for text in ["E: no such package", "cannot install: musl-tools"] {
        assert!(outcome.err().contains(text), "{text}: {outcome}");
    }
}

#[test]
fn set_up_waits_for_a_locked_package_database() {
    let programs = Programs::new();
    programs.add("gcc", "exit 0");
    let calls = programs.path().join("calls");
    programs.add(
        "apt-get",
        &format!(
            "echo \"$*\" >>{calls}; mapfile -t lines <{calls}
             [ ${{#lines[@]}} -ge 3 ] || {{ echo 'E: Could not get lock /var/lib/dpkg/lock' >&2; exit 100; }}",
            calls = calls.display()
        ),
    );
    let outcome = finish(&mut programs.set_up("build")).succeeded();
    let calls = fs::read_to_string(calls).unwrap();
    assert_eq!(calls.lines().count(), 3, "{calls}");
    // The first finds the lock, and the others wait for what is left of five minutes.
    let patience: Vec<u32> = calls
        .lines()
        .map(|call| call.split_once("Timeout=").unwrap().1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(patience[0], 0, "{calls}");
    assert!(
        patience[1..].iter().all(|left| (200..=300).contains(left)),
        "{calls}"
    );
    assert!(outcome.err().contains("waiting for the lock"), "{outcome}");
    assert!(
        outcome.out().contains("installing with apt: musl-tools"),
        "{outcome}"
    );
}

#[test]
fn leave_nothing_names_a_daemon_that_outlives_the_command() {
    // It has no environment, a session of its own and another user.
    let leak = "setsid setpriv --reuid 59999 --clear-groups env -i sleep 98761 >/dev/null 2>&1 </dev/null &";
    let outcome = finish(Command::new(script("leave-nothing")).args(["bash", "-c", leak]));
    assert_eq!(outcome.code(), 1, "{outcome}");
    let blamed = outcome.err();
    let line = blamed.lines().find(|line| line.contains("sleep 98761"));
    let pid = line.and_then(|line| line.trim().strip_prefix("process ")?.split(':').next());
    let pid = pid.unwrap_or_else(|| panic!("the daemon is not named: {outcome}"));
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert!(await_exit(pid, sandbox_tests::PATIENCE));
}

#[test]
fn leave_nothing_blames_no_processes_of_others() {
    let mut suite = Running::start(Command::new(script("leave-nothing")).args([
        "bash",
        "-c",
        "echo started; cat",
    ]));
    suite.wait_for("started");
    // As a session of a server that the user started by hand.
    let mut session =
        Running::start(Command::new("setpriv").args(["--reuid", "59999", "--clear-groups", "cat"]));
    let group = own_group(session.pid().as_raw_nonzero().get());
    fs::create_dir(&group).unwrap();
    let outcome = suite.end();
    assert!(session.is_running());
    fs::remove_dir(&group).unwrap();
    session.end();
    // Other tests run meanwhile, and may be blamed for their files.
    for others in ["process ", group.to_str().unwrap()] {
        assert!(!outcome.err().contains(others), "{outcome}");
    }
}

/// Where a server with this process id has the control groups of its sessions.
fn own_group(pid: i32) -> PathBuf {
    let mounted = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
    let mounted = mounted
        .into_iter()
        .map(Path::new)
        .find(|path| path.is_dir());
    mounted.unwrap().join(format!("sandbox-nursery-{pid}"))
}
