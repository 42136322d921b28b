//! Running a command to its end, or talking to one that runs, never waiting for ever.

use std::io::{Read, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How long anything may take before the test fails. Far above what it does take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Outcome {
    /// Its status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Outcome {
    /// The exit status; a signal as 128 and its number, as shells have it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// It must have ended well.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code(), 0, "{self}");
        self
    }

    /// It must have failed with this status, and told why as every error is told.
    #[track_caller]
    pub fn failed(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{self}");
        assert!(self.err().contains("error: "), "no error was told: {self}");
        assert!(!self.err().contains("panicked"), "{self}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "status {}\n-- out\n{}\n-- err\n{}",
            self.code(),
            self.out(),
            self.err()
        )
    }
}

/// Runs `command` to its end with nothing on its standard input (unless one was set up).
#[track_caller]
pub fn finish(command: &mut Command) -> Outcome {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    Running::of(child).end()
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Running {
    /// Starts `command` with pipes on all three streams.
    #[track_caller]
    pub fn start(command: &mut Command) -> Running {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Running::of(child)
    }

    /// Starts `command` with nothing on its standard input, and writing what it prints to `stdout`.
    #[track_caller]
    pub fn start_into(command: &mut Command, stdout: impl Into<Stdio>) -> Running {
        command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Running::of(child)
    }

    fn of(mut child: Child) -> Running {
        let lines = child.stdout.take().map_or_else(|| channel().1, reader);
        let stderr = child.stderr.take().map_or_else(|| channel().1, reader);
        Running {
            child,
            lines,
            stderr,
            seen: Vec::new(),
        }
    }

    /// The process's id on the host.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Its standard input, to write to or to close by dropping.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("its input was taken before")
    }

    /// Writes a line to its standard input and leaves it open.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("its input is open");
        writeln!(stdin, "{line}").expect("it reads its input");
    }

    /// Waits for standard output to hold `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(_) => {
                    let _ = self.child.kill();
                    let said = self.collect_stderr();
                    panic!("it never said {text:?}; it said {}{said}", self.said());
                }
            }
        }
    }

    /// What standard output held until now.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there to be signalled");
    }

    /// Is it still there? Does not wait.
    pub fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("a child can be waited for")
            .is_none()
    }

    /// Waits for its end and for the end of everything that holds its output open: a process
    /// left behind fails the test here.
    #[track_caller]
    pub fn end(mut self) -> Outcome {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        if !await_exit(self.pid(), PATIENCE) {
            let _ = self.child.kill();
            panic!(
                "it did not end; it said {}{}",
                self.said(),
                self.collect_stderr()
            );
        }
        let status = self.child.wait().expect("it ended");
        let mut stdout = std::mem::take(&mut self.seen);
        stdout.extend(drain(&self.lines, deadline, "standard output"));
        let stderr = drain(&self.stderr, deadline, "standard error");
        Outcome {
            status,
            stdout,
            stderr,
        }
    }

    fn collect_stderr(&self) -> String {
        let mut said = Vec::new();
        while let Ok(bytes) = self.stderr.recv_timeout(Duration::from_millis(200)) {
            said.extend(bytes);
        }
        format!("\n-- err\n{}", String::from_utf8_lossy(&said))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands over what arrives on `stream` until its end.
fn reader(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[track_caller]
fn drain(stream: &Receiver<Vec<u8>>, deadline: Instant, name: &str) -> Vec<u8> {
    use std::sync::mpsc::RecvTimeoutError;
    let mut all = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match stream.recv_timeout(left) {
            Ok(bytes) => all.extend(bytes),
            Err(RecvTimeoutError::Disconnected) => return all,
            Err(RecvTimeoutError::Timeout) => {
                panic!("something that outlived the command holds its {name} open")
            }
        }
    }
}

/// Waits for a process to end, by its descriptor. True when it did.
pub fn await_exit(pid: Pid, patience: Duration) -> bool {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => readable(handle.as_fd(), patience),
        Err(_) => true,
    }
}

/// Waits for `descriptor` to have something to read, or to be closed.
pub fn readable(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = left.try_into().expect("a minute fits");
        let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut watched, Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}
