//! Lists: every record once, newest first, in pages that cost the same wherever they are.

use sandbox_model::*;
use sandbox_store::records::{
    ContainerFilter, ExecutionFilter, SessionFilter, StoreError, TemplateFilter,
};
use sandbox_store::{Records, Stored};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    pages_tell_every_session_once_newest_first,
    a_cursor_stays_when_records_are_added,
    a_list_takes_two_statements,
    the_audit_is_read_in_pages,
);

async fn many(records: &Records, template: &Template, number: i64) -> Vec<SessionId> {
    let mut sessions = Vec::new();
    for place in 0..number {
        let session = Session {
            // Several at the same time, so that identifiers decide.
            created_at: time(place / 3),
            agent_id: (place % 2 == 0).then(|| "ada".to_owned()),
            status: match place % 5 {
                0 => SessionStatus::Failed,
                _ => SessionStatus::Running,
            },
            ..session(template)
        };
        sessions.push((session.created_at, session.id.clone()));
        records.insert_session(&session).await.unwrap();
    }
    sessions.sort();
    sessions.reverse();
    sessions.into_iter().map(|(_, id)| id).collect()
}

fn ids(items: &[Stored<Session>]) -> Vec<SessionId> {
    items.iter().map(|stored| stored.value.id.clone()).collect()
}

async fn pages_tell_every_session_once_newest_first(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let expected = many(&records, &template, 25).await;
    let everything = SessionFilter::default();

    let mut by_cursor = Vec::new();
    let mut request = first(4);
    loop {
        let page = records.sessions(&everything, &request).await.unwrap();
        assert_eq!(page.total, 25);
        by_cursor.extend(ids(&page.items));
        let Some(next) = page.next else { break };
        // Through text, as a client would.
        request = first(4).after(next.to_string().parse().unwrap());
    }
    assert_eq!(by_cursor, expected);
    for (offset, limit) in [(0, 200), (7, 5), (24, 5), (25, 5), (u64::MAX, 5)] {
        let request = first(limit).skipping(offset);
        let page = records.sessions(&everything, &request).await.unwrap();
        let skipped = expected.iter().skip(usize::try_from(offset).unwrap());
        let wanted: Vec<_> = skipped
            .take(usize::try_from(limit).unwrap())
            .cloned()
            .collect();
        assert_eq!(ids(&page.items), wanted, "{offset} {limit}");
    }

    let filter = SessionFilter {
        status: Some(SessionStatus::Running),
        template_id: Some(template.id.clone()),
        agent_id: Some("ada".to_owned()),
    };
    let page = records.sessions(&filter, &first(200)).await.unwrap();
    assert_eq!((page.items.len(), page.total), (10, 10));
    let running = |stored: &Stored<Session>| stored.value.status == SessionStatus::Running;
    assert!(page.items.iter().all(running));

    // A cursor of one list is none of another.
    let page = records.sessions(&everything, &first(1)).await.unwrap();
    let request = first(1).after(page.next.unwrap());
    let refused = records
        .containers(&ContainerFilter::default(), &request)
        .await;
    assert!(matches!(refused, Err(StoreError::BadCursor)), "{refused:?}");
}

async fn a_cursor_stays_when_records_are_added(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let expected = many(&records, &template, 9).await;
    let everything = SessionFilter::default();
    let page = records.sessions(&everything, &first(3)).await.unwrap();
    let newer = Session {
        created_at: time(1000),
        ..session(&template)
    };
    records.insert_session(&newer).await.unwrap();
    let request = first(3).after(page.next.unwrap());
    let page = records.sessions(&everything, &request).await.unwrap();
    assert_eq!(ids(&page.items), expected[3..6]);
    assert_eq!(page.total, 10);
}

async fn a_list_takes_two_statements(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let of_template = SessionFilter {
        template_id: Some(template.id.clone()),
        ..SessionFilter::default()
    };
    for number in [1, 40] {
        let sessions = many(&records, &template, number).await;
        let found = records.session(&sessions[0]).await.unwrap().unwrap();
        let executions = ExecutionFilter {
            session_id: found.value.id.clone(),
            status: Some(ExecutionStatus::Pending),
        };
        for _ in 0..number {
            let execution = execution(&found.value);
            records.insert_execution(&execution).await.unwrap();
            records
                .insert_container(&container(&template))
                .await
                .unwrap();
        }
        let before = records.statements();
        records
            .sessions(&SessionFilter::default(), &first(200))
            .await
            .unwrap();
        records
            .sessions(&of_template, &first(200).skipping(1))
            .await
            .unwrap();
        records.executions(&executions, &first(200)).await.unwrap();
        records
            .containers(&ContainerFilter::default(), &first(200))
            .await
            .unwrap();
        records
            .templates(TemplateFilter::All, &first(200))
            .await
            .unwrap();
        records.audit(&first(200)).await.unwrap();
        assert_eq!(records.statements() - before, 6 * 2);
    }
}

async fn the_audit_is_read_in_pages(database: Database) {
    let records = open(&database).await;
    let mut written = Vec::new();
    for place in 0..7 {
        let record = AuditRecord {
            at: time(place / 2),
            key_id: (place % 2 == 0).then(|| KeyId::random([1; 16])),
            action: "session.create".to_owned(),
            object: format!("object {place} 🦀"),
            detail: "{}".to_owned(),
            request_id: (place % 2 == 0).then(|| RequestId::random([2; 16])),
        };
        records.append_audit(&record).await.unwrap();
        written.push(record);
    }
    written.reverse();
    let page = records.audit(&first(4)).await.unwrap();
    assert_eq!((page.total, &page.items[..]), (7, &written[..4]));
    let request = first(4).after(page.next.unwrap());
    let page = records.audit(&request).await.unwrap();
    assert_eq!((page.next, &page.items[..]), (None, &written[4..]));
}
