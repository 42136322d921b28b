//! A control plane of our own: the binary, on data of its own, as anybody starts it.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::client::Client;
use crate::processes::Process;
use crate::stage::{Stage, StageError};
use crate::timing::pause;

/// How long it may take to start.
const START: Duration = Duration::from_secs(60);

/// How long it may take to end; ten thousand sessions take a while.
const END: Duration = Duration::from_secs(120);

/// How often it is looked whether it has started or ended.
const LOOK: Duration = Duration::from_millis(5);

/// A server that listens. It ends when this is dropped, and with it all that it started.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    key: String,
}

impl Server {
    /// Starts one in `directory`, which it makes, with these arguments more. It keeps its records at
    /// `database`, or in its own directory as it does where nothing is said.
    pub fn start(
        stage: &Stage,
        directory: &Path,
        database: Option<&str>,
        arguments: &[&str],
    ) -> Result<Server, StageError> {
        stage.make_dir(directory)?;
        let (log, data) = (directory.join("log"), directory.join("data"));
        let mut command = stage.program(directory);
        command
            .args(["serve", "--bind", "127.0.0.1:0", "--data"])
            .arg(&data)
            .args(arguments)
            .envs(database.map(|url| ("DATABASE_URL", url)))
            .stderr(File::create(&log).map_err(StageError::io(&log))?);
        let spawned = command.spawn();
        let mut child = spawned.map_err(|source| StageError::spawn(&command, source))?;
        let address = await_listening(&mut child, &log).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let key = data.join("admin.key");
        let key = fs::read_to_string(&key).map_err(StageError::io(&key))?;
        Ok(Server {
            child,
            address,
            key: key.trim().to_owned(),
        })
    }

    /// A new connection to it.
    pub fn client(&self) -> Result<Client, StageError> {
        Client::connect(self.address, &self.key)
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// The first process of every session that is raised: their executors.
    pub fn executors(&self) -> Vec<Process> {
        let watchers = self.process().children().into_iter();
        let supervisors = watchers.flat_map(Process::children);
        let raised = supervisors.flat_map(Process::children);
        raised.filter(|process| process.is_first()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + END;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            pause(LOOK);
        }
    }
}

fn await_listening(child: &mut Child, log: &Path) -> Result<SocketAddr, StageError> {
    let deadline = Instant::now() + START;
    loop {
        let said = fs::read_to_string(log).map_err(StageError::io(log))?;
        let address = said
            .lines()
            .find_map(|line| line.strip_prefix("listening on http://"))
            .and_then(|address| address.trim().parse().ok());
        if let Some(address) = address {
            return Ok(address);
        }
        let is_over = !matches!(child.try_wait(), Ok(None));
        if is_over || Instant::now() > deadline {
            return Err(StageError::Output {
                command: "sandbox serve".to_owned(),
                output: said,
            });
        }
        pause(LOOK);
    }
}

impl Client {
    /// Makes a session for Python: its identifier. `pool` says whether it comes from the pool.
    pub fn session(&mut self, pool: &str) -> Result<String, StageError> {
        let wanted = json!({ "template_id": "python-basic", "timeout": 3600, "pool": pool });
        let session = self.post("/sessions", &wanted, 201)?;
        Ok(text(&session, "session_id"))
    }

    /// Runs code in a session to its end, which must be a good one: the result.
    pub fn run(&mut self, session: &str, code: &Value) -> Result<Value, StageError> {
        let path = format!("/sessions/{session}/execute?wait=true");
        let result = self.post(&path, code, 200)?;
        match result["status"] == "success" {
            true => Ok(result),
            false => Err(StageError::Output {
                command: code.to_string(),
                output: result.to_string(),
            }),
        }
    }

    /// Ends a session.
    pub fn end(&mut self, session: &str) -> Result<(), StageError> {
        self.delete(&format!("/sessions/{session}"))
    }
}

/// A text in an answer.
pub fn text(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap_or_default().to_owned()
}
