//! Sessions: making, telling of, and ending them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{
    Cpu, Quantity, Resources, RuntimeKind, Session, SessionEvent, SessionId, SessionMode,
    SessionStatus, Template, TemplateId,
};
use sandbox_store::records::{Page, PageRequest, SessionFilter};
use sandbox_store::{StoreError, Stored};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};
use crate::random;

/// How long a session may live, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u32> = 60..=3600;

/// What may be in a session's environment.
const MOST_VARIABLES: usize = 64;
const MOST_ENVIRONMENT_BYTES: usize = 10 << 10;

/// What may be asked of the network.
const MOST_ALLOWED: usize = 64;

/// A session to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// What it is made from.
    pub template_id: TemplateId,
    /// How long it lives, in seconds.
    pub timeout_seconds: u32,
    /// How long it and its workspace live.
    pub mode: SessionMode,
    /// Whose it is; a persistent one needs somebody.
    pub agent_id: Option<String>,
    /// What it may use, where its template's default is not wanted.
    pub resources: Asked,
    /// What its code finds in its environment.
    pub env_vars: BTreeMap<String, String>,
    /// What of the network it may reach.
    pub network: SessionNetwork,
    /// What its workspace starts from.
    pub source: Source,
}

/// Resources that were asked for by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the resource of the same name")]
pub struct Asked {
    pub cpu: Option<Cpu>,
    pub memory: Option<Quantity>,
    pub disk: Option<Quantity>,
    pub max_processes: Option<u32>,
}

/// What a workspace starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nothing.
    Empty,
    /// A copy of this directory, which must be below a root that the operator named.
    Directory(PathBuf),
    /// These files, by their path.
    Files(BTreeMap<String, String>),
}

impl Control {
    /// Makes a session. It is there when this returns: its executor answers.
    pub async fn create_session(
        &self,
        caller: &Caller,
        new: NewSession,
    ) -> Result<Session, ControlError> {
        new.check()?;
        let template = self.template(&new.template_id).await?;
        if !template.is_active {
            return Err(ControlError::invalid(
                "template_id",
                format!("template {} is not active", template.id),
                "choose an active template",
            ));
        }
        self.check_capacity().await?;
        let session = self.draft(&new, &template)?;
        let stored = self.shared.records.insert_session(&session).await?;
        let id = &stored.value.id;
        self.notice(id, "status", json!({ "status": SessionStatus::Creating }))
            .await;
        let detail = json!({ "template_id": template.id, "mode": new.mode });
        self.audit(caller, "session.create", id.as_str(), detail)
            .await;
        match self.shared.live.line(&stored.value).await {
            Ok(used) => {
                let found = |session: &mut Session| {
                    session.limits_enforced = used.limits_enforced;
                    session.walls = used.walls.clone();
                };
                self.change(id, SessionEvent::Ready, found).await
            }
            Err(error) => {
                let error = ControlError::from(error);
                let reason = chain(&error);
                let failed = |session: &mut Session| session.error = Some(reason.clone());
                self.change(id, SessionEvent::Failed, failed).await?;
                Err(error)
            }
        }
    }

    /// The session of that name.
    pub async fn session(&self, id: &SessionId) -> Result<Session, ControlError> {
        Ok(self.stored_session(id).await?.value)
    }

    /// Sessions, newest first.
    pub async fn sessions(
        &self,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>, ControlError> {
        let page = self.shared.records.sessions(filter, page).await?;
        Ok(Page {
            items: page.items.into_iter().map(|stored| stored.value).collect(),
            total: page.total,
            next: page.next,
        })
    }

    /// Ends a session. `false` when it had ended already.
    pub async fn terminate_session(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<bool, ControlError> {
        if self.session(id).await?.status.is_over() {
            return Ok(false);
        }
        self.end_session(caller, id, SessionEvent::Terminate, "somebody ended it")
            .await
    }

    /// Lets a session live for its time from now on.
    pub async fn renew_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        timeout_seconds: Option<u32>,
    ) -> Result<Session, ControlError> {
        if let Some(seconds) = timeout_seconds {
            check_timeout(seconds)?;
        }
        loop {
            let stored = self.stored_session(id).await?;
            if stored.value.status.is_over() {
                return Err(ControlError::conflict(
                    format!(
                        "session {id} is {}: it cannot be renewed",
                        stored.value.status
                    ),
                    "make a new session",
                ));
            }
            let mut new = stored.value.clone();
            let now = Timestamp::now();
            new.timeout_seconds = timeout_seconds.unwrap_or(new.timeout_seconds);
            new.expires_at = after(now, new.timeout_seconds);
            new.last_activity_at = now;
            new.updated_at = now;
            match self.shared.records.update_session(&stored, &new).await {
                Ok(renewed) => {
                    let expires_at = renewed.value.expires_at;
                    self.notice(id, "renewed", json!({ "expires_at": expires_at }))
                        .await;
                    let detail = json!({ "expires_at": expires_at });
                    self.audit(caller, "session.renew", id.as_str(), detail)
                        .await;
                    return Ok(renewed.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends a session for this reason. `false` when it had ended already.
    pub(crate) async fn end_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        event: SessionEvent,
        reason: &str,
    ) -> Result<bool, ControlError> {
        match self.change(id, event, |_| {}).await {
            Ok(_) => {}
            Err(ControlError::Conflict { .. }) if self.session(id).await?.status.is_over() => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        // From here on nothing new starts in it; what runs is ended, and written down by whoever waits for it.
        self.shared.live.end(id).await?;
        let detail = json!({ "reason": reason });
        self.audit(caller, "session.end", id.as_str(), detail).await;
        Ok(true)
    }

    /// Takes a session through an event, changes what else the event changes, and writes it down.
    pub(crate) async fn change(
        &self,
        id: &SessionId,
        event: SessionEvent,
        and: impl Fn(&mut Session),
    ) -> Result<Session, ControlError> {
        loop {
            let stored = self.stored_session(id).await?;
            let status = stored.value.status.after(event).map_err(|refusal| {
                let problem = format!("session {id}: {refusal}");
                ControlError::conflict(problem, "look at its status")
            })?;
            let now = Timestamp::now();
            let mut new = stored.value.clone();
            new.status = status;
            new.updated_at = now;
            if status == SessionStatus::Running {
                new.started_at.get_or_insert(now);
            }
            if status.is_over() {
                new.terminated_at = Some(now);
            }
            and(&mut new);
            match self.shared.records.update_session(&stored, &new).await {
                Ok(changed) => {
                    let detail = json!({ "status": status, "cause": event, "error": new.error });
                    self.notice(id, "status", detail).await;
                    return Ok(changed.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn stored_session(
        &self,
        id: &SessionId,
    ) -> Result<Stored<Session>, ControlError> {
        let found = self.shared.records.session(id).await?;
        let mut found = found.ok_or_else(|| ControlError::not_found(Kind::Session, id))?;
        if let Some(used) = self.shared.activity.latest(id) {
            found.value.last_activity_at = found.value.last_activity_at.max(used);
        }
        Ok(found)
    }

    /// The session, if code can run in it now.
    pub(crate) async fn running_session(&self, id: &SessionId) -> Result<Session, ControlError> {
        let session = self.session(id).await?;
        let solution = match session.status {
            SessionStatus::Running => return Ok(session),
            SessionStatus::Paused => "resume it first",
            SessionStatus::Creating => "wait until it is running",
            _ => "make a new session",
        };
        let problem = format!("session {id} is {}, not running", session.status);
        Err(ControlError::conflict(problem, solution))
    }

    async fn check_capacity(&self) -> Result<(), ControlError> {
        let most = self.shared.settings.max_sessions;
        let live = self.live_sessions().await?;
        if live >= most {
            return Err(ControlError::Exhausted {
                problem: format!("{live} sessions are running, and there may be {most}"),
                solution: "end sessions that are not needed, or raise max_sessions".to_owned(),
            });
        }
        Ok(())
    }

    /// How many sessions are running.
    pub(crate) async fn live_sessions(&self) -> Result<u64, ControlError> {
        let running = SessionFilter {
            status: Some(SessionStatus::Running),
            ..SessionFilter::default()
        };
        let first = PageRequest::first(1)?;
        Ok(self.shared.records.sessions(&running, &first).await?.total)
    }

    fn draft(&self, new: &NewSession, template: &Template) -> Result<Session, ControlError> {
        let id = SessionId::random(random::numbers());
        let resources = new.resources.over(&template.default_resources);
        resources
            .check()
            .map_err(|error| ControlError::invalid("resources", error, "ask for less or more"))?;
        let now = Timestamp::now();
        Ok(Session {
            workspace_path: format!("workspace/{id}"),
            id,
            template_id: template.id.clone(),
            status: SessionStatus::Creating,
            mode: new.mode,
            agent_id: new.agent_id.clone(),
            runtime: RuntimeKind::Local,
            node_id: self.shared.settings.node_id.clone(),
            container_id: None,
            executor_url: None,
            resources,
            limits_enforced: LimitsEnforced::default(),
            walls: Walls::default(),
            env_vars: new.env_vars.clone(),
            network: new.network.clone(),
            timeout_seconds: new.timeout_seconds,
            created_at: now,
            started_at: None,
            updated_at: now,
            last_activity_at: now,
            expires_at: after(now, new.timeout_seconds),
            terminated_at: None,
            error: None,
        })
    }
}

impl NewSession {
    fn check(&self) -> Result<(), ControlError> {
        check_timeout(self.timeout_seconds)?;
        self.check_agent()?;
        self.check_environment()?;
        self.check_network()?;
        match &self.source {
            Source::Files(files) => files.keys().try_for_each(|path| check_path(path)),
            Source::Empty | Source::Directory(_) => Ok(()),
        }
    }

    fn check_agent(&self) -> Result<(), ControlError> {
        const MOST: usize = 128;
        match &self.agent_id {
            Some(agent) if agent.trim().is_empty() || agent.len() > MOST => {
                let problem = format!("must have 1 to {MOST} bytes");
                Err(ControlError::invalid("agent_id", problem, "name the agent"))
            }
            None if self.mode == SessionMode::Persistent => Err(ControlError::invalid(
                "agent_id",
                "is needed for a persistent session",
                "name the agent whose workspace it is, or make the session ephemeral",
            )),
            _ => Ok(()),
        }
    }

    fn check_environment(&self) -> Result<(), ControlError> {
        let invalid = |problem: String, solution: &str| {
            Err(ControlError::invalid("env_vars", problem, solution))
        };
        if self.env_vars.len() > MOST_VARIABLES {
            let problem = format!("has more than {MOST_VARIABLES} variables");
            return invalid(problem, "send fewer");
        }
        let size = |(name, value): (&String, &String)| name.len() + value.len();
        if self.env_vars.iter().map(size).sum::<usize>() > MOST_ENVIRONMENT_BYTES {
            let problem = format!("is larger than {MOST_ENVIRONMENT_BYTES} bytes");
            return invalid(problem, "put large values into a file");
        }
        for (name, value) in &self.env_vars {
            if !is_variable(name) {
                let problem = format!("'{}' is not a variable's name", name.escape_debug());
                return invalid(
                    problem,
                    "use letters, digits and _, not starting with a digit",
                );
            }
            if name.starts_with("SANDBOX_") {
                let problem = format!("{name} is reserved");
                return invalid(problem, "choose a name that does not start with SANDBOX_");
            }
            if value.contains('\0') {
                return invalid(format!("the value of {name} has a NUL byte"), "remove it");
            }
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), ControlError> {
        let invalid = |problem: String, solution: &str| {
            Err(ControlError::invalid("network.allow", problem, solution))
        };
        let SessionNetwork { enabled, allow } = &self.network;
        if !enabled && !allow.is_empty() {
            let problem = "is given, but the network is not enabled".to_owned();
            return invalid(problem, "set network.enabled to true");
        }
        if allow.len() > MOST_ALLOWED {
            return invalid(
                format!("has more than {MOST_ALLOWED} entries"),
                "send fewer",
            );
        }
        match allow.iter().find(|entry| !is_address(entry)) {
            Some(bad) => {
                let problem = format!("'{}' is not host:port", bad.escape_debug());
                invalid(problem, "write it as example.org:443")
            }
            None => Ok(()),
        }
    }
}

impl Asked {
    /// What was asked for, and the default where nothing was.
    pub fn over(&self, default: &Resources) -> Resources {
        Resources {
            cpu: self.cpu.unwrap_or(default.cpu),
            memory: self.memory.unwrap_or(default.memory),
            disk: self.disk.unwrap_or(default.disk),
            max_processes: self.max_processes.unwrap_or(default.max_processes),
        }
    }
}

fn check_timeout(seconds: u32) -> Result<(), ControlError> {
    if TIMEOUTS.contains(&seconds) {
        return Ok(());
    }
    let (least, most) = (TIMEOUTS.start(), TIMEOUTS.end());
    let problem = format!("{seconds} is not between {least} and {most} seconds");
    Err(ControlError::invalid(
        "timeout",
        problem,
        "choose one in between",
    ))
}

/// A path in a workspace, as people write them.
pub(crate) fn check_path(path: &str) -> Result<(), ControlError> {
    const MOST: usize = 4096;
    let parts = Path::new(path).components();
    let plain = |part| {
        matches!(
            part,
            std::path::Component::Normal(_) | std::path::Component::CurDir
        )
    };
    let named = parts
        .clone()
        .any(|part| matches!(part, std::path::Component::Normal(_)));
    if path.len() > MOST || path.contains('\0') || !named || !parts.into_iter().all(plain) {
        let problem = format!("'{}' is not a path in the workspace", path.escape_debug());
        let solution = "use a path relative to /workspace, without '..'";
        return Err(ControlError::invalid("path", problem, solution));
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let first = |first: char| first.is_ascii_alphabetic() || first == '_';
    name.starts_with(first)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-*:[]".contains(&byte);
    (1..=253).contains(&host.len())
        && host.bytes().all(plain)
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn after(time: Timestamp, seconds: u32) -> Timestamp {
    let later = time.checked_add(Duration::from_secs(seconds.into()));
    later.unwrap_or(Timestamp::MAX)
}

/// An error with what caused it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
