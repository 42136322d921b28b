//! Records, in any of three databases.
//!
//! Every record that changes has a version, and every change names the version it was made from:
//! of two writers that read the same record one is told that it is [`StoreError::Stale`]. What
//! must hold together (a session and the counters of its list, an execution and its result) is
//! written in one transaction. Times are kept to the microsecond; those that decide who may do
//! something are read from the database's own clock, which all servers share.
//!
//! Lists come newest first, in pages; what a page costs does not grow with what is kept.

mod activity;
mod address;
mod along;
mod api_key;
mod artifact;
mod audit;
mod clock;
mod container;
mod count;
mod database;
mod error;
mod execution;
mod gate;
mod idempotency;
mod lease;
mod node;
mod notice;
mod page;
#[cfg(test)]
mod plans;
mod pool;
mod result;
mod retention;
mod rows;
mod schema;
mod session;
mod template;
mod together;
mod transaction;
mod value;
mod versioned;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use sea_orm::DatabaseConnection;

pub use along::{Along, Note};
pub use artifact::Added;
pub use container::ContainerFilter;
pub use database::Pool;
pub use error::{Cause, StoreError};
pub use execution::{ExecutionFilter, ExecutionSummary};
pub use idempotency::{Doing, Remembered};
pub use lease::Lease;
pub use page::{Cursor, Page, PageRequest};
pub use result::{Report, Reported};
pub use retention::Ended;
pub use session::SessionFilter;
pub use template::TemplateFilter;

/// A record, and the version under which it was read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The record.
    pub value: T,
    /// What a change of it must name.
    pub version: i64,
}

/// The database. A clone speaks to the same one through the same connections.
#[derive(Clone)]
pub struct Records {
    database: database::Database,
    statements: Arc<AtomicU64>,
}

impl Records {
    /// Opens the database at `url` and brings its tables up to date.
    ///
    /// `url` is `sqlite:PATH`, `sqlite::memory:`, `postgres://…` or `mysql://…`. A SQLite file is
    /// made where there is none, for its owner's eyes only; its directory is not. Servers that
    /// start at the same time on one database wait for each other. What a PostgreSQL URL leaves out
    /// is taken from where its own clients take it: `PGPASSWORD` and its kin, `~/.pgpass`. Whether
    /// the way there is encrypted is `?sslmode=…` for PostgreSQL and `?ssl-mode=…` for MySQL.
    ///
    /// A server that is not there is told at once, and one that does not answer within five
    /// seconds, or within the pool's patience where that is shorter.
    pub async fn open(url: &str, pool: &Pool) -> Result<Records, StoreError> {
        let statements = Arc::new(AtomicU64::new(0));
        let mut database = database::Database::open(url, pool).await?;
        for connection in [&mut database.reader, &mut database.writer] {
            count_statements(connection, &statements);
        }
        let records = Records {
            database,
            statements,
        };
        schema::bring_up_to_date(&records).await?;
        Ok(records)
    }

    /// Is this the URL of a database? Nobody is asked whether it is there.
    pub fn check_url(url: &str) -> Result<(), StoreError> {
        address::place(url).map(drop)
    }

    /// Does the database answer?
    pub async fn ping(&self) -> Result<(), StoreError> {
        let answer = self.database.reader.ping().await;
        answer.map_err(|error| self.explain(error))
    }

    /// What time the database has.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        let now = clock::now(&self.database.reader).await;
        now.map_err(|fault| self.explain(fault))
    }

    /// How many statements were sent since it was opened, those that begin and end transactions
    /// left aside. Those that are sent together are one.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// The database's name, without user and password.
    pub fn name(&self) -> &str {
        &self.database.name
    }

    /// Can servers on other machines use the same database?
    pub fn is_shared(&self) -> bool {
        self.reader().get_database_backend() != sea_orm::DbBackend::Sqlite
    }

    /// Waits for what is under way and closes every connection. Later calls fail.
    pub async fn close(&self) {
        // A connection that is gone is closed, too.
        let _ = self.database.reader.close_by_ref().await;
        let _ = self.database.writer.close_by_ref().await;
    }
}

fn count_statements(connection: &mut DatabaseConnection, statements: &Arc<AtomicU64>) {
    let statements = Arc::clone(statements);
    connection.set_metric_callback(move |_| {
        statements.fetch_add(1, Ordering::Relaxed);
    });
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Records").field(&self.name()).finish()
    }
}
