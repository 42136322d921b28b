//! What is left when sessions are over, and how it goes.

use std::collections::BTreeSet;

use sandbox_model::*;
use sandbox_store::records::{Ended, ExecutionFilter, Report, SessionFilter, StoreError};
use sandbox_store::{Records, Stored};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    what_ended_is_found_the_longest_over_first,
    a_workspace_is_removed_once,
    files_are_due_from_the_end_until_they_are_kept_or_gone,
    a_session_is_deleted_with_all_that_is_its,
    a_session_with_many_executions_is_deleted_bit_by_bit,
    nothing_is_added_to_a_session_that_is_deleted,
);

fn over(session: &Session, ended: i64) -> Session {
    Session {
        status: SessionStatus::Terminated,
        terminated_at: Some(time(ended)),
        ..session.clone()
    }
}

async fn with_template(records: &Records) -> Template {
    let template = template();
    records.insert_template(&template).await.unwrap();
    template
}

async fn what_ended_is_found_the_longest_over_first(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    let mut expected = Vec::new();
    for place in 0..9 {
        // Several at a time, so that identifiers decide; on two nodes.
        let session = Session {
            node_id: ["a", "b"][usize::try_from(place % 2).unwrap()]
                .parse()
                .unwrap(),
            ..session(&template)
        };
        let stored = records.insert_session(&session).await.unwrap();
        if place == 8 {
            continue;
        }
        let ended = over(&session, 100 + place / 4);
        records.update_session(&stored, &ended).await.unwrap();
        expected.push((ended.terminated_at.unwrap(), session.id, session.node_id));
    }
    expected.sort();
    let on = |node: &str| {
        let node: NodeId = node.parse().unwrap();
        let all = expected.iter().filter(move |(_, _, on)| *on == node);
        all.map(|(at, id, _)| Ended {
            id: id.clone(),
            at: *at,
        })
        .collect::<Vec<_>>()
    };
    let all: Vec<_> = expected
        .iter()
        .map(|(at, id, _)| Ended {
            id: id.clone(),
            at: *at,
        })
        .collect();

    let mut seen: Vec<Ended> = Vec::new();
    loop {
        let page = records
            .sessions_ended_before(time(1000), seen.last(), 3)
            .await
            .unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, all);
    let early = records.sessions_ended_before(time(101), None, 99).await;
    assert_eq!(early.unwrap(), all[..4]);

    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    let unclean = records.sessions_to_clean(time(1000), &a, None, 3).await;
    let unclean = unclean.unwrap();
    assert_eq!(unclean, on("a")[..3]);
    let rest = records
        .sessions_to_clean(time(1000), &a, unclean.last(), 3)
        .await;
    assert_eq!(rest.unwrap(), on("a")[3..]);
    let early = records.sessions_to_clean(time(101), &b, None, 99).await;
    assert_eq!(early.unwrap(), on("b")[..2]);
}

async fn a_workspace_is_removed_once(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    let session = session(&template);
    let stored = records.insert_session(&session).await.unwrap();
    let mark = |at| {
        let (records, id) = (records.clone(), session.id.clone());
        async move { records.mark_workspace_removed(&id, time(at)).await.unwrap() }
    };
    assert!(!mark(1).await);
    // One that nobody dated ended when it last changed.
    let ended = Session {
        status: SessionStatus::Failed,
        updated_at: time(50),
        ..session.clone()
    };
    let ended = records.update_session(&stored, &ended).await.unwrap();
    let due = [Ended {
        id: session.id.clone(),
        at: time(50),
    }];
    let unclean = |records: Records| async move {
        let node = "node-1".parse().unwrap();
        records
            .sessions_to_clean(time(99), &node, None, 9)
            .await
            .unwrap()
    };
    assert_eq!(unclean(records.clone()).await, due);
    assert!(mark(60).await);
    assert!(!mark(70).await);
    assert_eq!(unclean(records.clone()).await, []);
    let removed = records.session(&session.id).await.unwrap().unwrap();
    assert_eq!(removed.value.workspace_removed_at, Some(time(60)));
    let known = records.sessions_ended_before(time(99), None, 9).await;
    assert_eq!(known.unwrap(), due);
    // A change that was made from what was read before does not undo it.
    let stale = records.update_session(&ended, &ended.value).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    let same = records
        .update_session(&removed, &removed.value)
        .await
        .unwrap();
    assert_eq!(same.value, removed.value);
    assert_eq!(unclean(records.clone()).await, []);
}

async fn files_are_due_from_the_end_until_they_are_kept_or_gone(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    let node = "node-1".parse().unwrap();
    let due = async || {
        let due = records.sessions_with_files_due(&node, None, 9).await;
        due.unwrap().into_iter().map(|ended| ended.id)
    };
    let mut ended = Vec::new();
    for at in [7, 8, 9] {
        let session = session(&template);
        let stored = records.insert_session(&session).await.unwrap();
        assert!(!due().await.any(|id| id == session.id));
        let over = over(&session, at);
        ended.push(records.update_session(&stored, &over).await.unwrap());
    }
    let ids: Vec<_> = ended.iter().map(|stored| stored.value.id.clone()).collect();
    assert!(due().await.eq(ids.clone()));
    let first = records.sessions_with_files_due(&node, None, 1).await;
    let rest = records
        .sessions_with_files_due(&node, first.unwrap().last(), 9)
        .await;
    assert!(rest.unwrap().iter().map(|ended| &ended.id).eq(&ids[1..]));
    let elsewhere = "node-2".parse().unwrap();
    let elsewhere = records.sessions_with_files_due(&elsewhere, None, 9).await;
    assert_eq!(elsewhere.unwrap(), []);

    assert!(records.are_files_due(&ids[0]).await.unwrap());
    records.mark_files_kept(&ids[0]).await.unwrap();
    assert!(!records.are_files_due(&ids[0]).await.unwrap());
    let removed = records.mark_workspace_removed(&ids[1], time(20)).await;
    assert!(removed.unwrap());
    assert!(due().await.eq([ids[2].clone()]));
    // Nor are they again when something else of the session changes.
    let kept = records.session(&ids[0]).await.unwrap().unwrap();
    let touched = Session {
        error: Some("something".to_owned()),
        ..kept.value.clone()
    };
    records.update_session(&kept, &touched).await.unwrap();
    assert!(due().await.eq([ids[2].clone()]));
}

async fn finished(records: &Records, session: &Session) -> Execution {
    let execution = execution(session);
    let stored = records.insert_execution(&execution).await.unwrap();
    let report = Report {
        digest: "d",
        result: &result(),
        artifacts: &[artifact(&execution, "out/a", 0)],
    };
    let ended = completed(&execution);
    records.finish(&stored, &ended, &report).await.unwrap();
    execution
}

async fn totals(records: &Records, agent: Option<&str>) -> u64 {
    let filter = SessionFilter {
        agent_id: agent.map(str::to_owned),
        ..SessionFilter::default()
    };
    records.sessions(&filter, &first(1)).await.unwrap().total
}

async fn a_session_is_deleted_with_all_that_is_its(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let session = Session {
            agent_id: Some("ada".to_owned()),
            ..session(&template)
        };
        let stored = records.insert_session(&session).await.unwrap();
        let execution = finished(&records, &session).await;
        records
            .append_notice(&session.id, "status", "{}")
            .await
            .unwrap();
        kept.push((stored, execution));
    }
    let (stored, execution) = kept.remove(0);
    let id = &stored.value.id;
    let refused = records.delete_session(id).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("session {id} is not over"));
    assert_eq!(refused.class(), Class::Conflict);
    assert!(refused.hint().is_some());
    // One that nobody ended is deleted with the rest.
    records
        .insert_execution(&crate::sample::execution(&stored.value))
        .await
        .unwrap();
    let ended = over(&stored.value, 9);
    records.update_session(&stored, &ended).await.unwrap();
    records.delete_session(id).await.unwrap();

    assert_eq!(records.session(id).await.unwrap(), None);
    assert_eq!(records.execution(&execution.id).await.unwrap(), None);
    assert_eq!(records.result(&execution.id).await.unwrap(), None);
    assert_eq!(records.artifacts(&execution.id).await.unwrap(), []);
    assert_eq!(records.notices(id, 0, 9).await.unwrap(), []);
    let executions = ExecutionFilter {
        session_id: id.clone(),
        status: None,
    };
    let page = records.executions(&executions, &first(9)).await.unwrap();
    assert_eq!((page.items.len(), page.total), (0, 0));
    assert_eq!(totals(&records, None).await, 1);
    assert_eq!(totals(&records, Some("ada")).await, 1);
    let again = records.delete_session(id).await;
    assert!(
        matches!(again, Err(StoreError::Missing { .. })),
        "{again:?}"
    );

    let (other, execution) = kept.remove(0);
    let id = &other.value.id;
    assert!(records.result(&execution.id).await.unwrap().is_some());
    assert_eq!(records.artifacts(&execution.id).await.unwrap().len(), 1);
    assert_eq!(records.notices(id, 0, 9).await.unwrap().len(), 1);
    // Its name is free.
    records.insert_session(&stored.value).await.unwrap();
}

async fn a_session_with_many_executions_is_deleted_bit_by_bit(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    let session = session(&template);
    let stored = records.insert_session(&session).await.unwrap();
    for _ in 0..501 {
        let execution = execution(&session);
        records.insert_execution(&execution).await.unwrap();
    }
    let ended = over(&session, 9);
    records.update_session(&stored, &ended).await.unwrap();
    let before = records.statements();
    records.delete_session(&session.id).await.unwrap();
    // Twice: the session, the executions, three tables, the numbers; once what is left.
    assert_eq!(records.statements() - before, 2 * 6 + 3);
    assert_eq!(totals(&records, None).await, 0);
}

async fn nothing_is_added_to_a_session_that_is_deleted(database: Database) {
    let records = open(&database).await;
    let template = with_template(&records).await;
    for _ in 0..5 {
        let session = session(&template);
        let stored: Stored<Session> = records.insert_session(&session).await.unwrap();
        let ended = over(&session, 9);
        records.update_session(&stored, &ended).await.unwrap();
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let (records, session) = (records.clone(), session.clone());
            tasks.push(tokio::spawn(async move {
                let mut added = BTreeSet::new();
                loop {
                    let execution = execution(&session);
                    match records.insert_execution(&execution).await {
                        Ok(_) => added.insert(execution.id),
                        Err(StoreError::Missing { .. }) => return added,
                        Err(error) => panic!("{error:?}"),
                    };
                }
            }));
        }
        records.delete_session(&session.id).await.unwrap();
        for task in tasks {
            for id in task.await.unwrap() {
                assert_eq!(records.execution(&id).await.unwrap(), None);
            }
        }
        let executions = ExecutionFilter {
            session_id: session.id,
            status: None,
        };
        let page = records.executions(&executions, &first(9)).await.unwrap();
        assert_eq!(page.total, 0);
    }
    assert_eq!(totals(&records, None).await, 0);
}
