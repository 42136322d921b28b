//! A server of our own: the real binary, its data in a directory of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbox_tests::{User, await_exit, sandbox_binary};

use crate::leftovers::{self, Surroundings};
use crate::process;
use crate::storage::{Kept, Storage};
use crate::{Call, eventually};

/// How long a server may take to start or to end: its drain is half of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who runs it.
    pub user: User,
    /// What it keeps things in.
    pub storage: Storage,
    /// More arguments.
    pub arguments: Vec<String>,
    /// More environment.
    pub environment: Vec<(String, String)>,
    /// What its machine is called; as this one is where nothing is said.
    pub hostname: Option<String>,
}

/// A server that listens. When it is dropped it ends, and must leave nothing.
#[derive(Debug)]
pub struct Server {
    /// How it was started.
    pub options: Options,
    directory: tempfile::TempDir,
    kept: Kept,
    running: Option<Running>,
    key: String,
    log: Arc<Mutex<Vec<u8>>>,
    before: Surroundings,
}

/// A life of the server.
#[derive(Debug)]
struct Running {
    child: Child,
    address: SocketAddr,
    reader: JoinHandle<()>,
}

impl Options {
    /// Run by root.
    pub fn on(storage: Storage) -> Options {
        Options {
            user: User::Root,
            storage,
            arguments: Vec::new(),
            environment: Vec::new(),
            hostname: None,
        }
    }

    /// Run by that user.
    #[must_use]
    pub fn by(mut self, user: User) -> Options {
        self.user = user;
        self
    }

    /// With these arguments.
    #[must_use]
    pub fn with(mut self, arguments: &[&str]) -> Options {
        let more = arguments.iter().map(|&argument| argument.to_owned());
        self.arguments.extend(more);
        self
    }

    /// With this in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Options {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// On a machine that is called so. Only root can have one.
    #[must_use]
    pub fn called(mut self, hostname: &str) -> Options {
        self.hostname = Some(hostname.to_owned());
        self
    }

    /// Starts it.
    #[track_caller]
    pub fn start(self) -> Server {
        let directory = tempfile::Builder::new()
            .prefix("sandbox-api-tests.")
            .tempdir_in("/srv")
            .expect("a directory for the server");
        let everyone = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), everyone).expect("chmod");
        self.user.own(directory.path());
        let before = Surroundings::look();
        let kept = self.storage.start();
        let mut server = Server {
            options: self,
            directory,
            kept,
            running: None,
            key: String::new(),
            log: Arc::default(),
            before,
        };
        server.start();
        server
    }
}

impl Server {
    /// Starts it on the data that is there.
    #[track_caller]
    pub fn start(&mut self) {
        assert!(self.running.is_none(), "it is running");
        let mut child = self.command().spawn().expect("the server starts");
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
        let key = self.data().join("admin.key");
        let key = fs::read_to_string(key).expect("the admin's key");
        key.trim().clone_into(&mut self.key);
    }

    /// `sandbox serve` with everything it is told, not started.
    pub fn command(&self) -> Command {
        let Options {
            user,
            arguments,
            environment,
            hostname,
            ..
        } = &self.options;
        let mut command = match hostname {
            None => Command::new(self.binary()),
            Some(name) => {
                let mut command = Command::new("unshare");
                let renamed = r#"hostname "$0" && exec "$@""#;
                command.args(["--uts", "sh", "-c", renamed, name]);
                command.arg(self.binary());
                command
            }
        };
        command
            .args(["serve", "--bind", "127.0.0.1:0", "--data"])
            .arg(self.data())
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.base())
            // What is promised to sessions here is not what the machine need have.
            .env("SANDBOX_OVERCOMMIT", "10000")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        self.kept.tell(&mut command);
        user.apply(&mut command);
        command
    }

    /// Reads what it says until its end; tells when it listens.
    fn listen(&self, stderr: ChildStderr) -> (Receiver<SocketAddr>, JoinHandle<()>) {
        let (listening, address) = channel();
        let log = Arc::clone(&self.log);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                let text = String::from_utf8_lossy(&line);
                if let Some(found) = text.strip_prefix("listening on http://")
                    && let Ok(found) = found.trim().parse()
                {
                    let _ = listening.send(found);
                }
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.extend(line);
                log.push(b'\n');
            }
        });
        (address, reader)
    }

    /// Where it listens.
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().expect("it is running").address
    }

    /// The admin's key.
    pub fn admin(&self) -> &str {
        &self.key
    }

    /// A request without a key.
    #[track_caller]
    pub fn stranger(&self, method: &str, target: &str) -> Call {
        Call::new(self.address(), method, target).described()
    }

    /// A request by the admin.
    #[track_caller]
    pub fn call(&self, method: &str, target: &str) -> Call {
        self.stranger(method, target).key(&self.key)
    }

    /// The process.
    #[track_caller]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.running.as_ref().expect("it is running").child)
    }

    /// Its memory, in bytes.
    #[track_caller]
    pub fn memory(&self) -> u64 {
        let resident = process::status(self.pid(), "VmRSS").expect("it is running");
        let kilobytes = resident.trim_end_matches(" kB").parse::<u64>();
        kilobytes.expect("a number of them") << 10
    }

    /// Everything it said.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The directory that holds everything.
    pub fn base(&self) -> &Path {
        self.directory.path()
    }

    /// Where it keeps what it keeps.
    pub fn data(&self) -> PathBuf {
        self.base().join("data")
    }

    /// The binary, where every user reaches it.
    fn binary(&self) -> PathBuf {
        let binary = self.base().join("sandbox");
        if !binary.exists() {
            let built = sandbox_binary();
            if fs::hard_link(&built, &binary).is_err() {
                fs::copy(&built, &binary).expect("copy the binary");
            }
        }
        binary
    }

    /// Sends it a signal.
    #[track_caller]
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
        status
    }

    /// Ends it in order: it must end well, and leave no process, mount or group.
    #[track_caller]
    pub fn stop(&mut self) {
        let processes = self.processes();
        self.signal(Signal::TERM);
        let status = self.wait();
        assert!(status.success(), "{status}: {}", self.log());
        self.must_be_clean(&processes);
    }

    /// Kills it, as nobody should.
    #[track_caller]
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// The process that starts its sessions. Another one starts that, and does nothing else.
    #[track_caller]
    pub fn supervisor(&self) -> Pid {
        eventually("there is a supervisor", || {
            let all = self.processes();
            let child = |of: Pid| all.iter().find(|pid| process::parent(**pid) == Some(of));
            child(*child(self.pid())?).copied()
        })
    }

    /// Its processes, the sessions' among them.
    pub fn processes(&self) -> Vec<Pid> {
        leftovers::processes(self.base())
    }

    /// Fails when something of it goes on: a process or a mount. Groups of one that was killed are removed by
    /// the next.
    #[track_caller]
    pub fn must_have_ended(&self) {
        leftovers::must_have_ended(self.base());
    }

    /// Fails when something is left of it. `processes` are those it had.
    #[track_caller]
    pub fn must_be_clean(&self, processes: &[Pid]) {
        leftovers::must_be_gone(self.base(), processes);
        self.before.must_be_as_before();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(mut running) = self.running.take() {
                let _ = running.child.kill();
                let _ = running.child.wait();
                let _ = running.reader.join();
            }
            let _ = std::io::stderr().write_all(self.log().as_bytes());
        } else if self.running.is_some() {
            self.stop();
        }
    }
}
