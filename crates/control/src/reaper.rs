//! Ending what nobody uses.
//!
//! Every server looks after the sessions of its own node, and of nodes that are lost: those that were idle for too
//! long, that expired, that are too old; and workspaces of its own whose session ended long ago. Each end is an event
//! and an audit record.

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use sandbox_model::{NodeId, Session, SessionEvent, SessionId, SessionMode, SessionStatus};
use sandbox_store::records::Ended;
use sandbox_store::{StoreError, Stored};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;
use crate::live::workspace_of;
use crate::silence::SILENCE;

/// How many sessions to end are looked for at a time, and how many are ended at a time.
const BATCH: u64 = 200;
const TOGETHER: usize = 8;

/// How long the others wait for the end of one.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a request may be sent again without being done again.
const REPEATABLE: Duration = Duration::from_secs(24 * 3600);

/// How often uses are written down.
const FLUSH: Duration = Duration::from_secs(2);

impl Control {
    /// Looks now and then, for as long as the server runs.
    pub(crate) async fn reap(self) {
        let mut reap = tokio::time::interval(self.shared.settings.reap_interval);
        let mut flush = tokio::time::interval(FLUSH);
        reap.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = reap.tick() => {
                    if let Err(error) = self.reap_once().await {
                        tracing::warn!(%error, "cannot look for sessions to end");
                    }
                }
                _ = flush.tick() => {
                    self.flush_activity().await;
                    let idle = self.shared.settings.hibernate_after;
                    self.shared.live.hibernate(idle).await;
                }
            }
        }
    }

    /// Removes now and then what is kept no longer, for as long as the server runs. Beside the rest, because there
    /// may be much of it, and what is to end does not wait for that.
    pub(crate) async fn tidy(self) {
        let mut tidy = tokio::time::interval(self.shared.settings.reap_interval);
        tidy.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tidy.tick().await;
            if let Err(error) = self.clean().await {
                tracing::warn!(%error, "cannot look for workspaces to remove");
            }
            if let Err(error) = self.forget().await {
                tracing::warn!(%error, "cannot look for sessions to forget");
            }
        }
    }

    /// Ends every session that is to end now, of this node and of those that are lost, and what is left of those that
    /// others ended.
    pub(crate) async fn reap_once(&self) -> Result<(), ControlError> {
        self.flush_activity().await;
        self.reap_on(&self.shared.settings.node_id).await?;
        for node in self.lost_nodes().await? {
            self.reap_on(&node).await?;
        }
        // Where nobody shares the database nobody else ends anything.
        if self.shared.records.is_shared() {
            self.end_what_is_over().await?;
        }
        self.crash_silent().await
    }

    /// Ends every session of a node that is to end now.
    async fn reap_on(&self, node: &NodeId) -> Result<(), ControlError> {
        let (records, settings) = (&self.shared.records, &self.shared.settings);
        if settings.expire {
            let now = Timestamp::now();
            loop {
                let expired = records.sessions_expired_before(now, node, BATCH).await?;
                let found = expired.len();
                let ended = self.end_all(expired, SessionEvent::Expired, "it expired");
                if is_last(found, ended.await) {
                    break;
                }
            }
        }
        if let Some(idle) = settings.idle_timeout {
            let since = before_now(idle);
            loop {
                let mut idle = records.sessions_idle_since(since, node, BATCH).await?;
                let found = idle.len();
                for used in self.used_all_the_same(&idle).await? {
                    idle.retain(|stored| stored.value.id != used);
                }
                // What is used all the same is written down as that, and not found again.
                self.flush_activity().await;
                let reason = "it was idle for too long";
                let ended = self.end_all(idle, SessionEvent::Idle, reason);
                if is_last(found, ended.await) {
                    break;
                }
            }
        }
        if let Some(age) = settings.max_lifetime {
            let born = before_now(age);
            loop {
                let old = records.sessions_older_than(born, node, BATCH).await?;
                let found = old.len();
                let reason = "it reached the age that no session may pass";
                let ended = self.end_all(old, SessionEvent::Outlived, reason);
                if is_last(found, ended.await) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Those that code runs in: that is use for as long as it runs, unless it is frozen. Where nobody is, none does.
    async fn used_all_the_same(
        &self,
        idle: &[Stored<Session>],
    ) -> Result<Vec<SessionId>, ControlError> {
        let running = |Stored { value, .. }: &&Stored<Session>| {
            value.status == SessionStatus::Running && self.is_here(value).is_ok()
        };
        let mut used = Vec::new();
        for Stored { value: session, .. } in idle.iter().filter(running) {
            let live = self.shared.records.live_executions(&session.id).await?;
            if !live.is_empty() {
                self.shared.activity.note(&session.id);
                used.push(session.id.clone());
            }
        }
        Ok(used)
    }

    /// Executions of this node of which nothing was heard for too long are lost, unless they are known to be
    /// under way. A server that is ending leaves them to the next, which can have them run again.
    async fn crash_silent(&self) -> Result<(), ControlError> {
        if self.shared.underway.is_closed() {
            return Ok(());
        }
        let (records, node) = (&self.shared.records, &self.shared.settings.node_id);
        for silent in records
            .executions_silent_since(before_now(SILENCE), BATCH)
            .await?
        {
            let id = &silent.value.id;
            if self.shared.underway.contains(id) {
                continue;
            }
            let session = self.session(&silent.value.session_id).await?;
            if session.node_id == *node
                && let Some(execution) = records.execution(id).await?
            {
                self.crash(execution, "nothing was heard of it for 15 seconds")
                    .await;
            }
        }
        Ok(())
    }

    /// Removes the workspaces of sessions that ended long ago, and forgets requests that nobody sends again.
    async fn clean(&self) -> Result<(), ControlError> {
        let (records, settings) = (&self.shared.records, &self.shared.settings);
        let forgotten = before_now(REPEATABLE);
        records.forget_requests_before(forgotten).await?;
        let long_ago = before_now(settings.retention);
        let mut after = None;
        loop {
            let ended = records
                .sessions_to_clean(long_ago, &settings.node_id, after.as_ref(), BATCH)
                .await?;
            for ended in &ended {
                self.clean_one(&ended.id).await;
            }
            // From there on: what could not be removed stays in nobody's way.
            after = match u64::try_from(ended.len()) {
                Ok(BATCH..) => ended.into_iter().next_back(),
                _ => return Ok(()),
            };
        }
    }

    /// Forgets sessions that ended long ago and have no workspace any more, whosever they were.
    async fn forget(&self) -> Result<(), ControlError> {
        let (records, settings) = (&self.shared.records, &self.shared.settings);
        let Some(retention) = settings.record_retention else {
            return Ok(());
        };
        let long_ago = before_now(retention);
        let mut after = None;
        loop {
            let ended = records
                .sessions_ended_before(long_ago, after.as_ref(), BATCH)
                .await?;
            for Ended { id, .. } in &ended {
                let session = records.session(id).await?;
                if session.is_none_or(|stored| stored.value.workspace_removed_at.is_none()) {
                    continue;
                }
                match records.delete_session(id).await {
                    Ok(()) => tracing::info!(session = %id, "session {id} is forgotten"),
                    // Another server was there before.
                    Err(StoreError::Missing { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            after = match u64::try_from(ended.len()) {
                Ok(BATCH..) => ended.into_iter().next_back(),
                _ => return Ok(()),
            };
        }
    }

    async fn clean_one(&self, id: &SessionId) {
        self.cleaning().insert(id.clone());
        let removed = async {
            let session = self.session(id).await?;
            // Another session of the same agent may have it now, but must not get it meanwhile.
            let turn = self.take_turn(&session).await?;
            let removing = self.remove_workspace(&session);
            let removed = self.within(turn.as_ref(), removing).await;
            self.end_turn(turn).await;
            removed
        };
        let removed = removed.await;
        self.cleaning().remove(id);
        match removed {
            Ok(()) => {
                let caller = Caller::nobody();
                self.notice(id, "workspace_removed", json!({})).await;
                self.audit(&caller, "session.clean", id.as_str(), json!({}))
                    .await;
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "cannot remove the workspace of session {id}");
            }
        }
    }

    /// Does a later session use the workspace of this one?
    async fn remove_workspace(&self, session: &Session) -> Result<(), ControlError> {
        if !self.is_reattached(session).await? {
            self.shared.live.discard(&workspace_of(session)).await?;
            self.forget_files(session).await?;
        }
        let records = &self.shared.records;
        records
            .mark_workspace_removed(&session.id, Timestamp::now())
            .await?;
        Ok(())
    }

    async fn is_reattached(&self, session: &Session) -> Result<bool, ControlError> {
        let agent = match (&session.agent_id, session.mode) {
            (Some(agent), SessionMode::Persistent) => agent,
            _ => return Ok(false),
        };
        let latest = self.shared.records.latest_persistent_session(agent).await?;
        Ok(latest.is_some_and(|latest| {
            let latest = latest.value;
            latest.id != session.id && latest.workspace_path == session.workspace_path
        }))
    }

    /// Ends these, some at a time. Says how many it ended.
    async fn end_all(
        &self,
        sessions: Vec<Stored<Session>>,
        event: SessionEvent,
        reason: &'static str,
    ) -> usize {
        let due = sessions.into_iter().map(|stored| stored.value);
        let due = due.filter(|session| {
            let is_used_again =
                event == SessionEvent::Idle && self.shared.activity.latest(&session.id).is_some();
            session.status.after(event).is_ok() && !is_used_again
        });
        let ends = due.map(|session| self.end_in_time(session.id, event, reason));
        let ends = futures_util::stream::iter(ends.collect::<Vec<_>>());
        ends.buffer_unordered(TOGETHER)
            .fold(0, async |ended, one| ended + usize::from(one))
            .await
    }

    /// Ends one. Says whether that is done: what takes too long goes on, and the others do not wait for it.
    async fn end_in_time(&self, id: SessionId, event: SessionEvent, reason: &'static str) -> bool {
        // In a task of its own: what is written down as ended, nobody ends a second time.
        let ending = tokio::spawn(self.clone().end_one(id.clone(), event, reason));
        match tokio::time::timeout(PATIENCE, ending).await {
            Ok(ended) => ended.unwrap_or(false),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                tracing::warn!(session = %id, seconds, "session {id} has not ended for {seconds} seconds: going on with others");
                false
            }
        }
    }

    async fn end_one(self, id: SessionId, event: SessionEvent, reason: &'static str) -> bool {
        match self
            .end_session(&Caller::nobody(), &id, event, reason)
            .await
        {
            Ok(_) => {
                tracing::info!(session = %id, reason, "session {id} ended: {reason}");
                true
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "cannot end session {id}, of which {reason}");
                false
            }
        }
    }
}

/// Is there nothing more to find, or nothing to be gained by it now?
fn is_last(found: usize, ended: usize) -> bool {
    found < BATCH as usize || ended == 0
}

/// So long ago.
pub(crate) fn before_now(duration: Duration) -> Timestamp {
    let earlier = Timestamp::now().checked_sub(duration);
    earlier.unwrap_or(Timestamp::MIN)
}
