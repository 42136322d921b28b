//! Setting right what a server before this one left, and what ends by itself.
//!
//! The processes of sessions end with their server, so an execution that was under way then is lost;
//! sessions are in their workspaces and go on. A session that was being made when the server ended is not
//! there, and failed.

use sandbox_model::{NodeId, Session, SessionEvent, SessionId, SessionStatus};
use sandbox_runtime::{Ended, RuntimeError};
use serde_json::json;
use tokio::sync::mpsc;

use crate::control::Control;
use crate::error::ControlError;

impl Control {
    /// Sets right what the server before this one left on this node.
    pub(crate) async fn recover(&self) -> Result<(), ControlError> {
        let node = &self.shared.settings.node_id;
        self.empty_pool().await?;
        self.fail_unmade_on(node, "the server ended while it was being made")
            .await?;
        self.crash_all_on(node, "interrupted: the server ended while it ran")
            .await
    }

    /// Writes down of every session that was being made on a node that it failed.
    pub(crate) async fn fail_unmade_on(
        &self,
        node: &NodeId,
        reason: &str,
    ) -> Result<(), ControlError> {
        let failed = |session: &mut Session| session.error = Some(reason.to_owned());
        for stored in self.shared.records.live_sessions_on(node).await? {
            if stored.value.status != SessionStatus::Creating {
                continue;
            }
            let id = &stored.value.id;
            match self.change(id, SessionEvent::Failed, failed).await {
                // It is something else by now.
                Ok(_) | Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes workspaces that no session has, of those that were there when this server started: somebody was
    /// killed before their sessions were written down. One that something was written to stays: it may belong to
    /// a session of another database.
    pub(crate) async fn clear_strays(self, there: Vec<SessionId>) {
        let runtime = self.shared.live.runtime();
        let mut kept = 0;
        for id in there {
            match self.shared.records.session(&id).await {
                Ok(None) => {}
                Ok(Some(_)) => continue,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for workspaces that no session has");
                    return;
                }
            }
            let changes = match runtime.changes(&id).await {
                Ok(report) => report.read().map_err(RuntimeError::Room),
                Err(error) => Err(error),
            };
            let cleared = match changes {
                Ok(changes) if changes.total == 0 => self.shared.live.discard(&id).await,
                Ok(_) => {
                    kept += 1;
                    continue;
                }
                Err(error) => Err(error),
            };
            match cleared {
                Ok(()) => {
                    tracing::info!(session = %id, "removed workspace {id}, which no session has")
                }
                Err(error) => {
                    tracing::warn!(session = %id, %error, "cannot remove workspace {id}, which no session has");
                }
            }
        }
        if kept > 0 {
            tracing::warn!(
                workspaces = kept,
                "{kept} workspaces with files in them belong to no session of this database"
            );
        }
    }

    /// Writes down of every execution that was under way on a node that it is lost.
    pub(crate) async fn crash_all_on(
        &self,
        node: &NodeId,
        reason: &str,
    ) -> Result<(), ControlError> {
        for session in self.shared.records.live_sessions_on(node).await? {
            for summary in self
                .shared
                .records
                .live_executions(&session.value.id)
                .await?
            {
                let id = &summary.value.id;
                if let Some(execution) = self.shared.records.execution(id).await? {
                    self.crash(execution, reason).await;
                }
            }
        }
        Ok(())
    }

    /// Hears of sessions whose processes ended by themselves. They are started again when somebody uses
    /// the session; what ran in them is told as crashed by whoever waited for it.
    pub(crate) async fn watch_ends(self, mut ended: mpsc::UnboundedReceiver<Ended>) {
        while let Some(Ended { session, status }) = ended.recv().await {
            // Known by its workspace, which it may have from another session. Its line is cut, and whoever asks
            // next has it raised again; it may have been already.
            let session = self.shared.live.whose(&session).unwrap_or(session);
            tracing::warn!(%session, status, "the processes of session {session} ended by themselves");
            if !self.shared.pool.holds(&session) {
                self.notice(&session, "executor_ended", json!({ "exit_status": status }))
                    .await;
            }
        }
        // Nobody is left who could tell.
        self.shared.lost.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use sandbox_executor::protocol::Ask;

    use super::*;
    use crate::stage::{Deed, Stage};

    #[tokio::test]
    async fn late_news_of_an_end_ends_nothing_that_was_raised_since() {
        let stage = Stage::still().await;
        let (control, host) = (&stage.control, &stage.host);
        let session = stage.written(|_| {}).await;
        let first = control.line(&session).await.unwrap();
        host.kill(&session.id).await;
        first.line.cut().await;
        let second = control.line(&session).await.unwrap();
        let ends = host.done(Deed::End);
        let (news, ended) = mpsc::unbounded_channel();
        let late = Ended {
            session: session.id.clone(),
            status: 137,
        };
        news.send(late).unwrap();
        drop(news);
        control.clone().watch_ends(ended).await;
        assert_eq!(host.done(Deed::End), ends);
        second.line.ask(Ask::Ping).await.unwrap();
        // Whoever watches the session is told all the same.
        let notices = control.records().notices(&session.id, 0, 10).await.unwrap();
        let kinds: Vec<_> = notices.iter().map(|notice| notice.kind.as_str()).collect();
        assert_eq!(kinds, ["executor_ended"]);
    }
}
