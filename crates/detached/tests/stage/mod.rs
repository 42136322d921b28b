//! An executor of our own: the real binary, with a workspace, a state directory and somebody to tell.
#![allow(dead_code, reason = "each test binary uses its part of it")]

mod control_plane;
mod relay;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring::hmac;
use rustix::process::{Pid, Signal, kill_process};
use sandbox_api_tests::{Answer, Call, Server, User};
use sandbox_tests::await_exit;
use serde_json::{Value, json};

#[allow(unused_imports, reason = "as above")]
pub use control_plane::{ControlPlane, Told};
#[allow(unused_imports, reason = "as above")]
pub use relay::Relay;

/// How long anything that is waited for may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A session that only our own control plane knows.
pub const SESSION: &str = "sess_aaaaaaaaaaaaaaaa";

/// Its token.
pub const TOKEN: &str = "0123456789abcdef-the-token-that-nobody-may-see";

/// How an executor is started.
#[derive(Debug, Clone)]
pub struct Options {
    pub user: User,
    pub session: String,
    pub token: String,
    pub control: SocketAddr,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Options {
    /// For a control plane of our own, by the ordinary user.
    pub fn told(control: SocketAddr) -> Options {
        Options {
            user: User::Tester,
            session: SESSION.to_owned(),
            token: TOKEN.to_owned(),
            control,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// For a session of a server, by the ordinary user.
    pub fn of(server: &Server, session: &str) -> Options {
        Options {
            session: session.to_owned(),
            token: token(server, session),
            ..Options::told(server.address())
        }
    }

    #[must_use]
    pub fn by(mut self, user: User) -> Options {
        self.user = user;
        self
    }

    #[must_use]
    pub fn with(mut self, arguments: &[&str]) -> Options {
        self.arguments
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Starts it, and waits until it listens.
    #[track_caller]
    pub fn start(self) -> Executor {
        let mut executor = Executor::made(self);
        executor.start();
        executor
    }
}

/// The token of a session, as its container would be given it.
pub fn token(server: &Server, session: &str) -> String {
    let secret = fs::read_to_string(server.data().join("internal.token")).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim().as_bytes());
    let tag = hmac::sign(
        &key,
        format!("sandbox session token 1\n{session}").as_bytes(),
    );
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// An executor. When it is dropped it is killed, and nothing may be left of it.
#[derive(Debug)]
pub struct Executor {
    pub options: Options,
    directory: tempfile::TempDir,
    running: Option<Running>,
    log: Arc<Mutex<Vec<u8>>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    address: SocketAddr,
    reader: JoinHandle<()>,
}

impl Executor {
    /// One that is not started.
    pub fn made(options: Options) -> Executor {
        let directory = tempfile::Builder::new()
            .prefix("sandbox-test-executor.")
            .tempdir_in("/srv")
            .expect("a directory for the executor");
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), everyone).expect("chmod");
        for name in ["workspace", "state"] {
            fs::create_dir(directory.path().join(name)).expect("mkdir");
            options.user.own(&directory.path().join(name));
        }
        let built = env!("CARGO_BIN_EXE_sandbox-executor");
        fs::copy(built, directory.path().join("sandbox-executor")).expect("copy the binary");
        Executor {
            options,
            directory,
            running: None,
            log: Arc::default(),
        }
    }

    /// Starts it on what is there.
    #[track_caller]
    pub fn start(&mut self) {
        self.start_as(self.command());
    }

    /// The same, by this command.
    #[track_caller]
    pub fn start_as(&mut self, mut command: Command) {
        assert!(self.running.is_none(), "it is running");
        let mut child = command.spawn().expect("the executor starts");
        self.give_token(&mut child);
        let stderr = child.stderr.take().expect("its standard error");
        let (listening, reader) = self.listen(stderr);
        let Ok(address) = listening.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it does not listen; it said {}", self.log());
        };
        self.running = Some(Running {
            child,
            address,
            reader,
        });
    }

    /// Runs it where it is not expected to start: how it ended, and what it said.
    #[track_caller]
    pub fn fail(&self) -> (Option<i32>, String) {
        self.fail_as(self.command())
    }

    /// The same, by this command.
    #[track_caller]
    pub fn fail_as(&self, mut command: Command) -> (Option<i32>, String) {
        let mut child = command.spawn().expect("the executor starts");
        self.give_token(&mut child);
        if !await_exit(Pid::from_child(&child), PATIENCE) {
            let _ = child.kill();
        }
        let output = child.wait_with_output().expect("it ended");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    fn give_token(&self, child: &mut Child) {
        let mut stdin = child.stdin.take().expect("its standard input");
        // One that ends before it reads it is told of by its end.
        let _ = stdin.write_all(self.options.token.as_bytes());
    }

    /// What starts it, with its token on descriptor 3 by way of a pipe.
    pub fn command(&self) -> Command {
        self.command_after(&[])
    }

    /// The same, started by these words.
    pub fn command_after(&self, words: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$@\" 3<&0 0</dev/null", "sh"])
            .args(words)
            .arg(self.base().join("sandbox-executor"))
            .args(["--session", &self.options.session, "--token-fd", "3"])
            .args(["--control", &format!("http://{}", self.options.control)])
            .arg("--workspace")
            .arg(self.workspace())
            .arg("--state")
            .arg(self.state())
            .args(["--listen", "127.0.0.1:0"])
            .args(&self.options.arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("SECRET_OF_THE_EXECUTOR", "its-environment-is-nobodys")
            .envs(
                self.options
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        self.options.user.apply(&mut command);
        command
    }

    /// Reads what it says until its end; tells when it listens.
    fn listen(&self, stderr: ChildStderr) -> (Receiver<SocketAddr>, JoinHandle<()>) {
        let (listening, address) = channel();
        let log = Arc::clone(&self.log);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let said: Value = serde_json::from_slice(&line).unwrap_or_default();
                let message = said["message"].as_str().unwrap_or_default();
                if let Some(found) = message.strip_prefix("listening on http://") {
                    let _ = listening.send(found.parse().expect("an address"));
                }
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.extend(line);
                log.push(b'\n');
            }
        });
        (address, reader)
    }

    /// The directory that holds everything.
    pub fn base(&self) -> &Path {
        self.directory.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.base().join("workspace")
    }

    pub fn state(&self) -> PathBuf {
        self.base().join("state")
    }

    /// The names in its spool.
    pub fn spooled(&self) -> Vec<String> {
        let entries = fs::read_dir(self.state().join("spool")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// Everything it said.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Waits until it said this.
    #[track_caller]
    pub fn until_said(&self, text: &str) {
        until(|| self.log().contains(text).then_some(()), || self.log());
    }

    /// Waits until this is in its spool.
    #[track_caller]
    pub fn until_spooled(&self, name: &str) {
        let found = || {
            self.spooled()
                .iter()
                .any(|known| known == name)
                .then_some(())
        };
        until(found, || format!("{:?} {}", self.spooled(), self.log()));
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.running.as_ref().expect("it is running").child)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("it is running").address
    }

    /// A request with its token.
    #[track_caller]
    pub fn call(&self, method: &str, target: &str) -> Call {
        self.stranger(method, target).key(&self.options.token)
    }

    /// A request without one.
    #[track_caller]
    pub fn stranger(&self, method: &str, target: &str) -> Call {
        Call::new(self.address(), method, target)
    }

    /// Has code run.
    #[track_caller]
    pub fn execute(&self, id: &str, language: &str, code: &str) -> Answer {
        let body = json!({ "execution_id": id, "language": language, "code": code });
        self.execute_with(body)
    }

    #[track_caller]
    pub fn execute_with(&self, body: Value) -> Answer {
        self.call("POST", "/execute").json(&body).send()
    }

    /// Waits until there is a file in the workspace: its content.
    #[track_caller]
    pub fn until_file(&self, name: &str) -> String {
        let path = self.workspace().join(name);
        let found = || {
            fs::read_to_string(&path)
                .ok()
                .filter(|text| !text.is_empty())
        };
        until(found, || format!("no {name}: {}", self.log()))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there to be signalled");
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let mut running = self.running.take().expect("it is running");
        if !await_exit(Pid::from_child(&running.child), PATIENCE) {
            let _ = running.child.kill();
            let _ = running.child.wait();
            panic!("it does not end; it said {}", self.log());
        }
        let status = running.child.wait().expect("it ended");
        running.reader.join().expect("its log was read");
        self.must_be_gone();
        status
    }

    /// Kills it, as nobody should.
    #[track_caller]
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Asks it to end.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// The processes of its binary, its own and the executor's.
    pub fn processes(&self) -> Vec<i32> {
        let binary = self.base().join("sandbox-executor");
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &i32| {
            fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary)
        })
        .collect()
    }

    /// Those of them that this one started.
    pub fn children(&self, parent: i32) -> Vec<Pid> {
        let is_child = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields = stat.rsplit(')').next().unwrap_or_default();
            let found = fields
                .split_whitespace()
                .nth(1)
                .and_then(|field| field.parse().ok());
            found == Some(parent)
        };
        let children = self.processes().into_iter().filter(is_child);
        children.filter_map(Pid::from_raw).collect()
    }

    /// What all of them have of memory, in bytes: pages that are shared are counted in parts.
    pub fn memory(&self) -> u64 {
        let of = |pid: i32| -> u64 {
            let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with("Pss:"));
            let kilobytes =
                line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            kilobytes.unwrap_or(0) << 10
        };
        self.processes().into_iter().map(of).sum()
    }

    /// Fails when a process of it is left.
    #[track_caller]
    fn must_be_gone(&self) {
        let gone = || self.processes().is_empty().then_some(());
        until(gone, || format!("processes stay: {:?}", self.processes()));
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            let _ = running.child.wait();
            let _ = running.reader.join();
        }
        if std::thread::panicking() {
            let _ = std::io::stderr().write_all(self.log().as_bytes());
        } else {
            self.must_be_gone();
        }
    }
}

/// Waits until there is something of which no event tells.
#[track_caller]
#[allow(
    clippy::disallowed_methods,
    reason = "there is nothing to wait for but time"
)]
pub fn until<T>(mut look: impl FnMut() -> Option<T>, otherwise: impl FnOnce() -> String) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if Instant::now() > deadline {
            panic!("it never was: {}", otherwise());
        }
        sandbox_api_tests::pause(Duration::from_millis(5));
    }
}

/// An identifier of an execution, by number.
pub fn id(number: u32) -> String {
    format!("exec_20261116_{number:08}")
}
