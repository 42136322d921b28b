//! Sessions whose node is lost.
//!
//! A node that left, or was not heard of for too long, does nothing for its sessions. So any server ends them in its
//! place, when somebody asks for it or it is time, and in the records only: their workspaces are where nobody can get
//! at them. Of two that end the same one the second finds it over. Where only the way to the database was lost, their
//! processes are there all the same; a server whose sessions others have ended ends what is left of them, and goes on
//! with the rest.

#[cfg(test)]
mod tests;

use sandbox_model::{NodeId, NodeStatus, Session, SessionId};

use crate::control::Control;
use crate::error::ControlError;
use crate::reaper::before_now;

impl Control {
    /// Is there nobody who looks after the sessions of a node? Of this one there is.
    pub(crate) async fn is_lost(&self, node: &NodeId) -> Result<bool, ControlError> {
        if *node == self.shared.settings.node_id {
            return Ok(false);
        }
        let found = self.shared.records.node(node).await?;
        Ok(found.is_none_or(|found| match found.value.status {
            NodeStatus::Online | NodeStatus::Draining => false,
            NodeStatus::Unhealthy | NodeStatus::Offline => true,
        }))
    }

    /// The lost nodes that have sessions which are not over.
    pub(crate) async fn lost_nodes(&self) -> Result<Vec<NodeId>, ControlError> {
        let mut lost = Vec::new();
        for (node, live) in self.shared.records.live_session_counts_by_node().await? {
            if live > 0 && self.is_lost(&node).await? {
                lost.push(node);
            }
        }
        Ok(lost)
    }

    /// Is the workspace of a session there, or will it be when its node is back? One that is due to be removed is gone
    /// with its node: that removes it as soon as it is back.
    pub(crate) async fn is_workspace_kept(&self, session: &Session) -> Result<bool, ControlError> {
        if session.workspace_removed_at.is_some() {
            return Ok(false);
        }
        let long_ago = before_now(self.shared.settings.retention);
        let is_due = session.terminated_at.is_some_and(|at| at < long_ago);
        Ok(!is_due || !self.is_lost(&session.node_id).await?)
    }

    /// Ends what is raised here for sessions that are over by now, though nobody here ended them.
    pub(crate) async fn end_what_is_over(&self) -> Result<(), ControlError> {
        let live = &self.shared.live;
        let work = live.work();
        let sessions: Vec<SessionId> = work.iter().map(|work| work.session.clone()).collect();
        let over = self.shared.records.over_among(&sessions).await?;
        for work in work.iter().filter(|work| over.contains(&work.session)) {
            let id = &work.session;
            match live.end_work(work).await {
                Ok(()) => {
                    tracing::info!(session = %id, "ended what was left of session {id}");
                    // Its files are to be kept, and nobody here knew.
                    self.shared.left.notify_one();
                }
                Err(error) => {
                    tracing::warn!(session = %id, %error, "cannot end what is left of session {id}");
                }
            }
        }
        Ok(())
    }
}
