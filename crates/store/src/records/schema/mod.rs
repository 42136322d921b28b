//! The tables, and bringing them up to date.
//!
//! Migrations are applied in order, each once, and never changed after a release: a new need is a
//! new migration. Servers that start together are let in one at a time, by whatever lock the
//! database has. Those of an earlier version must be stopped first: they would not keep up what a
//! later one added.

mod fifth;
mod first;
mod fourth;
mod second;
mod sixth;
mod table;
mod third;

use std::time::Duration;

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

use super::Records;
use super::error::{Fault, StoreError};
use super::transaction::Step;

struct Migrations;

impl MigratorTrait for Migrations {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(first::First),
            Box::new(second::Second),
            Box::new(third::Third),
            Box::new(fourth::Fourth),
            Box::new(fifth::Fifth),
            Box::new(sixth::Sixth),
        ]
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
            Migrations::up(step.transaction().await?, None).await?;
        }
        DbBackend::MySql => {
            lock_mysql(&step).await?;
            let outcome = Migrations::up(step.transaction().await?, None).await;
            step.execute_unprepared(&format!("DO RELEASE_LOCK({MYSQL_LOCK})"))
                .await?;
            outcome?;
        }
        // The transaction has begun by taking the only lock there is.
        _ => Migrations::up(step.transaction().await?, None).await?,
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
    use sandbox_model::runtime::{LimitsEnforced, Walls};
    use sandbox_model::{SessionId, SessionStatus};
    use sea_orm_migration::SchemaManager;

    use super::super::{Ended, Pool};
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

    const TEMPLATE: &str = "INSERT INTO templates VALUES
        ('t', 1, 't', 'local', true, 1, 1, 1, 1, 0, 0, 'i', NULL, '[]', '{}')";

    const EXECUTIONS: [&str; 2] = [
        "INSERT INTO executions VALUES
            ('exec_20261101_00000001', 1, 'sess_0000000000000001', 'running', false, 'python', 1,
             false, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, '', '{}')",
        "INSERT INTO executions VALUES
            ('exec_20261101_00000002', 1, 'sess_0000000000000001', 'failed', true, 'python', 1,
             false, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, '', '{}')",
    ];

    const RESULT: &str = "INSERT INTO results VALUES
        ('exec_20261101_00000002', 'd', false, true, 3, 1, 1, 1, 1, 0, 0, NULL, '', '')";

    fn session(id: u64, status: &str, ended: &str) -> String {
        let is_over = status != "running";
        let live = if is_over { "NULL" } else { "'t'" };
        let limits = serde_json::to_string(&LimitsEnforced::default()).unwrap();
        let walls = serde_json::to_string(&Walls::default()).unwrap();
        format!(
            "INSERT INTO sessions VALUES
             ('sess_{id:016}', 1, 't', {live}, '{status}', {is_over}, 'ephemeral', NULL, 'local',
              'node-1', 1, 1, 1, 1, 1, 0, NULL, 7, 0, 0, {ended}, NULL, NULL, '/w', '{limits}',
              '{walls}', '{{}}', '{{}}', NULL)"
        )
    }

    /// A database of the first release with something in it is brought up to date.
    async fn what_was_kept_stays(url: &str) {
        let early = super::super::database::Database::open(url, &Pool::default())
            .await
            .unwrap();
        Migrations::up(&early.writer, Some(1)).await.unwrap();
        let sessions = [
            session(1, "running", "NULL"),
            session(2, "timeout", "9"),
            session(3, "failed", "NULL"),
            session(4, "completed", "5"),
        ];
        let sessions = sessions.iter().map(String::as_str);
        let rest = EXECUTIONS.into_iter().chain([RESULT]);
        for sql in [TEMPLATE].into_iter().chain(sessions).chain(rest) {
            early.writer.execute_unprepared(sql).await.unwrap();
        }

        // One whose workspace is gone, as the second release leaves it.
        Migrations::up(&early.writer, Some(1)).await.unwrap();
        let cleaned = "UPDATE sessions SET workspace_removed_at = 6, unclean_since = NULL
            WHERE id = 'sess_0000000000000004'";
        early.writer.execute_unprepared(cleaned).await.unwrap();

        let records = Records::open(url, &Pool::default()).await.unwrap();
        check(&records).await;
        // As MySQL leaves it that was interrupted before it noted that it was done.
        let forget = "DELETE FROM seaql_migrations WHERE version <> 'm0001_first'";
        early.writer.execute_unprepared(forget).await.unwrap();
        if early.writer.get_database_backend() == DbBackend::MySql {
            let records = Records::open(url, &Pool::default()).await.unwrap();
            check(&records).await;
        }
    }

    async fn check(records: &Records) {
        let id = |number: u64| -> SessionId { format!("sess_{number:016}").parse().unwrap() };
        let at = |micros| jiff::Timestamp::from_microsecond(micros).unwrap();
        let ended = |(session, time)| Ended {
            id: id(session),
            at: at(time),
        };
        let node = "node-1".parse().unwrap();
        let unclean = records.sessions_to_clean(at(99), &node, None, 9).await;
        assert_eq!(unclean.unwrap(), [(3, 7), (2, 9)].map(ended));
        let over = records.sessions_ended_before(at(99), None, 9).await;
        assert_eq!(over.unwrap(), [(4, 5), (3, 7), (2, 9)].map(ended));
        let live = records.session(&id(1)).await.unwrap().unwrap();
        assert_eq!(live.value.workspace_removed_at, None);
        assert_eq!(live.value.image.as_deref(), Some("i"));
        // A copy can be made of one that is over, until its workspace is gone.
        let image = async |number| {
            records
                .session(&id(number))
                .await
                .unwrap()
                .unwrap()
                .value
                .image
        };
        assert_eq!(image(2).await.as_deref(), Some("i"));
        assert_eq!(image(4).await, None);
        let counts = records.live_session_counts().await.unwrap();
        assert_eq!(counts[&SessionStatus::Running], 1);
        assert_eq!(counts.values().sum::<u64>(), 1);
        assert_eq!(records.live_execution_count().await.unwrap(), 1);
        let execution = "exec_20261101_00000002".parse().unwrap();
        let result = records.result(&execution).await.unwrap().unwrap();
        assert_eq!((result.exit_code, result.artifacts_truncated), (3, false));
        assert_eq!(result.cause, None);
        let manager = SchemaManager::new(&records.database.writer);
        let due = records.sessions_with_files_due(&node, None, 9).await;
        assert_eq!(due.unwrap(), [(3, 7), (2, 9)].map(ended));
        for index in [
            "sessions_by_end",
            "sessions_to_clean",
            "sessions_with_files_due",
        ] {
            assert!(manager.has_index("sessions", index).await.unwrap());
        }
    }

    #[tokio::test]
    async fn what_was_kept_stays_in_sqlite() {
        let dir = tempfile::tempdir().unwrap();
        what_was_kept_stays(&format!("sqlite:{}/records.db", dir.path().display())).await;
    }

    #[tokio::test]
    async fn what_was_kept_stays_in_postgres() {
        let server = sandbox_test_servers::Database::postgres();
        what_was_kept_stays(&server.fresh_database()).await;
    }

    #[tokio::test]
    async fn what_was_kept_stays_in_mariadb() {
        let server = sandbox_test_servers::Database::mariadb();
        what_was_kept_stays(&server.fresh_database()).await;
    }
}
