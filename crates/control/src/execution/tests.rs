//! Executions whose session, server or database goes away at the wrong moment.

use sandbox_model::{ExecutionStatus, SessionStatus};

use crate::caller::Caller;
use crate::stage::{Deed, Stage, UNHEARD, soon};

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
