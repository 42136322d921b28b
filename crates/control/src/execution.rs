//! Executions: having code run, and keeping what became of it.
//!
//! An execution is kept before it is handed to its session, and what became of it is kept before anybody
//! hears of it. It is never handed over twice: what was lost half-way is told as crashed, and run again
//! only where that was asked for, as an execution of its own.

mod cancel;
mod course;
mod repeat;
mod request;
mod retry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_executor::{Outcome, Stream};
use sandbox_model::execution::Artifact;
use sandbox_model::{
    AuditRecord, Execution, ExecutionId, ExecutionResult, ExecutionStatus, Session, SessionId,
};
use sandbox_store::records::{
    Along, ExecutionFilter, ExecutionSummary, Note, Page, PageRequest, Report, Reported,
};
use sandbox_store::{StoreError, Stored};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tracing::Instrument;

use crate::audit::audit_record;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind, chain, told};
use crate::outcome::{artifact, digest_of, ended};
use crate::random;
pub use request::NewExecution;
use retry::again;

/// How long to wait before what the database did not take is offered again.
const PATIENCE: Duration = Duration::from_millis(500);

/// An execution that is over, with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The execution.
    pub execution: Execution,
    /// What it printed, returned and used.
    pub result: ExecutionResult,
    /// The files it made.
    pub artifacts: Vec<Artifact>,
}

/// Told when an execution is over.
pub(crate) type Over = watch::Receiver<Option<Arc<Finished>>>;

/// Whoever tells that.
type Done = watch::Sender<Option<Arc<Finished>>>;

/// What an execution prints, as it comes. There is at most what is kept of it.
type Printing = mpsc::UnboundedSender<(Stream, Vec<u8>)>;

/// Whether what is printed is wanted as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// At the end, with the result.
    Kept,
    /// As it comes, too.
    Streamed,
}

/// An execution that was accepted.
#[derive(Debug)]
pub struct Submitted {
    /// The execution, pending.
    pub execution: Execution,
    /// What it prints, as it comes, if that is wanted. Ends with the execution.
    pub output: Option<mpsc::UnboundedReceiver<(Stream, Vec<u8>)>>,
    pub(crate) over: Over,
}

impl Control {
    /// Has code run in a session. It is kept, and under way, when this returns.
    pub async fn submit(
        &self,
        caller: &Caller,
        session: &SessionId,
        new: NewExecution,
        output: Output,
    ) -> Result<Submitted, ControlError> {
        new.check()?;
        self.shared.live.foresee(session, new.language);
        let session = self.running_session(session).await?;
        let execution = Execution {
            id: new_id(),
            session_id: session.id.clone(),
            status: ExecutionStatus::Pending,
            code: new.code,
            language: new.language,
            event: new.event.to_string(),
            timeout_seconds: new.timeout_seconds,
            retry: new.retry,
            retry_count: 0,
            parent_execution_id: None,
            created_at: Timestamp::now(),
            started_at: None,
            completed_at: None,
            crashed_at: None,
            timeout_at: None,
            last_heartbeat_at: None,
            progress: None,
            error: None,
        };
        let begin = Instant::now();
        self.shared.activity.note(&session.id);
        self.promise(caller, execution.id.as_str()).await?;
        let id = execution.id.as_str();
        let audit = audit_record(caller, "execution.submit", id, json!({}));
        let submitted = self.begin(session, execution, Some(&audit), output).await?;
        metrics::histogram!("sandbox_submission_duration_seconds")
            .record(begin.elapsed().as_secs_f64());
        Ok(submitted)
    }

    /// Keeps an execution and sets it going.
    async fn begin(
        &self,
        session: Session,
        execution: Execution,
        audit: Option<&AuditRecord>,
        output: Output,
    ) -> Result<Submitted, ControlError> {
        let (printing, printed) = match output {
            Output::Kept => (None, None),
            Output::Streamed => {
                let (printing, printed) = mpsc::unbounded_channel();
                (Some(printing), Some(printed))
            }
        };
        let (done, over) = watch::channel(None);
        let place = self.shared.underway.enter(&execution.id, over.clone())?;
        let along = Along {
            notice: None,
            audit,
        };
        let records = &self.shared.records;
        let stored = match records.insert_execution_along(&execution, &along).await {
            Ok(stored) => stored,
            Err(error) => {
                self.shared.underway.leave(&place);
                return Err(error.into());
            }
        };
        let submitted = Submitted {
            execution: stored.value.clone(),
            output: printed,
            over,
        };
        self.set_going(session, stored, done, printing);
        Ok(submitted)
    }

    /// Sees an execution through that is kept and counted as under way, beside whoever asked for it.
    fn set_going(
        &self,
        session: Session,
        stored: Stored<Execution>,
        done: Done,
        printing: Option<Printing>,
    ) {
        let control = self.clone();
        let id = stored.value.id.clone();
        let going = async move {
            let finished = control.see_through(&session, stored, printing).await;
            let again = finished
                .as_ref()
                .and_then(|finished| again(&finished.execution));
            // Nobody may be waiting.
            let _ = done.send(finished.map(Arc::new));
            // Before this one is counted out, for which a server that ends waits.
            if let Some((wait, execution)) = again {
                control.retry(session.id, wait, execution).await;
            }
            control.shared.underway.leave(&id);
        };
        tokio::spawn(going.instrument(tracing::Span::current()));
    }

    /// From handing it over to keeping what became of it. None when that cannot be kept any more.
    async fn see_through(
        &self,
        session: &Session,
        mut stored: Stored<Execution>,
        printing: Option<Printing>,
    ) -> Option<Finished> {
        let mut begun = None;
        let outcome = self.run(session, &mut stored, &mut begun, printing).await;
        self.shared.activity.note(&session.id);
        let outcome = outcome.unwrap_or_else(|error| {
            let reason = match self.shared.underway.is_interrupted() {
                true => "interrupted: the server was shut down before it ended".to_owned(),
                false => {
                    let id = &stored.value.id;
                    tracing::warn!(execution = %id, error = %chain(&error), "execution {id} is lost");
                    told(&error)
                }
            };
            Outcome::lost(stored.value.id.clone(), reason)
        });
        let id = stored.value.id.clone();
        let finished = self.keep(stored, begun, outcome).await;
        match &finished {
            Some(Finished {
                execution, result, ..
            }) => {
                let status = execution.status.as_str();
                metrics::counter!("sandbox_executions_total", "status" => status).increment(1);
                metrics::histogram!("sandbox_execution_duration_seconds")
                    .record(result.execution_time);
            }
            None => tracing::error!(execution = %id, "the result of execution {id} is lost"),
        }
        finished
    }

    /// Keeps what became of an execution that began then, if it did, and tells who watches its session,
    /// however long the database takes to answer.
    async fn keep(
        &self,
        mut stored: Stored<Execution>,
        begun: Option<Timestamp>,
        outcome: Outcome,
    ) -> Option<Finished> {
        let digest = digest_of(&outcome);
        let mut artifacts: Vec<_> = outcome
            .artifacts
            .iter()
            .map(|found| artifact(&outcome, found))
            .collect();
        // As they are listed later.
        artifacts.sort_by_key(|artifact: &Artifact| (artifact.created_at, artifact.id.clone()));
        loop {
            let Some(mut ended) = ended(&stored.value, &outcome) else {
                // Somebody else ended it, who could not know.
                return self.finished(&stored.value.id).await.ok();
            };
            ended.started_at = ended.started_at.or(begun);
            let detail = json!({ "execution_id": ended.id, "status": ended.status });
            let along = Along {
                notice: Some(Note {
                    session: &ended.session_id,
                    kind: "execution",
                    detail: &detail.to_string(),
                }),
                audit: None,
            };
            let records = &self.shared.records;
            let report = Report {
                digest: &digest,
                result: &outcome.result,
                artifacts: &artifacts,
            };
            let kept = records.finish_along(&stored, &ended, &report, &along);
            let failure = match kept.await {
                Ok(Reported::First(kept)) => {
                    self.wake(&ended.session_id);
                    return Some(Finished {
                        execution: kept.value,
                        result: outcome.result,
                        artifacts,
                    });
                }
                Ok(Reported::Same | Reported::Different) => {
                    return self.finished(&ended.id).await.ok();
                }
                Err(StoreError::Stale { .. }) => None,
                Err(error @ (StoreError::Unavailable { .. } | StoreError::Full { .. })) => {
                    Some(error)
                }
                Err(error) => {
                    let id = &ended.id;
                    tracing::error!(execution = %id, %error, "cannot keep the result of execution {id}");
                    return None;
                }
            };
            if let Some(error) = failure {
                let id = &ended.id;
                tracing::warn!(execution = %id, %error, "waiting for the database to keep the result of execution {id}");
                tokio::time::sleep(PATIENCE).await;
            }
            match self.shared.records.execution(&stored.value.id).await {
                Ok(Some(current)) => stored = current,
                Ok(None) => return None,
                Err(_) => {}
            }
        }
    }

    /// The execution of that name.
    pub async fn execution(&self, id: &ExecutionId) -> Result<Execution, ControlError> {
        Ok(self.stored_execution(id).await?.value)
    }

    pub(crate) async fn stored_execution(
        &self,
        id: &ExecutionId,
    ) -> Result<Stored<Execution>, ControlError> {
        let found = self.shared.records.execution(id).await?;
        found.ok_or_else(|| ControlError::not_found(Kind::Execution, id))
    }

    /// An execution that is over, with what became of it.
    pub async fn finished(&self, id: &ExecutionId) -> Result<Finished, ControlError> {
        let execution = self.execution(id).await?;
        if !execution.status.is_over() {
            return Err(ControlError::unfinished(id, execution.status));
        }
        // One that was found lost has no result but its error.
        let result = self.shared.records.result(id).await?;
        let result = result.unwrap_or_else(|| Outcome::lost(id.clone(), String::new()).result);
        let artifacts = self.shared.records.artifacts(id).await?;
        Ok(Finished {
            execution,
            result,
            artifacts,
        })
    }

    /// A session's executions, newest first.
    pub async fn executions(
        &self,
        filter: &ExecutionFilter,
        page: &PageRequest,
    ) -> Result<Page<ExecutionSummary>, ControlError> {
        self.session(&filter.session_id).await?;
        let page = self.shared.records.executions(filter, page).await?;
        Ok(Page {
            items: page.items.into_iter().map(|stored| stored.value).collect(),
            total: page.total,
            next: page.next,
        })
    }
}

impl Submitted {
    /// Waits until it is over. None when what became of it could not be kept.
    pub async fn finished(self) -> Option<Arc<Finished>> {
        wait(self.over).await
    }
}

async fn wait(mut over: Over) -> Option<Arc<Finished>> {
    let finished = over.wait_for(Option::is_some).await;
    finished.ok().and_then(|finished| finished.clone())
}

/// A name for an execution.
pub(crate) fn new_id() -> ExecutionId {
    let today = jiff::tz::TimeZone::UTC.to_datetime(Timestamp::now()).date();
    ExecutionId::random(today, random::numbers())
}
