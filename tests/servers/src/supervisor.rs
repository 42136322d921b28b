//! The process between a test and its server.
//!
//! A death signal would not do: the kernel sends it when the *thread* that started the server ends,
//! and a server may be shared by many tests. So a shell holds one end of a pipe whose other end is
//! ours alone, and tidies up when the pipe closes. It is in a process group of its own: a runner
//! that kills the test's whole group must not kill the one who tidies.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::account::Account;

/// How long anything may take before the test fails. Far above what it does take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is ended.
#[derive(Debug, Clone, Copy)]
pub enum Ending {
    /// SIGTERM.
    Terminate,
    /// SIGINT: PostgreSQL's "fast" shutdown, which does not wait for its clients.
    Interrupt,
    /// SIGKILL.
    Kill,
}

/// A directory, and a server in it that can be started and ended.
#[derive(Debug)]
pub struct Supervisor {
    directory: PathBuf,
    account: Account,
    shell: Child,
    /// Closing this ends everything.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What was started and not yet ended by us.
    process: Option<OwnedFd>,
}

impl Supervisor {
    /// A new directory of `account`'s that nobody else may look into, and who looks after it.
    pub fn new(account: Account) -> Supervisor {
        let directory = tempfile::Builder::new()
            .prefix("sandbox-test-server-")
            .tempdir()
            .expect("a temporary directory");
        account.own(directory.path());
        let mut shell = Command::new("unshare");
        shell
            // Memory that a killed server shared with itself is nobody's to remove, and goes with this.
            .args(["--user", "--map-current-user", "--ipc"])
            .args(["/bin/sh", "-c", include_str!("supervise.sh"), "supervise"])
            .arg(directory.path())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut shell = account
            .apply(&mut shell)
            .spawn()
            .expect("a shell looks after the server");
        let answers = shell.stdout.take().expect("its output is a pipe");
        Supervisor {
            // From here on it is the shell that removes it.
            directory: directory.keep(),
            account,
            orders: shell.stdin.take(),
            answers: BufReader::new(answers),
            shell,
            process: None,
        }
    }

    /// Writes a file that the server reads; gives its path.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory.join(name);
        std::fs::write(&path, content).expect("write into the server's directory");
        self.account.own(&path);
        path
    }

    /// Runs a command to its end, which must be a good one.
    #[track_caller]
    pub fn run(&mut self, command: &[OsString]) {
        self.start(command);
        let is_over = self.ended_within(PATIENCE);
        let status = self.end(Ending::Kill);
        let log = || self.log();
        assert!(
            is_over && status == "0",
            "{command:?} failed; it said:\n{}",
            log()
        );
    }

    /// Starts the server; it is not ready yet.
    pub fn start(&mut self, command: &[OsString]) {
        assert!(self.process.is_none(), "the server runs already");
        let mut order = format!("start {}", command.len()).into_bytes();
        for argument in command {
            assert!(!argument.as_bytes().contains(&b'\n'), "{argument:?}");
            order.push(b'\n');
            order.extend_from_slice(argument.as_bytes());
        }
        let answer = self.order(&order);
        let pid = answer.parse().ok().and_then(Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("no process number: {answer:?}"));
        // It may have ended at once, but the shell has not waited for it: the number is still its.
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("what was just started");
        self.process = Some(process);
    }

    /// Ends the server and waits until it, and everything it started, is gone. Gives its status, as
    /// shells have it.
    pub fn end(&mut self, how: Ending) -> String {
        match self.process.take() {
            None => String::new(),
            Some(_) => self.order(match how {
                Ending::Terminate => b"TERM",
                Ending::Interrupt => b"INT",
                Ending::Kill => b"KILL",
            }),
        }
    }

    /// Waits for the server to end, at most for `patience`. True when it did.
    pub fn ended_within(&self, patience: Duration) -> bool {
        match &self.process {
            Some(process) => readable(process, patience),
            None => true,
        }
    }

    /// What the server said since it was started.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.directory.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The server's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn order(&mut self, order: &[u8]) -> String {
        let orders = self.orders.as_mut().expect("open until we are dropped");
        let line = [order, b"\n"].concat();
        orders.write_all(&line).expect("the supervisor listens");
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer);
        assert!(
            length.is_ok_and(|length| length > 0),
            "the supervisor is gone"
        );
        answer.trim_end().to_owned()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Ok(shell) = pidfd_open(Pid::from_child(&self.shell), PidfdFlags::empty()) {
            readable(&shell, PATIENCE);
        }
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Waits for `descriptor` to have something to read; a process's has when it ended.
fn readable(descriptor: impl AsFd, patience: Duration) -> bool {
    let timeout = patience.try_into().expect("a minute fits");
    loop {
        let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}
