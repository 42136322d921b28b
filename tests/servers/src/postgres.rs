//! PostgreSQL, as Debian packages it.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::answer::Server;
use crate::database::{Database, Program, USER};
use crate::program;
use crate::supervisor::{Ending, Supervisor};

const POSTGRES: Program = Program {
    scheme: "postgres",
    own_database: "postgres",
    ending: Ending::Interrupt,
    prepare,
    client,
};

impl Database {
    /// A new PostgreSQL server. Its client writes columns apart by `|`.
    #[track_caller]
    pub fn postgres() -> Database {
        Database::start(&POSTGRES)
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
        // In its directory, where it goes with everything else when it is killed.
        setting("dynamic_shared_memory_type=mmap"),
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
