//! The executions that are under way on this server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox_model::ExecutionId;
use tokio::sync::oneshot;

use crate::error::ControlError;
use crate::execution::Over;

/// Which ones, and whether more are taken.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    state: Mutex<State>,
    ended: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    is_interrupted: bool,
    executions: HashMap<ExecutionId, Over>,
    /// Those that wait for their time, and how they are roused before it.
    asleep: HashMap<ExecutionId, oneshot::Sender<()>>,
}

/// How the sleep of one that waited for its time ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Its time came.
    InTime,
    /// Nobody wants it any more.
    Cancelled,
    /// The server is ending.
    Interrupted,
}

impl Underway {
    /// Counts one in; refused when nothing more is taken.
    pub(crate) fn enter(&self, id: &ExecutionId, over: Over) -> Result<ExecutionId, ControlError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(ControlError::Exhausted {
                problem: "the server is ending".to_owned(),
                solution: "send it again to the server that takes its place".to_owned(),
            });
        }
        state.executions.insert(id.clone(), over);
        Ok(id.clone())
    }

    /// Counts it out.
    pub(crate) fn leave(&self, id: &ExecutionId) {
        self.lock().executions.remove(id);
        self.ended.notify_waiters();
    }

    /// What becomes of it, if it is under way.
    pub(crate) fn find(&self, id: &ExecutionId) -> Option<Over> {
        self.lock().executions.get(id).cloned()
    }

    /// Is it under way on this server?
    pub(crate) fn contains(&self, id: &ExecutionId) -> bool {
        self.lock().executions.contains_key(id)
    }

    /// Takes nothing more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Is nothing more taken?
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// What is under way will be ended.
    pub(crate) fn interrupt(&self) {
        let mut state = self.lock();
        state.is_interrupted = true;
        state.asleep.clear();
    }

    /// Waits for the time of one that is under way and not begun, or until it need not be begun.
    pub(crate) async fn sleep(&self, id: &ExecutionId, wait: Duration) -> Woken {
        let (rouse, mut roused) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.is_interrupted {
                return Woken::Interrupted;
            }
            state.asleep.insert(id.clone(), rouse);
        }
        let early = tokio::time::timeout(wait, &mut roused).await;
        // Whoever was quicker to take it out has roused it.
        let is_in_time = early.is_err() && self.lock().asleep.remove(id).is_some();
        let early = match early {
            _ if is_in_time => return Woken::InTime,
            Ok(early) => early,
            Err(_) => roused.await,
        };
        match early {
            Ok(()) => Woken::Cancelled,
            Err(_) => Woken::Interrupted,
        }
    }

    /// Lets one that waits for its time know that nobody wants it any more. `false` when none does.
    pub(crate) fn rouse(&self, id: &ExecutionId) -> bool {
        let rouse = self.lock().asleep.remove(id);
        rouse.is_some_and(|rouse| rouse.send(()).is_ok())
    }

    /// Is what is under way being ended?
    pub(crate) fn is_interrupted(&self) -> bool {
        self.lock().is_interrupted
    }

    /// Until none is under way.
    pub(crate) async fn drained(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.lock().executions.is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
