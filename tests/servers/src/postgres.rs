//! PostgreSQL, as Debian packages it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::account::Account;
use crate::answer::{self, Server};
use crate::supervisor::{Ending, Supervisor};
use crate::{program, secret};

/// The superuser's name.
const USER: &str = "sandbox";

/// A PostgreSQL server with nothing in it.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    port: u16,
    password: String,
}

impl Postgres {
    /// Makes a new server and waits until it answers.
    #[track_caller]
    pub fn start() -> Postgres {
        let password = secret::random();
        let (port, server) = answer::on_a_free_port(
            |port| prepare(port, &password),
            |port| answers(port, &password),
        );
        Postgres {
            server,
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
        self.server.supervisor.end(Ending::Interrupt);
    }

    /// Kills it, as a power cut would but for the disk.
    pub fn kill(&mut self) {
        self.server.supervisor.end(Ending::Kill);
    }

    /// Starts it again on the same data and port, after ending it if it still runs.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        let (port, password) = (self.port, &self.password);
        self.server.bring_up_again(|| answers(port, password));
    }

    /// Where it keeps everything.
    pub fn directory(&self) -> &Path {
        self.server.supervisor.directory()
    }

    fn url_of(&self, database: &str) -> String {
        let Postgres { port, password, .. } = self;
        format!("postgres://{USER}:{password}@127.0.0.1:{port}/{database}")
    }
}

#[track_caller]
fn prepare(port: u16, password: &str) -> Server {
    let mut supervisor = Supervisor::new(Account::ordinary());
    let data = supervisor.directory().join("data");
    let password_file = supervisor.write("password", password);
    supervisor.run(&[
        program::need_of_postgres("initdb").into(),
        "--pgdata".into(),
        data.clone().into(),
        "--pwfile".into(),
        password_file.into(),
        setting(&format!("username={USER}")),
        setting("auth=scram-sha-256"),
        setting("encoding=UTF8"),
        setting("locale=C"),
        setting("no-sync"),
    ]);
    let command = vec![
        program::need_of_postgres("postgres").into(),
        "-D".into(),
        data.into(),
        setting("listen_addresses=127.0.0.1"),
        setting(&format!("port={port}")),
        // A socket beside it would have to fit in 108 bytes, wherever the directory is.
        setting("unix_socket_directories="),
        // What was committed outlives the process without it; only a power cut would tell.
        setting("fsync=off"),
        setting("max_connections=200"),
    ];
    Server {
        supervisor,
        command,
    }
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
