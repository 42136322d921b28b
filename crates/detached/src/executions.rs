//! Executions, from the request to the report.
//!
//! One is kept before the executor hears of it, and its report before the control plane does. In between, the
//! control plane is told that it runs and, every few seconds, that it goes on: such a word is told once, and
//! not again when nobody hears it. Where the control plane says that an execution is over, it is ended here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use sandbox_executor::protocol::{Answer, Ask};
use sandbox_executor::{Ending, Happening, Outcome, Request};
use sandbox_model::{ExecutionId, RequestId};
use sandbox_runtime::{Course, Line, LineError};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::content::{self, Content};
use crate::control_plane::{ControlPlane, Telling, Verdict};
use crate::courier::{Courier, beside};
use crate::ending::chain;
use crate::journal;
use crate::spool::{Begun, Spool};

/// How many run at once.
const MOST: usize = 64;

/// How long a word that an execution goes on may be on its way: the next one comes soon after.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long to wait before something is written again that could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// What those are told to have ended by that were running when this program was told to end.
const INTERRUPTED: &str = "it was interrupted by the end of its container";

/// All that run.
#[derive(Debug)]
pub(crate) struct Executions {
    line: Line,
    control_plane: Rc<ControlPlane>,
    spool: Arc<Spool>,
    courier: Rc<Courier>,
    running: RefCell<BTreeMap<ExecutionId, Running>>,
    draining: Cell<bool>,
    /// One has ended.
    fewer: Notify,
}

/// What is known of one that runs.
#[derive(Debug, Default)]
struct Running {
    /// Somebody asked for its end.
    cancelled: bool,
}

/// Why one is not begun.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// One of this name was.
    Known,
    /// No new ones are, any more.
    Draining,
    /// So many run already.
    Busy,
    /// It could not be kept.
    Unkept(io::Error),
    /// The executor did not take it.
    Line(LineError),
}

/// What became of a wish to end one.
#[derive(Debug)]
pub(crate) enum Cancelled {
    /// It is being ended.
    Now,
    /// It had ended.
    Over,
    /// There never was one.
    Unknown,
}

/// That an execution goes on, and what it says of its progress.
#[derive(Debug, Serialize)]
struct Heartbeat {
    progress: Option<Box<RawValue>>,
}

/// A word on how an execution goes, on its way.
type Word<'w> = Pin<Box<dyn Future<Output = (bool, Verdict)> + 'w>>;

impl Executions {
    /// None, yet.
    pub(crate) fn new(
        line: Line,
        control_plane: Rc<ControlPlane>,
        spool: Arc<Spool>,
        courier: Rc<Courier>,
    ) -> Executions {
        Executions {
            line,
            control_plane,
            spool,
            courier,
            running: RefCell::default(),
            draining: Cell::new(false),
            fewer: Notify::new(),
        }
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        self.running.borrow().len()
    }

    /// Begins one, which was asked for by `request_id`. On a local set.
    pub(crate) async fn begin(
        self: &Rc<Executions>,
        request: Request,
        request_id: RequestId,
    ) -> Result<(), NotBegun> {
        let id = request.execution_id.clone();
        self.admit(&id)?;
        let course = self.hand_over(request, &request_id).await;
        match course {
            Ok(course) => {
                let message = format!("{id} was begun");
                journal::info(
                    message,
                    &[("execution_id", &id), ("request_id", &request_id)],
                );
                tokio::task::spawn_local(self.clone().see_through(id, course, request_id));
                Ok(())
            }
            Err(reason) => {
                self.dismiss(&id);
                Err(reason)
            }
        }
    }

    /// Lets it be among those that run, where that can be.
    fn admit(&self, id: &ExecutionId) -> Result<(), NotBegun> {
        if self.draining.get() {
            return Err(NotBegun::Draining);
        }
        let mut running = self.running.borrow_mut();
        if running.contains_key(id) {
            return Err(NotBegun::Known);
        }
        if running.len() >= MOST {
            return Err(NotBegun::Busy);
        }
        running.insert(id.clone(), Running::default());
        Ok(())
    }

    fn dismiss(&self, id: &ExecutionId) {
        self.running.borrow_mut().remove(id);
        self.fewer.notify_waiters();
    }

    async fn hand_over(
        &self,
        request: Request,
        request_id: &RequestId,
    ) -> Result<Course, NotBegun> {
        let (spool, id, asked) = (
            self.spool.clone(),
            request.execution_id.clone(),
            request_id.clone(),
        );
        let begun = beside(move || spool.begin(&id, &asked)).await;
        match begun.map_err(NotBegun::Unkept)? {
            Begun::Fresh => {}
            Begun::Known => return Err(NotBegun::Known),
        }
        let id = request.execution_id.clone();
        if self.draining.get() {
            self.forget(id).await?;
            return Err(NotBegun::Draining);
        }
        match self.line.begin(request).await {
            Ok(course) => Ok(course),
            Err(error @ LineError::Refused(_)) => {
                self.forget(id).await?;
                Err(NotBegun::Line(error))
            }
            Err(error) => {
                // It may have begun: it is not to run a second time.
                let outcome = Arc::new(Outcome::lost(id.clone(), chain(&error)));
                self.keep(&outcome).await.map_err(NotBegun::Unkept)?;
                self.courier.bring(id);
                Err(NotBegun::Line(error))
            }
        }
    }

    async fn forget(&self, id: ExecutionId) -> Result<(), NotBegun> {
        let spool = self.spool.clone();
        let forgotten = beside(move || spool.forget(&id)).await;
        forgotten.map_err(NotBegun::Unkept)
    }

    /// Ends one.
    pub(crate) async fn cancel(&self, id: &ExecutionId) -> Result<Cancelled, LineError> {
        if let Some(running) = self.running.borrow_mut().get_mut(id) {
            running.cancelled = true;
        } else {
            return Ok(match self.spool.is_known(id) {
                true => Cancelled::Over,
                false => Cancelled::Unknown,
            });
        }
        match self.line.ask(Ask::Cancel(id.clone())).await?.0 {
            Answer::Cancelled(true) => Ok(Cancelled::Now),
            Answer::Cancelled(false) => Ok(Cancelled::Over),
            _ => Err(LineError::Nonsense),
        }
    }

    /// Ends all of them, and begins none any more. Returns when their reports are kept.
    pub(crate) async fn drain(&self) {
        self.draining.set(true);
        loop {
            let fewer = self.fewer.notified();
            let running: Vec<_> = self.running.borrow().keys().cloned().collect();
            if running.is_empty() {
                return;
            }
            for id in running {
                // Where the executor is gone, they are told so by its line.
                let _ = self.line.ask(Ask::Cancel(id)).await;
            }
            // One that was being handed over may not have heard it.
            let _ = tokio::time::timeout(PAUSE, fewer).await;
        }
    }

    /// Follows one to its end, and keeps its report.
    async fn see_through(
        self: Rc<Executions>,
        id: ExecutionId,
        course: Course,
        request_id: RequestId,
    ) {
        let mut outcome = match self.follow(&id, course, &request_id).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::lost(id.clone(), chain(&error)),
        };
        let wanted = self
            .running
            .borrow()
            .get(&id)
            .is_some_and(|running| running.cancelled);
        if outcome.ending == Ending::Cancelled && self.draining.get() && !wanted {
            outcome.ending = Ending::Crashed;
            outcome.error = Some(INTERRUPTED.to_owned());
        }
        let outcome = Arc::new(outcome);
        while let Err(error) = self.keep(&outcome).await {
            let message = format!("the result of {id} cannot be kept: {error}");
            journal::error(
                message,
                &[("execution_id", &id), ("request_id", &request_id)],
            );
            tokio::time::sleep(PAUSE).await;
        }
        self.courier.bring(id.clone());
        self.dismiss(&id);
    }

    async fn keep(&self, outcome: &Arc<Outcome>) -> io::Result<()> {
        let (spool, outcome) = (self.spool.clone(), outcome.clone());
        beside(move || spool.end(&outcome)).await
    }

    /// Tells how it goes, until it is over.
    async fn follow(
        &self,
        id: &ExecutionId,
        mut course: Course,
        request_id: &RequestId,
    ) -> Result<Outcome, LineError> {
        let mut started = false;
        let mut word = Some(self.word(id, request_id, started, None));
        let mut latest = None;
        loop {
            tokio::select! {
                biased;
                happening = course.next() => match happening {
                    Some(Ok(Happening::Outcome(outcome))) => return Ok(*outcome),
                    Some(Ok(Happening::Heartbeat { progress })) => latest = Some(progress),
                    Some(Ok(Happening::Output { .. })) => {}
                    Some(Err(error)) => return Err(error),
                    None => return Err(LineError::Cut),
                },
                (heard, verdict) = said(&mut word) => {
                    word = None;
                    started |= heard;
                    self.take_word(id, request_id, verdict).await;
                }
            }
            if word.is_none()
                && let Some(progress) = latest.take()
            {
                // As code wrote it: a number written otherwise could be longer than is taken.
                let progress = progress.and_then(|text| RawValue::from_string(text).ok());
                word = Some(self.word(id, request_id, started, Some(Heartbeat { progress })));
            }
        }
    }

    /// That it runs, until that was heard, and that it goes on.
    fn word<'w>(
        &'w self,
        id: &'w ExecutionId,
        request_id: &'w RequestId,
        started: bool,
        heartbeat: Option<Heartbeat>,
    ) -> Word<'w> {
        Box::pin(async move {
            let tell = async |what: &str, content: Content| {
                let telling = Telling {
                    to: format!("/executions/{id}/{what}"),
                    content,
                    request_id: Some(request_id),
                    key: None,
                    patience: PATIENCE,
                };
                self.control_plane.tell(telling).await
            };
            if !started {
                let running = content::of_json(&json!({ "status": "running" }));
                let verdict = tell("status", running).await;
                if verdict != Verdict::Taken || heartbeat.is_none() {
                    return (verdict == Verdict::Taken, verdict);
                }
            }
            match heartbeat {
                Some(heartbeat) => (true, tell("heartbeat", content::of_json(&heartbeat)).await),
                None => (true, Verdict::Taken),
            }
        })
    }

    /// What the control plane says to a word.
    async fn take_word(&self, id: &ExecutionId, request_id: &RequestId, verdict: Verdict) {
        let fields: journal::Fields<'_> = &[("execution_id", id), ("request_id", request_id)];
        match verdict {
            Verdict::Taken => {}
            Verdict::Later(reason) => {
                journal::warn(format!("nobody hears that {id} goes on: {reason}"), fields);
            }
            Verdict::Refused { status, reason } => {
                let message =
                    format!("the control plane refuses to hear of {id}: {status}: {reason}");
                journal::warn(message, fields);
                if matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) {
                    // It is over there, and what it does here is for nobody.
                    let _ = self.line.ask(Ask::Cancel(id.clone())).await;
                }
            }
        }
    }
}

/// What was said to a word that is on its way; never, where none is.
async fn said(word: &mut Option<Word<'_>>) -> (bool, Verdict) {
    match word {
        Some(word) => word.await,
        None => std::future::pending().await,
    }
}
