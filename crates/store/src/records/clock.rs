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
    let backend = connection.get_database_backend();
    let clock = match backend {
        DbBackend::Postgres => POSTGRES,
        DbBackend::MySql => MYSQL,
        _ => return Ok(truncated(Timestamp::now())),
    };
    let statement = Statement::from_string(backend, format!("SELECT {clock} AS now"));
    let row = connection.query_one_raw(statement).await?;
    let now: i64 = match row {
        Some(row) => row.try_get("", "now")?,
        None => 0,
    };
    let time = Timestamp::from_microsecond(now);
    Ok(time.map_err(|error| StoreError::Unreadable {
        kind: "the clock",
        id: String::new(),
        field: "time",
        problem: error.to_string(),
    })?)
}

fn truncated(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(micros(time)).unwrap_or(time)
}
