//! Databases to test against: real ones, each test its own.

use std::path::Path;

use sandbox_test_servers::{Mariadb, Postgres};
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
    server: Server,
    dir: TempDir,
}

enum Server {
    None,
    Postgres(Postgres),
    MariaDb(Mariadb),
}

pub fn database(kind: Kind) -> Database {
    let dir = tempfile::tempdir().unwrap();
    let (url, server) = match kind {
        Kind::SqliteFile => {
            let file = dir.path().join("records.db");
            (format!("sqlite:{}", file.display()), Server::None)
        }
        Kind::SqliteMemory => ("sqlite::memory:".to_owned(), Server::None),
        Kind::Postgres => {
            let server = Postgres::start();
            (server.fresh_database(), Server::Postgres(server))
        }
        Kind::MariaDb => {
            let server = Mariadb::start();
            (server.fresh_database(), Server::MariaDb(server))
        }
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
        let (_, after) = self.url.split_once("://").unwrap();
        let (account, _) = after.split_once('@').unwrap();
        account.split_once(':').unwrap().1
    }

    /// Ends the server in the middle of what it does.
    pub fn kill(&mut self) {
        match &mut self.server {
            Server::None => panic!("there is none"),
            Server::Postgres(server) => server.kill(),
            Server::MariaDb(server) => server.kill(),
        }
    }

    /// Starts it again on what it left on disk.
    pub fn restart(&mut self) {
        match &mut self.server {
            Server::None => panic!("there is none"),
            Server::Postgres(server) => server.restart(),
            Server::MariaDb(server) => server.restart(),
        }
    }
}
