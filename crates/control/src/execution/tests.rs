//! Executions whose session, server or database goes away at the wrong moment.

use std::time::Duration;

use jiff::Timestamp;
use sandbox_executor::protocol::Ask;
use sandbox_model::{Execution, ExecutionId, ExecutionStatus, Session, SessionStatus};
use sandbox_store::records::{ExecutionFilter, PageRequest};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Output, new_id};
use crate::caller::Caller;
use crate::error::ControlError;
use crate::stage::{Deed, ENDLESS, Stage, UNHEARD, soon};

/// The executions of a session, the newest first.
async fn executions(stage: &Stage, session: &Session) -> Vec<Execution> {
    let filter = ExecutionFilter {
        session_id: session.id.clone(),
        status: None,
    };
    let page = PageRequest::first(10).unwrap();
    let page = stage.control.executions(&filter, &page).await.unwrap();
    let mut all = Vec::new();
    for summary in page.items {
        all.push(stage.control.execution(&summary.id).await.unwrap());
    }
    all
}

/// An execution to be, like one that was.
async fn pending(stage: &Stage, session: &Session) -> Execution {
    let submitted = stage.submit(session, "over at once", false).await;
    let over = soon(submitted.finished()).await.unwrap();
    Execution {
        id: new_id(),
        status: ExecutionStatus::Pending,
        started_at: None,
        completed_at: None,
        ..over.execution.clone()
    }
}

/// Waits until one is run again: the next attempt.
async fn next(stage: &Stage, session: &Session) -> Execution {
    soon(async {
        loop {
            match &executions(stage, session).await[..] {
                [next, _] => return next.clone(),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
    .await
}

/// Cancels it beside the test.
fn cancel(stage: &Stage, id: &ExecutionId) -> JoinHandle<Result<Execution, ControlError>> {
    let (control, id) = (stage.control.clone(), id.clone());
    tokio::spawn(async move { control.cancel(&Caller::nobody(), &id).await })
}

/// Waits until an executor runs it.
async fn until_run(stage: &Stage, code: &str) {
    let is_it = |ask: &Ask| matches!(ask, Ask::Execute(request) if request.code == code);
    stage.host.until_asked(is_it).await;
}

#[tokio::test]
async fn nothing_is_run_in_a_session_that_ended_while_it_was_raised() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    stage.host.kill(&session.id).await;
    stage.host.hold(Deed::Raise);
    let submitted = stage.submit(&session, UNHEARD, false).await;
    stage.host.until(Deed::Raise, 2).await;
    let (control, id) = (stage.control.clone(), session.id.clone());
    let ending =
        tokio::spawn(async move { control.terminate_session(&Caller::nobody(), &id).await });
    stage.until(&session.id, SessionStatus::Terminated).await;
    stage.host.release(Deed::Raise);
    assert!(soon(ending).await.unwrap().unwrap());
    let finished = soon(submitted.finished()).await.unwrap();
    assert_eq!(finished.execution.status, ExecutionStatus::Crashed);
    let error = finished.execution.error.clone().unwrap();
    assert!(error.contains("is terminated, not running"), "{error}");
    assert_eq!(stage.host.count(Deed::Raise), 2);
}

#[tokio::test]
async fn nothing_is_raised_for_code_of_a_session_that_ended_before_it_was_handed_over() {
    let stage = Stage::new().await;
    let control = &stage.control;
    let session = stage.session_of("ada").await;
    let code = pending(&stage, &session).await;
    control
        .terminate_session(&Caller::nobody(), &session.id)
        .await
        .unwrap();
    let raised = stage.host.count(Deed::Raise);
    let submitted = control.begin(session, code, None, Output::Kept).await;
    let finished = soon(submitted.unwrap().finished()).await.unwrap();
    assert_eq!(finished.execution.status, ExecutionStatus::Crashed);
    let error = finished.execution.error.clone().unwrap();
    assert!(error.contains("is terminated, not running"), "{error}");
    assert_eq!(stage.host.count(Deed::Raise), raised);
}

#[tokio::test]
async fn what_ends_with_its_session_is_not_run_again() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let submitted = stage.submit(&session, ENDLESS, true).await;
    until_run(&stage, ENDLESS).await;
    let (control, caller) = (&stage.control, Caller::nobody());
    control
        .terminate_session(&caller, &session.id)
        .await
        .unwrap();
    let finished = soon(submitted.finished()).await.unwrap();
    assert_eq!(finished.execution.status, ExecutionStatus::Crashed);
    soon(control.shared.underway.drained()).await;
    assert_eq!(executions(&stage, &session).await.len(), 1);
}

#[tokio::test]
async fn what_a_server_that_ends_leaves_to_the_next_is_no_attempt() {
    let stage = Stage::with(|settings| settings.drain_timeout = Duration::ZERO).await;
    let session = stage.session().await;
    stage.submit(&session, ENDLESS, true).await;
    until_run(&stage, ENDLESS).await;
    stage.control.drain().await;
    let next = next(&stage, &session).await;
    assert_eq!(next.status, ExecutionStatus::Pending);
    assert_eq!(next.retry_count, 0);
}

#[tokio::test]
async fn what_nobody_sees_through_is_not_given_up_by_a_server_that_ends() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let old = Execution {
        created_at: Timestamp::now() - Duration::from_secs(3600),
        ..pending(&stage, &session).await
    };
    let control = &stage.control;
    control.shared.records.insert_execution(&old).await.unwrap();
    control.shared.underway.close();
    control.reap_once().await.unwrap();
    let shown = control.execution(&old.id).await.unwrap();
    assert_eq!(shown.status, ExecutionStatus::Pending);
}

#[tokio::test]
async fn what_waits_to_be_run_again_is_not_begun_by_a_server_that_interrupts() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let waiting = Execution {
        retry_count: 1,
        ..pending(&stage, &session).await
    };
    let shared = &stage.control.shared;
    let stored = shared.records.insert_execution(&waiting).await.unwrap();
    let (done, over) = watch::channel(None);
    shared.underway.enter(&waiting.id, over).unwrap();
    shared.underway.interrupt();
    stage.control.go_on(&session.id, stored, done).await;
    soon(shared.underway.drained()).await;
    let shown = stage.control.execution(&waiting.id).await.unwrap();
    assert_eq!(shown.status, ExecutionStatus::Pending);
    assert_eq!(shown.retry_count, 0);
    assert_eq!(stage.host.runs(&waiting.code), 1);
}

#[tokio::test]
async fn who_cancels_what_ends_with_its_session_waits_for_its_end() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let submitted = stage.submit(&session, ENDLESS, false).await;
    until_run(&stage, ENDLESS).await;
    stage.host.hold(Deed::End);
    let (control, id) = (stage.control.clone(), session.id.clone());
    let ending =
        tokio::spawn(async move { control.terminate_session(&Caller::nobody(), &id).await });
    stage.host.until(Deed::End, 1).await;
    let mut cancelling = cancel(&stage, &submitted.execution.id);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut cancelling).await;
    assert!(early.is_err(), "{early:?}");
    stage.host.release(Deed::End);
    let cancelled = soon(cancelling).await.unwrap().unwrap();
    assert!(cancelled.status.is_over(), "{}", cancelled.status);
    soon(ending).await.unwrap().unwrap();
}

#[tokio::test]
async fn who_cancels_something_while_its_session_is_paused_is_told_so() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let submitted = stage.submit(&session, ENDLESS, false).await;
    until_run(&stage, ENDLESS).await;
    stage.host.fall_silent();
    let cancelling = cancel(&stage, &submitted.execution.id);
    let is_cancel = |ask: &Ask| matches!(ask, Ask::Cancel(_));
    stage.host.until_asked(is_cancel).await;
    let (control, caller) = (&stage.control, Caller::nobody());
    control.pause_session(&caller, &session.id).await.unwrap();
    let refused = soon(cancelling).await.unwrap().unwrap_err();
    assert!(refused.to_string().contains("is paused"), "{refused}");
}

#[tokio::test]
async fn what_waits_to_be_run_again_is_cancelled_and_never_begun() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let waiting = pending(&stage, &session).await;
    let (control, id) = (&stage.control, &waiting.id);
    let long = Duration::from_secs(3600);
    control
        .retry(session.id.clone(), long, waiting.clone())
        .await;
    let cancelled = soon(cancel(&stage, id)).await.unwrap().unwrap();
    assert_eq!(cancelled.status, ExecutionStatus::Cancelled);
    soon(control.shared.underway.drained()).await;
    assert_eq!(stage.host.runs(&waiting.code), 1);
}

#[tokio::test]
async fn a_server_that_interrupts_does_not_wait_for_what_is_to_be_run_again() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let waiting = pending(&stage, &session).await;
    let (control, long) = (&stage.control, Duration::from_secs(3600));
    control
        .retry(session.id.clone(), long, waiting.clone())
        .await;
    control.shared.underway.interrupt();
    soon(control.shared.underway.drained()).await;
    let shown = control.execution(&waiting.id).await.unwrap();
    assert_eq!(shown.status, ExecutionStatus::Pending);
}
