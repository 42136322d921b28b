//! PostgreSQL, as Debian packages it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::account::Account;
use crate::supervisor::{Ending, Supervisor};
use crate::{answer, directory, program, secret};

/// The superuser's name.
const USER: &str = "sandbox";

/// A PostgreSQL server with nothing in it.
#[derive(Debug)]
pub struct Postgres {
    supervisor: Supervisor,
    port: u16,
    password: String,
}

impl Postgres {
    /// Makes a new server and waits until it answers.
    #[track_caller]
    pub fn start() -> Postgres {
        let password = secret::random();
        let (port, supervisor) = answer::on_a_free_port(
            |port| prepare(port, &password),
            |port, _| answers(port, &password),
        );
        Postgres {
            supervisor,
            port,
            password,
        }
    }

    /// One server for all tests of this process. It goes when the process does.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    /// Where to connect: the superuser, on the database that is always there.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new empty database; gives its URL.
    #[track_caller]
    pub fn fresh_database(&self) -> String {
        let name = secret::fresh_name();
        self.query("postgres", &format!("CREATE DATABASE {name}"));
        self.url_of(&name)
    }

    /// Asks `database` a question in SQL; gives the rows, columns apart by `|`.
    #[track_caller]
    pub fn query(&self, database: &str, sql: &str) -> String {
        let mut client = client(self.port, &self.password, database, sql);
        let output = client.output().expect("psql runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Shuts it down in order.
    pub fn stop(&mut self) {
        self.supervisor.end(Ending::Interrupt);
    }

    /// Kills it, as a power cut would but for the disk.
    pub fn kill(&mut self) {
        self.supervisor.end(Ending::Kill);
    }

    /// Starts it again on the same data and port, after ending it if it still runs.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        let (port, password) = (self.port, &self.password);
        answer::bring_up(&mut self.supervisor, |_| answers(port, password))
            .unwrap_or_else(|log| panic!("PostgreSQL does not start again; it said:\n{log}"));
    }

    /// Where it keeps everything.
    pub fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    fn url_of(&self, database: &str) -> String {
        let Postgres { port, password, .. } = self;
        format!("postgres://{USER}:{password}@127.0.0.1:{port}/{database}")
    }
}

#[track_caller]
fn prepare(port: u16, password: &str) -> Supervisor {
    let account = Account::ordinary();
    let directory = directory::private(account);
    let data = directory.path().join("data");
    let password_file = directory.path().join("password");
    std::fs::write(&password_file, password).expect("write the password");
    account.own(&password_file);
    let mut initdb = Command::new(program::need_of_postgres("initdb"));
    initdb
        .arg("--pgdata")
        .arg(&data)
        .arg("--pwfile")
        .arg(&password_file)
        .args(["--username", USER, "--auth=scram-sha-256"])
        .args(["--encoding=UTF8", "--locale=C", "--no-sync"]);
    directory::fill(account, &mut initdb);
    let command = [
        program::need_of_postgres("postgres").into_os_string(),
        "-D".into(),
        data.into_os_string(),
        setting("listen_addresses=127.0.0.1"),
        setting(&format!("port={port}")),
        // A socket beside it would have to fit in 108 bytes, wherever the directory is.
        setting("unix_socket_directories="),
        // What was committed outlives the process without it; only a power cut would tell.
        setting("fsync=off"),
        setting("max_connections=200"),
    ];
    Supervisor::new(directory, account, &command)
}

fn setting(text: &str) -> OsString {
    format!("--{text}").into()
}

fn answers(port: u16, password: &str) -> bool {
    let mut client = client(port, password, "postgres", "SELECT 1");
    let outcome = client.stdout(Stdio::null()).stderr(Stdio::null()).status();
    outcome.expect("psql runs").success()
}

#[track_caller]
fn client(port: u16, password: &str, database: &str, sql: &str) -> Command {
    let mut client = Command::new(program::need_of_postgres("psql"));
    client
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--host=127.0.0.1", "--username", USER, "--dbname", database])
        .args(["--port", &port.to_string(), "--command", sql])
        .env("PGPASSWORD", password)
        .env("PGCONNECT_TIMEOUT", "10")
        .current_dir("/")
        .stdin(Stdio::null());
    client
}
