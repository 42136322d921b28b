//! Crashed executions, and running them again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sandbox_executor::{Ending, Outcome};
use sandbox_model::execution::retry_after_seconds;
use sandbox_model::{Execution, ExecutionStatus, SessionId};
use sandbox_store::records::Along;
use sandbox_store::{StoreError, Stored};
use serde_json::json;
use tokio::sync::watch;

use super::{Done, PATIENCE, new_id};
use crate::audit::audit_record;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, chain};
use crate::underway::Woken;

impl Control {
    /// Has a crashed execution run again after a while, as a new one. That one is kept when this returns: a
    /// server that ends meanwhile leaves it to the next. Boxed, because it may be run again in turn.
    pub(super) fn retry(
        &self,
        session: SessionId,
        wait: Duration,
        mut execution: Execution,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let (done, over) = watch::channel(None);
            let place = self.shared.underway.enter(&execution.id, over);
            if place.is_err() {
                // Nothing new is begun here any more.
                execution = unmade(&execution);
            }
            let kept = self.keep_attempt(&session, &execution).await;
            match (kept, place) {
                (Some(stored), Ok(_)) => {
                    let control = self.clone();
                    tokio::spawn(async move {
                        let id = &stored.value.id;
                        match control.shared.underway.sleep(id, wait).await {
                            Woken::Cancelled => control.call_off(stored, done).await,
                            // Which looks at that.
                            Woken::InTime | Woken::Interrupted => {
                                control.go_on(&session, stored, done).await;
                            }
                        }
                    });
                }
                (None, Ok(place)) => self.shared.underway.leave(&place),
                (_, Err(_)) => {}
            }
        })
    }

    /// Keeps the next attempt, however long the database takes to answer. None when it cannot be kept, or its
    /// session is over.
    async fn keep_attempt(
        &self,
        session: &SessionId,
        execution: &Execution,
    ) -> Option<Stored<Execution>> {
        let (id, parent) = (&execution.id, &execution.parent_execution_id);
        let detail = json!({ "parent_execution_id": parent });
        let audit = audit_record(&Caller::nobody(), "execution.retry", id.as_str(), detail);
        let along = Along {
            notice: None,
            audit: Some(&audit),
        };
        let records = &self.shared.records;
        loop {
            let kept = async {
                if self.session(session).await?.status.is_over() {
                    return Ok(None);
                }
                match records.insert_execution_along(execution, &along).await {
                    // It was kept before, and nobody heard of that.
                    Err(StoreError::Exists { .. }) => Ok(records.execution(id).await?),
                    kept => Ok(Some(kept?)),
                }
            };
            match kept.await {
                Ok(kept) => return kept,
                Err(error) if will_pass(&error) => {
                    tracing::warn!(execution = ?parent, %error, "waiting for the database to have a crashed execution run again");
                    tokio::time::sleep(PATIENCE).await;
                }
                Err(error) => {
                    tracing::warn!(execution = ?parent, %error, "a crashed execution is not run again");
                    return None;
                }
            }
        }
    }

    /// Sets an execution going that waited, if its session still can run it, however long the database takes to
    /// tell.
    pub(super) async fn go_on(&self, session: &SessionId, stored: Stored<Execution>, done: Done) {
        let underway = &self.shared.underway;
        let running = loop {
            match self.running_session(session).await {
                Err(error) if will_pass(&error) && !underway.is_interrupted() => {
                    tokio::time::sleep(PATIENCE).await;
                }
                running => break running,
            }
        };
        if underway.is_interrupted() {
            return self.leave_to_next(&stored).await;
        }
        match running {
            Ok(session) => self.set_going(session, stored, done, None),
            Err(error) => {
                let reason = format!("it was not run again: {}", chain(&error));
                let outcome = Outcome::lost(stored.value.id.clone(), reason);
                self.settle(stored, outcome, done).await;
            }
        }
    }

    /// An execution that waited is wanted no more.
    async fn call_off(&self, stored: Stored<Execution>, done: Done) {
        let outcome = Outcome {
            ending: Ending::Cancelled,
            ..Outcome::lost(stored.value.id.clone(), "it was cancelled".to_owned())
        };
        self.settle(stored, outcome, done).await;
    }

    /// Keeps what became of an execution that was never begun.
    async fn settle(&self, stored: Stored<Execution>, outcome: Outcome, done: Done) {
        let id = stored.value.id.clone();
        let finished = self.keep(stored, None, outcome).await;
        let _ = done.send(finished.map(Arc::new));
        self.shared.underway.leave(&id);
    }

    /// Leaves an execution that waited as it is, to the next server.
    async fn leave_to_next(&self, stored: &Stored<Execution>) {
        let (id, unmade) = (&stored.value.id, unmade(&stored.value));
        let left = self.shared.records.update_execution(stored, &unmade).await;
        if let Err(error) = left {
            tracing::warn!(execution = %id, %error, "execution {id} counts as an attempt, though it was not begun");
        }
        self.shared.underway.leave(id);
    }

    /// Marks an execution that nobody runs any more as crashed.
    pub(crate) async fn crash(&self, stored: Stored<Execution>, reason: &str) {
        let session = stored.value.session_id.clone();
        let outcome = Outcome::lost(stored.value.id.clone(), reason.to_owned());
        let Some(finished) = self.keep(stored, None, outcome).await else {
            return;
        };
        let id = &finished.execution.id;
        let Some((wait, execution)) = again(&finished.execution) else {
            return;
        };
        // What another node lost is not run here: its files are there.
        match self.elsewhere(&session).await {
            Ok(None) => self.retry(session, wait, execution).await,
            _ => {
                tracing::info!(execution = %id, "execution {id} is not run again: its node is lost")
            }
        }
    }
}

/// Is the database away, or full? Neither lasts.
fn will_pass(error: &ControlError) -> bool {
    matches!(
        error,
        ControlError::Unavailable { .. } | ControlError::Exhausted { .. }
    )
}

/// An attempt that this server does not make. The next one finds that it is lost, and has it run again: it must
/// not count.
fn unmade(attempt: &Execution) -> Execution {
    Execution {
        retry_count: attempt.retry_count.saturating_sub(1),
        ..attempt.clone()
    }
}

/// The next attempt after a crashed one, and how long to wait before it.
pub(super) fn again(crashed: &Execution) -> Option<(Duration, Execution)> {
    if crashed.status != ExecutionStatus::Crashed || !crashed.retry {
        return None;
    }
    let wait = retry_after_seconds(crashed.retry_count)?;
    let next = Execution {
        id: new_id(),
        status: ExecutionStatus::Pending,
        retry_count: crashed.retry_count + 1,
        parent_execution_id: Some(crashed.id.clone()),
        created_at: Timestamp::now(),
        started_at: None,
        completed_at: None,
        crashed_at: None,
        timeout_at: None,
        last_heartbeat_at: None,
        progress: None,
        error: None,
        ..crashed.clone()
    };
    Some((Duration::from_secs(wait.into()), next))
}
