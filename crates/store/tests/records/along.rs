//! What is written down together with a change.

use sandbox_model::*;
use sandbox_store::Records;
use sandbox_store::records::{Along, Note, Report, StoreError};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    what_comes_along_is_there_with_the_change,
    what_comes_along_is_not_there_without_the_change,
);

fn note(session: &SessionId) -> Note<'_> {
    Note {
        session,
        kind: "status",
        detail: "{}",
    }
}

fn record(object: &str) -> AuditRecord {
    AuditRecord {
        at: time(0),
        key_id: None,
        action: "session.create".to_owned(),
        object: object.to_owned(),
        detail: "{}".to_owned(),
        request_id: None,
    }
}

/// How many notices a session has, and how much there is in the audit.
async fn written(records: &Records, session: &SessionId) -> (usize, u64) {
    let notices = records.notices(session, 0, 100).await.unwrap();
    let audit = records.audit(&first(100)).await.unwrap();
    assert_eq!(audit.items.len() as u64, audit.total);
    (notices.len(), audit.total)
}

async fn what_comes_along_is_there_with_the_change(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let session = session(&template);
    let audit = record(session.id.as_str());
    let along = Along {
        notice: Some(note(&session.id)),
        audit: Some(&audit),
    };
    let stored = records.insert_session_along(&session, &along).await;
    assert_eq!(written(&records, &session.id).await, (1, 1));

    let (stored, mut new) = (stored.unwrap(), session.clone());
    new.error = Some("changed".to_owned());
    let changed = records.update_session_along(&stored, &new, &along).await;
    assert_eq!(changed.unwrap().value, new);
    assert_eq!(written(&records, &session.id).await, (2, 2));

    let execution = execution(&session);
    let stored = records.insert_execution_along(&execution, &along).await;
    assert_eq!(written(&records, &session.id).await, (3, 3));

    let report = Report {
        digest: "one",
        result: &result(),
        artifacts: &[],
    };
    let (stored, ended) = (stored.unwrap(), completed(&execution));
    let again = records.finish_along(&stored, &ended, &report, &along);
    again.await.unwrap();
    assert_eq!(written(&records, &session.id).await, (4, 4));
    assert_eq!(records.live_execution_count().await.unwrap(), 0);
}

async fn what_comes_along_is_not_there_without_the_change(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let session = session(&template);
    let stored = records.insert_session(&session).await.unwrap();
    let audit = record(session.id.as_str());
    let along = Along {
        notice: Some(note(&session.id)),
        audit: Some(&audit),
    };
    let twice = records.insert_session_along(&session, &along).await;
    assert!(matches!(twice, Err(StoreError::Exists { .. })), "{twice:?}");

    let mut new = session.clone();
    new.error = Some("changed".to_owned());
    records.update_session(&stored, &new).await.unwrap();
    let late = records.update_session_along(&stored, &new, &along).await;
    assert!(matches!(late, Err(StoreError::Stale { .. })), "{late:?}");

    let execution = execution(&session);
    let stored = records.insert_execution(&execution).await.unwrap();
    let report = Report {
        digest: "one",
        result: &result(),
        artifacts: &[],
    };
    let ended = completed(&execution);
    records.finish(&stored, &ended, &report).await.unwrap();
    let again = records.finish_along(&stored, &ended, &report, &along);
    again.await.unwrap();
    assert_eq!(written(&records, &session.id).await, (0, 0));

    // A notice of a session that is not there takes the change back.
    let nobody = SessionId::random([9; 16]);
    let along = Along {
        notice: Some(note(&nobody)),
        audit: None,
    };
    let other = crate::sample::execution(&session);
    let lost = records.insert_execution_along(&other, &along).await;
    assert!(matches!(lost, Err(StoreError::Missing { .. })), "{lost:?}");
    assert_eq!(records.execution(&other.id).await.unwrap(), None);
}
