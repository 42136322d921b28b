//! How the databases go about it: every query walks an index, in the order that the index has.
//!
//! What is asked is written down as it is sent, and the database is then asked how it answers that,
//! with a hundred thousand sessions in it. SQLite decides by the indexes alone, as it does where
//! nobody ever told it to look at its tables; the others go by what they know of the rows.

use std::sync::Mutex;

use sandbox_model::{ContainerStatus, ExecutionStatus, RuntimeKind, SessionId, SessionStatus};
use sandbox_test_servers::Database as Server;
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement};

use super::*;

type Sent = Arc<Mutex<Vec<Statement>>>;

/// A database, and everything that is sent to it from now on.
struct Listening {
    records: Records,
    sent: Sent,
    _server: Option<Server>,
}

/// What every test of this module asks an empty one in memory.
async fn empty() -> Listening {
    Listening::to("sqlite::memory:", None).await
}

impl Listening {
    async fn to(url: &str, server: Option<Server>) -> Listening {
        let mut records = Records::open(url, &Pool::default()).await.unwrap();
        let sent = Sent::default();
        let Records { database, .. } = &mut records;
        for connection in [&mut database.reader, &mut database.writer] {
            let heard = Arc::clone(&sent);
            connection.set_metric_callback(move |info| {
                heard.lock().unwrap().push(info.statement.clone());
            });
        }
        Listening {
            records,
            sent,
            _server: server,
        }
    }

    /// Fills it, and lets it look at what it has.
    async fn crowded(self) -> Listening {
        let backend = self.records.reader().get_database_backend();
        let (bytes, before, after) = match backend {
            DbBackend::MySql => (
                "binary",
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
                "ANALYZE TABLE templates, sessions, executions, results, artifacts,
                 session_notices, audit, api_keys, pool, containers, counts",
            ),
            DbBackend::Postgres => ("bytea", "SELECT 1", "ANALYZE"),
            _ => ("blob", "SELECT 1", "SELECT 1"),
        };
        let crowd = include_str!("../../tests/records/crowd.sql")
            .replace("{each}", "2")
            .replace("{bytes}", bytes);
        let crowd = &crowd;
        let filled = self.records.write(|step| async move {
            step.execute_unprepared(before).await?;
            for sql in crowd.split(";\n").filter(|sql| !sql.trim().is_empty()) {
                step.execute_unprepared(sql).await?;
            }
            step.commit(()).await
        });
        filled.await.unwrap();
        let writer = &self.records.database.writer;
        writer.execute_unprepared(after).await.unwrap();
        self.sent.lock().unwrap().clear();
        self
    }

    /// Every statement that was sent is answered from indexes, in the order that they have.
    async fn walked_indexes(&self) {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        assert!(!sent.is_empty());
        let mut others = Vec::new();
        for statement in sent {
            let is_plain = ["SELECT", "UPDATE", "DELETE"]
                .iter()
                .any(|verb| statement.sql.starts_with(verb));
            if is_plain {
                others.extend(self.not_a_walk(statement).await);
            }
        }
        assert!(others.is_empty(), "{}", others.join("\n\n"));
    }

    /// The statement and its plan, where that is not a walk.
    async fn not_a_walk(&self, Statement { sql, values, .. }: Statement) -> Option<String> {
        let backend = self.records.reader().get_database_backend();
        let explain = match backend {
            DbBackend::Sqlite => format!("EXPLAIN QUERY PLAN {sql}"),
            _ => format!("EXPLAIN {sql}"),
        };
        let explain = match values {
            Some(values) => Statement::from_sql_and_values(backend, explain, values.0),
            None => Statement::from_string(backend, explain),
        };
        let rows = self.records.database.writer.query_all_raw(explain).await;
        let rows = rows.unwrap();
        let is_walk = match backend {
            DbBackend::Sqlite => is_sqlite_walk,
            DbBackend::Postgres => is_postgres_walk,
            _ => is_mariadb_walk,
        };
        assert!(!rows.is_empty(), "{sql}");
        let (steps, walks): (Vec<String>, Vec<bool>) = rows.iter().map(is_walk).unzip();
        match walks.contains(&false) {
            true => Some(format!("{sql}\n{}", steps.join("\n"))),
            false => None,
        }
    }
}

/// Fewer rows may be looked through or sorted: a page that is far behind has as many before it, and
/// where there are no more of them no index is quicker.
const FEW: u64 = 2_000;

fn is_sqlite_walk(row: &QueryResult) -> (String, bool) {
    let step: String = row.try_get("", "detail").unwrap();
    let walks = step.contains("USING") && (step.contains("INDEX") || step.contains("PRIMARY KEY"));
    // A list of values is a table to SQLite.
    let lists = step.starts_with("LIST SUBQUERY") || step.starts_with("SCAN CONSTANT");
    let is_walk = (walks || lists) && !step.contains("TEMP B-TREE");
    (step, is_walk)
}

fn is_postgres_walk(row: &QueryResult) -> (String, bool) {
    let step: String = row.try_get("", "QUERY PLAN").unwrap();
    let estimate = step.split_once("rows=").map(|(_, rest)| rest);
    let rows = estimate.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    let is_many = rows.is_none_or(|rows| rows >= FEW);
    let costs = step.contains("Seq Scan") || step.contains("Sort  (");
    (step, !(costs && is_many))
}

fn is_mariadb_walk(row: &QueryResult) -> (String, bool) {
    let text = |column| {
        row.try_get::<Option<String>>("", column)
            .unwrap_or_default()
    };
    let kind = text("type").unwrap_or_default();
    let extra = text("Extra").unwrap_or_default();
    let rows: u64 = text("rows").map_or(0, |rows| rows.parse().unwrap());
    let (table, key) = (text("table"), text("key"));
    let step = format!("{table:?} {kind} {key:?} {rows} {extra}");
    let scans = ["ALL", "index"].contains(&kind.as_str());
    let sorts = extra.contains("filesort") || extra.contains("temporary");
    (step, !((scans || sorts) && rows >= FEW))
}

/// When the session in the middle of the crowd was made.
const MIDDLE: i64 = 1_700_000_000_000_000 + 50_000 * 1_000_000;

fn middle() -> Timestamp {
    Timestamp::from_microsecond(MIDDLE).unwrap()
}

fn someone() -> SessionId {
    "sess_1000000000050000".parse().unwrap()
}

/// The first page, one that comes after a cursor, and one far behind.
fn pages(list: &str, id: &str) -> [PageRequest; 3] {
    let first = PageRequest::first(50).unwrap();
    let cursor = Cursor {
        list: list.to_owned(),
        at: MIDDLE,
        id: id.to_owned(),
    };
    [
        first.clone(),
        first.clone().after(cursor),
        first.skipping(1000),
    ]
}

async fn ask_for_sessions(records: &Records) {
    for bits in 0..8 {
        let filter = SessionFilter {
            status: (bits & 1 != 0).then_some(SessionStatus::Terminated),
            template_id: (bits & 2 != 0).then(|| "template-8".parse().unwrap()),
            agent_id: (bits & 4 != 0).then(|| "agent-8".to_owned()),
        };
        for page in pages("sessions", "sess_a") {
            records.sessions(&filter, &page).await.unwrap();
        }
    }
}

async fn ask_for_other_lists(records: &Records) {
    for status in [None, Some(ExecutionStatus::Failed)] {
        let filter = ExecutionFilter {
            session_id: someone(),
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
}

/// What the reaper and the scheduler look for.
async fn ask_for_what_is_due(records: &Records) {
    let time = middle();
    let node = "node-1".parse().unwrap();
    records.sessions_idle_since(time, &node, 10).await.unwrap();
    records
        .sessions_expired_before(time, &node, 10)
        .await
        .unwrap();
    records.sessions_older_than(time, &node, 10).await.unwrap();
    records.live_sessions_on(&node).await.unwrap();
    records.over_among(&[someone()]).await.unwrap();
    records.live_session_counts().await.unwrap();
    records.live_execution_count().await.unwrap();
    records.latest_persistent_session("agent-8").await.unwrap();
    records.executions_silent_since(time, 10).await.unwrap();
    records.live_executions(&someone()).await.unwrap();
    let after = Ended {
        id: someone(),
        at: middle() - std::time::Duration::from_secs(3600),
    };
    for after in [None, Some(&after)] {
        let over = records.sessions_ended_before(time, after, 10).await;
        over.unwrap();
        let unclean = records.sessions_to_clean(time, &node, after, 10).await;
        unclean.unwrap();
        let due = records.sessions_with_files_due(&node, after, 10).await;
        due.unwrap();
    }
    let template = "template-8".parse().unwrap();
    records.pool_on(&node).await.unwrap();
    records.pool_size(&template).await.unwrap();
}

async fn ask_for_one(records: &Records) {
    let execution = "exec_20231114_10500001".parse().unwrap();
    records.session(&someone()).await.unwrap();
    records.execution(&execution).await.unwrap();
    records.result(&execution).await.unwrap();
    records.reported(&execution, "digest").await.unwrap();
    records.artifacts(&execution).await.unwrap();
    records.notices(&someone(), 5, 10).await.unwrap();
    records.notices_since(50_000, 10).await.unwrap();
    records.key_by_hash("hash-7").await.unwrap();
    records.container("container-7").await.unwrap();
    let template = "template-8".parse().unwrap();
    records.template(&template).await.unwrap();
}

/// What comes often or takes many rows.
async fn change_some(records: &Records) {
    let session = |number: u64| -> SessionId {
        let id = format!("sess_{}", 1_000_000_000_000_000 + number);
        id.parse().unwrap()
    };
    let uses: Vec<_> = (0..150)
        .map(|number| (session(number * 100), middle()))
        .collect();
    records.touch_sessions(&uses).await.unwrap();
    records
        .touch_session(&someone(), middle(), None)
        .await
        .unwrap();
    let execution = "exec_20231114_10500000".parse().unwrap();
    records.heartbeat(&execution, middle(), None).await.unwrap();
    let over = session(33);
    records
        .mark_workspace_removed(&over, middle())
        .await
        .unwrap();
    records.delete_session(&over).await.unwrap();
}

async fn everything_walks_an_index(listening: Listening) {
    let records = &listening.records;
    ask_for_sessions(records).await;
    listening.walked_indexes().await;
    ask_for_other_lists(records).await;
    listening.walked_indexes().await;
    ask_for_what_is_due(records).await;
    listening.walked_indexes().await;
    ask_for_one(records).await;
    listening.walked_indexes().await;
    change_some(records).await;
    listening.walked_indexes().await;
}

#[tokio::test]
async fn every_query_walks_an_index_in_sqlite() {
    let listening = empty().await.crowded().await;
    everything_walks_an_index(listening).await;
}

#[tokio::test]
async fn every_query_walks_an_index_in_postgres() {
    let server = Server::postgres();
    let listening = Listening::to(&server.fresh_database(), Some(server)).await;
    everything_walks_an_index(listening.crowded().await).await;
}

#[tokio::test]
async fn every_query_walks_an_index_in_mariadb() {
    let server = Server::mariadb();
    let listening = Listening::to(&server.fresh_database(), Some(server)).await;
    everything_walks_an_index(listening.crowded().await).await;
}

#[tokio::test]
async fn a_list_does_not_read_what_is_long() {
    let Listening { records, sent, .. } = empty().await;
    let filter = ExecutionFilter {
        session_id: someone(),
        status: None,
    };
    let [first, ..] = pages("executions", "");
    sent.lock().unwrap().clear();
    records.executions(&filter, &first).await.unwrap();
    records.executions_silent_since(middle(), 10).await.unwrap();
    records.live_executions(&filter.session_id).await.unwrap();
    let sent = sent.lock().unwrap();
    assert!(!sent.is_empty());
    for Statement { sql, .. } in &*sent {
        assert!(
            !sql.contains("\"code\"") && !sql.contains("\"event\""),
            "{sql}"
        );
    }
}
