//! The course of an execution: handing it to its session, and hearing of it until its end.

use std::time::Duration;

use jiff::Timestamp;
use sandbox_executor::{Happening, Outcome, Request};
use sandbox_model::{Execution, ExecutionEvent, ExecutionId, Session};
use sandbox_runtime::{Course, LineError};
use sandbox_store::Stored;

use super::Printing;
use crate::control::Control;
use crate::error::ControlError;
use crate::live::Use;

/// How long an execution runs before it is written down that it does.
const MOMENT: Duration = Duration::from_millis(100);

impl Control {
    /// Hands an execution to its session and waits for what becomes of it. `begun` is when it began, if it
    /// did.
    pub(super) async fn run(
        &self,
        session: &Session,
        stored: &mut Stored<Execution>,
        begun: &mut Option<Timestamp>,
        printed: Option<Printing>,
    ) -> Result<Outcome, ControlError> {
        let execution = &stored.value;
        let request = Request {
            execution_id: execution.id.clone(),
            code: execution.code.clone(),
            language: execution.language,
            event: serde_json::from_str(&execution.event).unwrap_or_default(),
            timeout_seconds: execution.timeout_seconds,
            stream: printed.is_some(),
        };
        let expected = Some(execution.language);
        let mut used = self.line_to_run(session, expected).await?;
        let taken = used.line.begin(request.clone());
        let course = match self.heard(&used, taken).await {
            // It was cut before it took the request, and has not begun it: so it may be asked again, once.
            Err(LineError::Cut | LineError::Unreachable(_)) => {
                used = self.line_to_run(session, expected).await?;
                self.heard(&used, used.line.begin(request)).await
            }
            course => course,
        };
        let course = course?;
        let now = *begun.insert(Timestamp::now());
        let id = stored.value.id.clone();
        let mut hearing = std::pin::pin!(self.hear(&id, &used, course, printed));
        // What is over in a moment is written down once, as over.
        if let Ok(outcome) = tokio::time::timeout(MOMENT, &mut hearing).await {
            return Ok(outcome?);
        }
        let (outcome, ()) = tokio::join!(hearing, self.mark_running(stored, now));
        Ok(outcome?)
    }

    /// Hears what an execution says until its end.
    async fn hear(
        &self,
        id: &ExecutionId,
        used: &Use,
        mut course: Course,
        printed: Option<Printing>,
    ) -> Result<Outcome, LineError> {
        loop {
            let next = async { course.next().await.unwrap_or(Err(LineError::Cut)) };
            match self.heard(used, next).await? {
                Happening::Output { stream, bytes } => {
                    let printed = printed.as_ref();
                    // Whoever listened may have gone.
                    let _ = printed.map(|printed| printed.send((stream, bytes)));
                }
                Happening::Heartbeat { progress } => self.beat(id, progress.as_deref()).await,
                Happening::Outcome(outcome) => return Ok(*outcome),
            }
        }
    }

    async fn beat(&self, id: &ExecutionId, progress: Option<&str>) {
        let beaten = self
            .shared
            .records
            .heartbeat(id, Timestamp::now(), progress)
            .await;
        if let Err(error) = beaten {
            tracing::warn!(execution = %id, %error, "cannot write down a heartbeat of execution {id}");
        }
    }

    /// Writes down that an execution runs since then.
    async fn mark_running(&self, stored: &mut Stored<Execution>, since: Timestamp) {
        let mut running = stored.value.clone();
        let Ok(status) = running.status.after(ExecutionEvent::Started) else {
            return;
        };
        running.status = status;
        running.started_at = Some(since);
        match self.shared.records.update_execution(stored, &running).await {
            Ok(updated) => *stored = updated,
            // Its end is written down all the same.
            Err(error) => {
                let id = &running.id;
                tracing::warn!(execution = %id, %error, "cannot write down that execution {id} runs");
            }
        }
    }
}
