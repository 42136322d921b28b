//! The real binary as a client of a server.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pipe::{PipeFlags, pipe_with};
use sandbox_tests::{Outcome, finish, sandbox_binary};

use crate::{Options, Server, Storage};

/// `sandbox` with these arguments, in `directory`, where it knows of no server and has no key.
pub fn sandbox<S: AsRef<OsStr>>(
    directory: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(sandbox_binary());
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", directory)
        // As root, without a home of its own, it would look for the machine's own server.
        .env("SANDBOX_DATA", directory.join("no-server"))
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    command
}

/// The lines of a table below its heading, each in words.
pub fn rows(outcome: &Outcome) -> Vec<Vec<String>> {
    let out = outcome.out();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    out.lines().skip(1).map(words).collect()
}

/// The value that stands beside a label.
#[track_caller]
pub fn beside(outcome: &Outcome, label: &str) -> String {
    let out = outcome.out();
    let line = out.lines().find(|line| line.starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no {label}: {out}"));
    line[label.len()..].trim().to_owned()
}

/// A pipe of which a command that is started gets the one end that it is given.
pub fn pipe() -> (File, File) {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    (reader.into(), writer.into())
}

impl Server {
    /// One on what there is when nothing is chosen.
    #[track_caller]
    pub fn plain() -> Server {
        Options::on(Storage::SqliteAndFiles).start()
    }

    /// A file beside the server's data, for a client to read.
    pub fn file_beside(&self, name: &str, content: &[u8]) -> String {
        let path = self.base().join(name);
        fs::write(&path, content).expect("write a file");
        path.to_str().expect("a plain path").to_owned()
    }

    /// `sandbox` as a client of this server, with the admin's key.
    pub fn sandbox<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = sandbox(self.base(), arguments);
        command
            .env("SANDBOX_SERVER", format!("http://{}", self.address()))
            .env("SANDBOX_API_KEY_FILE", self.data().join("admin.key"));
        command
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn ask<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Outcome {
        finish(&mut self.sandbox(arguments))
    }

    /// Runs it to its end, which must be a good one: the line it prints.
    #[track_caller]
    pub fn line<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let out = self.ask(arguments).succeeded().out();
        assert_eq!(out.lines().count(), 1, "{out:?}");
        out.trim_end().to_owned()
    }
}
