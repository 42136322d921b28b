//! Running code.
//!
//! What makes an execution wait is not its walls: they are built before it is asked for. There is one inner
//! sandbox ahead, and after code for an interpreter, one with that interpreter in it, waiting; both where
//! there was code of both kinds. Each serves once. The next one is made when an execution is over and its
//! outcome was told, or when it takes its time: before, the two would be in each other's way.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use sandbox_isolation::keeper::{Keeper, Ready};
use sandbox_isolation::{LaunchError, Order};
use sandbox_model::execution::Language;
use sandbox_model::id::ExecutionId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::artifact;
use crate::execution::{Happening, Outcome, Request};
use crate::language::{self, CHANNEL, Start};
use crate::lookout::{Birth, Lookout};
use crate::output::Printed;
use crate::port::Doorways;
use crate::running::{self, Course, Running};
use crate::streams;
use crate::terminal::Terminals;

/// What is the same for all executions of a session.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where code starts.
    pub workspace: PathBuf,
    /// The whole environment, until it is [configured](Executor::configure).
    pub env: Vec<(OsString, OsString)>,
    /// Whose interpreter is to wait for the first code, if one is.
    pub warm: Option<Language>,
    /// Whose is to, but only for a moment.
    pub expected: Option<Language>,
}

/// The longest environment, names and values together. It has to fit beside the code that is started with
/// it.
const MOST_ENVIRONMENT: usize = 16 << 10;

/// How long an execution has the processors for itself before the next one is made ready.
const HEAD_START: Duration = Duration::from_millis(100);

/// Runs code. On one thread, and on a local set of its runtime.
#[derive(Debug)]
pub struct Executor {
    pub(crate) keeper: Keeper,
    pub(crate) settings: Settings,
    pub(crate) env: RefCell<Vec<(OsString, OsString)>>,
    lookout: Rc<Lookout>,
    ahead: RefCell<Option<Ready>>,
    warm: RefCell<Option<Warm>>,
    /// What waits was started without anybody having asked for it.
    is_guess: Cell<bool>,
    /// There was code that no interpreter can wait for.
    had_shell: Cell<bool>,
    running: RefCell<BTreeMap<ExecutionId, Rc<Notify>>>,
    pub(crate) terminals: Rc<Terminals>,
    pub(crate) doorways: Rc<Doorways>,
}

/// An interpreter that waits for code.
#[derive(Debug)]
struct Warm {
    language: Language,
    running: Running,
}

impl Executor {
    /// One that starts its programs by `keeper`.
    pub fn new(keeper: Keeper, settings: Settings) -> io::Result<Executor> {
        let lookout = Rc::new(Lookout::open(&settings.workspace)?);
        let executor = Executor {
            keeper,
            env: RefCell::new(settings.env.clone()),
            settings,
            lookout: lookout.clone(),
            ahead: RefCell::default(),
            warm: RefCell::default(),
            is_guess: Cell::default(),
            had_shell: Cell::default(),
            running: RefCell::default(),
            terminals: Rc::default(),
            doorways: Rc::default(),
        };
        let Settings { warm, expected, .. } = executor.settings;
        match warm.or(expected) {
            Some(language) => executor.look_ahead(language),
            None => executor.prepare(),
        }
        executor.is_guess.set(warm.is_none());
        tokio::task::spawn_local(async move { lookout.get_to_know().await });
        Ok(executor)
    }

    /// Does one execution. Never fails: what goes wrong is told in the outcome.
    pub async fn execute(&self, request: &Request) -> Outcome {
        let outcome = self.execute_telling(request, &async |_| ()).await;
        self.look_ahead(request.language);
        outcome
    }

    /// The same, and tells meanwhile what happens. Whoever is slow to hear it does not hold it up: what
    /// is still to be told when it is over is told before this returns. Whoever passed the outcome on lets
    /// this [look ahead](Executor::look_ahead).
    pub async fn execute_telling(
        &self,
        request: &Request,
        tell: &impl AsyncFn(Happening),
    ) -> Outcome {
        let printed = Printed::default();
        let mut outcome = tokio::select! {
            biased;
            outcome = self.see_through(request, &printed) => outcome,
            never = running::follow(request, &printed, tell) => match never {},
        };
        if request.stream {
            running::tell_rest(&printed, tell).await;
        }
        running::complete(&mut outcome, &printed);
        outcome
    }

    async fn see_through(&self, request: &Request, printed: &Printed) -> Outcome {
        self.lookout.get_to_know().await;
        let begin = Instant::now();
        let kills = self.keeper.kills();
        let began = self.lookout.begin();
        let id = request.execution_id.clone();
        let cancelled = self.expect(&id);
        let mut outcome = match self.start(request) {
            Ok((running, start)) => {
                let _doorway = self.doorways.open(&self.keeper, &running.inner);
                let course = Course {
                    keeper: &self.keeper,
                    request,
                    begin,
                    kills,
                    cancelled: &cancelled,
                    printed,
                };
                let mut seen = std::pin::pin!(course.see_through(running, start));
                match tokio::time::timeout(HEAD_START, &mut seen).await {
                    Ok(outcome) => outcome,
                    Err(_) => {
                        self.look_ahead(request.language);
                        seen.await
                    }
                }
            }
            Err(error) => running::unstarted(request, begin, &error),
        };
        self.running.borrow_mut().remove(&id);
        let found = self.lookout.look(began).await;
        self.lookout.end(began);
        (outcome.artifacts, outcome.result.artifacts_truncated) =
            artifact::describe(&self.lookout, found).await;
        outcome
    }

    /// From now on, executions find `env` in their environment, over what the session was raised with and
    /// instead of what was configured before.
    pub fn configure(&self, env: &BTreeMap<String, String>) -> io::Result<()> {
        let length = |(name, value): (&String, &String)| name.len() + value.len();
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        if !env.keys().all(is_name) || env.values().any(|value| value.contains('\0')) {
            let reason = "that is not an environment";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        if env.iter().map(length).sum::<usize>() > MOST_ENVIRONMENT {
            let reason = "the environment is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let usual = self.settings.env.iter().cloned();
        let usual =
            usual.filter(|(name, _)| !name.to_str().is_some_and(|name| env.contains_key(name)));
        let asked = env.iter().map(|(name, value)| (name.into(), value.into()));
        let env = usual.chain(asked).collect();
        if self.env.replace(env) != *self.env.borrow()
            && let Some(warm) = self.warm.take()
        {
            // It was started with the environment of before.
            let language = warm.language;
            warm.running.discard();
            self.look_ahead(language);
        }
        Ok(())
    }

    /// This file was brought from outside: no execution made it.
    pub(crate) fn disown(&self, birth: Birth) {
        self.lookout.disown(birth);
    }

    /// From now on the execution of this name can be cancelled, though it has not begun.
    pub fn expect(&self, id: &ExecutionId) -> Rc<Notify> {
        let mut running = self.running.borrow_mut();
        running.entry(id.clone()).or_default().clone()
    }

    /// Ends an execution that is under way; `false` when there is none of this name.
    pub fn cancel(&self, id: &ExecutionId) -> bool {
        let running = self.running.borrow();
        running
            .get(id)
            .inspect(|running| running.notify_one())
            .is_some()
    }

    /// Starts what `request` needs, or takes the interpreter that waits for it.
    fn start(&self, request: &Request) -> Result<(Running, Start), LaunchError> {
        let start = language::start(request);
        let is_it = |warm: &mut Warm| warm.language == request.language && warm.is_alive();
        if let Some(warm) = self.warm.borrow_mut().take_if(|warm| is_it(warm)) {
            return Ok((warm.running, start));
        }
        let running = self.launch(&start)?;
        Ok((running, start))
    }

    fn launch(&self, start: &Start) -> Result<Running, LaunchError> {
        let broken = |source| LaunchError::Step {
            step: "make the pipes of an execution".to_owned(),
            source,
            hint: None,
        };
        let ahead = self.ahead.borrow_mut().take().filter(Ready::is_alive);
        let ready = match ahead {
            Some(ready) => ready,
            None => self.keeper.prepare()?,
        };
        let (ours, theirs) = streams::make().map_err(broken)?;
        let order = Order {
            command: start.command.clone(),
            env: [&self.env.borrow()[..], &start.env].concat(),
            cwd: self.settings.workspace.clone(),
            extra: Some(CHANNEL.into()),
        };
        let inner = ready.start(&order, &theirs.all())?;
        Ok(Running { inner, ours })
    }

    /// Gives up what was started because it was expected, if nothing came meanwhile.
    pub fn expect_no_longer(&self) {
        if self.is_guess.replace(false)
            && let Some(warm) = self.warm.take()
        {
            warm.running.discard();
            self.prepare();
        }
    }

    /// Makes ready what will likely be wanted next after code in `language`, if it is not.
    pub fn look_ahead(&self, language: Language) {
        self.is_guess.set(false);
        match language::ahead(language) {
            Some(start) => self.warm_up(language, &start),
            None => self.had_shell.set(true),
        }
        if self.had_shell.get() || self.warm.borrow().is_none() {
            self.prepare();
        }
    }

    fn warm_up(&self, language: Language, start: &Start) {
        let is_it = |warm: &Warm| warm.language == language && warm.is_alive();
        if self.warm.borrow().as_ref().is_some_and(is_it) {
            return;
        }
        // What fails now fails again when it is needed, and is told then.
        let warm = self
            .launch(start)
            .ok()
            .map(|running| Warm { language, running });
        if let Some(before) = self.warm.replace(warm) {
            before.running.discard();
        }
    }

    fn prepare(&self) {
        let mut ahead = self.ahead.borrow_mut();
        if ahead.as_ref().is_none_or(|ready| !ready.is_alive()) {
            *ahead = self.keeper.prepare().ok();
        }
    }
}

impl Warm {
    /// A report before there was code for it tells that it ended, or was never running; one that it
    /// was running is not looked at.
    fn is_alive(&self) -> bool {
        let mut gone = [rustix::event::PollFd::from_borrowed_fd(
            self.running.inner.pidfd(),
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::time::Timespec::default();
        matches!(rustix::event::poll(&mut gone, Some(&now)), Ok(0))
    }
}
