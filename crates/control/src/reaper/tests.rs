//! Everything that is due ends, also while something else takes long.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sandbox_model::{Session, SessionStatus};
use sandbox_store::records::PageRequest;

use super::{BATCH, PATIENCE, TOGETHER};
use crate::caller::Caller;
use crate::stage::{Deed, Stage, soon};

#[tokio::test]
async fn sessions_end_in_time_while_workspaces_are_removed() {
    let stage = Stage::with(|settings| {
        settings.reap_interval = Duration::from_millis(10);
        settings.retention = Duration::ZERO;
    })
    .await;
    let (control, caller) = (&stage.control, Caller::nobody());
    let (old, expired) = (stage.session().await, stage.session().await);
    stage.host.hold(Deed::Discard);
    control.terminate_session(&caller, &old.id).await.unwrap();
    stage.host.until(Deed::Discard, 1).await;
    let stored = control.stored_session(&expired.id).await.unwrap();
    let new = Session {
        expires_at: Timestamp::now(),
        ..stored.value.clone()
    };
    let records = &control.shared.records;
    records.update_session(&stored, &new).await.unwrap();
    stage.until(&expired.id, SessionStatus::Timeout).await;
    assert_eq!(stage.host.count(Deed::Discard), 1);
    stage.host.release(Deed::Discard);
}

/// One more than are looked for at a time.
const MANY: u64 = BATCH + 1;

fn hours_ago(hours: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(hours)
}

/// Many sessions that are `due` all end, and one that is not goes on.
async fn all_end(due: fn(&mut Session)) {
    let stage = Stage::still().await;
    for _ in 0..MANY {
        stage.written(due).await;
    }
    let spared = stage.written(|_| {}).await;
    stage.control.reap_once().await.unwrap();
    let node = &stage.control.settings().node_id;
    let left = stage.control.records().live_sessions_on(node).await;
    let left: Vec<_> = left.unwrap().into_iter().map(|it| it.value.id).collect();
    assert_eq!(left, [spared.id]);
}

#[tokio::test]
async fn all_that_expired_end_however_many_they_are() {
    all_end(|session| session.expires_at = hours_ago(1)).await;
}

#[tokio::test]
async fn all_that_nobody_uses_end_however_many_they_are() {
    all_end(|session| session.last_activity_at = hours_ago(1)).await;
}

#[tokio::test]
async fn all_that_are_too_old_end_however_many_they_are() {
    all_end(|session| session.created_at = hours_ago(7)).await;
}

#[tokio::test]
async fn one_whose_processes_do_not_end_keeps_no_other_from_ending_and_is_seen_through() {
    let stage = Stage::still().await;
    let (control, host) = (&stage.control, &stage.host);
    let all = TOGETHER + 1;
    for _ in 0..all {
        let expired = |session: &mut Session| session.expires_at = hours_ago(1);
        let session = stage.written(expired).await;
        drop(control.line(&session).await.unwrap());
    }
    host.hold(Deed::End);
    let reaper = control.clone();
    let reaping = tokio::spawn(async move { reaper.reap_once().await });
    host.until(Deed::End, TOGETHER).await;
    tokio::time::pause();
    tokio::time::advance(PATIENCE + Duration::from_secs(1)).await;
    tokio::time::resume();
    host.until(Deed::End, all).await;
    host.release(Deed::End);
    soon(reaping).await.unwrap().unwrap();
    let records = control.records();
    let ends = async || {
        let page = records
            .audit(&PageRequest::first(100).unwrap())
            .await
            .unwrap();
        let ends = page
            .items
            .into_iter()
            .filter(|it| it.action == "session.end");
        ends.count()
    };
    soon(async { while ends().await < all {} }).await;
}

#[tokio::test]
async fn what_ended_long_ago_is_forgotten_once_its_workspace_is_gone() {
    let stage = Stage::with(|settings| {
        settings.reap_interval = Duration::from_millis(10);
        settings.retention = Duration::from_secs(3600);
        settings.record_retention = Some(Duration::ZERO);
    })
    .await;
    let ended = async |hours: i64| {
        let session = stage.written(|session| {
            session.status = SessionStatus::Terminated;
            session.terminated_at = Some(hours_ago(hours));
        });
        session.await.id
    };
    let (kept, stuck) = (ended(0).await, ended(3).await);
    stage.host.stick(&stuck);
    let gone = ended(2).await;
    let records = stage.control.records();
    soon(async { while records.session(&gone).await.unwrap().is_some() {} }).await;
    for id in [kept, stuck] {
        assert!(records.session(&id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn every_old_workspace_is_removed_but_those_that_cannot_be() {
    let stage = Stage::still().await;
    let ended = async |hours: i64| {
        let session = stage.written(|session| {
            session.status = SessionStatus::Terminated;
            session.terminated_at = Some(hours_ago(hours));
        });
        session.await.id
    };
    // Those that are found first, and stay.
    let mut stuck = HashSet::new();
    for _ in 0..BATCH {
        let session = ended(30).await;
        stage.host.stick(&session);
        stuck.insert(session);
    }
    for _ in 0..MANY {
        ended(25).await;
    }
    stage.control.clean().await.unwrap();
    let (records, node) = (stage.control.records(), &stage.control.settings().node_id);
    let left = records.sessions_to_clean(hours_ago(24), node, None, 2 * MANY);
    let left: HashSet<_> = left.await.unwrap().into_iter().map(|it| it.id).collect();
    assert!(left == stuck, "{} of {} stay", left.len(), stuck.len());
}
