//! A stage for the real binary: a source, a sandbox root and a home in a directory of their own.

#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Longer than anything here should take, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Stage {
    directory: tempfile::TempDir,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Outcome {
    pub status: std::process::ExitStatus,
    pub out: String,
    pub err: String,
}

impl Stage {
    /// A source with two files, and nothing else.
    pub fn new() -> Stage {
        let stage = Stage::empty();
        stage.write("a.txt", "one\n");
        stage.write("dir/b.txt", "two\n");
        stage
    }

    pub fn empty() -> Stage {
        // Not below /tmp, which is another one inside.
        let directory = tempfile::Builder::new()
            .prefix("sandbox-test-cli.")
            .tempdir_in("/var/tmp");
        let stage = Stage {
            directory: directory.unwrap(),
        };
        for made in [stage.source(), stage.home()] {
            fs::create_dir(made).unwrap();
        }
        stage
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn source(&self) -> PathBuf {
        self.path().join("source")
    }

    pub fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Writes a file of the source.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.source().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.source().join(path)).unwrap()
    }

    pub fn config(&self, text: &str) {
        let directory = self.home().join(".config/daedalos/sandbox");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("config.toml"), text).unwrap();
    }

    /// The binary with these arguments, in the source, with an environment of its own.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandbox"));
        command
            .args(arguments)
            .current_dir(self.source())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm")
            .env("LANG", "C.UTF-8")
            .env("SANDBOX_ROOT", self.root())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub fn sandbox<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Outcome {
        finish(&mut self.command(arguments))
    }

    /// Runs it and it must succeed; gives its output.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        self.sandbox(arguments).code(0).out
    }

    /// Its JSON output.
    #[track_caller]
    pub fn json<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> serde_json::Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// A sandbox of the source called `box`.
    #[track_caller]
    pub fn boxed(&self) {
        self.ok(["create", "box"]);
    }

    /// The names in the sandbox root, hidden ones left out.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root()).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }
}

impl Outcome {
    #[track_caller]
    pub fn code(self, code: i32) -> Outcome {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    /// Stderr holds this.
    #[track_caller]
    pub fn says(self, text: &str) -> Outcome {
        assert!(self.err.contains(text), "{text:?} is not said: {self:?}");
        self
    }
}

pub fn finish(command: &mut Command) -> Outcome {
    outcome(command.output().unwrap())
}

pub fn outcome(output: Output) -> Outcome {
    Outcome {
        status: output.status,
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A terminal with somebody at it.
pub struct Terminal {
    master: File,
    slave: Option<OwnedFd>,
    pub seen: String,
}

impl Terminal {
    /// Starts `command` on a new terminal, as the session's leader.
    pub fn start(command: &Command) -> (Terminal, Child) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        use rustix::fs::{Mode, OFlags, open};
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(&name, flags, Mode::empty()).unwrap();
        let size = rustix::termios::Winsize {
            ws_row: 24,
            ws_col: 90,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&slave, size).unwrap();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let mut leader = Command::new("setsid");
        leader
            .args(["--ctty", "--wait"])
            .arg(command.get_program())
            .args(command.get_args());
        leader.env_clear();
        leader.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        leader.current_dir(command.get_current_dir().unwrap());
        let child = leader
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        (
            Terminal {
                master: File::from(master),
                slave: Some(slave),
                seen: String::new(),
            },
            child,
        )
    }

    pub fn slave(&self) -> &OwnedFd {
        self.slave.as_ref().unwrap()
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(self.slave(), size).unwrap();
    }

    pub fn enter(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until `text` is shown, and forgets everything up to it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(
                self.read_until(deadline),
                "{text:?} was never shown: {}",
                self.seen
            );
        }
    }

    /// Reads until the command has closed the terminal; gives all that was not asked for yet.
    pub fn finish(mut self, mut child: Child) -> (String, std::process::ExitStatus) {
        drop(self.slave.take());
        let deadline = Instant::now() + PATIENCE;
        while self.read_until(deadline) {}
        (self.seen, child.wait().unwrap())
    }

    fn read_until(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: 0,
        };
        let mut watched = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        if poll(&mut watched, Some(&timeout)).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        match self.master.read(&mut buffer) {
            Ok(length) if length > 0 => {
                self.seen
                    .push_str(&String::from_utf8_lossy(&buffer[..length]));
                true
            }
            _ => false,
        }
    }
}
