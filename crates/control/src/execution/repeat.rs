//! Asking again for an execution that was submitted before.

use std::sync::Arc;

use sandbox_model::ExecutionId;
use tokio::sync::watch;

use super::Submitted;
use crate::control::Control;
use crate::error::ControlError;

impl Control {
    /// An execution that was accepted before, to be waited for. Who prints to whom was settled then: its output is
    /// told at its end. Nobody can wait for one that this server does not see through and that is not over.
    pub async fn submitted(&self, id: &ExecutionId) -> Result<Submitted, ControlError> {
        // First, because what has left by the time that the records are read is over there.
        let underway = self.shared.underway.find(id);
        let execution = self.execution(id).await?;
        let over = match underway {
            Some(over) => over,
            None if execution.status.is_over() => {
                let finished = self.finished(id).await?;
                watch::channel(Some(Arc::new(finished))).1
            }
            None => watch::channel(None).1,
        };
        Ok(Submitted {
            execution,
            output: None,
            over,
        })
    }
}
