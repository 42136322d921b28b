//! MariaDB, as Debian packages it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::account::Account;
use crate::answer::{self, Server};
use crate::supervisor::{Ending, Supervisor};
use crate::{program, secret};

/// The name of a user who may do everything.
const USER: &str = "sandbox";

/// A MariaDB server with nothing in it.
#[derive(Debug)]
pub struct Mariadb {
    server: Server,
    port: u16,
    password: String,
}

impl Mariadb {
    /// Makes a new server and waits until it answers.
    #[track_caller]
    pub fn start() -> Mariadb {
        let password = secret::random();
        let (port, server) = answer::on_a_free_port(
            |port| prepare(port, &password),
            |port| answers(port, &password),
        );
        Mariadb {
            server,
            port,
            password,
        }
    }

    /// One server for all tests of this process. It goes when the process does.
    pub fn shared() -> &'static Mariadb {
        static SHARED: OnceLock<Mariadb> = OnceLock::new();
        SHARED.get_or_init(Mariadb::start)
    }

    /// Where to connect, on the database that is always there.
    pub fn url(&self) -> String {
        self.url_of("mysql")
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new empty database; gives its URL.
    #[track_caller]
    pub fn fresh_database(&self) -> String {
        let name = secret::fresh_name();
        self.query("mysql", &format!("CREATE DATABASE {name}"));
        self.url_of(&name)
    }

    /// Asks `database` a question in SQL; gives the rows, columns apart by tabs.
    #[track_caller]
    pub fn query(&self, database: &str, sql: &str) -> String {
        let mut client = client(self.port, &self.password, database, sql);
        let output = client.output().expect("mariadb runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Shuts it down in order.
    pub fn stop(&mut self) {
        self.server.supervisor.end(Ending::Terminate);
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
        let Mariadb { port, password, .. } = self;
        format!("mysql://{USER}:{password}@127.0.0.1:{port}/{database}")
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

fn answers(port: u16, password: &str) -> bool {
    let mut client = client(port, password, "mysql", "SELECT 1");
    let outcome = client.stdout(Stdio::null()).stderr(Stdio::null()).status();
    outcome.expect("mariadb runs").success()
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
