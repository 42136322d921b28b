//! The executions that are under way on this server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbox_model::ExecutionId;

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
        self.lock().is_interrupted = true;
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
