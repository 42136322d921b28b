//! Which database, and the connections to it.
//!
//! PostgreSQL and MySQL have one pool. SQLite has one connection that writes, so that writers in
//! this process queue up here rather than in the database, and a pool of those that only read. A
//! database in memory lives in a single connection.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sea_orm::sqlx::pool::PoolOptions;
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sea_orm::sqlx::{self, ConnectOptions, Connection, Executor};
use sea_orm::{
    DatabaseConnection, DbErr, RuntimeErr, SqlxMySqlConnector, SqlxPostgresConnector,
    SqlxSqliteConnector,
};

use super::address::{self, Address, Place};
use super::error::{Cause, Fault, StoreError};

/// How many connections there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// At once.
    pub max_connections: u32,
    /// After this long a connection is replaced.
    pub max_lifetime: Duration,
    /// How long a call waits for a connection before the database counts as unavailable.
    pub acquire_timeout: Duration,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool {
            max_connections: 60,
            max_lifetime: Duration::from_secs(3600),
            acquire_timeout: Duration::from_secs(10),
        }
    }
}

/// Each SQLite connection has a thread, so there are not as many.
const MOST_SQLITE_READERS: u32 = 16;

/// How long a server may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// For how long a connection that answered is taken to be there. No server restarts in that time.
const TRUSTED: Duration = Duration::from_millis(100);

/// How long a SQLite writer waits for one in another process.
const BUSY: Duration = Duration::from_secs(60);

/// How long it is before a file that is locked is opened again.
const AGAIN: Duration = Duration::from_millis(10);

/// A database that answered once.
#[derive(Clone)]
pub(super) struct Database {
    /// As people may see it: no user, no password.
    pub name: String,
    /// For what only reads.
    pub reader: DatabaseConnection,
    /// For what writes.
    pub writer: DatabaseConnection,
}

impl Database {
    pub(super) async fn open(url: &str, pool: &Pool) -> Result<Database, StoreError> {
        match address::place(url)? {
            Place::Memory => sqlite_in_memory(pool).await,
            Place::File(path) => sqlite(path, pool).await,
            Place::Postgres(address) => postgres(*address, pool).await,
            Place::MySql(address) => mysql(*address, pool).await,
        }
    }
}

fn options<D: sqlx::Database>(pool: &Pool) -> PoolOptions<D> {
    PoolOptions::new()
        .max_connections(pool.max_connections.max(1))
        .max_lifetime(pool.max_lifetime)
        .acquire_timeout(pool.acquire_timeout)
        // A file does not go away. Servers do: see `server_options`.
        .test_before_acquire(false)
}

/// Asks a connection that has not been used for a while whether it is still there, so that a server
/// that was restarted is found again, and one that is busy is not asked all the time.
fn server_options<D: sqlx::Database>(pool: &Pool) -> PoolOptions<D> {
    options::<D>(pool).before_acquire(|connection, use_of_it| {
        Box::pin(async move {
            if use_of_it.idle_for > TRUSTED {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}

async fn sqlite(path: &str, pool: &Pool) -> Result<Database, StoreError> {
    let name = format!("sqlite:{path}");
    make_file(Path::new(path)).map_err(|error| StoreError::File {
        database: name.clone(),
        source: Cause::new(error),
    })?;
    let connect = sqlite_options()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let failed = |error| unopened(error, &name);
    let begin = Instant::now();
    let writer = loop {
        let opened = options::<sqlx::Sqlite>(pool)
            .max_connections(1)
            // Writers queue for this connection; the time they may spend there is the queue's.
            .acquire_timeout(pool.acquire_timeout.max(BUSY))
            .connect_with(connect.clone())
            .await;
        match opened {
            // Whoever is the first to keep a log is not waited for by SQLite itself.
            Err(error) if is_locked(&error) && begin.elapsed() < BUSY => {
                tokio::time::sleep(AGAIN).await;
            }
            opened => break opened.map_err(failed)?,
        }
    };
    let reader = options::<sqlx::Sqlite>(pool)
        .max_connections(pool.max_connections.clamp(1, MOST_SQLITE_READERS))
        .connect_lazy_with(connect.pragma("query_only", "on"));
    Ok(Database {
        reader: SqlxSqliteConnector::from_sqlx_sqlite_pool(reader),
        writer: SqlxSqliteConnector::from_sqlx_sqlite_pool(writer),
        name,
    })
}

/// Is somebody else at it? (SQLITE_BUSY, and its kinds.)
fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

/// The database's companions take their mode from it.
fn make_file(path: &Path) -> std::io::Result<()> {
    let mut open = OpenOptions::new();
    open.read(true).append(true).create(true).mode(0o600);
    open.open(path).map(drop)
}

async fn sqlite_in_memory(pool: &Pool) -> Result<Database, StoreError> {
    let name = "sqlite::memory:".to_owned();
    let only = options::<sqlx::Sqlite>(pool)
        .max_connections(1)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(pool.acquire_timeout.max(BUSY))
        .connect_with(sqlite_options().in_memory(true))
        .await
        .map_err(|error| unopened(error, &name))?;
    let only = SqlxSqliteConnector::from_sqlx_sqlite_pool(only);
    Ok(Database {
        reader: only.clone(),
        writer: only,
        name,
    })
}

fn sqlite_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .busy_timeout(BUSY)
        .foreign_keys(true)
        .disable_statement_logging()
}

async fn postgres(
    Address { name, connect }: Address<PgConnectOptions>,
    pool: &Pool,
) -> Result<Database, StoreError> {
    see_it_answer(&connect, &name, pool).await?;
    let options: PgPoolOptions = server_options(pool);
    let connection = options.connect_lazy_with(connect);
    let connection = SqlxPostgresConnector::from_sqlx_postgres_pool(connection);
    Ok(Database {
        reader: connection.clone(),
        writer: connection,
        name,
    })
}

async fn mysql(
    Address { name, connect }: Address<MySqlConnectOptions>,
    pool: &Pool,
) -> Result<Database, StoreError> {
    see_it_answer(&connect, &name, pool).await?;
    let options: MySqlPoolOptions = server_options(pool);
    let connection = options
        .after_connect(|connection, _| {
            Box::pin(async move {
                // As PostgreSQL does: a statement sees what is committed, and no gap is locked.
                let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
                connection.execute(isolation).await?;
                // What does not fit is refused, not cut.
                let strict = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')";
                connection.execute(strict).await?;
                Ok(())
            })
        })
        .connect_lazy_with(connect);
    let connection = SqlxMySqlConnector::from_sqlx_mysql_pool(connection);
    Ok(Database {
        reader: connection.clone(),
        writer: connection,
        name,
    })
}

/// Connects once. A pool would try a server that is not there again and again until its patience
/// ends, and then say no more than that.
async fn see_it_answer<O: ConnectOptions>(
    connect: &O,
    name: &str,
    pool: &Pool,
) -> Result<(), StoreError>
where
    O::Connection: Sized,
{
    let patience = FIRST_ANSWER.min(pool.acquire_timeout);
    match tokio::time::timeout(patience, connect.connect()).await {
        Ok(Ok(connection)) => connection
            .close()
            .await
            .map_err(|error| unopened(error, name)),
        Ok(Err(error)) => Err(unopened(error, name)),
        Err(_) => Err(StoreError::Unavailable {
            database: name.to_owned(),
            source: Cause::new(format!("no answer within {patience:?}")),
        }),
    }
}

fn unopened(error: sqlx::Error, name: &str) -> StoreError {
    let error = DbErr::Conn(RuntimeErr::SqlxError(error.into()));
    Fault::Driver(error).explain(name)
}
