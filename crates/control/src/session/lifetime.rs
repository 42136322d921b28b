//! How long a session lives, and standing still meanwhile.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::{Session, SessionEvent, SessionId, SessionStatus};
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
            new.expires_at = self.expiry(new.created_at, now, new.timeout_seconds);
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

    /// When a session expires that was made then, and lives for so many seconds from `now` on: not later than it may
    /// live at all.
    pub(super) fn expiry(&self, made: Timestamp, now: Timestamp, seconds: u32) -> Timestamp {
        let expiry = after(now, Duration::from_secs(seconds.into()));
        match self.shared.settings.max_lifetime {
            Some(age) => expiry.min(after(made, age)),
            None => expiry,
        }
    }

    /// Stops everything in a session where it is. It still expires.
    pub async fn pause_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Session, ControlError> {
        self.is_here(&self.session(id).await?)?;
        // Written down first: what is asked of it from now on is refused and does not hang.
        let paused = self.change(id, SessionEvent::Pause, |_| {}).await?;
        if let Err(error) = self.follow_status(id).await {
            self.change(id, SessionEvent::Resume, |_| {}).await?;
            return Err(error);
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
        self.is_here(&self.session(id).await?)?;
        let resumed = self.change(id, SessionEvent::Resume, |_| {}).await?;
        if let Err(error) = self.follow_status(id).await {
            self.change(id, SessionEvent::Pause, |_| {}).await?;
            return Err(error);
        }
        self.shared.activity.note(id);
        self.audit(caller, "session.resume", id.as_str(), json!({}))
            .await;
        Ok(resumed)
    }

    /// Stops what is in a session, or lets it go on, as is written down of it. Others may write something else
    /// meanwhile, and do the same: whoever is last to look finds that it is as it should be.
    async fn follow_status(&self, id: &SessionId) -> Result<(), ControlError> {
        let mut session = self.session(id).await?;
        loop {
            match session.status {
                SessionStatus::Paused => self.shared.live.freeze(&session).await?,
                SessionStatus::Running => self.shared.live.thaw(&session).await?,
                _ => return Ok(()),
            }
            let settled = session.status;
            session = self.session(id).await?;
            if session.status == settled {
                return Ok(());
            }
        }
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

/// So long after a time.
fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
