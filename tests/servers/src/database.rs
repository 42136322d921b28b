//! A database server, whichever program it is.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::answer::{self, Server};
use crate::secret;
use crate::supervisor::Ending;

/// The name of a user who may do everything.
pub(crate) const USER: &str = "sandbox";

/// A database server with nothing in it.
#[derive(Debug)]
pub struct Database {
    server: Server,
    port: u16,
    password: String,
    program: &'static Program,
}

/// What is different about each of them.
#[derive(Debug)]
pub(crate) struct Program {
    /// What its URLs begin with.
    pub(crate) scheme: &'static str,
    /// The database that is always there.
    pub(crate) own_database: &'static str,
    /// How it is shut down in order.
    pub(crate) ending: Ending,
    /// Makes its data, for a port and a password.
    pub(crate) prepare: fn(u16, &str) -> Server,
    /// Its client, which asks at a port with a password a database a question.
    pub(crate) client: fn(u16, &str, &str, &str) -> Command,
}

impl Database {
    /// Makes a new server and waits until it answers.
    #[track_caller]
    pub(crate) fn start(program: &'static Program) -> Database {
        let password = secret::random();
        let (port, server) = answer::on_a_free_port(
            |port| (program.prepare)(port, &password),
            |port| program.answers(port, &password),
        );
        Database {
            server,
            port,
            password,
            program,
        }
    }

    /// Where to connect, on the database that is always there.
    pub fn url(&self) -> String {
        self.url_of(self.program.own_database)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What lets one in.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// A new empty database; gives its URL.
    #[track_caller]
    pub fn fresh_database(&self) -> String {
        let name = secret::fresh_name();
        let sql = format!("CREATE DATABASE {name}");
        self.query(self.program.own_database, &sql);
        self.url_of(&name)
    }

    /// Asks `database` a question in SQL; gives the rows as the client writes them.
    #[track_caller]
    pub fn query(&self, database: &str, sql: &str) -> String {
        let mut client = (self.program.client)(self.port, &self.password, database, sql);
        let output = client.output().expect("the client runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Shuts it down in order.
    pub fn stop(&mut self) {
        self.server.supervisor.end(self.program.ending);
    }

    /// Kills it, as a power cut would but for the disk.
    pub fn kill(&mut self) {
        self.server.supervisor.end(Ending::Kill);
    }

    /// Starts it again on the same data and port, after ending it if it still runs.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        let (program, port, password) = (self.program, self.port, &self.password);
        self.server
            .bring_up_again(|| program.answers(port, password));
    }

    /// Where it keeps everything.
    pub fn directory(&self) -> &Path {
        self.server.supervisor.directory()
    }

    fn url_of(&self, database: &str) -> String {
        let (scheme, port, password) = (self.program.scheme, self.port, &self.password);
        format!("{scheme}://{USER}:{password}@127.0.0.1:{port}/{database}")
    }
}

impl Program {
    fn answers(&self, port: u16, password: &str) -> bool {
        let mut client = (self.client)(port, password, self.own_database, "SELECT 1");
        let outcome = client.stdout(Stdio::null()).stderr(Stdio::null()).status();
        outcome.expect("the client runs").success()
    }
}
