//! Crashed executions, and running them again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sandbox_executor::Outcome;
use sandbox_model::execution::retry_after_seconds;
use sandbox_model::{Execution, ExecutionStatus, SessionId};
use sandbox_store::Stored;
use sandbox_store::records::Along;
use serde_json::json;
use tokio::sync::watch;

use super::{Done, new_id};
use crate::audit::audit_record;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::chain;

impl Control {
    /// Has a crashed execution run again after a while, as a new one. That one is kept when this returns: a
    /// server that ends meanwhile leaves it to the next. Boxed, because it may be run again in turn.
    pub(super) fn retry(
        &self,
        session: SessionId,
        wait: Duration,
        execution: Execution,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let (done, over) = watch::channel(None);
            let (id, parent) = (&execution.id, &execution.parent_execution_id);
            let place = self.shared.underway.enter(id, over);
            let detail = json!({ "parent_execution_id": parent });
            let audit = audit_record(&Caller::nobody(), "execution.retry", id.as_str(), detail);
            let along = Along {
                notice: None,
                audit: Some(&audit),
            };
            let records = &self.shared.records;
            match (
                records.insert_execution_along(&execution, &along).await,
                place,
            ) {
                (Ok(stored), Ok(_)) => {
                    let control = self.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(wait).await;
                        control.go_on(&session, stored, done).await;
                    });
                }
                // Nothing new is begun here any more.
                (Ok(_), Err(_)) => {}
                (Err(error), place) => {
                    tracing::warn!(execution = ?parent, %error, "a crashed execution is not run again");
                    if let Ok(place) = place {
                        self.shared.underway.leave(&place);
                    }
                }
            }
        })
    }

    /// Sets an execution going that waited, if its session still can run it.
    async fn go_on(&self, session: &SessionId, stored: Stored<Execution>, done: Done) {
        match self.running_session(session).await {
            Ok(session) => self.set_going(session, stored, done, None),
            Err(error) => {
                let id = stored.value.id.clone();
                let reason = format!("it was not run again: {}", chain(&error));
                let finished = self
                    .keep(stored, None, Outcome::lost(id.clone(), reason))
                    .await;
                let _ = done.send(finished.map(Arc::new));
                self.shared.underway.leave(&id);
            }
        }
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
