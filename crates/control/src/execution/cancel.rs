//! Ending an execution before its end.

use std::time::Duration;

use sandbox_executor::protocol::Ask;
use sandbox_model::{Execution, ExecutionId, Session, SessionId, SessionStatus};
use sandbox_runtime::LineError;
use serde_json::json;

use super::{Over, wait};
use crate::caller::Caller;
use crate::control::Control;
use crate::error::ControlError;

/// How long an execution that is being ended has before its executor is told again.
const INSISTENCE: Duration = Duration::from_millis(100);

impl Control {
    /// Ends an execution. It is over when this returns.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: &ExecutionId,
    ) -> Result<Execution, ControlError> {
        let execution = self.execution(id).await?;
        if execution.status.is_over() {
            return Err(ControlError::conflict(
                format!("execution {id} is {} already", execution.status),
                "get its result",
            ));
        }
        let session = self.session(&execution.session_id).await?;
        check_awake(&session)?;
        self.audit(caller, "execution.cancel", id.as_str(), json!({}))
            .await;
        match self.shared.underway.find(id) {
            Some(over) => self.end_underway(&session.id, id, over).await?,
            None => {
                let used = self.line(&session).await?;
                self.asked(&used, Ask::Cancel(id.clone())).await?;
            }
        }
        self.execution(id).await
    }

    /// Ends an execution that this server sees through, and waits for its end.
    async fn end_underway(
        &self,
        session: &SessionId,
        id: &ExecutionId,
        over: Over,
    ) -> Result<(), ControlError> {
        let mut over = std::pin::pin!(wait(over));
        loop {
            // One that waits for its time to be run again is in no executor.
            if self.shared.underway.rouse(id) {
                break;
            }
            let session = self.session(session).await?;
            // What runs in one that has ended is being ended, and its agent may have another.
            if session.status.is_over() {
                break;
            }
            check_awake(&session)?;
            let used = self.line(&session).await?;
            // An executor that does not know it yet is about to; one that is gone takes it along. One that was
            // paused since does not answer.
            let ask = used.line.ask(Ask::Cancel(id.clone()));
            match tokio::time::timeout(INSISTENCE, ask).await {
                Ok(Ok(_) | Err(LineError::Cut | LineError::Unreachable(_))) | Err(_) => {}
                Ok(Err(error)) => return Err(error.into()),
            }
            if tokio::time::timeout(INSISTENCE, &mut over).await.is_ok() {
                return Ok(());
            }
        }
        over.await;
        Ok(())
    }
}

/// Can anything be ended in it? Nothing is heard of one that stands still.
fn check_awake(session: &Session) -> Result<(), ControlError> {
    match session.status {
        SessionStatus::Paused => Err(ControlError::conflict(
            format!(
                "session {} is paused: nothing can be ended in it",
                session.id
            ),
            "resume it first, or end it",
        )),
        _ => Ok(()),
    }
}
