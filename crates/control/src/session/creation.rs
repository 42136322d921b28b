//! Making a session.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_executor::protocol::Ask;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use sandbox_model::session::SessionNetwork;
use sandbox_model::{
    Cpu, Quantity, Resources, Session, SessionEvent, SessionId, SessionMode, SessionStatus,
    Template, TemplateId,
};
use sandbox_store::Stored;
use sandbox_store::records::{Along, Lease, Note};
use serde_json::json;
use tokio::sync::MutexGuard;

use super::lifetime::check_timeout;
use super::network;
use super::source::Source;
use super::{image_of, language_of};
use crate::audit::audit_record;
use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, told};
use crate::live::{Use, workspace_of};
use crate::pool::PoolChoice;
use crate::random;

/// What may be in a session's environment.
const MOST_VARIABLES: usize = 64;
const MOST_ENVIRONMENT_BYTES: usize = 10 << 10;

/// How long it is before the database is asked again.
const PATIENCE: Duration = Duration::from_millis(500);

/// With no more places left than this, one is taken at a time. To pass `max_sessions`, more than that would have to be
/// asked for at the same moment.
const AT_ONCE: u64 = 1000;

/// How long an agent's sessions wait for a server that ended while it wrote one down.
const TURN: Duration = Duration::from_secs(10);

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
    /// Whether it is to come from the pool.
    pub pool: PoolChoice,
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

impl Control {
    /// Makes a session. It is there when this returns: its executor answers.
    pub async fn create_session(
        &self,
        caller: &Caller,
        new: NewSession,
    ) -> Result<Session, ControlError> {
        self.create_from(caller, new, None).await
    }

    /// Makes a session, whose workspace may start as a copy of another's.
    pub(super) async fn create_from(
        &self,
        caller: &Caller,
        new: NewSession,
        copied: Option<&Session>,
    ) -> Result<Session, ControlError> {
        let begin = Instant::now();
        new.check(&self.shared.settings.allowed_addresses)?;
        let template = self.template(&new.template_id).await?;
        self.check_template(&template)?;
        // Of a copy nobody asked for anything now: it is held to what its origin is, or to all where that must be.
        let promised = match copied {
            Some(copied) => match self.promised(&Asked::default())? {
                promised if self.shared.settings.strict_limits => promised,
                _ => copied.limits_enforced,
            },
            None => self.promised(&new.resources)?,
        };
        self.check_node().await?;
        let mut session = self.draft(&new, &template)?;
        session.limits_enforced = promised;
        if let Some(copied) = copied {
            session.image = copied.image.clone();
        }
        image_of(&session)?;
        self.check_capacity(&session.resources)?;
        let admission = self.admit().await?;
        let turn = self.take_turn(&session).await?;
        let placed = self.place(caller, &mut session, &new, &template, copied);
        let placed = placed.await;
        self.end_turn(turn).await;
        drop(admission);
        let made = self.make(placed?, &new, &template, copied).await;
        match &made {
            Ok(_) => {
                metrics::counter!("sandbox_sessions_created_total").increment(1);
                metrics::histogram!("sandbox_session_creation_duration_seconds")
                    .record(begin.elapsed().as_secs_f64());
            }
            Err(ControlError::Unavailable { .. } | ControlError::Exhausted { .. }) => {
                tokio::spawn(self.clone().give_up(session));
            }
            Err(_) => {}
        }
        made
    }

    /// Raises a session that is written down, and writes down what came of it.
    async fn make(
        &self,
        (stored, claimed): (Stored<Session>, Option<Use>),
        new: &NewSession,
        template: &Template,
        copied: Option<&Session>,
    ) -> Result<Session, ControlError> {
        let raised = match claimed {
            Some(used) => self.fill_workspace(&used, &new.source).await.map(|()| used),
            None => self.raise(&stored.value, new, template, copied).await,
        };
        match raised {
            Ok(used) => {
                let found = |session: &mut Session| {
                    session.limits_enforced = used.limits_enforced;
                    session.walls = used.walls.clone();
                };
                self.change_stored(stored, SessionEvent::Ready, found).await
            }
            Err(error) => {
                let reason = told(&error);
                let failed = |session: &mut Session| session.error = Some(reason.clone());
                self.change_stored(stored, SessionEvent::Failed, failed)
                    .await?;
                Err(error)
            }
        }
    }

    /// A session that nobody could write down, as made or as failed, is failed as soon as somebody can,
    /// however long the database takes. It may not be there at all: nobody can know who was not answered. Then
    /// what it took from the pool is nobody's.
    async fn give_up(self, session: Session) {
        let reason = "the database did not answer while it was made";
        let failed = |session: &mut Session| session.error = Some(reason.to_owned());
        loop {
            let settled = async {
                let stored = self.shared.records.session(&session.id).await?;
                // Before it is failed: from then on its agent can have another in its place.
                self.clear_away(&session, stored.is_some()).await;
                if let Some(stored) = stored
                    && stored.value.status == SessionStatus::Creating
                {
                    self.change_stored(stored, SessionEvent::Failed, failed)
                        .await?;
                }
                Ok::<_, ControlError>(())
            };
            match settled.await {
                Ok(()) => return,
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }

    /// Clears away what was begun of a session, of which the records may not know.
    async fn clear_away(&self, session: &Session, is_known: bool) {
        let (id, workspace) = (&session.id, workspace_of(session));
        let cleared = match is_known {
            true => self.shared.live.end_of(session).await,
            false if workspace == *id => self.shared.live.discard(&workspace).await,
            // Nothing was begun of it, and its agent has the workspace.
            false => Ok(()),
        };
        if let Err(error) = cleared {
            tracing::warn!(session = %id, %error, "cannot clear away what was begun of session {id}");
        }
    }

    /// Finds a session its workspace and writes it down; what it found in the pool comes back with it.
    async fn place(
        &self,
        caller: &Caller,
        session: &mut Session,
        new: &NewSession,
        template: &Template,
        copied: Option<&Session>,
    ) -> Result<(Stored<Session>, Option<Use>), ControlError> {
        if new.mode == SessionMode::Persistent {
            self.reattach(session, &new.source).await?;
        }
        let claimed = match copied {
            Some(_) => None,
            None => self.claim(session, new, template).await?,
        };
        let from_pool = claimed.is_some();
        let stored = self
            .write_down(caller, session, template, copied, from_pool)
            .await;
        if stored.is_err() {
            tokio::spawn(self.clone().give_up(session.clone()));
        }
        Ok((stored?, claimed))
    }

    /// Writes a session down that is to be made.
    async fn write_down(
        &self,
        caller: &Caller,
        session: &Session,
        template: &Template,
        copied: Option<&Session>,
        from_pool: bool,
    ) -> Result<Stored<Session>, ControlError> {
        let notice = json!({ "status": SessionStatus::Creating, "from_pool": from_pool });
        let detail = json!({ "template_id": template.id, "mode": session.mode, "forked_from": copied.map(workspace_of) });
        let audit = audit_record(caller, "session.create", session.id.as_str(), detail);
        let along = Along {
            notice: Some(Note {
                session: &session.id,
                kind: "status",
                detail: &notice.to_string(),
            }),
            audit: Some(&audit),
        };
        self.promise(caller, session.id.as_str()).await?;
        let records = &self.shared.records;
        let stored = records.insert_session_along(session, &along).await?;
        self.wake(&session.id);
        Ok(stored)
    }

    /// Persistent sessions of one agent are written down one after the other, on whichever server: of two at
    /// once, the second must see the first.
    pub(crate) async fn take_turn(&self, session: &Session) -> Result<Option<Lease>, ControlError> {
        let (SessionMode::Persistent, Some(agent)) = (session.mode, &session.agent_id) else {
            return Ok(None);
        };
        let (name, records) = (format!("agent {agent}"), &self.shared.records);
        let turn = records.acquire_lease(&name, session.id.as_str(), TURN);
        match turn.await? {
            Some(turn) => Ok(Some(turn)),
            None => Err(ControlError::conflict(
                format!("a persistent session of agent {agent} is being made"),
                "use that one, or end it first",
            )),
        }
    }

    /// Does something that may take longer than a turn: it is not over before.
    pub(crate) async fn within<T>(&self, turn: Option<&Lease>, work: impl Future<Output = T>) -> T {
        let renewing = async {
            while let Some(turn) = turn {
                tokio::time::sleep(TURN / 4).await;
                match self.shared.records.renew_lease(turn, TURN).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => tracing::warn!(%error, "cannot renew the lease of {}", turn.name),
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            done = work => done,
            never = renewing => never,
        }
    }

    pub(crate) async fn end_turn(&self, turn: Option<Lease>) {
        let Some(turn) = turn else { return };
        if let Err(error) = self.shared.records.release_lease(&turn).await {
            let name = &turn.name;
            tracing::warn!(%error, "cannot give back the lease of {name}, which ends by itself");
        }
    }

    /// Gives a session that is written down its workspace and its processes.
    async fn raise(
        &self,
        session: &Session,
        new: &NewSession,
        template: &Template,
        copied: Option<&Session>,
    ) -> Result<Use, ControlError> {
        if let Some(copied) = copied {
            let (from, to) = (workspace_of(copied), workspace_of(session));
            self.shared.live.fork(&from, &to).await?;
        }
        let workspace = self.workspace_from(&new.source)?;
        let expected = language_of(&session.template_id);
        let used = self.line_from(session, workspace, expected).await?;
        // What it expects is on its way when it answers: who asks at once waits for less of it.
        self.heard(&used, used.line.ask(Ask::Ping)).await?;
        self.check_packages(session, template).await?;
        self.fill_workspace(&used, &new.source).await?;
        Ok(used)
    }

    fn check_template(&self, template: &Template) -> Result<(), ControlError> {
        let invalid = |problem: String, solution: &str| {
            Err(ControlError::invalid("template_id", problem, solution))
        };
        if !template.is_active {
            let problem = format!("template {} is not active", template.id);
            return invalid(problem, "choose an active template");
        }
        let here = self.shared.live.runtime().kind();
        if template.runtime != here {
            let problem = format!(
                "template {} is for the runtime {}, and this server has {here}",
                template.id, template.runtime
            );
            return invalid(problem, "choose another template");
        }
        Ok(())
    }

    /// Which limits must hold: those that were asked for by name, and where the operator is strict, all. What
    /// cannot be enforced here is refused.
    fn promised(&self, asked: &Asked) -> Result<LimitsEnforced, ControlError> {
        let strict = self.shared.settings.strict_limits;
        let promised = LimitsEnforced {
            cpu: strict || asked.cpu.is_some(),
            memory: strict || asked.memory.is_some(),
            disk: strict || asked.disk.is_some(),
            max_processes: strict || asked.max_processes.is_some(),
        };
        match self.shared.live.runtime().enforceable().lacks(&promised) {
            Some(lacking) => Err(ControlError::invalid(
                &format!("resources.{lacking}"),
                "cannot be limited on this host",
                "leave it out, or give the server control groups: `sandbox doctor` tells how",
            )),
            None => Ok(promised),
        }
    }

    /// Is there room for one more? What others were promised does not count, what they use does.
    fn check_capacity(&self, promised: &Resources) -> Result<(), ControlError> {
        let free = self.shared.live.runtime().room()?.free;
        let percent = u128::from(self.shared.settings.overcommit_percent);
        for (what, promised, free) in [
            ("memory", promised.memory.0, free.memory_bytes),
            ("disk", promised.disk.0, free.disk_bytes),
        ] {
            if u128::from(promised) * 100 > u128::from(free) * percent {
                return Err(ControlError::Exhausted {
                    problem: format!(
                        "the session may use {promised} bytes of {what}, and {free} are free"
                    ),
                    solution: format!(
                        "ask for less {what}, end sessions that are not needed, or raise overcommit"
                    ),
                });
            }
        }
        Ok(())
    }

    /// May there be one session more? Where there are nearly as many as there may be, one is written down at a time:
    /// whoever comes with others counts them.
    async fn admit(&self) -> Result<Option<MutexGuard<'_, ()>>, ControlError> {
        if self.places_left().await? > AT_ONCE {
            return Ok(None);
        }
        let admission = self.shared.admission.lock().await;
        self.places_left().await?;
        Ok(Some(admission))
    }

    /// How many sessions there may be beside those that there are; at least one.
    async fn places_left(&self) -> Result<u64, ControlError> {
        let most = self.shared.settings.max_sessions;
        let live = self.live_sessions().await?;
        match most.checked_sub(live) {
            None | Some(0) => Err(ControlError::Exhausted {
                problem: format!("there are {live} sessions, and there may be {most}"),
                solution: "end sessions that are not needed, or raise max_sessions".to_owned(),
            }),
            Some(left) => Ok(left),
        }
    }

    /// How many sessions of this node are not over.
    pub(crate) async fn live_sessions(&self) -> Result<u64, ControlError> {
        let counts = self.shared.records.live_session_counts_by_node().await?;
        let here = counts.get(&self.shared.settings.node_id);
        Ok(here.copied().unwrap_or(0))
    }

    /// Gives a persistent session the workspace of the one its agent had before.
    async fn reattach(&self, session: &mut Session, source: &Source) -> Result<(), ControlError> {
        let agent = session.agent_id.as_deref().unwrap_or_default();
        let Some(before) = self.shared.records.latest_persistent_session(agent).await? else {
            return Ok(());
        };
        let before = before.value;
        if !before.status.is_over() {
            return Err(ControlError::conflict(
                format!(
                    "agent {agent} has the persistent session {} already",
                    before.id
                ),
                "use that one, or end it first",
            ));
        }
        if !self.is_workspace_kept(&before).await? {
            return Ok(());
        }
        if before.node_id != session.node_id {
            return Err(ControlError::conflict(
                format!(
                    "the workspace of agent {agent} is on node {}",
                    before.node_id
                ),
                "ask again: the request is passed on to that node",
            ));
        }
        if let Source::Directory(_) = source {
            return Err(ControlError::conflict(
                format!(
                    "agent {agent} has a workspace already, which is not a copy of that directory"
                ),
                "leave source out, or use another agent_id",
            ));
        }
        session.workspace_path = before.workspace_path;
        Ok(())
    }

    /// A session of a template as it is where nothing is asked for.
    pub(crate) fn draft_of(&self, template: &Template) -> Session {
        let id = SessionId::random(random::numbers());
        let now = Timestamp::now();
        Session {
            workspace_path: format!("workspace/{id}"),
            id,
            template_id: template.id.clone(),
            status: SessionStatus::Creating,
            mode: SessionMode::Ephemeral,
            agent_id: None,
            runtime: self.shared.live.runtime().kind(),
            node_id: self.shared.settings.node_id.clone(),
            container_id: None,
            executor_url: None,
            resources: template.default_resources,
            limits_enforced: LimitsEnforced::default(),
            walls: Walls::default(),
            env_vars: BTreeMap::new(),
            network: SessionNetwork::default(),
            timeout_seconds: 0,
            created_at: now,
            started_at: None,
            updated_at: now,
            last_activity_at: now,
            expires_at: now,
            terminated_at: None,
            error: None,
            workspace_removed_at: None,
            image: Some(template.image.clone()),
        }
    }

    fn draft(&self, new: &NewSession, template: &Template) -> Result<Session, ControlError> {
        let resources = new.resources.over(&template.default_resources);
        resources
            .check()
            .map_err(|error| ControlError::invalid("resources", error, "ask for less or more"))?;
        let usual = self.draft_of(template);
        Ok(Session {
            mode: new.mode,
            agent_id: new.agent_id.clone(),
            resources,
            env_vars: new.env_vars.clone(),
            network: new.network.clone(),
            timeout_seconds: new.timeout_seconds,
            expires_at: self.expiry(usual.created_at, usual.created_at, new.timeout_seconds),
            ..usual
        })
    }
}

/// Can an agent be called so? Not every database could even be asked for some of the rest.
pub fn check_agent_id(agent: &str) -> Result<(), ControlError> {
    const MOST: usize = 128;
    let invalid = |problem: String| ControlError::invalid("agent_id", problem, "name the agent");
    if agent.trim().is_empty() || agent.len() > MOST {
        return Err(invalid(format!("must have 1 to {MOST} bytes")));
    }
    if agent.chars().any(char::is_control) {
        return Err(invalid("has a control character in it".to_owned()));
    }
    Ok(())
}

impl NewSession {
    fn check(&self, allowed_addresses: &[String]) -> Result<(), ControlError> {
        check_timeout(self.timeout_seconds)?;
        self.check_agent()?;
        self.check_environment()?;
        network::check(&self.network, allowed_addresses)?;
        self.source.check()
    }

    fn check_agent(&self) -> Result<(), ControlError> {
        match &self.agent_id {
            Some(agent) => check_agent_id(agent),
            None if self.mode == SessionMode::Persistent => Err(ControlError::invalid(
                "agent_id",
                "is needed for a persistent session",
                "name the agent whose workspace it is, or make the session ephemeral",
            )),
            None => Ok(()),
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

    /// All of these, by name.
    pub(super) fn all(resources: &Resources) -> Asked {
        Asked {
            cpu: Some(resources.cpu),
            memory: Some(resources.memory),
            disk: Some(resources.disk),
            max_processes: Some(resources.max_processes),
        }
    }
}

fn is_variable(name: &str) -> bool {
    let first = |first: char| first.is_ascii_alphabetic() || first == '_';
    name.starts_with(first)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
