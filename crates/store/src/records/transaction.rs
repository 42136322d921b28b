//! Reading, and writing all of something or nothing.

use std::future::Future;
use std::time::Duration;

use sea_orm::sea_query::LockType;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, EntityTrait,
    ExecResult, QueryResult, QuerySelect, Select, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait,
};

use super::Records;
use super::error::{Fault, StoreError};

/// How often a transaction that met another one is tried.
const MOST_ATTEMPTS: u32 = 20;

/// A transaction that has begun. Dropped, it undoes what it did.
pub(super) struct Step(DatabaseTransaction);

impl Step {
    pub(super) async fn commit<T>(self, value: T) -> Result<T, Fault> {
        self.0.commit().await?;
        Ok(value)
    }

    /// Holds what is selected until the transaction ends: nobody else gets it this way before. Who
    /// only refers to it need not wait on PostgreSQL. SQLite has one writer at a time anyhow.
    pub(super) fn hold<E: EntityTrait>(&self, select: Select<E>) -> Select<E> {
        match self.get_database_backend() {
            DbBackend::Postgres => select.lock(LockType::NoKeyUpdate),
            DbBackend::MySql => select.lock(LockType::Update),
            _ => select,
        }
    }

    /// For what insists on the driver's own type.
    pub(super) fn as_transaction(&self) -> &DatabaseTransaction {
        &self.0
    }
}

async fn again_after_collisions<T, F>(work: impl Fn() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut attempt = 0;
    loop {
        match work().await {
            Err(fault) if fault.is_collision() && attempt < MOST_ATTEMPTS => {
                attempt += 1;
                // The others need a moment to get out of the way.
                tokio::time::sleep(Duration::from_millis(u64::from(attempt))).await;
            }
            outcome => return outcome,
        }
    }
}

impl Records {
    /// Runs `work`, which must end in [`Step::commit`] if anything is to stay. It is run again
    /// from the start when it met another transaction that the database let go first.
    pub(super) async fn write<T, F>(&self, work: impl Fn(Step) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let (work, records) = (&work, self);
        let attempt = || async move { work(records.begin().await?).await };
        let outcome = again_after_collisions(attempt).await;
        outcome.map_err(|fault| self.explain(fault))
    }

    /// Runs `work`, a single statement that is a transaction by itself.
    pub(super) async fn write_at_once<T, F>(
        &self,
        work: impl Fn(DatabaseConnection) -> F,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        again_after_collisions(|| work(self.database.writer.clone())).await
    }

    async fn begin(&self) -> Result<Step, DbErr> {
        let options = TransactionOptions {
            // A transaction that reads first and then finds that somebody else wrote would have
            // to start again; one that takes the lock first waits for it.
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        Ok(Step(
            self.database.writer.begin_with_options(options).await?,
        ))
    }

    /// Where only reading is done.
    pub(super) fn reader(&self) -> &DatabaseConnection {
        &self.database.reader
    }

    /// The error, with the database's name to it.
    pub(super) fn explain(&self, fault: impl Into<Fault>) -> StoreError {
        fault.into().explain(&self.database.name)
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl ConnectionTrait for Step {
    fn get_database_backend(&self) -> DbBackend {
        self.0.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.0.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.0.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.0.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.0.query_all_raw(statement).await
    }
}
