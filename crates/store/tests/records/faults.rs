//! A server that is killed while it writes: what it had promised is there when it comes back, and
//! of everything else all or nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use sandbox_model::{
    Execution, ExecutionStatus, Session, SessionId, SessionNotice, SessionStatus, Template,
};
use sandbox_store::records::{Report, Reported, StoreError};
use sandbox_store::{Records, Stored};
use tokio::sync::Notify;

use crate::counters;
use crate::databases::{Kind, database};
use crate::opening::impatient;
use crate::sample::*;

const WRITERS: u64 = 6;

/// How many changes were promised so far, by whomever.
#[derive(Default)]
struct Promised {
    number: AtomicU64,
    one_more: Notify,
}

impl Promised {
    fn note(&self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        self.one_more.notify_one();
    }

    async fn at_least(&self, number: u64) {
        while self.number.load(Ordering::SeqCst) < number {
            self.one_more.notified().await;
        }
    }
}

/// What one writer was promised.
#[derive(Default)]
struct Written {
    sessions: Vec<Stored<Session>>,
    executions: Vec<Execution>,
    uses: Vec<(SessionId, Timestamp)>,
    notices: Vec<SessionNotice>,
    deleted: Vec<SessionId>,
}

impl Written {
    /// Writes until that fails.
    async fn grow(
        &mut self,
        records: &Records,
        template: &Template,
        promised: &Promised,
    ) -> StoreError {
        for round in 0.. {
            if let Err(error) = self.live_once(records, template, promised, round).await {
                return error;
            }
        }
        unreachable!("numbers do not end")
    }

    /// A session from its beginning to its end, with an execution in it.
    async fn live_once(
        &mut self,
        records: &Records,
        template: &Template,
        promised: &Promised,
        round: i64,
    ) -> Result<(), StoreError> {
        let session = session(template);
        let stored = records.insert_session(&session).await?;
        self.sessions.push(stored);
        promised.note();
        let used = time(1000 + round);
        records.touch_session(&session.id, used, None).await?;
        self.uses.push((session.id.clone(), used));
        promised.note();

        let execution = execution(&session);
        let stored = records.insert_execution(&execution).await?;
        self.executions.push(execution.clone());
        promised.note();
        let running = Execution {
            status: ExecutionStatus::Running,
            ..execution.clone()
        };
        let stored = records.update_execution(&stored, &running).await?;
        *self.executions.last_mut().unwrap() = running.clone();
        promised.note();
        let ended = completed(&running);
        let report = Report {
            digest: "d",
            result: &result(),
            artifacts: &[artifact(&execution, "a", 0), artifact(&execution, "b", 1)],
        };
        let reported = records.finish(&stored, &ended, &report).await?;
        assert!(matches!(reported, Reported::First(_)), "{reported:?}");
        *self.executions.last_mut().unwrap() = ended;
        promised.note();
        let notice = records.append_notice(&session.id, "status", "{}").await?;
        self.notices.push(notice);
        promised.note();

        let current = self.sessions.last_mut().unwrap();
        let over = Session {
            status: SessionStatus::Completed,
            ..session.clone()
        };
        *current = records.update_session(current, &over).await?;
        promised.note();
        if round % 3 == 2 {
            let gone = self.sessions.remove(0).value.id;
            self.executions
                .retain(|execution| execution.session_id != gone);
            self.uses.retain(|(id, _)| *id != gone);
            self.notices.retain(|notice| notice.session_id != gone);
            records.delete_session(&gone).await?;
            self.deleted.push(gone);
            promised.note();
        }
        Ok(())
    }

    /// All of it is there, or what came after it.
    async fn check(&self, records: &Records) {
        for promised in &self.sessions {
            let found = records.session(&promised.value.id).await.unwrap().unwrap();
            // One change may have been made whose promise was never heard.
            assert!((promised.version..=promised.version + 1).contains(&found.version));
        }
        for (id, time) in &self.uses {
            let found = records.session(id).await.unwrap().unwrap();
            assert_eq!(found.value.last_activity_at, *time);
        }
        for promised in &self.executions {
            let found = records.execution(&promised.id).await.unwrap().unwrap();
            assert!(found.value.status >= promised.status, "{found:?}");
            let result = records.result(&promised.id).await.unwrap();
            let files = records.artifacts(&promised.id).await.unwrap();
            match found.value.status {
                ExecutionStatus::Completed => {
                    assert_eq!(result, Some(crate::sample::result()));
                    assert_eq!(files.len(), 2);
                }
                _ => assert_eq!((result, files.len()), (None, 0)),
            }
        }
        for promised in &self.notices {
            let before = promised.id - 1;
            let found = records.notices(&promised.session_id, before, 1).await;
            assert_eq!(found.unwrap().first(), Some(promised));
        }
        for id in &self.deleted {
            assert_eq!(records.session(id).await.unwrap(), None);
            assert_eq!(records.live_executions(id).await.unwrap(), []);
        }
    }
}

async fn what_was_promised_outlives_a_kill(kind: Kind) {
    let mut database = database(kind);
    let records = Records::open(&database.url, &impatient()).await.unwrap();
    let template = template();
    records.insert_template(&template).await.unwrap();
    let mut everything = Vec::new();
    for round in 1..=3 {
        let promised = Arc::new(Promised::default());
        let mut writers = Vec::new();
        for _ in 0..WRITERS {
            let (records, template) = (records.clone(), template.clone());
            let promised = Arc::clone(&promised);
            writers.push(tokio::spawn(async move {
                let mut written = Written::default();
                let error = written.grow(&records, &template, &promised).await;
                (written, error)
            }));
        }
        promised.at_least(100 * round).await;
        tokio::task::block_in_place(|| database.kill());
        for writer in writers {
            let (written, error) = writer.await.unwrap();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
            everything.push(written);
        }
        tokio::task::block_in_place(|| database.restart());
        // Through the same connections, as far as there are any left.
        for written in &everything {
            written.check(&records).await;
        }
        let sessions = counters::every_session(&records).await;
        counters::check_everything(&records, &sessions).await;
        counters::check_what_lives(&records).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_postgres_promised_outlives_a_kill() {
    what_was_promised_outlives_a_kill(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_mariadb_promised_outlives_a_kill() {
    what_was_promised_outlives_a_kill(Kind::MariaDb).await;
}
