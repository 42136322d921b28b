//! Lines to the sessions that are raised.
//!
//! A session's processes hold nothing but its mounts: everything it has is in its workspace. So they
//! are there only while somebody uses the session, and a while after. Whoever uses it gets its line, and
//! does not see whether it had to be raised for that.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use jiff::Timestamp;
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
    /// How often something was raised.
    raises: AtomicU64,
}

/// A session's line, where it is raised. Locked while it is raised or ended, so that it is never both.
type Slot = tokio::sync::Mutex<Option<Held>>;

/// What is raised, and for whom: sessions of one agent have the same workspace, one after the other, but not the
/// same environment, network or limits.
#[derive(Debug)]
struct Held {
    whose: SessionId,
    /// When that session was made.
    made_at: Timestamp,
    /// It was over then: nothing but its files is wanted.
    for_files: bool,
    /// Which raise it was.
    number: u64,
    raised: Raised,
}

/// A slot, and how it is used. There is one for each session that is raised or has users.
#[derive(Debug)]
struct Counted {
    slot: Arc<Slot>,
    users: usize,
    last: Instant,
    /// For whom it was last raised.
    whose: Option<SessionId>,
    /// For which code it was last told to make ready.
    foreseen: Option<Language>,
    stillness: Stillness,
}

/// Whether a session stands still: nothing is heard of it then.
#[derive(Debug, Default)]
struct Stillness {
    frozen: bool,
    /// So many copies of it are being made.
    copies: usize,
    /// When it last did.
    until: Option<Instant>,
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
    /// Which raise it is a use of.
    number: u64,
    place: Place,
}

/// Processes that were raised for a session while that was not over.
#[derive(Debug)]
pub(crate) struct Work {
    /// Whose they are.
    pub(crate) session: SessionId,
    workspace: SessionId,
    /// Which raise it was.
    number: u64,
}

impl Live {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Live {
        Live {
            runtime,
            slots: Mutex::default(),
            raises: AtomicU64::new(0),
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
        let mut line = place.slot.clone().lock_owned().await;
        match line.as_ref().filter(|held| held.is_up()) {
            Some(held) if held.does_for(session) => return Ok(held.used(place)),
            // Whoever asks for the older one does not know yet that it has ended.
            Some(held) if held.made_at > session.created_at => {
                return Err(RuntimeError::Conflict {
                    operation: "raise",
                    session: session.id.clone(),
                    reason: "a later session of its agent has its workspace".to_owned(),
                });
            }
            _ => {}
        }
        let (runtime, whose) = (self.runtime.clone(), session.id.clone());
        let (made_at, for_files) = (session.created_at, session.status.is_over());
        let number = self.raises.fetch_add(1, Ordering::Relaxed);
        let spec = spec(session, start);
        // Seen through when whoever asked goes away: what is raised must be known here.
        let raising = tokio::spawn(async move {
            let cut = line.take();
            let raised = async {
                if cut.is_some() {
                    runtime.end(&spec.session_id).await?;
                }
                runtime.raise(spec).await
            };
            match raised.await {
                Ok(raised) => {
                    place.raised_for(&whose);
                    let held = Held {
                        whose,
                        made_at,
                        for_files,
                        number,
                        raised,
                    };
                    Ok(line.insert(held).used(place))
                }
                Err(error) => {
                    // Before the place is given up, which looks at it.
                    drop(line);
                    Err(error)
                }
            }
        });
        raising.await.map_err(|_| RuntimeError::Gone)?
    }

    /// The line to a session, if it is raised.
    pub(crate) async fn up(self: &Arc<Live>, session: &Session) -> Option<Use> {
        let place = self.enter(&workspace_of(session));
        let line = place.slot.clone().lock_owned().await;
        let held = line.as_ref().filter(|held| held.does_for(session));
        held.map(|held| held.used(place))
    }

    /// For which session a workspace was last raised, if it still is or is used. Waits for nobody: what is done to
    /// a workspace may take long.
    pub(crate) fn whose(&self, workspace: &SessionId) -> Option<SessionId> {
        let slots = self.lock();
        slots.get(workspace)?.whose.clone()
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
        let Ok(held) = counted.slot.try_lock() else {
            return;
        };
        if let Some(line) = held.as_ref().map(|held| held.raised.line.clone()) {
            counted.foreseen = Some(language);
            tokio::spawn(async move { line.ask(Ask::Foresee(language)).await });
        }
    }

    /// Ends the processes in a workspace, whosever they are and whoever uses them. It stays, and whoever asks for
    /// its line next has it raised again.
    pub(crate) async fn end(self: &Arc<Live>, workspace: &SessionId) -> Result<(), RuntimeError> {
        self.end_if(workspace, |_| true).await
    }

    /// Ends the processes of a session, whoever uses them; not those of another that has its workspace now.
    pub(crate) async fn end_of(self: &Arc<Live>, session: &Session) -> Result<(), RuntimeError> {
        self.end_if(&workspace_of(session), |held| held.whose == session.id)
            .await
    }

    /// What is raised for sessions that were not over then. What is being raised or ended this moment is passed over.
    pub(crate) fn work(&self) -> Vec<Work> {
        let slots = self.lock();
        let work = slots.iter().filter_map(|(workspace, counted)| {
            let line = counted.slot.try_lock().ok()?;
            let held = line.as_ref().filter(|held| !held.for_files)?;
            Some(Work {
                session: held.whose.clone(),
                workspace: workspace.clone(),
                number: held.number,
            })
        });
        work.collect()
    }

    /// Ends these processes, whoever uses them; not those that came after them.
    pub(crate) async fn end_work(self: &Arc<Live>, work: &Work) -> Result<(), RuntimeError> {
        self.end_if(&work.workspace, |held| held.number == work.number)
            .await
    }

    /// Ends the processes that this is a use of; not those that came after them.
    pub(crate) async fn end_used(self: &Arc<Live>, used: &Use) -> Result<(), RuntimeError> {
        self.end_if(used.workspace(), |held| held.number == used.number)
            .await
    }

    /// Ends the processes in a workspace, unless there are others than those that are meant.
    async fn end_if(
        self: &Arc<Live>,
        workspace: &SessionId,
        is_meant: impl Fn(&Held) -> bool,
    ) -> Result<(), RuntimeError> {
        let place = self.enter(workspace);
        let mut line = place.slot.lock().await;
        if line.as_ref().is_some_and(|held| !is_meant(held)) {
            return Ok(());
        }
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
        let mut line = place.slot.lock().await;
        let _cut = line.take();
        self.runtime.discard(workspace).await
    }

    /// Stops everything in a session where it is. One that is not raised stands still already.
    pub(crate) async fn freeze(self: &Arc<Live>, session: &Session) -> Result<(), RuntimeError> {
        let workspace = workspace_of(session);
        let place = self.enter(&workspace);
        let line = place.slot.lock().await;
        if line.as_ref().is_some_and(Held::is_up) {
            self.runtime.freeze(&workspace).await?;
            place.stillness(|stillness| stillness.frozen = true);
        }
        Ok(())
    }

    /// Lets it go on.
    pub(crate) async fn thaw(self: &Arc<Live>, session: &Session) -> Result<(), RuntimeError> {
        let workspace = workspace_of(session);
        let place = self.enter(&workspace);
        let line = place.slot.lock().await;
        if line.as_ref().is_some_and(Held::is_up) {
            self.runtime.thaw(&workspace).await?;
            place.stillness(|stillness| stillness.frozen = false);
        }
        Ok(())
    }

    /// Makes the workspace `to` a copy of `from`, which stands still meanwhile.
    pub(crate) async fn fork(
        self: &Arc<Live>,
        from: &SessionId,
        to: &SessionId,
    ) -> Result<(), RuntimeError> {
        let copying = Copying::of(self.enter(from));
        let forked = self.runtime.fork(from, to).await;
        drop(copying);
        forked
    }

    /// Did a session stand still at some time within the last `span`?
    pub(crate) fn stood_still(&self, workspace: &SessionId, span: Duration) -> bool {
        let slots = self.lock();
        let stillness = slots.get(workspace).map(|counted| &counted.stillness);
        stillness.is_some_and(|it| {
            let lately = it.until.is_some_and(|until| until.elapsed() < span);
            it.frozen || it.copies > 0 || lately
        })
    }

    /// Ends the processes of every session that nobody used for `idle`, or for less where memory is short.
    pub(crate) async fn hibernate(self: &Arc<Live>, idle: Duration) {
        let idle = idle.mul_f64(self.plenty());
        let unused = self.unused().into_iter();
        let due = unused.filter(|(_, last)| last.elapsed() >= idle);
        let ends = due.map(|(id, _)| async move { self.end_unused(&id).await });
        let ends = futures_util::stream::iter(ends);
        ends.for_each_concurrent(TOGETHER, |end| end).await;
    }

    /// Ends the processes in a workspace, unless somebody uses it again.
    async fn end_unused(self: &Arc<Live>, workspace: &SessionId) {
        let place = self.enter(workspace);
        let mut line = place.slot.lock().await;
        // Whoever has its line is counted; whoever comes now waits, and has it raised again.
        if self.users(workspace) > 1 {
            return;
        }
        let _cut = line.take();
        if let Err(error) = self.runtime.end(workspace).await {
            tracing::warn!(session = %workspace, %error, "cannot end the processes of session {workspace}");
        }
    }

    fn users(&self, workspace: &SessionId) -> usize {
        let slots = self.lock();
        slots.get(workspace).map_or(0, |counted| counted.users)
    }

    /// Ends the processes of every session.
    pub(crate) async fn end_all(self: &Arc<Live>) {
        let all: Vec<_> = self.lock().keys().cloned().collect();
        let ends = all.into_iter().map(|id| async move {
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
            whose: None,
            foreseen: None,
            stillness: Stillness::default(),
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

impl Held {
    fn is_up(&self) -> bool {
        !self.raised.line.is_cut()
    }

    /// Of a session that is over nothing is wanted but its files, and those are there whoever it is.
    fn does_for(&self, session: &Session) -> bool {
        self.is_up() && (self.whose == session.id || session.status.is_over())
    }

    fn used(&self, place: Place) -> Use {
        Use {
            line: self.raised.line.clone(),
            limits_enforced: self.raised.limits_enforced,
            walls: self.raised.walls.clone(),
            number: self.number,
            place,
        }
    }
}

impl Use {
    /// The workspace that is used.
    pub(crate) fn workspace(&self) -> &SessionId {
        &self.place.session
    }
}

impl Place {
    fn raised_for(&self, session: &SessionId) {
        if let Some(counted) = self.live.lock().get_mut(&self.session) {
            counted.whose = Some(session.clone());
        }
        self.stillness(|stillness| stillness.frozen = false);
    }

    fn stillness(&self, change: impl FnOnce(&mut Stillness)) {
        if let Some(counted) = self.live.lock().get_mut(&self.session) {
            change(&mut counted.stillness);
            counted.stillness.until = Some(Instant::now());
        }
    }
}

/// A copy of a session that is being made; counted out when it is dropped.
struct Copying(Place);

impl Copying {
    fn of(place: Place) -> Copying {
        place.stillness(|stillness| stillness.copies += 1);
        Copying(place)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.stillness(|stillness| stillness.copies -= 1);
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
        let is_down = counted.slot.try_lock().is_ok_and(|line| line.is_none());
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
        // Of one that is over only the files are wanted.
        promised: match session.status.is_over() {
            true => LimitsEnforced::default(),
            false => session.limits_enforced,
        },
        network: session.network.clone(),
    }
}
