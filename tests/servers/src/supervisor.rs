//! The process between a test and its server.
//!
//! A death signal would not do: the kernel sends it when the *thread* that started the server ends,
//! and a server may be shared by many tests. So a shell holds one end of a pipe whose other end is
//! ours alone, and tidies up when the pipe closes. It is in a process group of its own: a runner
//! that kills the test's whole group must not kill the one who tidies.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;

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
    shell: Child,
    /// Closing this ends everything.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The server, while it should run.
    server: Option<OwnedFd>,
}

impl Supervisor {
    /// Takes over `directory`, which must be `account`'s, for a server that is yet to be started.
    pub fn new(directory: TempDir, account: Account, command: &[OsString]) -> Supervisor {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", include_str!("supervise.sh"), "supervise"])
            .arg(directory.path())
            .args(command)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut shell = account
            .apply(&mut shell)
            .spawn()
            .expect("/bin/sh looks after the server");
        // From here on it is the shell that removes it.
        let directory = directory.keep();
        let answers = shell.stdout.take().expect("its output is a pipe");
        Supervisor {
            directory,
            orders: shell.stdin.take(),
            answers: BufReader::new(answers),
            shell,
            server: None,
        }
    }

    /// Starts the server; it is not ready yet.
    pub fn start(&mut self) {
        assert!(self.server.is_none(), "the server runs already");
        let answer = self.order("start");
        let pid = answer.parse().ok().and_then(Pid::from_raw);
        let pid = pid.unwrap_or_else(|| panic!("no process number: {answer:?}"));
        // It may have ended at once, but the shell has not waited for it: the number is still its.
        let server =
            pidfd_open(pid, PidfdFlags::empty()).expect("the server that was just started");
        self.server = Some(server);
    }

    /// Ends the server and waits until it, and everything it started, is gone.
    pub fn end(&mut self, how: Ending) {
        if self.server.take().is_some() {
            let signal = match how {
                Ending::Terminate => "TERM",
                Ending::Interrupt => "INT",
                Ending::Kill => "KILL",
            };
            self.order(signal);
        }
    }

    /// Waits for the server to end, at most for `patience`. True when it did.
    pub fn ended_within(&self, patience: Duration) -> bool {
        match &self.server {
            Some(server) => readable(server, patience),
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

    fn order(&mut self, order: &str) -> String {
        let orders = self.orders.as_mut().expect("open until we are dropped");
        writeln!(orders, "{order}").expect("the supervisor listens");
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
