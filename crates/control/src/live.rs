//! Lines to the sessions that are raised.
//!
//! A session's processes hold nothing but its mounts: everything it has is in its workspace. So they
//! are there only while somebody uses the session, and a while after. Whoever uses it gets its line, and
//! does not see whether it had to be raised for that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_model::{Session, SessionId};
use sandbox_runtime::{Line, Local, LocalError, Raised, SessionSpec, Workspace};

/// The lines.
#[derive(Debug)]
pub(crate) struct Live {
    runtime: Local,
    slots: Mutex<HashMap<SessionId, Counted>>,
}

/// A session's line, where it is raised. Locked while it is raised or ended, so that it is never both.
#[derive(Debug, Default)]
struct Slot {
    line: tokio::sync::Mutex<Option<Raised>>,
}

/// A slot, and how it is used. There is one for each session that is raised or has users.
#[derive(Debug)]
struct Counted {
    slot: Arc<Slot>,
    users: usize,
    last: Instant,
}

/// Somebody's place at a session: counted out when it is dropped.
#[derive(Debug)]
struct Place {
    live: Arc<Live>,
    session: SessionId,
    slot: Arc<Slot>,
}

/// The use of a session: it stays raised as long as this is there.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) line: Line,
    pub(crate) limits_enforced: LimitsEnforced,
    pub(crate) walls: Walls,
    _place: Place,
}

impl Live {
    pub(crate) fn new(runtime: Local) -> Live {
        Live {
            runtime,
            slots: Mutex::default(),
        }
    }

    /// The line to a session, which is raised if it is not.
    pub(crate) async fn line(self: &Arc<Live>, session: &Session) -> Result<Use, LocalError> {
        let place = self.enter(&session.id);
        let slot = place.slot.clone();
        let mut line = slot.line.lock().await;
        let raised = match line.take() {
            Some(raised) => raised,
            None => self.runtime.raise(spec(session)).await?,
        };
        let used = Use {
            line: raised.line.clone(),
            limits_enforced: raised.limits_enforced,
            walls: raised.walls.clone(),
            _place: place,
        };
        *line = Some(raised);
        Ok(used)
    }

    /// Ends a session's processes, whoever uses them. Its workspace stays, and whoever asks for its line
    /// next has it raised again.
    pub(crate) async fn end(self: &Arc<Live>, session: &SessionId) -> Result<(), LocalError> {
        let place = self.enter(session);
        let mut line = place.slot.line.lock().await;
        *line = None;
        self.runtime.end(session).await
    }

    /// Ends a session's processes and removes its workspace.
    pub(crate) async fn discard(self: &Arc<Live>, session: &SessionId) -> Result<(), LocalError> {
        let place = self.enter(session);
        let mut line = place.slot.line.lock().await;
        *line = None;
        self.runtime.discard(session).await
    }

    /// Ends the processes of every session that nobody used for `idle`.
    pub(crate) async fn hibernate(self: &Arc<Live>, idle: Duration) {
        for (id, last) in self.unused() {
            if last.elapsed() < idle {
                continue;
            }
            if let Err(error) = self.end(&id).await {
                tracing::warn!(session = %id, %error, "cannot end the processes of idle session {id}");
            }
        }
    }

    /// Ends the processes of every session.
    pub(crate) async fn end_all(self: &Arc<Live>) {
        let all: Vec<_> = self.lock().keys().cloned().collect();
        for id in all {
            if let Err(error) = self.end(&id).await {
                tracing::warn!(session = %id, %error, "cannot end the processes of session {id}");
            }
        }
    }

    /// Which limits can be enforced.
    pub(crate) fn enforceable(&self) -> LimitsEnforced {
        self.runtime.enforceable()
    }

    /// Does what raises them answer?
    pub(crate) async fn ping(&self) -> Result<(), LocalError> {
        self.runtime.ping().await
    }

    /// How many are raised.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Sessions that are raised and not used, and since when.
    fn unused(&self) -> Vec<(SessionId, Instant)> {
        let slots = self.lock();
        let unused = slots.iter().filter(|(_, slot)| slot.users == 0);
        unused.map(|(id, slot)| (id.clone(), slot.last)).collect()
    }

    /// Counts a user of a session in.
    fn enter(self: &Arc<Live>, session: &SessionId) -> Place {
        let mut slots = self.lock();
        let counted = slots.entry(session.clone()).or_insert_with(|| Counted {
            slot: Arc::default(),
            users: 0,
            last: Instant::now(),
        });
        counted.users += 1;
        Place {
            live: self.clone(),
            session: session.clone(),
            slot: counted.slot.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Counted>> {
        // Nothing that is done under it can panic half-way.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = self.live.lock();
        let Some(counted) = slots.get_mut(&self.session) else {
            return;
        };
        counted.users -= 1;
        counted.last = Instant::now();
        // One that is not raised is not worth remembering. Nobody holds the lock: there are no users.
        let is_down = counted
            .slot
            .line
            .try_lock()
            .is_ok_and(|line| line.is_none());
        if counted.users == 0 && is_down {
            slots.remove(&self.session);
        }
    }
}

/// What the runtime is told of a session.
fn spec(session: &Session) -> SessionSpec {
    SessionSpec {
        session_id: session.id.clone(),
        workspace: Workspace::Empty,
        env_vars: session.env_vars.clone(),
        resources: session.resources,
        network: session.network.clone(),
    }
}
