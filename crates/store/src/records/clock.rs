//! The database's clock.
//!
//! Servers that share a database need not agree on the time; leases go by the one clock they share.
//! SQLite has none of its own: it reads this machine's, and so do we, to the microsecond that its
//! own functions do not tell.

use jiff::Timestamp;
use sea_orm::sea_query::{Expr, SimpleExpr};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::error::{Fault, StoreError};
use super::value::micros;

const POSTGRES: &str = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)";
const MYSQL: &str = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)";

/// Now, in microseconds, as an expression that the database evaluates.
pub(super) fn expression(backend: DbBackend) -> SimpleExpr {
    match backend {
        DbBackend::Postgres => Expr::cust(POSTGRES),
        DbBackend::MySql => Expr::cust(MYSQL),
        _ => Expr::value(micros(Timestamp::now())),
    }
}

pub(super) async fn now(connection: &impl ConnectionTrait) -> Result<Timestamp, Fault> {
    match connection.get_database_backend() {
        DbBackend::Sqlite => Ok(truncated(Timestamp::now())),
        _ => ask(connection, "").await,
    }
}

/// The same, of a server that is to select it from somewhere.
pub(super) async fn now_from(
    connection: &impl ConnectionTrait,
    place: &str,
) -> Result<Timestamp, Fault> {
    ask(connection, &format!(" FROM {place}")).await
}

async fn ask(connection: &impl ConnectionTrait, place: &str) -> Result<Timestamp, Fault> {
    let backend = connection.get_database_backend();
    let clock = match backend {
        DbBackend::Postgres => POSTGRES,
        _ => MYSQL,
    };
    let statement = Statement::from_string(backend, format!("SELECT {clock} AS now{place}"));
    let row = connection.query_one_raw(statement).await?;
    let now: i64 = match row {
        Some(row) => row.try_get("", "now")?,
        None => return Err(unreadable("nothing to read it from").into()),
    };
    Ok(Timestamp::from_microsecond(now).map_err(unreadable)?)
}

fn unreadable(problem: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable {
        kind: "the clock",
        id: String::new(),
        field: "time",
        problem: problem.to_string(),
    }
}

fn truncated(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(micros(time)).unwrap_or(time)
}
