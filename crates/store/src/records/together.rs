//! Changes that are handed to SQLite at once.
//!
//! SQLite is a thread of this process, and waking it, and being woken by it, takes longer than most of what it
//! is asked. So a transaction in which nothing is read is one errand: it begins, changes, makes sure that
//! what was to be changed was there, and ends. When something was wrong all is undone, and nothing said of
//! what it was.

use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{self, AssertSqlSafe, Sqlite, SqlitePool};
use sea_orm::{DbBackend, DbErr, RuntimeErr, Statement, Values};
use sea_query_sqlx::SqlxValues;

use super::error::Fault;

/// What is to be done, and how many rows each of it changes.
#[derive(Default)]
pub(super) struct Changes(Vec<(Statement, u64)>);

impl Changes {
    pub(super) fn add(&mut self, statement: Statement, rows: u64) {
        self.0.push((statement, rows));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them as one, within a transaction that has begun.
    pub(super) fn joined(self) -> Statement {
        let (mut sql, mut values) = (String::new(), Vec::new());
        for (statement, rows) in self.0 {
            sql.push_str(&statement.sql);
            sql.push(';');
            // What is inserted is there, or the database says why not.
            if statement.sql.starts_with("UPDATE") {
                // The one way to fail within a query: the smallest number has no counterpart.
                let check = format!(
                    "SELECT CASE changes() WHEN {rows} THEN 0 ELSE abs(-9223372036854775807 - 1) END;"
                );
                sql.push_str(&check);
            }
            values.extend(statement.values.into_iter().flat_map(|values| values.0));
        }
        Statement::from_sql_and_values(DbBackend::Sqlite, sql, values)
    }

    /// Makes all of them, or none, in a transaction of their own. Whoever asks may be gone meanwhile: that
    /// leaves nothing half done.
    pub(super) async fn make(self, pool: &SqlitePool) -> Result<(), DbErr> {
        if self.is_empty() {
            return Ok(());
        }
        let failed = |error| DbErr::Conn(RuntimeErr::SqlxError(std::sync::Arc::new(error)));
        let mut connection = pool.acquire().await.map_err(failed)?;
        let Statement { sql, values, .. } = self.joined();
        let sql = format!("BEGIN IMMEDIATE; {sql}COMMIT");
        let values = SqlxValues(values.unwrap_or(Values(Vec::new())));
        let errand = tokio::spawn(async move {
            let made = sqlx::query_with(AssertSqlSafe(sql), values)
                .execute(&mut *connection)
                .await;
            if made.is_err() {
                undo(connection).await;
            }
            made
        });
        match errand.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(unclear(failed(error))),
            Err(_) => Err(failed(sqlx::Error::WorkerCrashed)),
        }
    }
}

/// Undoes what was begun. Where nothing was, there is nothing to undo, and the database says so.
async fn undo(mut connection: PoolConnection<Sqlite>) {
    let _ = sqlx::query("ROLLBACK").execute(&mut *connection).await;
}

/// The error of changes that were made together, or, where that is about one of them,
/// [`DbErr::RecordNotUpdated`].
pub(super) fn unclear(error: DbErr) -> DbErr {
    match Fault::is_refusal(&error) {
        true => DbErr::RecordNotUpdated,
        false => error,
    }
}
