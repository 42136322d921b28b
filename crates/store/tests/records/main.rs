//! What records promise, on every database.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod activity;
mod along;
mod artifacts;
mod counters;
mod databases;
mod faults;
mod lists;
mod opening;
mod records;
mod retention;
mod sample;
mod together;

/// Makes a test of each promise for each database.
macro_rules! on_every_database {
    ($($promise:ident),* $(,)?) => {
        on_every_database!(@ sqlite_file, SqliteFile, $($promise),*);
        on_every_database!(@ sqlite_memory, SqliteMemory, $($promise),*);
        on_every_database!(@ postgres, Postgres, $($promise),*);
        on_every_database!(@ mariadb, MariaDb, $($promise),*);
    };
    (@ $name:ident, $kind:ident, $($promise:ident),*) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    let database = crate::databases::database(crate::databases::Kind::$kind);
                    super::$promise(database).await;
                }
            )*
        }
    };
}
use on_every_database;
