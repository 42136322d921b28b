//! What goes in comes out, and changes are made from the latest version or not at all.

use std::time::Duration;

use sandbox_model::*;
use sandbox_store::Stored;
use sandbox_store::records::{
    Doing, ExecutionFilter, Lease, PageRequest, Remembered, Report, Reported, StoreError,
    TemplateFilter,
};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    a_template_comes_back_as_it_went_in,
    a_template_in_use_cannot_be_deleted,
    a_session_comes_back_as_it_went_in,
    the_reaper_finds_what_is_due,
    an_execution_comes_back_as_it_went_in,
    a_heartbeat_and_an_update_leave_each_other_alone,
    a_result_is_kept_once,
    notices_are_read_in_order_after_any_of_them,
    keys_open_until_they_are_revoked,
    a_request_is_remembered_until_forgotten,
    a_lease_has_one_holder_at_a_time,
    the_pool_gives_each_entry_once,
    nodes_and_containers_come_back_as_they_went_in,
    hostile_text_is_kept_or_refused_by_name,
    a_change_takes_few_statements,
    who_gives_up_waiting_leaves_nothing_half_done,
    what_was_not_read_is_stale,
);

async fn a_template_comes_back_as_it_went_in(database: Database) {
    let records = open(&database).await;
    let template = template();
    let stored = records.insert_template(&template).await.unwrap();
    assert_eq!(stored.value, template);
    let read = records.template(&template.id).await.unwrap();
    assert_eq!(read.as_ref(), Some(&stored));
    let again = records.insert_template(&template).await.unwrap_err();
    let text = format!("template {} exists already", template.id);
    assert_eq!(again.to_string(), text);

    let inactive = Template {
        is_active: false,
        base_image: None,
        ..template.clone()
    };
    let changed = records.update_template(&stored, &inactive).await.unwrap();
    assert_eq!(changed.value, inactive);
    let stale = records.update_template(&stored, &template).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    let list = |filter| {
        let records = records.clone();
        async move { records.templates(filter, &first(10)).await.unwrap() }
    };
    assert_eq!(list(TemplateFilter::Active).await.total, 0);
    assert_eq!(list(TemplateFilter::All).await.items, [changed]);
    // Nothing is found by a name that is only alike.
    let upper = template.id.as_str().to_uppercase().parse().unwrap();
    assert_eq!(records.template(&upper).await.unwrap(), None);
}

async fn a_template_in_use_cannot_be_deleted(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = session(&template);
        sessions.push(records.insert_session(&session).await.unwrap());
    }
    let refused = records.delete_template(&template.id).await.unwrap_err();
    let text = format!("template {} is used by 2 live sessions", template.id);
    assert_eq!(refused.to_string(), text);
    for session in &sessions {
        let ended = Session {
            status: SessionStatus::Terminated,
            ..session.value.clone()
        };
        records.update_session(session, &ended).await.unwrap();
    }
    records.delete_template(&template.id).await.unwrap();
    assert_eq!(records.template(&template.id).await.unwrap(), None);
    // What ran from it stays on record, and cannot run again.
    let kept = records
        .session(&sessions[0].value.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.value.template_id, template.id);
    let revived = records.update_session(&kept, &sessions[0].value).await;
    let text = format!("there is no template {}", template.id);
    assert_eq!(revived.unwrap_err().to_string(), text);
    let missing = records.delete_template(&template.id).await.unwrap_err();
    assert_eq!(missing.to_string(), text);
}

async fn a_session_comes_back_as_it_went_in(database: Database) {
    let records = open(&database).await;
    let template = template();
    let session = session(&template);
    let orphan = records.insert_session(&session).await.unwrap_err();
    let text = format!("there is no template {}", template.id);
    assert_eq!(orphan.to_string(), text);
    records.insert_template(&template).await.unwrap();
    let stored = records.insert_session(&session).await.unwrap();
    assert_eq!(stored.value, session);
    let read = records.session(&session.id).await.unwrap();
    assert_eq!(read.as_ref(), Some(&stored));
    let twice = records.insert_session(&session).await;
    assert!(matches!(twice, Err(StoreError::Exists { .. })), "{twice:?}");

    let running = Session {
        status: SessionStatus::Running,
        agent_id: Some("agent ".to_owned()),
        container_id: Some("c".to_owned()),
        started_at: Some(time(5)),
        ..session.clone()
    };
    let changed = records.update_session(&stored, &running).await.unwrap();
    assert_eq!(changed.value, running);
    assert_eq!(changed.version, stored.version + 1);
    let stale = records.update_session(&stored, &running).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    let other = Session {
        id: crate::sample::session(&template).id,
        ..running
    };
    let renamed = records.update_session(&changed, &other).await;
    assert!(
        matches!(renamed, Err(StoreError::Renamed { .. })),
        "{renamed:?}"
    );
    let missing = records.session(&other.id).await.unwrap();
    assert_eq!(missing, None);
    // To the nanosecond it is not kept; what is told is what is kept.
    let precise = Session {
        created_at: "2026-11-01T12:00:00.123456789Z".parse().unwrap(),
        ..other
    };
    let told = records.insert_session(&precise).await.unwrap();
    assert_eq!(records.session(&precise.id).await.unwrap(), Some(told));
}

async fn the_reaper_finds_what_is_due(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let mut ids = Vec::new();
    for place in 0..4 {
        let session = Session {
            status: match place {
                3 => SessionStatus::Failed,
                _ => SessionStatus::Running,
            },
            mode: SessionMode::Persistent,
            agent_id: Some("ada".to_owned()),
            created_at: time(place),
            last_activity_at: time(10 + place),
            expires_at: time(20 - place),
            ..session(&template)
        };
        ids.push(session.id.clone());
        records.insert_session(&session).await.unwrap();
    }
    let names = |found: Vec<sandbox_store::Stored<Session>>| -> Vec<SessionId> {
        found.into_iter().map(|stored| stored.value.id).collect()
    };
    let (node, other) = ("node-1".parse().unwrap(), "node-2".parse().unwrap());
    let older = records.sessions_older_than(time(2), &node, 10).await;
    assert_eq!(names(older.unwrap()), ids[..2]);
    let idle = records.sessions_idle_since(time(100), &node, 2).await;
    assert_eq!(names(idle.unwrap()), ids[..2]);
    let expired = records.sessions_expired_before(time(20), &node, 9).await;
    assert_eq!(names(expired.unwrap()), [ids[2].clone(), ids[1].clone()]);
    let elsewhere = records.sessions_expired_before(time(20), &other, 9).await;
    assert_eq!(elsewhere.unwrap(), []);
    let mut here = names(
        records
            .live_sessions_on(&"node-1".parse().unwrap())
            .await
            .unwrap(),
    );
    here.sort();
    let mut live = ids[..3].to_vec();
    live.sort();
    assert_eq!(here, live);
    let over = records.over_among(&ids).await.unwrap();
    assert_eq!(over, [ids[3].clone()].into());
    assert!(records.over_among(&live).await.unwrap().is_empty());
    let latest = records.latest_persistent_session("ada").await.unwrap();
    assert_eq!(latest.unwrap().value.id, ids[3]);
    // Spaces and case tell one agent from another.
    for stranger in ["ada ", "Ada", "adä", ""] {
        let latest = records.latest_persistent_session(stranger).await.unwrap();
        assert_eq!(latest, None, "{stranger:?}");
    }
}

async fn an_execution_comes_back_as_it_went_in(database: Database) {
    let records = open(&database).await;
    let template = template();
    let session = session(&template);
    let parent = execution(&session);
    let execution = Execution {
        parent_execution_id: Some(parent.id.clone()),
        retry_count: 1,
        last_heartbeat_at: Some(time(9)),
        progress: Some("{}".to_owned()),
        code: "é".repeat(50_000),
        ..execution(&session)
    };
    let orphan = records.insert_execution(&parent).await.unwrap_err();
    let text = format!("there is no session {}", session.id);
    assert_eq!(orphan.to_string(), text);
    records.insert_template(&template).await.unwrap();
    records.insert_session(&session).await.unwrap();
    records.insert_execution(&parent).await.unwrap();
    let stored = records.insert_execution(&execution).await.unwrap();
    assert_eq!(stored.value, execution);
    let read = records.execution(&execution.id).await.unwrap();
    assert_eq!(read.as_ref(), Some(&stored));
    let whose = records.session_of(&execution.id).await.unwrap();
    assert_eq!(whose.as_ref(), Some(&session.id));
    let strange = crate::sample::execution(&session).id;
    assert_eq!(records.session_of(&strange).await.unwrap(), None);
    let running = Execution {
        status: ExecutionStatus::Running,
        started_at: Some(time(3)),
        ..execution.clone()
    };
    let changed = records.update_execution(&stored, &running).await.unwrap();
    let stale = records.update_execution(&stored, &running).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    assert_eq!(
        records.execution(&execution.id).await.unwrap(),
        Some(changed)
    );
    let mut live: Vec<ExecutionId> = Vec::new();
    for found in records.live_executions(&session.id).await.unwrap() {
        live.push(found.value.id);
    }
    live.sort();
    let mut both = [parent.id, execution.id];
    both.sort();
    assert_eq!(live, both);
}

async fn a_heartbeat_and_an_update_leave_each_other_alone(database: Database) {
    let records = open(&database).await;
    let template = template();
    let session = session(&template);
    records.insert_template(&template).await.unwrap();
    records.insert_session(&session).await.unwrap();
    let execution = execution(&session);
    let stored = records.insert_execution(&execution).await.unwrap();
    let silent = |since| {
        let records = records.clone();
        async move {
            records
                .executions_silent_since(since, 5)
                .await
                .unwrap()
                .len()
        }
    };
    assert_eq!(silent(time(1)).await, 1);
    let beat = records
        .heartbeat(&execution.id, time(50), Some("0.5"))
        .await;
    assert!(beat.unwrap());
    assert_eq!(silent(time(1)).await, 0);
    assert_eq!(silent(time(51)).await, 1);
    // The update was made from what was read before the heartbeat, and does not undo it.
    let running = Execution {
        status: ExecutionStatus::Running,
        ..execution.clone()
    };
    records.update_execution(&stored, &running).await.unwrap();
    assert!(
        records
            .heartbeat(&execution.id, time(60), None)
            .await
            .unwrap()
    );
    let now = records.execution(&execution.id).await.unwrap().unwrap();
    assert_eq!(now.value.last_heartbeat_at, Some(time(60)));
    assert_eq!(now.value.progress.as_deref(), Some("0.5"));
    assert_eq!(now.value.status, ExecutionStatus::Running);
    records
        .update_execution(&now, &completed(&now.value))
        .await
        .unwrap();
    assert!(
        !records
            .heartbeat(&execution.id, time(70), None)
            .await
            .unwrap()
    );
    assert_eq!(silent(time(1000)).await, 0);
}

async fn a_result_is_kept_once(database: Database) {
    let records = open(&database).await;
    let template = template();
    let session = session(&template);
    records.insert_template(&template).await.unwrap();
    records.insert_session(&session).await.unwrap();
    let stored = records
        .insert_execution(&execution(&session))
        .await
        .unwrap();
    let id = &stored.value.id;
    assert_eq!(records.result(id).await.unwrap(), None);
    assert_eq!(records.reported(id, "digest").await.unwrap(), None);

    let big = ExecutionResult {
        stderr: "e\n".repeat(1 << 19),
        ..result()
    };
    let files = [
        artifact(&stored.value, "out/plot 🦀.png", 1),
        artifact(&stored.value, "out/plot 🦀.svg", 2),
    ];
    let report = Report {
        digest: "digest",
        result: &big,
        artifacts: &files,
    };
    let ended = completed(&stored.value);
    let reported = records.finish(&stored, &ended, &report).await.unwrap();
    let Reported::First(finished) = reported else {
        panic!("{reported:?}");
    };
    assert_eq!(finished.value, ended);
    assert_eq!(records.result(id).await.unwrap().as_ref(), Some(&big));
    assert_eq!(records.artifacts(id).await.unwrap(), files);

    let again = records.finish(&stored, &ended, &report).await.unwrap();
    assert_eq!(again, Reported::Same);
    let other = Report {
        digest: "other",
        ..report
    };
    let different = records.finish(&finished, &ended, &other).await.unwrap();
    assert_eq!(different, Reported::Different);
    let known = records.reported(id, "digest").await.unwrap();
    assert_eq!(known, Some(Reported::Same));
}

async fn notices_are_read_in_order_after_any_of_them(database: Database) {
    let records = open(&database).await;
    let template = template();
    let (one, other) = (session(&template), session(&template));
    let orphan = records.append_notice(&one.id, "status", "{}").await;
    assert!(
        matches!(orphan, Err(StoreError::Missing { .. })),
        "{orphan:?}"
    );
    records.insert_template(&template).await.unwrap();
    records.insert_session(&one).await.unwrap();
    records.insert_session(&other).await.unwrap();
    let mut told = Vec::new();
    for number in 0..5 {
        let detail = format!("{{\"n\":{number}}}");
        let notice = records.append_notice(&one.id, "status", &detail).await;
        told.push(notice.unwrap());
        records
            .append_notice(&other.id, "status", "{}")
            .await
            .unwrap();
    }
    assert!(told.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(records.notices(&one.id, 0, 100).await.unwrap(), told);
    let rest = records.notices(&one.id, told[1].id, 2).await.unwrap();
    assert_eq!(rest, told[2..4]);
    assert_eq!(records.notices(&one.id, told[4].id, 2).await.unwrap(), []);
}

async fn keys_open_until_they_are_revoked(database: Database) {
    let records = open(&database).await;
    let key = |letter: u16, created_at| ApiKey {
        id: KeyId::random([letter; 16]),
        name: "laptop".to_owned(),
        scope: Scope::Operate,
        created_at,
        revoked_at: None,
    };
    let (old, new) = (key(1, time(1)), key(2, time(2)));
    records.insert_key(&old, "aa00").await.unwrap();
    records.insert_key(&new, "bb11").await.unwrap();
    let same_secret = records
        .insert_key(&key(3, time(3)), "aa00")
        .await
        .unwrap_err();
    assert!(!same_secret.to_string().contains("aa00"), "{same_secret}");
    assert_eq!(
        records.key_by_hash("aa00").await.unwrap(),
        Some(old.clone())
    );
    assert_eq!(records.key_by_hash("AA00").await.unwrap(), None);
    for at in [5, 6] {
        records.revoke_key(&old.id, time(at)).await.unwrap();
    }
    assert_eq!(records.key_by_hash("aa00").await.unwrap(), None);
    let revoked = ApiKey {
        revoked_at: Some(time(5)),
        ..old
    };
    let page = |limit| PageRequest::first(limit).unwrap();
    let first = records.keys(&page(1)).await.unwrap();
    assert_eq!((first.items, first.total), (vec![new], 2));
    let rest = page(1).after(first.next.unwrap());
    let rest = records.keys(&rest).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![revoked], None));
    let nobody = records.revoke_key(&KeyId::random([9; 16]), time(0)).await;
    assert!(
        matches!(nobody, Err(StoreError::Missing { .. })),
        "{nobody:?}"
    );
}

async fn a_request_is_remembered_until_forgotten(database: Database) {
    let records = open(&database).await;
    let ask = |scope: &'static str, digest: &'static str| {
        let records = records.clone();
        async move { records.remember(scope, "key", digest, "me").await.unwrap() }
    };
    let Remembered::Fresh(begun_at) = ask("ada", "d").await else {
        panic!("it is new");
    };
    let doing = |object: Option<&str>| Doing {
        by: "me".to_owned(),
        object: object.map(str::to_owned),
        begun_at,
    };
    let nothing = Remembered::InProgress(doing(None));
    assert_eq!(ask("ada", "d").await, nothing);
    let recalled = records.recall("ada", "key", "d").await;
    assert_eq!(recalled.unwrap(), Some(nothing));
    assert_eq!(records.recall("bob", "key", "d").await.unwrap(), None);
    assert_eq!(ask("ada", "e").await, Remembered::Mismatch);
    assert!(matches!(ask("bob", "e").await, Remembered::Fresh(_)));
    let before = begun_at - Duration::from_secs(1);
    for (time, is_theirs) in [(before, false), (begun_at, true)] {
        let promised = records.promise("ada", "key", "me", time, "object").await;
        assert_eq!(promised.unwrap(), is_theirs);
    }
    let promised = doing(Some("object"));
    let earlier = Doing {
        begun_at: before,
        ..promised.clone()
    };
    for outdated in [earlier, doing(None)] {
        records.abandon("ada", "key", &outdated).await.unwrap();
        let known = ask("ada", "d").await;
        assert_eq!(known, Remembered::InProgress(promised.clone()));
    }
    records.abandon("ada", "key", &promised).await.unwrap();
    let promised = records
        .promise("ada", "key", "me", begun_at, "object")
        .await;
    assert!(!promised.unwrap());
    assert!(matches!(ask("ada", "d").await, Remembered::Fresh(_)));
    let body = b"{\"\0\": \"\xff\"}".to_vec();
    records.complete("ada", "key", 201, &body).await.unwrap();
    let replay = Remembered::Replay { status: 201, body };
    assert_eq!(ask("ada", "d").await, replay);
    assert_eq!(ask("ada", "e").await, Remembered::Mismatch);
    records.forget("ada", "key").await.unwrap();
    assert!(matches!(ask("ada", "e").await, Remembered::Fresh(_)));
    let unknown = records.complete("ada", "other", 200, b"").await;
    assert!(
        matches!(unknown, Err(StoreError::Missing { .. })),
        "{unknown:?}"
    );
    let past = records.forget_requests_before(time(0)).await.unwrap();
    let future = records.now().await.unwrap() + Duration::from_secs(60);
    let all = records.forget_requests_before(future).await.unwrap();
    assert_eq!((past, all), (0, 2));
}

async fn a_lease_has_one_holder_at_a_time(database: Database) {
    let records = open(&database).await;
    let long = Duration::from_secs(3600);
    let acquire = |holder: &'static str, term| {
        let records = records.clone();
        async move { records.acquire_lease("reaper", holder, term).await.unwrap() }
    };
    let lease = |holder: &str, epoch| Lease {
        name: "reaper".to_owned(),
        holder: holder.to_owned(),
        epoch,
    };
    assert_eq!(records.lease_holder("reaper").await.unwrap(), None);
    let first = acquire("a", long).await.unwrap();
    assert_eq!(first, lease("a", 1));
    assert_eq!(acquire("b", long).await, None);
    assert_eq!(acquire("a", long).await, None);
    assert_eq!(
        records.lease_holder("reaper").await.unwrap(),
        Some(first.clone())
    );
    assert!(records.renew_lease(&first, long).await.unwrap());
    records.release_lease(&first).await.unwrap();
    assert!(!records.renew_lease(&first, long).await.unwrap());
    // One that ends at once has ended by the time anybody looks.
    let second = acquire("b", Duration::ZERO).await.unwrap();
    assert_eq!(second, lease("b", 2));
    assert_eq!(records.lease_holder("reaper").await.unwrap(), None);
    assert!(!records.renew_lease(&second, long).await.unwrap());
    let third = acquire("a", long).await.unwrap();
    assert_eq!(third, lease("a", 3));
    // An old lease can neither renew nor release the new one.
    assert!(!records.renew_lease(&first, long).await.unwrap());
    records.release_lease(&first).await.unwrap();
    assert_eq!(records.lease_holder("reaper").await.unwrap(), Some(third));
}

async fn the_pool_gives_each_entry_once(database: Database) {
    let records = open(&database).await;
    let (template, other) = (template(), template());
    for (template, node) in [(&template, "a"), (&template, "b"), (&other, "a")] {
        records.add_to_pool(&entry(template, node)).await.unwrap();
    }
    let sizes = records.pool_sizes().await.unwrap();
    assert_eq!(sizes[&template.id], 2);
    assert_eq!(records.pool_size(&other.id).await.unwrap(), 1);
    let on_a = records.pool_on(&"a".parse().unwrap()).await.unwrap();
    assert_eq!(on_a.len(), 2);
    let b = "b".parse().unwrap();
    let claimed = records
        .claim_from_pool(&template.id, Some(&b))
        .await
        .unwrap();
    assert_eq!(claimed.unwrap().node_id, b);
    let none = records
        .claim_from_pool(&template.id, Some(&b))
        .await
        .unwrap();
    assert_eq!(none, None);
    let claimed = records.claim_from_pool(&template.id, None).await.unwrap();
    assert!(on_a.contains(&claimed.unwrap()));
    assert_eq!(records.pool_size(&template.id).await.unwrap(), 0);
    let rest = on_a
        .iter()
        .find(|entry| entry.template_id == other.id)
        .unwrap();
    assert!(records.remove_from_pool(&rest.id).await.unwrap());
    assert!(!records.remove_from_pool(&rest.id).await.unwrap());
    assert!(records.pool_sizes().await.unwrap().is_empty());
}

async fn nodes_and_containers_come_back_as_they_went_in(database: Database) {
    let records = open(&database).await;
    let added = records.upsert_node(&node("worker-1")).await.unwrap();
    records.upsert_node(&node("worker-2")).await.unwrap();
    let read = records.node(&added.value.id).await.unwrap();
    assert_eq!(read.as_ref(), Some(&added));
    let draining = Node {
        status: NodeStatus::Draining,
        ..node("worker-1")
    };
    let changed = records.update_node(&added, &draining).await.unwrap();
    let stale = records.update_node(&added, &draining).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    let again = records.upsert_node(&draining).await.unwrap();
    assert_eq!(again.version, changed.version + 1);
    let nodes = records.nodes().await.unwrap();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0], again);
    let page = |limit| PageRequest::first(limit).unwrap();
    let all = records.node_page(&page(2)).await.unwrap();
    assert_eq!((all.items, all.total, all.next), (nodes.clone(), 2, None));
    let first = records.node_page(&page(1)).await.unwrap();
    assert_eq!((&first.items[..], first.total), (&nodes[..1], 2));
    let cursor = first.next.unwrap();
    let rest = records.node_page(&page(1).after(cursor.clone())).await;
    let rest = rest.unwrap();
    assert_eq!((&rest.items[..], rest.next), (&nodes[1..], None));
    let skipped = records.node_page(&page(1).skipping(1)).await.unwrap();
    assert_eq!(skipped.items, nodes[1..]);
    let other = records.keys(&page(1).after(cursor)).await;
    assert!(matches!(other, Err(StoreError::BadCursor)), "{other:?}");

    let container = container(&template());
    let stored = records.insert_container(&container).await.unwrap();
    assert_eq!(stored.value, container);
    let read = records.container(&container.id).await.unwrap();
    assert_eq!(read.as_ref(), Some(&stored));
    let exited = Container {
        status: ContainerStatus::Exited,
        exited_at: Some(time(9)),
        exit_code: Some(-9),
        ip_address: None,
        ..container.clone()
    };
    let changed = records.update_container(&stored, &exited).await.unwrap();
    assert_eq!(changed.value, exited);
    let stale = records.update_container(&stored, &container).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
}

async fn hostile_text_is_kept_or_refused_by_name(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let hostile =
        "'; DROP TABLE sessions; -- \" ` \\ % _ ? $1 :x 🦀 \u{202e}\u{fffd} é e\u{301}\r\n\t";
    let session = Session {
        agent_id: Some(hostile.to_owned()),
        workspace_path: hostile.to_owned(),
        error: Some(hostile.repeat(1000)),
        env_vars: [("X".to_owned(), format!("{hostile}\0"))].into(),
        mode: SessionMode::Persistent,
        ..session(&template)
    };
    let stored = records.insert_session(&session).await.unwrap();
    let found = records.latest_persistent_session(hostile).await.unwrap();
    assert_eq!(found.as_ref(), Some(&stored));
    let with_nul = Session {
        error: Some("a\0b".to_owned()),
        ..session.clone()
    };
    let refused = records.update_session(&stored, &with_nul).await;
    let text = "error has a NUL character in it";
    assert_eq!(refused.unwrap_err().to_string(), text);
    let long = Session {
        agent_id: Some("🦀".repeat(256)),
        ..session.clone()
    };
    let refused = records.update_session(&stored, &long).await;
    let text = "agent_id has more than 255 characters";
    assert_eq!(refused.unwrap_err().to_string(), text);
    let fits = Session {
        agent_id: Some("🦀".repeat(255)),
        ..session
    };
    let kept = records.update_session(&stored, &fits).await.unwrap();
    assert_eq!(records.session(&fits.id).await.unwrap(), Some(kept));

    let endless = ExecutionResult {
        execution_time: f64::NAN,
        ..result()
    };
    let execution = execution(&fits);
    let stored = records.insert_execution(&execution).await.unwrap();
    let report = Report {
        digest: "d",
        result: &endless,
        artifacts: &[],
    };
    let refused = records
        .finish(&stored, &completed(&execution), &report)
        .await;
    let text = "execution_time is not a number";
    assert_eq!(refused.unwrap_err().to_string(), text);
}

async fn a_change_takes_few_statements(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let session = session(&template);
    let execution = execution(&session);
    let mut before = records.statements();
    let mut taken = || {
        let all = records.statements();
        all - std::mem::replace(&mut before, all)
    };
    // What SQLite need not be asked in turn is one statement.
    let is_alone = !records.is_shared();
    let (change, finish) = if is_alone { (1, 1) } else { (2, 3) };

    let stored = records.insert_session(&session).await.unwrap();
    assert_eq!(taken(), change);
    let running = Session {
        status: SessionStatus::Running,
        ..session.clone()
    };
    records.update_session(&stored, &running).await.unwrap();
    assert_eq!(taken(), change);
    let stored = records.insert_execution(&execution).await.unwrap();
    assert_eq!(taken(), change);
    let running = Execution {
        status: ExecutionStatus::Running,
        ..execution.clone()
    };
    let stored = records.update_execution(&stored, &running).await.unwrap();
    assert_eq!(taken(), change);
    let report = Report {
        digest: "d",
        result: &result(),
        artifacts: &[],
    };
    let ended = completed(&running);
    records.finish(&stored, &ended, &report).await.unwrap();
    assert_eq!(taken(), finish);
}

/// Whoever asked may go away at any moment, and others go on.
async fn who_gives_up_waiting_leaves_nothing_half_done(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let session = session(&template);
    records.insert_session(&session).await.unwrap();
    for patience in 0..60 {
        let execution = execution(&session);
        let insert = records.insert_execution(&execution);
        let _ = tokio::time::timeout(Duration::from_micros(patience * 50), insert).await;
        // Nobody is kept waiting by what was given up.
        let other = records.append_notice(&session.id, "other", "{}").await;
        other.unwrap();
    }
    let filter = ExecutionFilter {
        session_id: session.id.clone(),
        status: None,
    };
    // What was kept was kept whole: the numbers are written last.
    let page = PageRequest::first(200).unwrap();
    let all = records.executions(&filter, &page).await.unwrap();
    assert_eq!(all.total, all.items.len() as u64);
    assert!(all.total > 0);
}

/// A version names what was read under it. With anything else in its place the numbers would move
/// from where nothing is.
async fn what_was_not_read_is_stale(database: Database) {
    let records = open(&database).await;
    let template = template();
    records.insert_template(&template).await.unwrap();
    let session = records.insert_session(&session(&template)).await.unwrap();
    let execution = execution(&session.value);
    let execution = records.insert_execution(&execution).await.unwrap();
    for invented in [
        Session {
            status: SessionStatus::Paused,
            ..session.value.clone()
        },
        Session {
            agent_id: Some("ada".to_owned()),
            ..session.value.clone()
        },
        Session {
            node_id: "node-2".parse().unwrap(),
            ..session.value.clone()
        },
        Session {
            template_id: "another".parse().unwrap(),
            ..session.value.clone()
        },
    ] {
        let current = Stored {
            value: invented,
            version: session.version,
        };
        let stale = records.update_session(&current, &session.value).await;
        assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    }
    let current = Stored {
        value: completed(&execution.value),
        version: execution.version,
    };
    let stale = records.update_execution(&current, &execution.value).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    let read = records.session(&session.value.id).await.unwrap();
    assert_eq!(read, Some(session));
}
