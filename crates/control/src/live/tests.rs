//! Whose processes are raised and ended.

use std::time::Duration;

use sandbox_executor::protocol::Ask;
use sandbox_model::SessionNotice;
use sandbox_runtime::Ended;

use crate::caller::Caller;
use crate::error::ControlError;
use crate::stage::{Deed, Stage, soon};

#[tokio::test]
async fn who_gives_an_executor_up_does_not_end_the_one_after_it() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    let (control, live) = (&stage.control, &stage.control.shared.live);
    let silent = control.line(&session).await.unwrap();
    live.end_used(&silent).await.unwrap();
    soon(silent.line.cut()).await;
    let next = control.line(&session).await.unwrap();
    live.end_used(&silent).await.unwrap();
    next.line.ask(Ask::Ping).await.unwrap();
    live.end_used(&next).await.unwrap();
    soon(next.line.cut()).await;
}

#[tokio::test]
async fn the_end_of_a_session_is_not_that_of_the_one_that_has_its_workspace_now() {
    let stage = Stage::new().await;
    let (control, live) = (&stage.control, &stage.control.shared.live);
    let first = stage.session_of("ada").await;
    control
        .terminate_session(&Caller::nobody(), &first.id)
        .await
        .unwrap();
    let second = stage.session_of("ada").await;
    assert_eq!(second.workspace_path, first.workspace_path);
    let used = control.line(&second).await.unwrap();
    let ends = stage.host.count(Deed::End);
    live.end_of(&first).await.unwrap();
    assert_eq!(stage.host.count(Deed::End), ends);
    used.line.ask(Ask::Ping).await.unwrap();
    live.end_of(&second).await.unwrap();
    soon(used.line.cut()).await;
}

#[tokio::test]
async fn processes_do_not_give_way_to_an_older_session() {
    let stage = Stage::new().await;
    let control = &stage.control;
    let first = stage.session_of("ada").await;
    control
        .terminate_session(&Caller::nobody(), &first.id)
        .await
        .unwrap();
    let second = stage.session_of("ada").await;
    let used = control.line(&second).await.unwrap();
    // Read before it ended.
    let late = control.line(&first).await.unwrap_err();
    assert!(matches!(late, ControlError::Conflict { .. }), "{late:?}");
    used.line.ask(Ask::Ping).await.unwrap();
}

#[tokio::test]
async fn the_end_of_processes_is_told_while_something_is_done_to_another_workspace() {
    let stage = Stage::new().await;
    let (busy, other) = (stage.session().await, stage.session().await);
    let live = stage.control.shared.live.clone();
    stage.host.hold(Deed::Discard);
    let workspace = busy.id.clone();
    let discarding = tokio::spawn(async move { live.discard(&workspace).await });
    stage.host.until(Deed::Discard, 1).await;
    let mut watch = stage.control.watch(&other.id, 0).await.unwrap();
    for session in [busy.id.clone(), other.id.clone()] {
        stage.ended.send(Ended { session, status: 9 }).unwrap();
    }
    let is_end = |notice: &SessionNotice| notice.kind == "executor_ended";
    soon(async { while !watch.next().await.unwrap().iter().any(is_end) {} }).await;
    stage.host.release(Deed::Discard);
    soon(discarding).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_was_raised_for_somebody_who_left_is_there_for_whoever_comes_next() {
    let stage = Stage::still().await;
    let (control, host) = (&stage.control, &stage.host);
    let session = stage.written(|_| {}).await;
    host.hold(Deed::Raise);
    let (asked, asker) = (session.clone(), control.clone());
    let asker = tokio::spawn(async move { asker.line(&asked).await });
    host.until(Deed::Raise, 1).await;
    asker.abort();
    assert!(asker.await.unwrap_err().is_cancelled());
    host.release(Deed::Raise);
    let used = control.line(&session).await.unwrap();
    used.line.ask(Ask::Ping).await.unwrap();
    let once = [session.id];
    assert_eq!(host.done(Deed::Raise), once);
    // Whoever left does not count as one who uses it.
    drop(used);
    control.shared.live.hibernate(Duration::ZERO).await;
    assert_eq!(host.done(Deed::End), once);
    assert_eq!(control.shared.live.count(), 0);
}
