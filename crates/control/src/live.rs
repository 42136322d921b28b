//! Lines to the sessions that are raised.
//!
//! A session's processes hold nothing but its mounts: everything it has is in its workspace. So they
//! are there only while somebody uses the session, and a while after. Whoever uses it gets its line, and
//! does not see whether it had to be raised for that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use sandbox_executor::protocol::Ask;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_model::{Language, Session, SessionId};
use sandbox_runtime::{Image, Line, Raised, Runtime, RuntimeError, SessionSpec, Workspace};

/// How many are ended at a time.
const TOGETHER: usize = 16;

/// Which part of the machine's memory should be left. The processes of sessions that nobody uses are worth
/// less than that.
const LEFT: f64 = 0.5;

/// The lines.
#[derive(Debug)]
pub(crate) struct Live {
    runtime: Arc<dyn Runtime>,
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
    /// For which code it was last told to make ready.
    foreseen: Option<Language>,
}

/// Somebody's place at a session: counted out when it is dropped.
#[derive(Debug)]
struct Place {
    live: Arc<Live>,
    session: SessionId,
    slot: Arc<Slot>,
}

/// How a session is raised.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// What it finds around it.
    pub(crate) image: Image,
    /// What its workspace starts from, where it has none yet.
    pub(crate) workspace: Workspace,
    /// Whose interpreter is to wait for the first code, if one is.
    pub(crate) warm: Option<Language>,
    /// Whose code is likely to come at once.
    pub(crate) expected: Option<Language>,
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
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Live {
        Live {
            runtime,
            slots: Mutex::default(),
        }
    }

    /// What hosts the sessions.
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        self.runtime.as_ref()
    }

    /// The line to a session, which is raised if it is not, as `start` says.
    pub(crate) async fn line(
        self: &Arc<Live>,
        session: &Session,
        start: Start,
    ) -> Result<Use, RuntimeError> {
        let place = self.enter(&workspace_of(session));
        let slot = place.slot.clone();
        let mut line = slot.line.lock().await;
        let raised = match line.take() {
            Some(raised) => raised,
            None => self.runtime.raise(spec(session, start)).await?,
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

    /// Lets a session that is raised make ready for code in `language`, which is on its way: an interpreter
    /// starts while the execution is written down. One that has the workspace of another is not found, and
    /// starts it later.
    pub(crate) fn foresee(&self, session: &SessionId, language: Language) {
        let mut slots = self.lock();
        let Some(counted) = slots.get_mut(session) else {
            return;
        };
        // One waits for more of the same anyway.
        if language == Language::Shell || counted.foreseen == Some(language) {
            return;
        }
        let Ok(raised) = counted.slot.line.try_lock() else {
            return;
        };
        if let Some(line) = raised.as_ref().map(|raised| raised.line.clone()) {
            counted.foreseen = Some(language);
            tokio::spawn(async move { line.ask(Ask::Foresee(language)).await });
        }
    }

    /// Ends the processes in a workspace, whoever uses them. It stays, and whoever asks for its line next
    /// has it raised again.
    pub(crate) async fn end(self: &Arc<Live>, workspace: &SessionId) -> Result<(), RuntimeError> {
        let place = self.enter(workspace);
        let mut line = place.slot.line.lock().await;
        // It is cut afterwards: an executor that is left alone ends, and would be told of as having ended by
        // itself.
        let _cut = line.take();
        self.runtime.end(workspace).await
    }

    /// Ends the processes in a workspace and removes it.
    pub(crate) async fn discard(
        self: &Arc<Live>,
        workspace: &SessionId,
    ) -> Result<(), RuntimeError> {
        let place = self.enter(workspace);
        let mut line = place.slot.line.lock().await;
        let _cut = line.take();
        self.runtime.discard(workspace).await
    }

    /// Stops everything in a session where it is. One that is not raised stands still already.
    pub(crate) async fn freeze(self: &Arc<Live>, session: &Session) -> Result<(), RuntimeError> {
        let workspace = workspace_of(session);
        let place = self.enter(&workspace);
        let line = place.slot.line.lock().await;
        match line.as_ref() {
            Some(_) => self.runtime.freeze(&workspace).await,
            None => Ok(()),
        }
    }

    /// Lets it go on.
    pub(crate) async fn thaw(self: &Arc<Live>, session: &Session) -> Result<(), RuntimeError> {
        let workspace = workspace_of(session);
        let place = self.enter(&workspace);
        let line = place.slot.line.lock().await;
        match line.as_ref() {
            Some(_) => self.runtime.thaw(&workspace).await,
            None => Ok(()),
        }
    }

    /// Ends the processes of every session that nobody used for `idle`, or for less where memory is short.
    pub(crate) async fn hibernate(self: &Arc<Live>, idle: Duration) {
        let idle = idle.mul_f64(self.plenty());
        let unused = self.unused().into_iter();
        let due = unused.filter(|(_, last)| last.elapsed() >= idle);
        self.end_these(due.map(|(id, _)| id)).await;
    }

    /// Ends the processes of every session.
    pub(crate) async fn end_all(self: &Arc<Live>) {
        let all: Vec<_> = self.lock().keys().cloned().collect();
        self.end_these(all).await;
    }

    async fn end_these(self: &Arc<Live>, ids: impl IntoIterator<Item = SessionId>) {
        let ends = ids.into_iter().map(|id| async move {
            if let Err(error) = self.end(&id).await {
                tracing::warn!(session = %id, %error, "cannot end the processes of session {id}");
            }
        });
        let ends = futures_util::stream::iter(ends);
        ends.for_each_concurrent(TOGETHER, |end| end).await;
    }

    /// Is there memory for what may not be needed?
    pub(crate) fn has_plenty(&self) -> bool {
        self.plenty() >= 1.0
    }

    /// How much of the memory that should be left there is, from next to nothing to all of it.
    fn plenty(&self) -> f64 {
        match self.runtime.room() {
            Ok(room) => {
                let left = room.free.memory_bytes as f64 / room.total.memory_bytes.max(1) as f64;
                (left / LEFT).clamp(0.02, 1.0)
            }
            Err(_) => 1.0,
        }
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
            foreseen: None,
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

/// Which workspace a session has: its own, or that of the session of its agent before it.
pub(crate) fn workspace_of(session: &Session) -> SessionId {
    let name = session.workspace_path.rsplit('/').next();
    let workspace = name.and_then(|name| name.parse().ok());
    workspace.unwrap_or_else(|| session.id.clone())
}

/// What the runtime is told of a session. It knows it by its workspace.
fn spec(session: &Session, start: Start) -> SessionSpec {
    let Start {
        image,
        workspace,
        warm,
        expected,
    } = start;
    SessionSpec {
        image,
        warm,
        expected,
        session_id: workspace_of(session),
        workspace,
        env_vars: session.env_vars.clone(),
        resources: session.resources,
        network: session.network.clone(),
    }
}
