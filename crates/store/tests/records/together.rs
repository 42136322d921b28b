//! Several servers on one database: what only one may do, one does.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use sandbox_model::*;
use sandbox_store::records::{Remembered, Report, Reported, SessionFilter, StoreError};
use sandbox_store::{Records, Stored};

use crate::databases::{Database, Kind};
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    servers_that_start_together_make_the_tables_once,
    of_many_writers_one_is_not_stale,
    no_change_is_lost_and_nobody_is_told_busy,
    of_many_reports_one_is_the_first,
    of_many_claimants_one_gets_the_entry,
    of_many_candidates_one_gets_the_lease,
    of_many_requests_one_is_fresh,
    no_session_lives_without_its_template,
    a_watcher_misses_no_notice,
    a_follower_misses_no_notice_of_any_session,
);

const SERVERS: usize = 6;

/// Servers on one database. What is in memory has one.
async fn servers(database: &Database) -> Vec<Records> {
    let first = open(database).await;
    let mut servers = vec![first.clone()];
    while servers.len() < SERVERS {
        servers.push(match database.kind {
            Kind::SqliteMemory => first.clone(),
            _ => open(database).await,
        });
    }
    servers
}

/// Has every server do it at once.
async fn at_once<T, F>(servers: &[Records], work: impl Fn(Records, usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let records = servers.iter().cloned().enumerate();
    let tasks: Vec<_> = records
        .map(|(place, records)| tokio::spawn(work(records, place)))
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn with_session(records: &Records) -> Stored<Session> {
    let template = template();
    records.insert_template(&template).await.unwrap();
    records.insert_session(&session(&template)).await.unwrap()
}

fn number_of<T>(outcomes: &[T], is: impl Fn(&T) -> bool) -> usize {
    outcomes.iter().filter(|outcome| is(outcome)).count()
}

async fn servers_that_start_together_make_the_tables_once(database: Database) {
    let mut opening = Vec::new();
    for _ in 0..SERVERS {
        let url = database.url.clone();
        opening.push(tokio::spawn(async move { open_at(&url).await }));
    }
    let mut servers = Vec::new();
    for opened in opening {
        servers.push(opened.await.unwrap());
    }
    with_session(&servers[0]).await;
    let seen = servers[SERVERS - 1]
        .sessions(&SessionFilter::default(), &first(9))
        .await;
    let expected = match database.kind {
        // Each its own.
        Kind::SqliteMemory => 0,
        _ => 1,
    };
    assert_eq!(seen.unwrap().total, expected);
    open(&database).await;
}

async fn of_many_writers_one_is_not_stale(database: Database) {
    let servers = servers(&database).await;
    let stored = with_session(&servers[0]).await;
    let outcomes = at_once(&servers, move |records, place| {
        let stored = stored.clone();
        async move {
            let status = SessionStatus::ALL[1 + place % 6];
            let new = Session {
                status,
                ..stored.value.clone()
            };
            records.update_session(&stored, &new).await
        }
    })
    .await;
    assert_eq!(number_of(&outcomes, Result::is_ok), 1, "{outcomes:?}");
    let stale = |outcome: &Result<_, _>| matches!(outcome, Err(StoreError::Stale { .. }));
    assert_eq!(number_of(&outcomes, stale), SERVERS - 1, "{outcomes:?}");
}

async fn no_change_is_lost_and_nobody_is_told_busy(database: Database) {
    const CHANGES: u32 = 10;
    let servers = servers(&database).await;
    let stored = with_session(&servers[0]).await;
    let (id, start) = (stored.value.id.clone(), stored.value.timeout_seconds);
    let template_id = stored.value.template_id.clone();
    at_once(&servers, move |records, _| {
        let id = id.clone();
        async move {
            let mut changed = 0;
            while changed < CHANGES {
                let current = records.session(&id).await.unwrap().unwrap();
                let new = Session {
                    timeout_seconds: current.value.timeout_seconds + 1,
                    ..current.value.clone()
                };
                match records.update_session(&current, &new).await {
                    Ok(_) => changed += 1,
                    Err(StoreError::Stale { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
                let other = Session {
                    id: session(&template()).id,
                    ..new
                };
                records.insert_session(&other).await.unwrap();
            }
        }
    })
    .await;
    let last = servers[0].session(&stored.value.id).await.unwrap().unwrap();
    let changes = CHANGES * u32::try_from(SERVERS).unwrap();
    assert_eq!(last.value.timeout_seconds, start + changes);
    assert_eq!(last.version, stored.version + i64::from(changes));
    let filter = SessionFilter {
        template_id: Some(template_id),
        ..SessionFilter::default()
    };
    let mut seen = 0;
    let mut request = first(200);
    loop {
        let page = servers[0].sessions(&filter, &request).await.unwrap();
        seen += page.items.len();
        let Some(next) = page.next else {
            assert_eq!(page.total, u64::try_from(seen).unwrap());
            break;
        };
        request = first(200).after(next);
    }
    assert!(seen > usize::try_from(changes).unwrap());
}

async fn of_many_reports_one_is_the_first(database: Database) {
    let servers = servers(&database).await;
    let session = with_session(&servers[0]).await.value;
    for round in 0..5 {
        let execution = execution(&session);
        let stored = servers[0].insert_execution(&execution).await.unwrap();
        let artifact = artifact(&execution, "out/plot.png", 0);
        let id = execution.id.clone();
        let outcomes = at_once(&servers, move |records, place| {
            let (stored, artifact) = (stored.clone(), artifact.clone());
            async move {
                let report = Report {
                    // In one round all report the same, in the next one does not.
                    digest: if place == 0 && round % 2 == 1 {
                        "other"
                    } else {
                        "same"
                    },
                    result: &result(),
                    artifacts: &[artifact],
                };
                let ended = completed(&stored.value);
                records.finish(&stored, &ended, &report).await.unwrap()
            }
        })
        .await;
        let first = |outcome: &Reported| matches!(outcome, Reported::First(_));
        assert_eq!(number_of(&outcomes, first), 1, "{outcomes:?}");
        let different = number_of(&outcomes, |outcome| *outcome == Reported::Different);
        match round % 2 {
            0 => assert_eq!(different, 0, "{outcomes:?}"),
            // Either the odd one came late, or everybody else did.
            _ => assert!([1, SERVERS - 1].contains(&different), "{outcomes:?}"),
        }
        assert_eq!(servers[1].artifacts(&id).await.unwrap().len(), 1);
    }
}

async fn of_many_claimants_one_gets_the_entry(database: Database) {
    let servers = servers(&database).await;
    let template = template();
    for _ in 0..20 {
        servers[0]
            .add_to_pool(&entry(&template, "a"))
            .await
            .unwrap();
    }
    let claimed = at_once(&servers, move |records, _| {
        let template = template.id.clone();
        async move {
            let mut claimed = Vec::new();
            while let Some(entry) = records.claim_from_pool(&template, None).await.unwrap() {
                claimed.push(entry.id);
            }
            claimed
        }
    })
    .await
    .concat();
    assert_eq!(claimed.len(), 20);
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>().len(), 20);
}

async fn of_many_candidates_one_gets_the_lease(database: Database) {
    let servers = servers(&database).await;
    for epoch in 1..=10 {
        let outcomes = at_once(&servers, |records, place| async move {
            let holder = format!("server-{place}");
            let term = Duration::from_secs(600);
            records
                .acquire_lease("scheduler", &holder, term)
                .await
                .unwrap()
        })
        .await;
        let held: Vec<_> = outcomes.into_iter().flatten().collect();
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(held[0].epoch, epoch);
        let holder = servers[1].lease_holder("scheduler").await.unwrap();
        assert_eq!(holder.as_ref(), Some(&held[0]));
        servers[0].release_lease(&held[0]).await.unwrap();
    }
}

async fn of_many_requests_one_is_fresh(database: Database) {
    let servers = servers(&database).await;
    for round in 0..10 {
        let outcomes = at_once(&servers, move |records, _| async move {
            let key = format!("key-{round}");
            let known = records.remember("ada", &key, "digest", "me").await.unwrap();
            if matches!(known, Remembered::Fresh(_)) {
                records.complete("ada", &key, 201, b"made").await.unwrap();
            }
            known
        })
        .await;
        let fresh = number_of(&outcomes, |known| matches!(known, Remembered::Fresh(_)));
        assert_eq!(fresh, 1, "{outcomes:?}");
        let wrong = number_of(&outcomes, |known| *known == Remembered::Mismatch);
        assert_eq!(wrong, 0, "{outcomes:?}");
    }
}

async fn no_session_lives_without_its_template(database: Database) {
    let servers = servers(&database).await;
    for _ in 0..5 {
        let template = template();
        let id = template.id.clone();
        servers[0].insert_template(&template).await.unwrap();
        let made = at_once(&servers, move |records, place| {
            let template = template.clone();
            async move {
                if place == 0 {
                    return match records.delete_template(&template.id).await {
                        Ok(()) | Err(StoreError::InUse { .. }) => false,
                        Err(error) => panic!("{error:?}"),
                    };
                }
                match records.insert_session(&session(&template)).await {
                    Ok(_) => true,
                    Err(StoreError::Missing {
                        kind: "template", ..
                    }) => false,
                    Err(error) => panic!("{error:?}"),
                }
            }
        })
        .await;
        let some_live = made.contains(&true);
        let kept = servers[0].template(&id).await.unwrap().is_some();
        assert_eq!(kept, some_live);
    }
}

async fn a_watcher_misses_no_notice(database: Database) {
    const EACH: usize = 15;
    let servers = servers(&database).await;
    let id = with_session(&servers[0]).await.value.id;
    let (watcher, watched) = (servers[0].clone(), id.clone());
    let watching = tokio::spawn(async move {
        let mut seen: Vec<i64> = Vec::new();
        while seen.len() < EACH * SERVERS {
            let last = seen.last().copied().unwrap_or(0);
            let notices = watcher.notices(&watched, last, 7).await.unwrap();
            seen.extend(notices.iter().map(|notice| notice.id));
            tokio::task::yield_now().await;
        }
        seen
    });
    let written = at_once(&servers, move |records, _| {
        let id = id.clone();
        async move {
            let mut written = Vec::new();
            for _ in 0..EACH {
                let notice = records.append_notice(&id, "status", "{}").await.unwrap();
                written.push(notice.id);
            }
            written
        }
    })
    .await
    .concat();
    let seen = tokio::time::timeout(Duration::from_secs(30), watching).await;
    let seen = seen.expect("a notice was missed").unwrap();
    assert!(seen.is_sorted());
    let written: BTreeSet<i64> = written.into_iter().collect();
    assert_eq!(seen.into_iter().collect::<BTreeSet<i64>>(), written);
}

async fn a_follower_misses_no_notice_of_any_session(database: Database) {
    const EACH: usize = 25;
    let servers = servers(&database).await;
    let session_of_all = with_session(&servers[0]).await.value.id;
    let before = servers[0]
        .append_notice(&session_of_all, "status", "{}")
        .await
        .unwrap();
    let start = servers[1].last_notice().await.unwrap();
    assert_eq!(start, before.id);
    let follower = servers[0].clone();
    let following = tokio::spawn(async move {
        let mut seen: Vec<i64> = Vec::new();
        while seen.len() < EACH * SERVERS {
            let last = seen.last().copied().unwrap_or(start);
            let notices = follower.notices_since(last, 7).await.unwrap();
            seen.extend(notices.iter().map(|notice| notice.id));
            tokio::task::yield_now().await;
        }
        seen
    });
    let written = at_once(&servers, move |records, _| async move {
        let id = with_session(&records).await.value.id;
        let mut written = Vec::new();
        for _ in 0..EACH {
            let notice = records.append_notice(&id, "status", "{}").await.unwrap();
            written.push(notice.id);
        }
        written
    })
    .await
    .concat();
    let seen = tokio::time::timeout(Duration::from_secs(30), following).await;
    let seen = seen.expect("a notice was missed").unwrap();
    assert!(seen.is_sorted());
    let written: BTreeSet<i64> = written.into_iter().collect();
    assert_eq!(seen.into_iter().collect::<BTreeSet<i64>>(), written);
}
