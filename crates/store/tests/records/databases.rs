//! Databases to test against: real ones, each test its own.

use std::path::Path;

use tempfile::TempDir;

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
    server: Option<sandbox_test_servers::Database>,
    dir: TempDir,
}

pub fn database(kind: Kind) -> Database {
    let dir = tempfile::tempdir().unwrap();
    let server = match kind {
        Kind::SqliteFile | Kind::SqliteMemory => None,
        Kind::Postgres => Some(sandbox_test_servers::Database::postgres()),
        Kind::MariaDb => Some(sandbox_test_servers::Database::mariadb()),
    };
    let url = match (&server, kind) {
        (Some(server), _) => server.fresh_database(),
        (None, Kind::SqliteMemory) => "sqlite::memory:".to_owned(),
        (None, _) => format!("sqlite:{}", dir.path().join("records.db").display()),
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

    /// What people must not read in any error.
    pub fn password(&self) -> &str {
        self.server.as_ref().unwrap().password()
    }

    /// Ends the server in the middle of what it does.
    pub fn kill(&mut self) {
        self.server.as_mut().unwrap().kill();
    }

    /// Starts it again on what it left on disk.
    pub fn restart(&mut self) {
        self.server.as_mut().unwrap().restart();
    }
}
