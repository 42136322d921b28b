//! MariaDB, as Debian packages it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::account::Account;
use crate::answer::Server;
use crate::database::{Database, Program, USER};
use crate::program;
use crate::supervisor::{Ending, Supervisor};

const MARIADB: Program = Program {
    scheme: "mysql",
    own_database: "mysql",
    ending: Ending::Terminate,
    prepare,
    client,
};

impl Database {
    /// A new MariaDB server. Its client writes columns apart by tabs.
    #[track_caller]
    pub fn mariadb() -> Database {
        Database::start(&MARIADB)
    }
}

/// What makes a new server small and quick, both when its data is made and when it runs.
const SETTINGS: [&str; 4] = [
    // What was committed outlives the process with 2; only a power cut would tell.
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=32M",
    "--skip-name-resolve",
];

#[track_caller]
fn prepare(port: u16, password: &str) -> Server {
    let mut supervisor = Supervisor::new(Account::ordinary());
    let directory = supervisor.directory().to_owned();
    let data = option("datadir", &directory.join("data"));
    // In a directory that servers share, they take each other's temporary tables away.
    let scratch = option("tmpdir", &directory);
    let sql = format!(
        "CREATE USER IF NOT EXISTS {USER}@'127.0.0.1' IDENTIFIED BY '{password}';\n\
         GRANT ALL ON *.* TO {USER}@'127.0.0.1' WITH GRANT OPTION;\n"
    );
    let users = supervisor.write("users.sql", &sql);
    let mut install = vec![
        program::need("mariadb-install-db").into(),
        "--no-defaults".into(),
        "--skip-test-db".into(),
        data.clone(),
        scratch.clone(),
    ];
    install.extend(SETTINGS.map(OsString::from));
    supervisor.run(&install);
    let mut command = vec![
        program::need("mariadbd").into(),
        "--no-defaults".into(),
        data,
        "--bind-address=127.0.0.1".into(),
        format!("--port={port}").into(),
        // A name without a path is taken below the data.
        "--socket=socket".into(),
        option("pid-file", &directory.join("pid")),
        option("init-file", &users),
        scratch,
    ];
    command.extend(SETTINGS.map(OsString::from));
    Server {
        supervisor,
        command,
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(path);
    option
}

#[track_caller]
fn client(port: u16, password: &str, database: &str, sql: &str) -> Command {
    let mut client = Command::new(program::need("mariadb"));
    client
        .args(["--no-defaults", "--batch", "--skip-column-names"])
        .args(["--protocol=tcp", "--host=127.0.0.1", "--user", USER])
        .args(["--connect-timeout=10", "--port", &port.to_string()])
        .args(["--execute", sql, database])
        .env("MYSQL_PWD", password)
        .current_dir("/")
        .stdin(Stdio::null());
    client
}
