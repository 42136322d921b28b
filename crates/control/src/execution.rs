//! Executions: having code run, and keeping what became of it.
//!
//! An execution is kept before it is handed to its session, and what became of it is kept before anybody
//! hears of it. It is never handed over twice: what was lost half-way is told as crashed, and run again
//! only where that was asked for, as an execution of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_executor::protocol::Ask;
use sandbox_executor::{Happening, Outcome, Request, Stream};
use sandbox_model::execution::{Artifact, retry_after_seconds};
use sandbox_model::{
    AuditRecord, Execution, ExecutionEvent, ExecutionId, ExecutionResult, ExecutionStatus,
    Language, Session, SessionId, SessionStatus,
};
use sandbox_runtime::{Course, LineError, Workspace};
use sandbox_store::records::{
    Along, ExecutionFilter, ExecutionSummary, Note, Page, PageRequest, Report, Reported,
};
use sandbox_store::{StoreError, Stored};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tracing::Instrument;

use crate::audit::audit_record;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind, chain};
use crate::live::workspace_of;
use crate::outcome::{artifact, digest_of, ended};
use crate::random;

/// How long an execution may take, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u32> = 1..=3600;

const MOST_CODE_BYTES: usize = 100 << 10;
const MOST_EVENT_BYTES: usize = 1 << 20;

/// How deep an event may be nested. Whoever reads it on its way takes 127 levels, of which a few are around it.
const MOST_EVENT_DEPTH: usize = 100;

/// How long an execution runs before it is written down that it does.
const MOMENT: Duration = Duration::from_millis(100);

/// How long an executor may be silent: it says every five seconds that an execution goes on.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);

/// How long an execution that is being ended has before its executor is told again.
const INSISTENCE: Duration = Duration::from_millis(100);

/// How long to wait before what the database did not take is offered again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Code to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExecution {
    /// The code.
    pub code: String,
    /// What it is written in.
    pub language: Language,
    /// What it is given.
    pub event: Value,
    /// How long it may take, in seconds.
    pub timeout_seconds: u32,
    /// Whether it is run again when it crashes.
    pub retry: bool,
}

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
                false => chain(&error),
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

    /// Hands an execution to its session and waits for what becomes of it. `begun` is when it began, if it
    /// did.
    async fn run(
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
        let mut used = self.line_from(session, Workspace::Empty, expected).await?;
        let workspace = workspace_of(session);
        let course = match self
            .heard(&workspace, used.line.begin(request.clone()))
            .await
        {
            // It was cut before it took the request, and has not begun it: so it may be asked again, once.
            Err(LineError::Cut | LineError::Unreachable(_)) => {
                used = self.line(session).await?;
                self.heard(&workspace, used.line.begin(request)).await
            }
            course => course,
        };
        let course = course?;
        let now = *begun.insert(Timestamp::now());
        let id = stored.value.id.clone();
        let mut hearing = std::pin::pin!(self.hear(&id, &workspace, course, printed));
        // What is over in a moment is written down once, as over.
        if let Ok(outcome) = tokio::time::timeout(MOMENT, &mut hearing).await {
            return Ok(outcome?);
        }
        let (outcome, ()) = tokio::join!(hearing, self.mark_running(stored, now));
        Ok(outcome?)
    }

    /// Waits for an executor's next word. One that says nothing for too long, though it does not stand still,
    /// is given up: it is ended, so that nothing is done twice where it is to be done again.
    async fn heard<T>(
        &self,
        workspace: &SessionId,
        word: impl Future<Output = Result<T, LineError>>,
    ) -> Result<T, LineError> {
        let mut word = std::pin::pin!(word);
        loop {
            match tokio::time::timeout(SILENCE, &mut word).await {
                Ok(word) => return word,
                Err(_) if self.shared.live.stood_still(workspace, SILENCE) => {}
                Err(_) => break,
            }
        }
        if let Err(error) = self.shared.live.end(workspace).await {
            tracing::warn!(session = %workspace, %error, "cannot end the silent executor of session {workspace}");
        }
        Err(LineError::Silent(SILENCE))
    }

    /// Hears what an execution says until its end.
    async fn hear(
        &self,
        id: &ExecutionId,
        workspace: &SessionId,
        mut course: Course,
        printed: Option<Printing>,
    ) -> Result<Outcome, LineError> {
        loop {
            let next = async { course.next().await.unwrap_or(Err(LineError::Cut)) };
            match self.heard(workspace, next).await? {
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

    /// Has a crashed execution run again after a while, as a new one. That one is kept when this returns: a
    /// server that ends meanwhile leaves it to the next. Boxed, because it may be run again in turn.
    fn retry(
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
        // What runs in a session that has ended is being ended.
        while !self.session(&session.id).await?.status.is_over() {
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

impl NewExecution {
    fn check(&self) -> Result<(), ControlError> {
        if self.code.len() > MOST_CODE_BYTES {
            let problem = format!("has {} bytes, more than {MOST_CODE_BYTES}", self.code.len());
            return Err(ControlError::invalid(
                "code",
                problem,
                "upload it as a file, and run that",
            ));
        }
        if self.code.trim().is_empty() {
            return Err(ControlError::invalid(
                "code",
                "is empty",
                "send what is to be run",
            ));
        }
        if self.event.to_string().len() > MOST_EVENT_BYTES {
            let problem = format!("is larger than {MOST_EVENT_BYTES} bytes");
            return Err(ControlError::invalid(
                "event",
                problem,
                "upload it as a file",
            ));
        }
        if is_deeper(&self.event, MOST_EVENT_DEPTH) {
            let problem = format!("is nested deeper than {MOST_EVENT_DEPTH} levels");
            return Err(ControlError::invalid(
                "event",
                problem,
                "upload it as a file",
            ));
        }
        if !TIMEOUTS.contains(&self.timeout_seconds) {
            let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
            let problem = format!(
                "{} is not between {least} and {most} seconds",
                self.timeout_seconds
            );
            return Err(ControlError::invalid(
                "timeout",
                problem,
                "choose one in between",
            ));
        }
        Ok(())
    }
}

/// Are there more than so many arrays and objects in each other?
fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_inside = |inner| is_deeper(inner, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_inside),
        Value::Object(entries) => levels == 0 || entries.values().any(is_inside),
        _ => false,
    }
}

/// A name for an execution.
pub(crate) fn new_id() -> ExecutionId {
    let today = jiff::tz::TimeZone::UTC.to_datetime(Timestamp::now()).date();
    ExecutionId::random(today, random::numbers())
}

/// The next attempt after a crashed one, and how long to wait before it.
fn again(crashed: &Execution) -> Option<(Duration, Execution)> {
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
