//! A control plane for tests, whose sessions do what they are told.
//!
//! Its records are in memory, and what hosts its sessions is a [`Host`], which raises executors that run nothing, and
//! have the files that they were given. What such a one makes of code is in its name: see [`ENDLESS`] and [`UNHEARD`];
//! all else is over at once. So a test can stop everything at the one moment that it is about.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sandbox_executor::listing::{Entry, Kind, Page};
use sandbox_executor::protocol::{Answer, Ask, Question, Refusal, RefusalKind, Reply};
use sandbox_executor::{Ending, Happening, Link, Outcome, link};
use sandbox_model::runtime::{LimitsEnforced, RuntimeKind, Walls};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{
    Capacity, ExecutionId, Language, Session, SessionId, SessionMode, SessionStatus, Template,
};
use sandbox_runtime::runtime::Asked as Awaited;
use sandbox_runtime::{
    ChangeReport, Ended, Image, Line, Promote, Promotion, Raised, Room, Runtime, RuntimeError,
    SessionSpec, Usage,
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
#[derive(Clone, Default)]
pub(crate) struct Host {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    executors: HashMap<SessionId, JoinHandle<()>>,
    deeds: Vec<(Deed, SessionId)>,
    asks: Vec<Ask>,
    held: HashSet<Deed>,
    failing: HashSet<Deed>,
    is_silent: bool,
    frozen: HashSet<SessionId>,
    /// Whose workspaces cannot be removed.
    stuck: HashSet<SessionId>,
    files: Vec<Given>,
    interruption: Option<Box<dyn FnOnce() + Send>>,
}

/// A file that every session has, and what its executor says of it.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) name: &'static str,
    /// How long it is said to be.
    pub(crate) size: u64,
    pub(crate) content: Vec<u8>,
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
        let mut parts = Parts::new().await;
        change(&mut parts.settings);
        let host = Host::default();
        let (ended, ends) = mpsc::unbounded_channel();
        let runtime = Arc::new(host.clone());
        let control = Control::start(parts.settings, parts.records, parts.objects, runtime, ends);
        Stage {
            control: control.await.expect("a control plane"),
            host,
            ended,
            _objects: parts.directory,
        }
    }

    /// One that does nothing by itself.
    pub(crate) async fn still() -> Stage {
        let parts = Parts::new().await;
        let host = Host::default();
        let runtime = Arc::new(host.clone());
        let control = Control::new(parts.settings, parts.records, parts.objects, runtime);
        control.seed_templates().await.expect("templates");
        Stage {
            control,
            host,
            ended: mpsc::unbounded_channel().0,
            _objects: parts.directory,
        }
    }

    /// Another server on the same records, which does nothing by itself, and what hosts its sessions.
    pub(crate) fn beside(&self, settings: Settings) -> (Control, Host) {
        let host = Host::default();
        let (records, objects) = (self.control.records(), self.control.objects());
        let runtime = Arc::new(host.clone());
        let control = Control::new(settings, records.clone(), objects.clone(), runtime);
        (control, host)
    }

    /// A session that runs and is to run for an hour, or what `change` makes of it. It is written down, and not
    /// raised.
    pub(crate) async fn written(&self, change: impl FnOnce(&mut Session)) -> Session {
        let [template, ..] = Template::seeds(Timestamp::now());
        let mut session = self.control.draft_of(&template);
        session.status = SessionStatus::Running;
        session.expires_at += SignedDuration::from_hours(1);
        change(&mut session);
        let stored = self.control.records().insert_session(&session).await;
        stored.expect("it is written down").value
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

/// What a control plane is made of.
struct Parts {
    settings: Settings,
    records: Records,
    objects: Objects,
    directory: tempfile::TempDir,
}

impl Parts {
    async fn new() -> Parts {
        let mut settings = Settings::new("here".parse().expect("a name"));
        settings.pool.clear();
        let records = Records::open("sqlite::memory:", &Pool::default()).await;
        let directory = tempfile::tempdir().expect("a directory");
        let location = Location::Directory(directory.path().to_owned());
        let access = Access::with(SigningKey::new(&[7; 32]));
        let objects = Objects::open(&location, &access).await;
        Parts {
            settings,
            records: records.expect("records"),
            objects: objects.expect("objects"),
            directory,
        }
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

    /// From now on it no longer does.
    pub(crate) fn succeed(&self, deed: Deed) {
        self.lock().failing.remove(&deed);
    }

    /// From now on no executor says anything.
    pub(crate) fn fall_silent(&self) {
        self.lock().is_silent = true;
    }

    /// Does everything in this workspace stand still?
    pub(crate) fn is_frozen(&self, workspace: &SessionId) -> bool {
        self.lock().frozen.contains(workspace)
    }

    /// The workspace of this session cannot be removed.
    pub(crate) fn stick(&self, session: &SessionId) {
        self.lock().stuck.insert(session.clone());
    }

    /// Every session has these files.
    pub(crate) fn give(&self, files: Vec<Given>) {
        self.lock().files = files;
    }

    /// Does something when it is next asked what room there is, before it answers.
    pub(crate) fn interrupt(&self, interruption: impl FnOnce() + Send + 'static) {
        self.lock().interruption = Some(Box::new(interruption));
    }

    /// To which sessions this was done, in that order.
    pub(crate) fn done(&self, deed: Deed) -> Vec<SessionId> {
        let state = self.lock();
        let these = state.deeds.iter().filter(|(done, _)| *done == deed);
        these.map(|(_, session)| session.clone()).collect()
    }

    /// How often this was begun.
    pub(crate) fn count(&self, deed: Deed) -> usize {
        self.done(deed).len()
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
        let state = self.lock();
        let is_stuck = deed == Deed::Discard && state.stuck.contains(workspace);
        match is_stuck || state.failing.contains(&deed) {
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
        let files = host.lock().files.clone();
        let mut opened = None;
        let answers = match ask {
            Ask::List { .. } => vec![(number, Ok(Answer::Entries(listed(&files))))],
            Ask::Read(path) => match files.iter().find(|given| path == *given.name) {
                Some(given) => {
                    opened = Some(open(&given.content));
                    vec![(number, Ok(Answer::File(given.size)))]
                }
                None => vec![(number, Err(missing()))],
            },
            Ask::Execute(request) if request.code == UNHEARD => Vec::new(),
            Ask::Execute(request) if request.code == ENDLESS => {
                running.insert(request.execution_id, number);
                vec![(number, Ok(Answer::Begun))]
            }
            Ask::Execute(request) => {
                let finished = over(request.execution_id, Ending::Finished);
                vec![(number, Ok(Answer::Begun)), (number, Ok(finished))]
            }
            Ask::Cancel(id) => match running.remove(&id) {
                Some(began) => vec![
                    (began, Ok(over(id, Ending::Cancelled))),
                    (number, Ok(Answer::Cancelled(true))),
                ],
                None => vec![(number, Ok(Answer::Cancelled(false)))],
            },
            // As if there were much of it.
            Ask::RemoveAll(_) => Vec::new(),
            _ => vec![(number, Ok(Answer::Done))],
        };
        for (number, answer) in answers {
            let descriptors: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
            // Whoever asked may be gone.
            let _ = link.send(&Reply { number, answer }, &descriptors).await;
        }
    }
}

fn listed(files: &[Given]) -> Page {
    let entry = |given: &Given| Entry {
        name: given.name.to_owned(),
        kind: Kind::File,
        size: given.size,
        modified: 0,
    };
    Page {
        entries: files.iter().map(entry).collect(),
        next: None,
    }
}

fn open(content: &[u8]) -> OwnedFd {
    let mut file = tempfile::tempfile().expect("a file");
    let filled = file.write_all(content).and_then(|()| file.rewind());
    filled.expect("what is in it");
    file.into()
}

fn missing() -> Refusal {
    Refusal {
        kind: RefusalKind::NotFound,
        reason: "there is no such file".to_owned(),
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
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
        let interruption = self.lock().interruption.take();
        if let Some(interruption) = interruption {
            interruption();
        }
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

    fn check_image(&self, _: &Image) -> Result<(), String> {
        Ok(())
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

    fn freeze<'a>(&'a self, session: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async {
            self.lock().frozen.insert(session.clone());
            Ok(())
        })
    }

    fn thaw<'a>(&'a self, session: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async {
            self.lock().frozen.remove(session);
            Ok(())
        })
    }

    fn fork<'a>(&'a self, _: &'a SessionId, _: &'a SessionId) -> Awaited<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn workspaces(&self) -> Awaited<'_, Vec<SessionId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn changes<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, ChangeReport> {
        Box::pin(async { Err(RuntimeError::Nonsense) })
    }

    fn promote<'a>(&'a self, _: &'a SessionId, _: Promote) -> Awaited<'a, Promotion> {
        Box::pin(async { Err(RuntimeError::Nonsense) })
    }

    fn usage<'a>(&'a self, _: &'a SessionId) -> Awaited<'a, Usage> {
        Box::pin(async { Ok(Usage::default()) })
    }
}
