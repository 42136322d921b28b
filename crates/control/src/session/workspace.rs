//! What a session's workspace has become: its changes, and copies of it.

use sandbox_model::{Session, SessionId, SessionMode};
use sandbox_runtime::Changes;
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
    pub async fn session_changes(&self, id: &SessionId) -> Result<Changes, ControlError> {
        let session = self.with_workspace(id).await?;
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
        let forked = self
            .create_from(caller, new, Some(&workspace_of(&parent)))
            .await?;
        let detail = json!({ "forked_to": forked.id });
        self.notice(id, "forked", detail).await;
        Ok(forked)
    }

    /// The session, if its workspace is still there.
    pub(crate) async fn with_workspace(&self, id: &SessionId) -> Result<Session, ControlError> {
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
