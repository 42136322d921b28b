//! How long a session lives, and standing still meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::{Session, SessionEvent, SessionId};
use sandbox_store::StoreError;
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;

/// How long a session may live, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u32> = 60..=3600;

impl Control {
    /// Lets a session live for its time from now on.
    pub async fn renew_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        timeout_seconds: Option<u32>,
    ) -> Result<Session, ControlError> {
        if let Some(seconds) = timeout_seconds {
            check_timeout(seconds)?;
        }
        loop {
            let stored = self.stored_session(id).await?;
            if stored.value.status.is_over() {
                return Err(ControlError::conflict(
                    format!(
                        "session {id} is {}: it cannot be renewed",
                        stored.value.status
                    ),
                    "make a new session",
                ));
            }
            let mut new = stored.value.clone();
            let now = Timestamp::now();
            new.timeout_seconds = timeout_seconds.unwrap_or(new.timeout_seconds);
            new.expires_at = after(now, new.timeout_seconds);
            new.last_activity_at = now;
            new.updated_at = now;
            match self.shared.records.update_session(&stored, &new).await {
                Ok(renewed) => {
                    let expires_at = renewed.value.expires_at;
                    self.notice(id, "renewed", json!({ "expires_at": expires_at }))
                        .await;
                    let detail = json!({ "expires_at": expires_at });
                    self.audit(caller, "session.renew", id.as_str(), detail)
                        .await;
                    return Ok(renewed.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Stops everything in a session where it is. It still expires.
    pub async fn pause_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Session, ControlError> {
        // Written down first: what is asked of it from now on is refused and does not hang.
        let paused = self.change(id, SessionEvent::Pause, |_| {}).await?;
        if let Err(error) = self.shared.live.freeze(&paused).await {
            self.change(id, SessionEvent::Resume, |_| {}).await?;
            return Err(error.into());
        }
        self.audit(caller, "session.pause", id.as_str(), json!({}))
            .await;
        Ok(paused)
    }

    /// Lets it go on.
    pub async fn resume_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Session, ControlError> {
        let session = self.session(id).await?;
        let resumable = session.status.after(SessionEvent::Resume);
        resumable.map_err(|refusal| {
            ControlError::conflict(format!("session {id}: {refusal}"), "look at its status")
        })?;
        self.shared.live.thaw(&session).await?;
        let resumed = self.change(id, SessionEvent::Resume, |_| {}).await?;
        self.shared.activity.note(id);
        self.audit(caller, "session.resume", id.as_str(), json!({}))
            .await;
        Ok(resumed)
    }
}

pub(super) fn check_timeout(seconds: u32) -> Result<(), ControlError> {
    if TIMEOUTS.contains(&seconds) {
        return Ok(());
    }
    let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
    let problem = format!("{seconds} is not between {least} and {most} seconds");
    Err(ControlError::invalid(
        "timeout",
        problem,
        "choose one in between",
    ))
}

/// That many seconds after a time.
pub(super) fn after(time: Timestamp, seconds: u32) -> Timestamp {
    let later = time.checked_add(Duration::from_secs(seconds.into()));
    later.unwrap_or(Timestamp::MAX)
}
