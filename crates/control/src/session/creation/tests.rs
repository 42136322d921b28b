//! What is left of sessions that were refused, or that nobody could write down.

use sandbox_model::{Session, SessionId, SessionStatus};
use sandbox_store::records::Along;

use crate::caller::Caller;
use crate::error::ControlError;
use crate::random;
use crate::stage::{Deed, Stage, new, soon};

/// One like this that is being made.
fn next(session: &Session) -> Session {
    Session {
        id: SessionId::random(random::numbers()),
        status: SessionStatus::Creating,
        ..session.clone()
    }
}

#[tokio::test]
async fn a_session_that_is_refused_costs_nothing() {
    let stage = Stage::new().await;
    stage.session_of("ada").await;
    let (control, caller) = (&stage.control, Caller::nobody());
    let refused = control.create_session(&caller, new(Some("ada"))).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, ControlError::Conflict { .. }));
    // Whatever was begun beside is done by then.
    stage.session().await;
    stage.session().await;
    assert_eq!(stage.host.count(Deed::Discard), 0);
    assert_eq!(stage.host.count(Deed::End), 0);
}

#[tokio::test]
async fn a_strict_server_makes_no_copy_whose_limits_do_not_hold() {
    let stage = Stage::with(|settings| settings.strict_limits = true).await;
    let session = stage.written(|_| {}).await;
    let caller = Caller::nobody();
    let refused = stage.control.fork_session(&caller, &session.id).await;
    assert!(
        matches!(refused, Err(ControlError::Invalid { .. })),
        "{refused:?}"
    );
    assert_eq!(stage.host.count(Deed::Raise), 0);
}

#[tokio::test]
async fn no_more_sessions_are_made_than_there_may_be_however_many_ask_at_once() {
    let stage = Stage::with(|settings| settings.max_sessions = 3).await;
    let asked = (0..12).map(|_| {
        let control = stage.control.clone();
        tokio::spawn(async move { control.create_session(&Caller::nobody(), new(None)).await })
    });
    let mut made = 0;
    for asked in asked.collect::<Vec<_>>() {
        match soon(asked).await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert!(matches!(error, ControlError::Exhausted { .. }), "{error:?}"),
        }
    }
    assert_eq!(made, 3);
}

#[tokio::test]
async fn one_that_was_not_written_down_leaves_its_agents_workspace_alone() {
    let stage = Stage::new().await;
    let session = stage.session_of("ada").await;
    stage.control.clone().give_up(next(&session)).await;
    assert_eq!(stage.host.count(Deed::End), 0);
    let live = &stage.control.shared.live;
    live.end(&session.id).await.unwrap();
    stage.control.clone().give_up(next(&session)).await;
    assert_eq!(stage.host.count(Deed::End), 1);
    assert_eq!(stage.host.count(Deed::Discard), 0);
}

#[tokio::test]
async fn a_session_is_failed_when_nothing_of_it_runs_any_more() {
    let stage = Stage::new().await;
    let control = &stage.control;
    let mut session = next(&stage.session().await);
    session.workspace_path = format!("workspace/{}", session.id);
    let along = Along {
        notice: None,
        audit: None,
    };
    let records = &control.shared.records;
    records
        .insert_session_along(&session, &along)
        .await
        .unwrap();
    stage.host.hold(Deed::End);
    let giving_up = tokio::spawn(control.clone().give_up(session.clone()));
    stage.host.until(Deed::End, 1).await;
    let shown = control.session(&session.id).await.unwrap();
    assert_eq!(shown.status, SessionStatus::Creating);
    stage.host.release(Deed::End);
    soon(giving_up).await.unwrap();
    let shown = control.session(&session.id).await.unwrap();
    assert_eq!(shown.status, SessionStatus::Failed);
}
