//! How the database goes about it: every query of a list or of the reaper walks an index.
//!
//! What is asked is written down as it is sent, and SQLite is then asked how it would answer. The
//! indexes are the same on all three.

use std::sync::Mutex;

use sandbox_model::{ContainerStatus, ExecutionStatus, RuntimeKind, SessionStatus};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::*;

type Sent = Arc<Mutex<Vec<Statement>>>;

/// An empty database, and everything that is read from it from now on.
async fn listened_to() -> (Records, Sent) {
    let opened = Records::open("sqlite::memory:", &Pool::default()).await;
    let mut records = opened.unwrap();
    let sent = Sent::default();
    let heard = Arc::clone(&sent);
    records.database.reader.set_metric_callback(move |info| {
        heard.lock().unwrap().push(info.statement.clone());
    });
    (records, sent)
}

/// Every statement that was sent is answered from indexes, in the order that they have.
async fn walks_indexes(records: &Records, sent: &Sent) {
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    assert!(!sent.is_empty());
    for Statement { sql, values, .. } in sent {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let explain = match values {
            Some(values) => Statement::from_sql_and_values(DbBackend::Sqlite, explain, values.0),
            None => Statement::from_string(DbBackend::Sqlite, explain),
        };
        let rows = records
            .database
            .writer
            .query_all_raw(explain)
            .await
            .unwrap();
        assert!(!rows.is_empty(), "{sql}");
        for row in rows {
            let step: String = row.try_get("", "detail").unwrap();
            assert!(step.contains("USING"), "{step} in {sql}");
            assert!(step.contains("INDEX"), "{step} in {sql}");
            assert!(!step.contains("TEMP B-TREE"), "{step} in {sql}");
        }
    }
}

/// The first page, one that comes after a cursor, and one far behind.
fn pages(list: &str, id: &str) -> [PageRequest; 3] {
    let first = PageRequest::first(50).unwrap();
    let cursor = Cursor {
        list: list.to_owned(),
        at: 1,
        id: id.to_owned(),
    };
    [
        first.clone(),
        first.clone().after(cursor),
        first.skipping(1000),
    ]
}

#[tokio::test]
async fn every_list_of_sessions_walks_an_index() {
    let (records, sent) = listened_to().await;
    for bits in 0..8 {
        let filter = SessionFilter {
            status: (bits & 1 != 0).then_some(SessionStatus::Running),
            template_id: (bits & 2 != 0).then(|| "python-basic".parse().unwrap()),
            agent_id: (bits & 4 != 0).then(|| "ada".to_owned()),
        };
        for page in pages("sessions", "sess_a") {
            records.sessions(&filter, &page).await.unwrap();
        }
    }
    walks_indexes(&records, &sent).await;
}

#[tokio::test]
async fn every_other_list_that_grows_walks_an_index() {
    let (records, sent) = listened_to().await;
    for status in [None, Some(ExecutionStatus::Failed)] {
        let filter = ExecutionFilter {
            session_id: "sess_aaaaaaaaaaaaaaaa".parse().unwrap(),
            status,
        };
        for page in pages("executions", "exec_a") {
            records.executions(&filter, &page).await.unwrap();
        }
    }
    for status in [None, Some(ContainerStatus::Running)] {
        for runtime in [None, Some(RuntimeKind::Docker)] {
            let filter = ContainerFilter { status, runtime };
            for page in pages("containers", "c") {
                records.containers(&filter, &page).await.unwrap();
            }
        }
    }
    for page in pages("audit", "7") {
        records.audit(&page).await.unwrap();
    }
    for filter in [TemplateFilter::All, TemplateFilter::Active] {
        for page in pages("templates", "python-basic") {
            records.templates(filter, &page).await.unwrap();
        }
    }
    walks_indexes(&records, &sent).await;
}

#[tokio::test]
async fn what_the_reaper_asks_walks_an_index() {
    let (records, sent) = listened_to().await;
    let time = Timestamp::UNIX_EPOCH;
    records.sessions_idle_since(time, 10).await.unwrap();
    records.sessions_expired_before(time, 10).await.unwrap();
    records.sessions_older_than(time, 10).await.unwrap();
    let node = "node-1".parse().unwrap();
    records.live_sessions_on(&node).await.unwrap();
    records.live_session_counts().await.unwrap();
    records.live_execution_count().await.unwrap();
    let after = Ended {
        id: "sess_aaaaaaaaaaaaaaaa".parse().unwrap(),
        at: time,
    };
    for after in [None, Some(&after)] {
        let over = records.sessions_ended_before(time, after, 10).await;
        over.unwrap();
        let unclean = records.sessions_to_clean(time, &node, after, 10).await;
        unclean.unwrap();
    }
    records.latest_persistent_session("ada").await.unwrap();
    records.executions_silent_since(time, 10).await.unwrap();
    let session = "sess_aaaaaaaaaaaaaaaa".parse().unwrap();
    records.live_executions(&session).await.unwrap();
    records.notices(&session, 5, 10).await.unwrap();
    let execution = "exec_20261101_aaaaaaaa".parse().unwrap();
    records.artifacts(&execution).await.unwrap();
    records.result(&execution).await.unwrap();
    records.reported(&execution, "digest").await.unwrap();
    records.key_by_hash("00").await.unwrap();
    records.pool_on(&node).await.unwrap();
    let template = "python-basic".parse().unwrap();
    records.pool_size(&template).await.unwrap();
    walks_indexes(&records, &sent).await;
}

#[tokio::test]
async fn a_list_does_not_read_what_is_long() {
    let (records, sent) = listened_to().await;
    let session = "sess_aaaaaaaaaaaaaaaa".parse().unwrap();
    let filter = ExecutionFilter {
        session_id: session,
        status: None,
    };
    let [first, ..] = pages("executions", "");
    records.executions(&filter, &first).await.unwrap();
    let time = Timestamp::UNIX_EPOCH;
    records.executions_silent_since(time, 10).await.unwrap();
    records.live_executions(&filter.session_id).await.unwrap();
    for Statement { sql, .. } in &*sent.lock().unwrap() {
        assert!(
            !sql.contains("\"code\"") && !sql.contains("\"event\""),
            "{sql}"
        );
    }
}
