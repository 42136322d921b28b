//! A gate for those who write notices.
//!
//! Numbers are given out before what they are given to is there for everybody, so who reads a number
//! does not know that all smaller ones are there. Writers go through the gate before they get a
//! number, many at a time, and hold it open until their transaction ends; who closes it has waited
//! for all of them. SQLite needs none: it has one writer at a time.

use jiff::Timestamp;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement};

use super::clock;
use super::error::{Fault, StoreError};
use super::transaction::Step;
use super::versioned::Named;

/// PostgreSQL has locks that are numbers, MySQL a row to lock.
const POSTGRES: i64 = i64::from_be_bytes(*b"sandbox2");
const MYSQL: &str = "gates WHERE name = 'session_notices'";

/// Goes through, and tells the time.
pub(super) async fn pass(step: &Step) -> Result<Timestamp, Fault> {
    let lock = match step.get_database_backend() {
        DbBackend::Postgres => format!("pg_advisory_xact_lock_shared({POSTGRES})"),
        DbBackend::MySql => format!("{MYSQL} LOCK IN SHARE MODE"),
        _ => return clock::now(step).await,
    };
    clock::now_from(step, &lock).await
}

/// Waits until everybody is through and keeps it closed until the transaction ends. `false` when
/// somebody holds it open for longer than a second: the others must not wait for that one as well.
pub(super) async fn close(step: &Step) -> Result<bool, Fault> {
    let closed = match step.get_database_backend() {
        DbBackend::Postgres => {
            step.execute_unprepared("SET LOCAL lock_timeout = '1s'")
                .await?;
            let lock = format!("SELECT pg_advisory_xact_lock({POSTGRES})");
            ask(step, lock).await
        }
        DbBackend::MySql => {
            // The comment is for MariaDB. MySQL has no such words, and waits as long as it is set to.
            ask(
                step,
                format!("SELECT name FROM {MYSQL} FOR UPDATE /*M! WAIT 1 */"),
            )
            .await
        }
        _ => return Ok(true),
    };
    match closed {
        Ok(Some(_)) => Ok(true),
        Ok(None) => Err(gone().into()),
        Err(fault) if fault.is_lock_timeout() => Ok(false),
        Err(fault) => Err(fault),
    }
}

async fn ask(step: &Step, sql: String) -> Result<Option<QueryResult>, Fault> {
    let statement = Statement::from_string(step.get_database_backend(), sql);
    Ok(step.query_one_raw(statement).await?)
}

fn gone() -> StoreError {
    let gate = Named {
        kind: "gate",
        id: "session_notices",
    };
    gate.missing()
}
