//! What an executor that is reached over a network reports of itself.
//!
//! Its reports may come twice, late, or out of order. The first result of an execution is kept; the same
//! again is no news, and another one is refused. Who may report is the door's affair.

use jiff::Timestamp;
use sandbox_executor::Outcome;
use sandbox_model::execution::Artifact;
use sandbox_model::{
    Execution, ExecutionEvent, ExecutionId, ExecutionStatus, Session, SessionEvent, SessionId,
    SessionStatus,
};
use sandbox_store::StoreError;
use sandbox_store::records::{Report, Reported};
use serde_json::{Value, json};

use crate::control::Control;
use crate::error::ControlError;
use crate::live::workspace_of;
use crate::outcome::{artifact, digest_of, ended};

/// A container that came up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// What its runtime calls it.
    pub container_id: String,
    /// Where its executor listens.
    pub executor_url: String,
    /// Since when.
    pub ready_at: Timestamp,
}

/// Whether a report is news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is, and was kept.
    First,
    /// It is what is kept already.
    Again,
}

impl Control {
    /// A session's container came up.
    pub async fn container_ready(
        &self,
        id: &SessionId,
        ready: &Ready,
    ) -> Result<News, ControlError> {
        let session = self.session(id).await?;
        let is_known = session.container_id.as_deref() == Some(&ready.container_id)
            && session.executor_url.as_deref() == Some(&ready.executor_url);
        if session.status == SessionStatus::Running && is_known {
            return Ok(News::Again);
        }
        let with = |session: &mut Session| {
            session.container_id = Some(ready.container_id.clone());
            session.executor_url = Some(ready.executor_url.clone());
            session.started_at = Some(ready.ready_at);
        };
        self.change(id, SessionEvent::Ready, with).await?;
        Ok(News::First)
    }

    /// A session's container ended: well if its status is 0.
    pub async fn container_exited(
        &self,
        id: &SessionId,
        exit_code: i32,
        reason: &str,
    ) -> Result<News, ControlError> {
        if self.session(id).await?.status.is_over() {
            return Ok(News::Again);
        }
        let with = |session: &mut Session| {
            if exit_code != 0 {
                let text = format!("its container exited with status {exit_code} ({reason})");
                session.error = Some(text);
            }
        };
        let exited = self
            .change(id, SessionEvent::Exited(exit_code), with)
            .await?;
        for summary in self.shared.records.live_executions(id).await? {
            if let Some(execution) = self.shared.records.execution(&summary.value.id).await? {
                self.crash(execution, "its container exited").await;
            }
        }
        // What this server has of it ends, too.
        self.shared.live.end(&workspace_of(&exited)).await?;
        Ok(News::First)
    }

    /// An execution began.
    pub async fn execution_started(&self, id: &ExecutionId) -> Result<News, ControlError> {
        loop {
            let stored = self.stored_execution(id).await?;
            if stored.value.status == ExecutionStatus::Running {
                return Ok(News::Again);
            }
            let mut new = stored.value.clone();
            new.status = after(&stored.value, ExecutionEvent::Started)?;
            new.started_at = Some(Timestamp::now());
            match self.shared.records.update_execution(&stored, &new).await {
                Ok(_) => return Ok(News::First),
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// An execution goes on.
    pub async fn execution_heartbeat(
        &self,
        id: &ExecutionId,
        progress: Option<&Value>,
    ) -> Result<(), ControlError> {
        let progress = progress.map(Value::to_string);
        let beat = self
            .shared
            .records
            .heartbeat(id, Timestamp::now(), progress.as_deref());
        if beat.await? {
            return Ok(());
        }
        let execution = self.execution(id).await?;
        Err(ControlError::conflict(
            format!("execution {id} is {}", execution.status),
            "report nothing more of it",
        ))
    }

    /// An execution made files.
    pub async fn execution_artifacts(
        &self,
        id: &ExecutionId,
        artifacts: &[Artifact],
    ) -> Result<Vec<Artifact>, ControlError> {
        Ok(self.shared.records.add_artifacts(id, artifacts).await?)
    }

    /// An execution is over.
    pub async fn execution_result(&self, outcome: &Outcome) -> Result<News, ControlError> {
        let digest = digest_of(outcome);
        let artifacts: Vec<_> = outcome
            .artifacts
            .iter()
            .map(|found| artifact(outcome, found))
            .collect();
        let report = Report {
            digest: &digest,
            result: &outcome.result,
            artifacts: &artifacts,
        };
        let id = &outcome.execution_id;
        loop {
            let stored = self.stored_execution(id).await?;
            let known = self.shared.records.reported(id, &digest).await?;
            let reported = match (known, ended(&stored.value, outcome)) {
                (Some(known), _) => known,
                (None, Some(ended)) => {
                    match self.shared.records.finish(&stored, &ended, &report).await {
                        Ok(reported) => reported,
                        Err(StoreError::Stale { .. }) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                (None, None) => Reported::Different,
            };
            return match reported {
                Reported::First(kept) => {
                    let status = kept.value.status;
                    let detail = json!({ "execution_id": id, "status": status });
                    self.notice(&kept.value.session_id, "execution", detail)
                        .await;
                    Ok(News::First)
                }
                Reported::Same => Ok(News::Again),
                Reported::Different => Err(ControlError::conflict(
                    format!("execution {id} has another result already"),
                    "the first result stands",
                )),
            };
        }
    }
}

fn after(execution: &Execution, event: ExecutionEvent) -> Result<ExecutionStatus, ControlError> {
    execution.status.after(event).map_err(|refusal| {
        let problem = format!("execution {}: {refusal}", execution.id);
        ControlError::conflict(problem, "report nothing more of it")
    })
}
