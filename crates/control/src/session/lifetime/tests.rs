//! Standing still and going on, whoever asks for both at once; and how long it lasts.

use std::time::Duration;

use sandbox_model::SessionStatus;

use crate::caller::Caller;
use crate::error::ControlError;
use crate::stage::{Stage, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_stands_still_when_it_says_so_and_only_then() {
    let stage = Stage::new().await;
    let session = stage.session().await;
    for _ in 0..50 {
        let asked = (0..8).map(|number| {
            let (control, id) = (stage.control.clone(), session.id.clone());
            tokio::spawn(async move {
                let caller = Caller::nobody();
                match number % 2 {
                    0 => control.pause_session(&caller, &id).await,
                    _ => control.resume_session(&caller, &id).await,
                }
            })
        });
        for asked in asked.collect::<Vec<_>>() {
            let answer = soon(asked).await.unwrap();
            let is_late = |error: &ControlError| matches!(error, ControlError::Conflict { .. });
            assert!(answer.as_ref().err().is_none_or(is_late), "{answer:?}");
        }
        let status = stage.control.session(&session.id).await.unwrap().status;
        let is_paused = status == SessionStatus::Paused;
        assert_eq!(stage.host.is_frozen(&session.id), is_paused, "{status}");
    }
}

#[tokio::test]
async fn a_session_of_another_node_is_not_said_to_stand_still() {
    let stage = Stage::still().await;
    let session = stage
        .written(|session| session.node_id = "elsewhere".parse().unwrap())
        .await;
    let caller = Caller::nobody();
    let refused = stage.control.pause_session(&caller, &session.id).await;
    assert!(matches!(refused, Err(ControlError::Unavailable { .. })));
    let shown = stage.control.session(&session.id).await.unwrap();
    assert_eq!(shown.status, SessionStatus::Running);
}

#[tokio::test]
async fn no_session_expires_later_than_it_may_live() {
    let most = Duration::from_secs(100);
    let stage = Stage::with(|settings| settings.max_lifetime = Some(most)).await;
    let session = stage.session().await;
    let latest = session.created_at + most;
    assert_eq!(session.expires_at, latest);
    let caller = Caller::nobody();
    let renewed = stage
        .control
        .renew_session(&caller, &session.id, Some(3600));
    assert_eq!(renewed.await.unwrap().expires_at, latest);
}
