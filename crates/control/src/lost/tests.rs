//! Sessions go on without their node as far as they can, and with it when it is back.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sandbox_executor::protocol::Ask;
use sandbox_model::{ExecutionStatus, Session, SessionMode, SessionStatus};
use sandbox_store::records::PageRequest;

use crate::caller::Caller;
use crate::control::Control;
use crate::settings::Settings;
use crate::stage::{Deed, ENDLESS, Host, Stage, new, soon};

/// Another server on the same records, which is another node.
fn elsewhere(stage: &Stage, node: &str) -> (Control, Host) {
    stage.beside(Settings::new(node.parse().unwrap()))
}

fn hours_ago(hours: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(hours)
}

/// How often the end of a session was written down.
async fn ends(control: &Control, session: &Session) -> usize {
    let page = PageRequest::first(200).unwrap();
    let audit = control.records().audit(&page).await.unwrap().items;
    let ends = audit
        .iter()
        .filter(|record| record.action == "session.end" && record.object == session.id.as_str());
    ends.count()
}

#[tokio::test]
async fn any_server_ends_a_session_whose_node_left_and_touches_nothing_but_the_records() {
    let stage = Stage::still().await;
    let (here, caller) = (&stage.control, Caller::nobody());
    let (there, host) = elsewhere(&stage, "there");
    let session = stage.written(|_| {}).await;
    let running = stage.submit(&session, ENDLESS, true).await.execution.id;
    stage
        .host
        .until_asked(|ask| matches!(ask, Ask::Execute(_)))
        .await;
    here.leave().await;
    assert!(there.terminate_session(&caller, &session.id).await.unwrap());
    let ended = there.session(&session.id).await.unwrap();
    assert_eq!(ended.status, SessionStatus::Terminated);
    assert_eq!(host.count(Deed::End) + stage.host.count(Deed::End), 0);
    // Nobody waits for what ran there, and it does not run again.
    let crashed = there.execution(&running).await.unwrap();
    assert_eq!(crashed.status, ExecutionStatus::Crashed);
    let left = there.records().live_executions(&session.id).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    // A second time it has ended already.
    assert!(!there.terminate_session(&caller, &session.id).await.unwrap());
    assert_eq!(ends(&there, &session).await, 1);
}

#[tokio::test]
async fn a_node_that_is_back_ends_what_others_ended_and_goes_on_with_the_rest() {
    let stage = Stage::still().await;
    let (here, caller) = (&stage.control, Caller::nobody());
    let (there, _) = elsewhere(&stage, "there");
    let (ended, kept) = (stage.written(|_| {}).await, stage.written(|_| {}).await);
    let over = stage
        .written(|session| session.status = SessionStatus::Terminated)
        .await;
    let ended_line = here.line(&ended).await.unwrap();
    let kept_line = here.line(&kept).await.unwrap();
    let files = here.line(&over).await.unwrap();
    // As if it were not heard of.
    here.leave().await;
    there.terminate_session(&caller, &ended.id).await.unwrap();
    here.say_here().await.unwrap();
    here.end_what_is_over().await.unwrap();
    soon(ended_line.line.cut()).await;
    assert_eq!(stage.host.done(Deed::End), [ended.id]);
    kept_line.line.ask(Ask::Ping).await.unwrap();
    // Who reads the files of one that is over is not disturbed.
    files.line.ask(Ask::Ping).await.unwrap();
}

#[tokio::test]
async fn what_is_due_on_a_lost_node_ends_once_and_on_one_that_is_there_not_at_all() {
    let stage = Stage::still().await;
    let here = &stage.control;
    let [(there, host), (other, _)] = ["there", "other"].map(|node| elsewhere(&stage, node));
    let expired = stage
        .written(|session| session.expires_at = hours_ago(1))
        .await;
    let idle = stage
        .written(|session| session.last_activity_at = hours_ago(1))
        .await;
    let old = stage
        .written(|session| session.created_at = hours_ago(7))
        .await;
    let spared = stage.written(|_| {}).await;
    let due = [expired, idle, old];
    here.say_here().await.unwrap();
    there.reap_once().await.unwrap();
    for session in &due {
        let session = there.session(&session.id).await.unwrap();
        assert_eq!(session.status, SessionStatus::Running);
    }
    here.leave().await;
    let (one, another) = tokio::join!(there.reap_once(), other.reap_once());
    one.and(another).unwrap();
    for session in &due {
        let ended = there.session(&session.id).await.unwrap();
        assert_eq!(ended.status, SessionStatus::Timeout);
        assert_eq!(ends(&there, session).await, 1);
    }
    let session = there.session(&spared.id).await.unwrap();
    assert_eq!(session.status, SessionStatus::Running);
    assert_eq!(host.count(Deed::End), 0);
}

#[tokio::test]
async fn an_agent_whose_node_is_lost_has_a_new_workspace_when_the_old_one_is_kept_no_longer() {
    let stage = Stage::still().await;
    let (here, caller) = (&stage.control, Caller::nobody());
    let (there, _) = elsewhere(&stage, "there");
    let before = stage.written(|session| {
        session.mode = SessionMode::Persistent;
        session.agent_id = Some("ada".to_owned());
        session.status = SessionStatus::Terminated;
        session.terminated_at = Some(hours_ago(2));
    });
    let before = before.await;
    here.say_here().await.unwrap();
    assert!(there.is_workspace_kept(&before).await.unwrap());
    here.leave().await;
    assert!(there.is_workspace_kept(&before).await.unwrap());
    let refused = there.create_session(&caller, new(Some("ada"))).await;
    refused.unwrap_err();
    // It is kept for an hour only.
    let mut settings = Settings::new("there".parse().unwrap());
    settings.retention = Duration::from_secs(3600);
    let (later, _) = stage.beside(settings);
    assert!(!later.is_workspace_kept(&before).await.unwrap());
    let after = later.create_session(&caller, new(Some("ada"))).await;
    let after = after.unwrap();
    assert_ne!(after.workspace_path, before.workspace_path);
    // Its own node can say what it still has.
    assert!(here.is_workspace_kept(&before).await.unwrap());
}
