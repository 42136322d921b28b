//! Databases to test against: real ones, each test its own.
//!
//! A server is started in a directory of its own, as an ordinary user, and listens on a socket in
//! that directory and nowhere else. It ends with its [`Server`]; should the test be killed, the
//! kernel ends it. What is not installed fails the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

/// What people must not read in any error.
pub const PASSWORD: &str = "s3cr3t-of-the-test";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    SqliteFile,
    SqliteMemory,
    Postgres,
    MariaDb,
}

/// An empty database, and what keeps it going.
pub struct Database {
    pub url: String,
    pub kind: Kind,
    server: Option<Server>,
    dir: TempDir,
}

pub fn database(kind: Kind) -> Database {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display().to_string();
    let (url, server) = match kind {
        Kind::SqliteFile => (format!("sqlite:{path}/records.db"), None),
        Kind::SqliteMemory => ("sqlite::memory:".to_owned(), None),
        Kind::Postgres => (
            format!("postgres://sandbox:{PASSWORD}@localhost/postgres?host={path}"),
            Some(Server::postgres(dir.path())),
        ),
        Kind::MariaDb => (
            format!("mysql://sandbox:{PASSWORD}@localhost/sandbox?socket={path}/socket"),
            Some(Server::mariadb(dir.path())),
        ),
    };
    Database {
        url,
        kind,
        server,
        dir,
    }
}

impl Database {
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends the server in the middle of what it does.
    pub fn kill(&mut self) {
        self.server.as_mut().unwrap().kill();
    }

    /// Starts it again on what it left on disk.
    pub fn restart(&mut self) {
        let server = self.server.as_mut().unwrap();
        server.child = server.start.start();
    }
}

pub struct Server {
    start: Start,
    child: Child,
}

/// How a server is started.
struct Start {
    program: PathBuf,
    user: &'static str,
    arguments: Vec<String>,
    /// What it says when it can be spoken to.
    ready: &'static str,
}

impl Server {
    fn postgres(dir: &Path) -> Server {
        let bin = newest_postgres();
        give_to("postgres", dir);
        let data = dir.join("data").display().to_string();
        // The locale is one that does not compare byte by byte.
        let make = "--no-sync --auth=trust --username=sandbox --encoding=UTF8 --locale=C.UTF-8";
        let made = as_user("postgres", &bin.join("initdb"))
            .args(make.split(' '))
            .args(["--pgdata", &data])
            .output();
        succeeded(made, "initdb");
        let settings = "fsync=off listen_addresses= shared_buffers=16MB max_connections=200";
        let mut arguments = vec!["-D".to_owned(), data, "-k".to_owned()];
        arguments.push(dir.display().to_string());
        for setting in settings.split(' ') {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        Server::begin(Start {
            program: bin.join("postgres"),
            user: "postgres",
            arguments,
            ready: "database system is ready to accept connections",
        })
    }

    fn mariadb(dir: &Path) -> Server {
        give_to("mysql", dir);
        let at = |name: &str| dir.join(name).display().to_string();
        // In a directory that servers share they take each other's temporary tables away.
        let scratch = format!("--tmpdir={}", dir.display());
        let fast = ["--innodb-log-file-size=8M", "--innodb-flush-method=nosync"];
        let made = as_user("mysql", Path::new("/usr/bin/mariadb-install-db"))
            .args(["--no-defaults", "--skip-test-db"])
            .arg("--auth-root-authentication-method=normal")
            .args([format!("--datadir={}", at("data")), scratch.clone()])
            .args(fast)
            .output();
        succeeded(made, "mariadb-install-db");
        let first = format!(
            "CREATE DATABASE IF NOT EXISTS sandbox;\n\
             CREATE USER IF NOT EXISTS sandbox@localhost IDENTIFIED BY '{PASSWORD}';\n\
             GRANT ALL ON sandbox.* TO sandbox@localhost;\n"
        );
        fs::write(dir.join("first.sql"), first).unwrap();
        let mut arguments = vec!["--no-defaults".to_owned(), "--skip-networking".to_owned()];
        arguments.extend(fast.map(str::to_owned));
        // What is committed outlives the server, if not a power cut.
        arguments.push("--innodb-flush-log-at-trx-commit=2".to_owned());
        arguments.extend(["--max-connections=200".to_owned(), scratch]);
        arguments.push(format!("--datadir={}", at("data")));
        arguments.push(format!("--socket={}", at("socket")));
        arguments.push(format!("--init-file={}", at("first.sql")));
        Server::begin(Start {
            program: PathBuf::from("/usr/sbin/mariadbd"),
            user: "mysql",
            arguments,
            ready: "ready for connections",
        })
    }

    fn begin(start: Start) -> Server {
        let child = start.start();
        Server { start, child }
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Start {
    /// Starts it and waits until it says that it is ready. One that was killed leaves processes
    /// behind that are about to end, and is refused until they have.
    fn start(&self) -> Child {
        let mut said = String::new();
        for _ in 0..100 {
            let mut child = as_user(self.user, &self.program)
                .args(&self.arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.program));
            said.clear();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            for line in lines.by_ref().map_while(Result::ok) {
                if line.contains(self.ready) {
                    // It must not wait for somebody to read what else it says.
                    thread::spawn(move || lines.for_each(drop));
                    return child;
                }
                said.push_str(&line);
                said.push('\n');
            }
            let _ = child.wait();
        }
        panic!("{:?} does not start:\n{said}", self.program);
    }
}

/// The kernel ends what this starts when this thread ends. As root it is somebody else who runs it:
/// PostgreSQL refuses root.
fn as_user(user: &str, program: &Path) -> Command {
    assert!(
        program.exists(),
        "{program:?} is not installed; `scripts/set-up test` does that"
    );
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_to(user: &str, dir: &Path) {
    if is_root() {
        let id = Command::new("id").args(["-u", user]).output().unwrap();
        let id = String::from_utf8(id.stdout).unwrap();
        let id = id.trim().parse().expect("there is no such user");
        chown(dir, Some(id), None).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn newest_postgres() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .expect("PostgreSQL is not installed; `scripts/set-up test` does that");
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.unwrap().path()).collect();
    versions.sort();
    versions
        .pop()
        .expect("PostgreSQL is not installed")
        .join("bin")
}

fn succeeded(output: std::io::Result<std::process::Output>, what: &str) {
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what} failed: {said}");
}
