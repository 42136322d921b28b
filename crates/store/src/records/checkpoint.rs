//! Writing a SQLite database out of its log.
//!
//! What is committed goes to a log, and SQLite copies it into the database within the commit that
//! makes the log too long: whoever commits then waits until the disk has all of it, and everybody
//! else waits for them. Here it is copied every second by somebody for whom nobody waits. SQLite
//! still does it itself when the log is many times as long, so that it cannot grow without end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection};
use tokio::task::AbortHandle;

/// How many pages the log may have before whoever commits has to help.
pub(super) const LONGEST: &str = "16384";

/// How often it is looked whether there is something to copy.
const LOOK: Duration = Duration::from_secs(1);

/// So few statements are not worth it.
const FEW: u64 = 300;

/// Copies now and then, until this is dropped.
#[derive(Debug)]
pub(super) struct Checkpoints(AbortHandle);

impl Checkpoints {
    /// Copies through `connection`, whenever `statements` tells of so many.
    pub(super) fn begin(connection: DatabaseConnection, statements: Arc<AtomicU64>) -> Checkpoints {
        let task = tokio::spawn(async move {
            let mut copied = 0;
            loop {
                tokio::time::sleep(LOOK).await;
                let sent = statements.load(Ordering::Relaxed);
                if sent - copied < FEW {
                    continue;
                }
                // One that fails is one that the next makes up for.
                let passive = "PRAGMA wal_checkpoint(PASSIVE)";
                if connection.execute_unprepared(passive).await.is_ok() {
                    copied = sent;
                }
            }
        });
        Checkpoints(task.abort_handle())
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.0.abort();
    }
}
