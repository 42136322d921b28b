//! Ending an execution before its end.

use std::time::Duration;

use sandbox_executor::protocol::Ask;
use sandbox_model::{Execution, ExecutionId, SessionStatus};
use sandbox_runtime::LineError;
use serde_json::json;

use super::wait;
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
        if session.status == SessionStatus::Paused {
            return Err(ControlError::conflict(
                format!(
                    "session {} is paused: nothing can be ended in it",
                    session.id
                ),
                "resume it first, or end it",
            ));
        }
        self.audit(caller, "execution.cancel", id.as_str(), json!({}))
            .await;
        let Some(over) = self.shared.underway.find(id) else {
            let used = self.line(&session).await?;
            used.line.ask(Ask::Cancel(id.clone())).await?;
            return self.execution(id).await;
        };
        let mut over = std::pin::pin!(wait(over));
        loop {
            let session = self.session(&session.id).await?;
            // What runs in one that has ended is being ended, and its agent may have another.
            if session.status.is_over() {
                break;
            }
            let used = self.line(&session).await?;
            // An executor that does not know it yet is about to; one that is gone takes it along.
            match used.line.ask(Ask::Cancel(id.clone())).await {
                Ok(_) | Err(LineError::Cut | LineError::Unreachable(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if tokio::time::timeout(INSISTENCE, &mut over).await.is_ok() {
                break;
            }
        }
        self.execution(id).await
    }
}
