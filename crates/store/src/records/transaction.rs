//! Reading, and writing all of something or nothing.
//!
//! Databases behind a connection are asked statement by statement. SQLite is handed changes
//! [together](super::together); when something is wrong with them, all is done again statement by statement,
//! to see what it is.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sea_orm::sea_query::LockType;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, EntityTrait,
    ExecResult, QueryResult, QuerySelect, QueryTrait, Select, SqliteTransactionMode, Statement,
    TransactionOptions, TransactionTrait,
};
use tokio::sync::OnceCell;

use super::Records;
use super::error::{Fault, StoreError};
use super::together::{self, Changes};

/// How often a transaction that met another one is tried.
const MOST_ATTEMPTS: u32 = 20;

/// When changes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Together, when something is read or the transaction ends.
    Together,
    /// One after the other, as soon as they are said.
    InTurn,
}

/// A transaction. Dropped, it undoes what it did.
pub(super) struct Step {
    writer: DatabaseConnection,
    statements: Arc<AtomicU64>,
    /// Once something must be done in it.
    begun: OnceCell<DatabaseTransaction>,
    manner: Manner,
    later: Mutex<Changes>,
}

impl Step {
    pub(super) async fn commit<T>(self, value: T) -> Result<T, Fault> {
        if !self.begun.initialized() && self.manner == Manner::Together {
            let changes = std::mem::take(&mut *self.later());
            let pool = self.writer.get_sqlite_connection_pool();
            self.statements.fetch_add(1, Ordering::Relaxed);
            changes.make(pool).await?;
            return Ok(value);
        }
        self.settle().await?;
        if let Some(transaction) = self.begun.into_inner() {
            transaction.commit().await?;
        }
        Ok(value)
    }

    /// Makes a change that ought to affect this many rows; `false` when it does not. What is made together
    /// with others is taken to, until they are.
    pub(super) async fn change(&self, change: &impl QueryTrait, rows: u64) -> Result<bool, Fault> {
        let statement = change.build(self.get_database_backend());
        if self.manner == Manner::InTurn {
            let changed = self.transaction().await?.execute_raw(statement).await?;
            return Ok(changed.rows_affected() == rows);
        }
        self.later().add(statement, rows);
        Ok(true)
    }

    /// Makes the changes that are still to be made, and gives what others are made in.
    async fn settle(&self) -> Result<&DatabaseTransaction, DbErr> {
        let transaction = self.transaction().await?;
        let changes = std::mem::take(&mut *self.later());
        if !changes.is_empty() {
            let made = transaction.execute_raw(changes.joined()).await;
            made.map_err(together::unclear)?;
        }
        Ok(transaction)
    }

    fn later(&self) -> MutexGuard<'_, Changes> {
        // Nothing that is done under it can panic half-way.
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver's own, begun.
    pub(super) async fn transaction(&self) -> Result<&DatabaseTransaction, DbErr> {
        let options = TransactionOptions {
            // A transaction that reads first and then finds that somebody else wrote would have
            // to start again; one that takes the lock first waits for it.
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        let begin = || self.writer.begin_with_options(options);
        self.begun.get_or_try_init(begin).await
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
        let attempt = |manner| again_after_collisions(move || work(records.step(manner)));
        let outcome = match self.database.writer.get_database_backend() {
            DbBackend::Sqlite => match attempt(Manner::Together).await {
                Err(Fault::Driver(DbErr::RecordNotUpdated)) => attempt(Manner::InTurn).await,
                outcome => outcome,
            },
            _ => attempt(Manner::InTurn).await,
        };
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

    fn step(&self, manner: Manner) -> Step {
        Step {
            writer: self.database.writer.clone(),
            statements: Arc::clone(&self.statements),
            begun: OnceCell::new(),
            manner,
            later: Mutex::default(),
        }
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
        self.writer.get_database_backend()
    }

    async fn execute_raw(&self, statement: Statement) -> Result<ExecResult, DbErr> {
        self.settle().await?.execute_raw(statement).await
    }

    async fn execute_unprepared(&self, sql: &str) -> Result<ExecResult, DbErr> {
        self.settle().await?.execute_unprepared(sql).await
    }

    async fn query_one_raw(&self, statement: Statement) -> Result<Option<QueryResult>, DbErr> {
        self.settle().await?.query_one_raw(statement).await
    }

    async fn query_all_raw(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        self.settle().await?.query_all_raw(statement).await
    }
}
