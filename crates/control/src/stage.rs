//! A control plane for tests, whose sessions do what they are told.
//!
//! Its records are in memory, and what hosts its sessions is a [`Host`], which raises executors that run nothing.
//! What such a one makes of code is in its name: see [`ENDLESS`] and [`UNHEARD`]; all else is over at once. So a
//! test can stop everything at the one moment that it is about.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox_executor::protocol::{Answer, Ask, Question, Reply};
use sandbox_executor::{Ending, Happening, Link, Outcome, link};
use sandbox_model::runtime::{LimitsEnforced, RuntimeKind, Walls};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{
    Capacity, ExecutionId, Language, Session, SessionId, SessionMode, SessionStatus,
};
use sandbox_runtime::runtime::Asked as Awaited;
use sandbox_runtime::{
    Changes, Ended, Line, Promote, Promotion, Raised, Room, Runtime, RuntimeError, SessionSpec,
    Usage,
};
use sandbox_store::objects::{Access, Location, SigningKey};
use sandbox_store::records::Pool;
use sandbox_store::{Objects, Records};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::caller::Caller;
use crate::control::Control;
use crate::execution::{NewExecution, Output, Submitted};
use crate::pool::PoolChoice;
use crate::session::{Asked, NewSession, Source};
use crate::settings::Settings;

/// Code that begins, and goes on until it is ended.
pub(crate) const ENDLESS: &str = "endless";

/// Code that an executor takes no notice of.
pub(crate) const UNHEARD: &str = "unheard";

/// How long anything that is waited for may take. Far above what it does.
const PATIENCE: Duration = Duration::from_secs(30);

/// A control plane and what hosts its sessions.
pub(crate) struct Stage {
    pub(crate) control: Control,
    pub(crate) host: Host,
    /// Tells that the processes of a session ended by themselves.
    pub(crate) ended: mpsc::UnboundedSender<Ended>,
    _objects: tempfile::TempDir,
}

/// What hosts the sessions. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Host {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    executors: HashMap<SessionId, JoinHandle<()>>,
    deeds: Vec<(Deed, SessionId)>,
    asks: Vec<Ask>,
    held: HashSet<Deed>,
    failing: HashSet<Deed>,
    is_silent: bool,
}

/// Something that a host does to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Raise,
    End,
    Discard,
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        Stage::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Stage {
        let mut settings = Settings::new("here".parse().expect("a name"));
        settings.pool.clear();
        change(&mut settings);
        let records = Records::open("sqlite::memory:", &Pool::default()).await;
        let directory = tempfile::tempdir().expect("a directory");
        let location = Location::Directory(directory.path().to_owned());
        let access = Access::with(SigningKey::new(&[7; 32]));
        let objects = Objects::open(&location, &access).await;
        let host = Host::default();
        let (ended, ends) = mpsc::unbounded_channel();
        let control = Control::start(
            settings,
            records.expect("records"),
            objects.expect("objects"),
            Arc::new(host.clone()),
            ends,
        );
        Stage {
            control: control.await.expect("a control plane"),
            host,
            ended,
            _objects: directory,
        }
    }

    /// A session of nobody's.
    pub(crate) async fn session(&self) -> Session {
        self.make(new(None)).await
    }

    /// A persistent session of an agent's.
    pub(crate) async fn session_of(&self, agent: &str) -> Session {
        self.make(new(Some(agent))).await
    }

    async fn make(&self, new: NewSession) -> Session {
        let caller = Caller::nobody();
        let made = self.control.create_session(&caller, new).await;
        made.expect("a session")
    }

    /// Has code run, which is run again when it crashes if `retry` says so.
    pub(crate) async fn submit(&self, session: &Session, code: &str, retry: bool) -> Submitted {
        let new = NewExecution {
            code: code.to_owned(),
            language: Language::Shell,
            event: Value::Null,
            timeout_seconds: 60,
            retry,
        };
        let caller = Caller::nobody();
        let submitted = self
            .control
            .submit(&caller, &session.id, new, Output::Kept)
            .await;
        submitted.expect("it is accepted")
    }

    /// Waits until a session is written down as that.
    pub(crate) async fn until(&self, session: &SessionId, status: SessionStatus) {
        let look = async {
            loop {
                let session = self.control.session(session).await.expect("it is there");
                if session.status == status {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(look).await;
    }
}

/// A session to be made: an agent's, or nobody's.
pub(crate) fn new(agent: Option<&str>) -> NewSession {
    NewSession {
        template_id: "python-basic".parse().expect("a name"),
        timeout_seconds: 3600,
        mode: match agent {
            Some(_) => SessionMode::Persistent,
            None => SessionMode::Ephemeral,
        },
        agent_id: agent.map(str::to_owned),
        resources: Asked::default(),
        env_vars: Default::default(),
        network: SessionNetwork::default(),
        source: Source::Empty,
        pool: PoolChoice::Never,
    }
}

/// Waits for something that must come.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(PATIENCE, what).await;
    came.expect("it comes within its time")
}

impl Host {
    /// From now on this is begun and not done.
    pub(crate) fn hold(&self, deed: Deed) {
        self.lock().held.insert(deed);
    }

    /// What was held is done.
    pub(crate) fn release(&self, deed: Deed) {
        self.lock().held.remove(&deed);
        self.changed.notify_waiters();
    }

    /// From now on this fails.
    pub(crate) fn fail(&self, deed: Deed) {
        self.lock().failing.insert(deed);
    }

    /// From now on no executor says anything.
    pub(crate) fn fall_silent(&self) {
        self.lock().is_silent = true;
    }

    /// How often this was begun.
    pub(crate) fn count(&self, deed: Deed) -> usize {
        let state = self.lock();
        state.deeds.iter().filter(|(done, _)| *done == deed).count()
    }

    /// Waits until this was begun so often.
    pub(crate) async fn until(&self, deed: Deed, times: usize) {
        self.wait(|state| {
            let done = state.deeds.iter().filter(|(done, _)| *done == deed);
            done.count() >= times
        })
        .await;
    }

    /// Waits until an executor was asked this.
    pub(crate) async fn until_asked(&self, is_it: impl Fn(&Ask) -> bool) {
        self.wait(|state| state.asks.iter().any(&is_it)).await;
    }

    /// How often executors were asked to run this.
    pub(crate) fn runs(&self, code: &str) -> usize {
        let asks = &self.lock().asks;
        let is_it = |ask: &&Ask| matches!(ask, Ask::Execute(request) if request.code == code);
        asks.iter().filter(is_it).count()
    }

    /// Kills a session's processes.
    pub(crate) async fn kill(&self, workspace: &SessionId) {
        let executor = self.lock().executors.remove(workspace);
        if let Some(executor) = executor {
            executor.abort();
            let _ = executor.await;
        }
    }

    async fn wait(&self, is_so: impl Fn(&State) -> bool) {
        soon(async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(&self.lock()) {
                    return;
                }
                changed.await;
            }
        })
        .await;
    }

    async fn begin(&self, deed: Deed, workspace: &SessionId) -> Result<(), RuntimeError> {
        self.lock().deeds.push((deed, workspace.clone()));
        self.changed.notify_waiters();
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.lock().held.contains(&deed) {
                break;
            }
            changed.await;
        }
        match self.lock().failing.contains(&deed) {
            true => Err(RuntimeError::Gone),
            false => Ok(()),
        }
    }

    fn ask(&self, ask: &Ask) -> bool {
        let mut state = self.lock();
        state.asks.push(ask.clone());
        let is_silent = state.is_silent;
        drop(state);
        self.changed.notify_waiters();
        !is_silent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers as an executor does, and runs nothing.
async fn play(link: Link, host: Host) {
    let mut running = HashMap::<ExecutionId, u64>::new();
    while let Ok(Some((Question { number, ask }, _))) = link.receive().await {
        if !host.ask(&ask) {
            continue;
        }
        let over = |id: ExecutionId, ending| {
            let outcome = Outcome {
                ending,
                error: None,
                ..Outcome::lost(id, String::new())
            };
            Answer::Happening(Happening::Outcome(Box::new(outcome)))
        };
        let answers = match ask {
            Ask::Execute(request) if request.code == UNHEARD => Vec::new(),
            Ask::Execute(request) if request.code == ENDLESS => {
                running.insert(request.execution_id, number);
                vec![(number, Answer::Begun)]
            }
            Ask::Execute(request) => {
                let finished = over(request.execution_id, Ending::Finished);
                vec![(number, Answer::Begun), (number, finished)]
            }
            Ask::Cancel(id) => match running.remove(&id) {
                Some(began) => vec![
                    (began, over(id, Ending::Cancelled)),
                    (number, Answer::Cancelled(true)),
                ],
                None => vec![(number, Answer::Cancelled(false))],
            },
            // As if there were much of it.
            Ask::RemoveAll(_) => Vec::new(),
            _ => vec![(number, Answer::Done)],
        };
        for (number, answer) in answers {
            let answer = Ok(answer);
            // Whoever asked may be gone.
            let _ = link.send(&Reply { number, answer }, &[]).await;
        }
    }
}

impl Runtime for Host {
    fn kind(&self) -> RuntimeKind {
        RuntimeKind::Local
    }

    fn enforceable(&self) -> LimitsEnforced {
        LimitsEnforced::default()
    }

    fn room(&self) -> Result<Room, RuntimeError> {
        let all = Capacity {
            cpu_thousandths: 8000,
            memory_bytes: 1 << 40,
            disk_bytes: 1 << 40,
        };
        Ok(Room {
            total: all,
            free: all,
        })
    }

    fn ping(&self) -> Awaited<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn raise(&self, spec: SessionSpec) -> Awaited<'_, Raised> {
        Box::pin(async move {
            let workspace = &spec.session_id;
            self.begin(Deed::Raise, workspace).await?;
            let (ours, theirs) = link::pair().map_err(RuntimeError::Tell)?;
            let link = Link::new(theirs).map_err(RuntimeError::Tell)?;
            let mut state = self.lock();
            assert!(!state.executors.contains_key(workspace), "it is raised");
            let executor = tokio::spawn(play(link, self.clone()));
            state.executors.insert(workspace.clone(), executor);
            Ok(Raised {
                line: Line::new(ours).map_err(RuntimeError::Tell)?,
                limits_enforced: LimitsEnforced::default(),
                walls: Walls::default(),
            })
        })
    }

    fn end<'a>(&'a self, session: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async {
            self.begin(Deed::End, session).await?;
            self.kill(session).await;
            Ok(())
        })
    }

    fn discard<'a>(&'a self, session: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async {
            self.begin(Deed::Discard, session).await?;
            self.kill(session).await;
            Ok(())
        })
    }

    fn freeze<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn thaw<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn fork<'a>(&'a self, _: &'a SessionId, _: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn workspaces(&self) -> Awaited<'_, Vec<SessionId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn changes<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, Changes> {
        Box::pin(async { Err(RuntimeError::Nonsense) })
    }

    fn promote<'a>(&'a self, _: &'a SessionId, _: Promote) -> Awaited<'a, Promotion> {
        Box::pin(async { Err(RuntimeError::Nonsense) })
    }

    fn usage<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, Usage> {
        Box::pin(async { Ok(Usage::default()) })
    }
}
