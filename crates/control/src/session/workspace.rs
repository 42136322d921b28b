//! What a session's workspace has become: its changes, and copies of it.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};

use sandbox_model::{Session, SessionId, SessionMode, SessionStatus};
use sandbox_runtime::{ChangeReport, Extent, Promote, Promotion};
use serde_json::json;

use super::creation::{Asked, NewSession};
use super::source::Source;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;
use crate::live::workspace_of;
use crate::pool::PoolChoice;

impl Control {
    /// What a session's workspace has that it did not start with, ended or not.
    pub async fn session_changes(&self, id: &SessionId) -> Result<ChangeReport, ControlError> {
        let session = self.with_workspace(id).await?;
        if !session.status.is_over() {
            self.shared.activity.note(id);
        }
        let workspace = workspace_of(&session);
        Ok(self.shared.live.runtime().changes(&workspace).await?)
    }

    /// Makes a session like this one, whose workspace starts as a copy of its.
    pub async fn fork_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Session, ControlError> {
        let parent = self.with_workspace(id).await?;
        let new = NewSession {
            template_id: parent.template_id.clone(),
            timeout_seconds: parent.timeout_seconds,
            // An agent has one workspace; a copy of it is somebody else's.
            mode: SessionMode::Ephemeral,
            agent_id: parent.agent_id.clone(),
            resources: Asked::all(&parent.resources),
            env_vars: parent.env_vars.clone(),
            network: parent.network.clone(),
            source: Source::Empty,
            pool: PoolChoice::Never,
        };
        let forked = self.create_from(caller, new, Some(&parent)).await?;
        let detail = json!({ "forked_to": forked.id });
        self.notice(id, "forked", detail).await;
        Ok(forked)
    }

    /// Applies what a session's workspace has become to the directory it is a copy of, or tells what that
    /// would do. Its processes are ended for that, and come back with its next use.
    pub async fn promote_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        what: Promote,
    ) -> Result<Promotion, ControlError> {
        let session = self.with_workspace(id).await?;
        self.is_here(&session)?;
        if !self.shared.settings.promote {
            return Err(ControlError::Forbidden {
                problem: "this server applies nothing to the directories of its machine".to_owned(),
                solution: "have the operator start it with --promote on".to_owned(),
            });
        }
        self.at_rest(&self.holder(session.clone()).await?).await?;
        let workspace = workspace_of(&session);
        self.shared.live.end(&workspace).await?;
        let extent = what.extent;
        let promoted = self.shared.live.runtime().promote(&workspace, what).await?;
        if extent == Extent::Apply {
            self.notice(id, "promoted", json!({})).await;
            self.audit(caller, "session.promote", id.as_str(), json!({}))
                .await;
        }
        Ok(promoted)
    }

    /// Who has a session's workspace: it, or a later one of its agent.
    pub(crate) async fn holder(&self, session: Session) -> Result<Session, ControlError> {
        let agent = match (&session.agent_id, session.mode) {
            (Some(agent), SessionMode::Persistent) if session.status.is_over() => agent,
            _ => return Ok(session),
        };
        let latest = self.shared.records.latest_persistent_session(agent).await?;
        let holder = latest.map(|latest| latest.value).filter(|latest| {
            !latest.status.is_over() && latest.workspace_path == session.workspace_path
        });
        Ok(holder.unwrap_or(session))
    }

    /// Sessions whose workspaces are being removed.
    pub(crate) fn cleaning(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        // Nothing that is done under it can panic half-way.
        let lock = self.shared.cleaning.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does nothing happen in the session?
    async fn at_rest(&self, session: &Session) -> Result<(), ControlError> {
        let id = &session.id;
        if matches!(
            session.status,
            SessionStatus::Creating | SessionStatus::Paused
        ) {
            return Err(ControlError::conflict(
                format!("session {id} is {}", session.status),
                "wait until it is running, or resume it",
            ));
        }
        let running = self.shared.records.live_executions(id).await?;
        match running.first() {
            None => Ok(()),
            Some(execution) => Err(ControlError::conflict(
                format!("execution {} is under way in it", execution.value.id),
                "wait until it is over, or cancel it",
            )),
        }
    }

    /// The session, if its workspace is still there.
    pub(crate) async fn with_workspace(&self, id: &SessionId) -> Result<Session, ControlError> {
        // Whoever came after it was removed would find a new one, and nothing in it.
        if self.cleaning().contains(id) {
            return Err(ControlError::conflict(
                format!("the workspace of session {id} is being removed"),
                "make a new session",
            ));
        }
        let session = self.session(id).await?;
        match session.workspace_removed_at {
            Some(at) => Err(ControlError::conflict(
                format!("the workspace of session {id} was removed at {at}"),
                "make a new session",
            )),
            None => Ok(session),
        }
    }
}
