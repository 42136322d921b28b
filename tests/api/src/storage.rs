//! What a server keeps its records and objects in.

use std::process::Command;

use sandbox_test_servers::{Database, S3};

/// Which database and which object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// What there is when nothing is chosen.
    SqliteAndFiles,
    /// As in production.
    PostgresAndS3,
    /// The other one.
    MariadbAndFiles,
}

/// The servers that keep it going, and what the server under test is told of them.
#[derive(Debug)]
pub(crate) struct Kept {
    database: Option<(Database, String)>,
    bucket: Option<String>,
}

impl Storage {
    pub(crate) fn start(self) -> Kept {
        let database = match self {
            Storage::SqliteAndFiles => None,
            Storage::PostgresAndS3 => Some(Database::postgres()),
            Storage::MariadbAndFiles => Some(Database::mariadb()),
        };
        let bucket = match self {
            Storage::PostgresAndS3 => Some(S3::shared().fresh_bucket()),
            _ => None,
        };
        let with_url = |database: Database| {
            let url = database.fresh_database();
            (database, url)
        };
        Kept {
            database: database.map(with_url),
            bucket,
        }
    }
}

impl Kept {
    /// Tells the server where it is.
    pub(crate) fn tell(&self, command: &mut Command) {
        if let Some((_, url)) = &self.database {
            command.args(["--database", url]);
        }
        if let Some(bucket) = &self.bucket {
            let s3 = S3::shared();
            command
                .args(["--objects", &format!("s3:{bucket}")])
                .env("S3_ENDPOINT", s3.url())
                .env("AWS_REGION", "us-east-1")
                .env("AWS_ACCESS_KEY_ID", s3.access_key())
                .env("AWS_SECRET_ACCESS_KEY", s3.secret_key());
        }
    }
}
