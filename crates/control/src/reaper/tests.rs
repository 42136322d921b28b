//! What is looked after while something else takes long.

use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::{Session, SessionStatus};

use crate::caller::Caller;
use crate::stage::{Deed, Stage};

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
