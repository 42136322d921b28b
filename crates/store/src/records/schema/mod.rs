//! The tables, and bringing them up to date.
//!
//! Migrations are applied in order, each once, and never changed after a release: a new need is a
//! new migration. Servers that start together are let in one at a time, by whatever lock the
//! database has.

mod first;
mod table;

use std::time::Duration;

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

use super::Records;
use super::error::{Fault, StoreError};
use super::transaction::Step;

struct Migrations;

impl MigratorTrait for Migrations {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(first::First)]
    }
}

/// What the lock is called. PostgreSQL has one set of locks for each database, and numbers them;
/// MySQL has one set for the whole server, in which each database needs a name of its own.
const POSTGRES_LOCK: i64 = i64::from_be_bytes(*b"sandbox1");
const MYSQL_LOCK: &str = "CONCAT('sandbox.', MD5(DATABASE()))";

/// How long a server waits for another one to finish.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) async fn bring_up_to_date(records: &Records) -> Result<(), StoreError> {
    let later = |error: StoreError| match error {
        StoreError::Failed { source, database } if is_later(&source.to_string()) => {
            StoreError::Later { database }
        }
        error => error,
    };
    records.write(migrate).await.map_err(later)
}

/// All in one transaction where tables are made in transactions. To MySQL it is only a way to stay
/// on the connection that holds the lock; there each statement can be run again instead.
async fn migrate(step: Step) -> Result<(), Fault> {
    match step.get_database_backend() {
        DbBackend::Postgres => {
            let lock = format!("SELECT pg_advisory_xact_lock({POSTGRES_LOCK})");
            step.execute_unprepared(&lock).await?;
            Migrations::up(step.as_transaction(), None).await?;
        }
        DbBackend::MySql => {
            lock_mysql(&step).await?;
            let outcome = Migrations::up(step.as_transaction(), None).await;
            step.execute_unprepared(&format!("DO RELEASE_LOCK({MYSQL_LOCK})"))
                .await?;
            outcome?;
        }
        // The transaction has begun by taking the only lock there is.
        _ => Migrations::up(step.as_transaction(), None).await?,
    }
    step.commit(()).await
}

async fn lock_mysql(step: &Step) -> Result<(), Fault> {
    let patience = PATIENCE.as_secs();
    let sql = format!("SELECT GET_LOCK({MYSQL_LOCK}, {patience}) AS locked");
    let row = step
        .query_one_raw(Statement::from_string(DbBackend::MySql, sql))
        .await?;
    let locked: Option<i64> = match row {
        Some(row) => row.try_get("", "locked")?,
        None => None,
    };
    match locked {
        Some(1) => Ok(()),
        _ => Err(DbErr::Migration("another server is still at it".to_owned()).into()),
    }
}

/// The library tells it in words only.
fn is_later(cause: &str) -> bool {
    cause.contains("has been applied but its file is missing")
}

#[cfg(test)]
mod tests {
    use super::super::Pool;
    use super::*;

    #[tokio::test]
    async fn a_database_of_a_later_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}/records.db", dir.path().display());
        let records = Records::open(&url, &Pool::default()).await.unwrap();
        let later = "INSERT INTO seaql_migrations VALUES ('m9999_later', 0)";
        let writer = &records.database.writer;
        writer.execute_unprepared(later).await.unwrap();
        let error = Records::open(&url, &Pool::default()).await.unwrap_err();
        assert!(matches!(error, StoreError::Later { .. }), "{error:?}");
    }
}
