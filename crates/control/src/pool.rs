//! Sessions that are made before they are asked for.
//!
//! An entry of the pool is a workspace with its processes, raised under the name that its session will
//! have, with an interpreter waiting in it. It is offered in the records only after its executor answered,
//! and claimed there, so that nobody gets it twice. What was not claimed when the server ends, or its node is drained,
//! is removed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sandbox_executor::protocol::Ask;
use sandbox_model::{
    PoolEntry, PoolEntryId, Session, SessionId, SessionMode, Template, TemplateId,
};
use tokio::sync::Notify;

use crate::control::Control;
use crate::error::ControlError;
use crate::live::Use;
use crate::random;
use crate::session::{NewSession, Source};

/// What of the pool is on this server.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    held: Mutex<HashMap<SessionId, Waiting>>,
    wanted: Notify,
}

/// A session that waits for whoever asks.
#[derive(Debug)]
struct Waiting {
    used: Use,
    /// When the template that it was made from was last changed.
    made_from: Timestamp,
}

/// Whether a session is to come from the pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolChoice {
    /// If there is one.
    #[default]
    Prefer,
    /// Or not at all.
    Require,
    /// Not even if there is one.
    Never,
}

impl Control {
    /// A session from the pool, if one of it does for what is asked. `session` takes its name.
    pub(crate) async fn claim(
        &self,
        session: &mut Session,
        new: &NewSession,
        template: &Template,
    ) -> Result<Option<Use>, ControlError> {
        if new.pool == PoolChoice::Never {
            return Ok(None);
        }
        let claimed = match does(session, new, template) {
            true => self.claim_entry(template).await?,
            false => None,
        };
        let hit = if claimed.is_some() { "hit" } else { "miss" };
        metrics::counter!("sandbox_pool_claims_total", "outcome" => hit).increment(1);
        match claimed {
            Some((id, used)) => {
                let env = session.env_vars.clone();
                if let Err(error) = self.asked(&used, Ask::Configure { env }).await {
                    // It is out of the pool, and nobody's.
                    self.shared.live.discard(&id).await?;
                    return Err(error.into());
                }
                session.workspace_path = format!("workspace/{id}");
                session.id = id;
                Ok(Some(used))
            }
            None if new.pool == PoolChoice::Require && !does(session, new, template) => {
                Err(ControlError::invalid(
                    "pool",
                    "no session of the pool is like this",
                    "leave resources, network, mode and source out, or ask with pool=prefer",
                ))
            }
            None if new.pool == PoolChoice::Require => Err(ControlError::Exhausted {
                problem: format!(
                    "the pool has no session of template {} for this",
                    template.id
                ),
                solution: "try again in a while, or ask with pool=prefer".to_owned(),
            }),
            None => Ok(None),
        }
    }

    async fn claim_entry(
        &self,
        template: &Template,
    ) -> Result<Option<(SessionId, Use)>, ControlError> {
        let node = &self.shared.settings.node_id;
        while let Some(entry) = self
            .shared
            .records
            .claim_from_pool(&template.id, Some(node))
            .await?
        {
            self.shared.pool.look_again();
            let Ok(id) = entry.container_id.parse::<SessionId>() else {
                continue;
            };
            // One that is not held was left by a server before this one; its executor must answer.
            let waiting = self.shared.pool.lock().remove(&id);
            if let Some(Waiting { used, made_from }) = waiting
                && made_from == template.updated_at
                && self.heard(&used, used.line.ask(Ask::Ping)).await.is_ok()
            {
                return Ok(Some((id, used)));
            }
            self.shared.live.discard(&id).await?;
        }
        Ok(None)
    }

    /// Keeps the pool as full as it is to be, for as long as the server runs.
    pub(crate) async fn fill_pool(self) {
        if self.shared.settings.pool.is_empty() {
            return;
        }
        loop {
            self.tend_pool().await;
            let again = self.shared.settings.reap_interval;
            let _ = tokio::time::timeout(again, self.shared.pool.wanted.notified()).await;
        }
    }

    /// Fills the pool; or empties it, where nobody is to get anything of it.
    async fn tend_pool(&self) {
        if self.shared.draining.is_on() {
            if let Err(error) = self.empty_pool().await {
                tracing::warn!(%error, "cannot empty the pool of a node that is draining");
            }
            return;
        }
        for (template, size) in &self.shared.settings.pool {
            if let Err(error) = self.fill(template, *size).await {
                tracing::warn!(%template, %error, "cannot fill the pool of template {template}");
            }
        }
    }

    async fn fill(&self, id: &TemplateId, size: u32) -> Result<(), ControlError> {
        let template = match self.template(id).await {
            Ok(template) if template.is_active => template,
            // Nothing waits for a template that is gone.
            Ok(_) | Err(ControlError::NotFound { .. }) => return self.drain_pool_of(id).await,
            Err(error) => return Err(error),
        };
        self.drop_outdated(&template).await?;
        let mine = self.mine(id).await?.len();
        for _ in mine..usize::try_from(size).unwrap_or(usize::MAX) {
            if self.shared.draining.is_on() {
                break;
            }
            self.add_entry(&template).await?;
        }
        Ok(())
    }

    /// Entries of a template on this node.
    async fn mine(&self, template: &TemplateId) -> Result<Vec<PoolEntry>, ControlError> {
        let node = &self.shared.settings.node_id;
        let entries = self.shared.records.pool_on(node).await?;
        let is_it = |entry: &PoolEntry| entry.template_id == *template;
        Ok(entries.into_iter().filter(is_it).collect())
    }

    async fn add_entry(&self, template: &Template) -> Result<(), ControlError> {
        let session = self.draft_of(template);
        let raised = async {
            let used = self.warm_line(&session).await?;
            self.check_packages(&session, template).await?;
            self.heard(&used, used.line.ask(Ask::Ping)).await?;
            Ok::<_, ControlError>(used)
        };
        let used = match raised.await {
            Ok(used) => used,
            Err(error) => {
                self.shared.live.discard(&session.id).await?;
                return Err(error);
            }
        };
        let entry = PoolEntry {
            id: PoolEntryId::random(random::numbers()),
            template_id: template.id.clone(),
            node_id: self.shared.settings.node_id.clone(),
            container_id: session.id.to_string(),
            executor_url: String::new(),
            workspace_path: session.workspace_path.clone(),
            created_at: Timestamp::now(),
        };
        let waiting = Waiting {
            used,
            made_from: template.updated_at,
        };
        self.shared.pool.lock().insert(session.id.clone(), waiting);
        if let Err(error) = self.shared.records.add_to_pool(&entry).await {
            self.drop_waiting(&session.id).await?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Removes entries that were made before their template was changed.
    async fn drop_outdated(&self, template: &Template) -> Result<(), ControlError> {
        for entry in self.mine(&template.id).await? {
            let id = entry.container_id.parse().ok();
            let made_from = id.and_then(|id| self.shared.pool.made_from(&id));
            if made_from != Some(template.updated_at) {
                self.drop_entry(&entry).await?;
            }
        }
        Ok(())
    }

    async fn drain_pool_of(&self, template: &TemplateId) -> Result<(), ControlError> {
        for entry in self.mine(template).await? {
            self.drop_entry(&entry).await?;
        }
        Ok(())
    }

    /// Removes every entry of this node: none of them was claimed, and none has anything in it.
    pub(crate) async fn empty_pool(&self) -> Result<(), ControlError> {
        let node = &self.shared.settings.node_id;
        for entry in self.shared.records.pool_on(node).await? {
            self.drop_entry(&entry).await?;
        }
        Ok(())
    }

    async fn drop_entry(&self, entry: &PoolEntry) -> Result<(), ControlError> {
        // Whoever claimed it meanwhile has it.
        if !self.shared.records.remove_from_pool(&entry.id).await? {
            return Ok(());
        }
        match entry.container_id.parse() {
            Ok(id) => self.drop_waiting(&id).await,
            Err(_) => Ok(()),
        }
    }

    async fn drop_waiting(&self, id: &SessionId) -> Result<(), ControlError> {
        drop(self.shared.pool.lock().remove(id));
        Ok(self.shared.live.discard(id).await?)
    }
}

impl Pool {
    /// Somebody took from it, or changed what it is made from.
    pub(crate) fn look_again(&self) {
        self.wanted.notify_one();
    }

    /// Does this one wait here for whoever asks?
    pub(crate) fn holds(&self, id: &SessionId) -> bool {
        self.lock().contains_key(id)
    }

    fn made_from(&self, id: &SessionId) -> Option<Timestamp> {
        self.lock().get(id).map(|waiting| waiting.made_from)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Waiting>> {
        // Nothing that is done under it can panic half-way.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is a session of the pool what is asked for? It has its template's limits, no network, and nothing in it.
fn does(session: &Session, new: &NewSession, template: &Template) -> bool {
    session.resources == template.default_resources
        && !new.network.enabled
        && new.mode == SessionMode::Ephemeral
        && !matches!(new.source, Source::Directory(_))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::caller::Caller;
    use crate::stage::{Deed, Stage};

    #[tokio::test]
    async fn a_node_that_is_drained_empties_its_pool_and_does_not_fill_it_again() {
        let stage = Stage::with(|settings| {
            settings.pool.insert("python-basic".parse().unwrap(), 2);
            // It hears of that at once, and not because it looks now and then.
            settings.reap_interval = Duration::from_secs(600);
        })
        .await;
        let (control, host) = (&stage.control, &stage.host);
        let node = &control.settings().node_id;
        host.until(Deed::Raise, 2).await;
        control.drain_node(&Caller::nobody(), node).await.unwrap();
        host.until(Deed::Discard, 2).await;
        control.tend_pool().await;
        assert_eq!(host.count(Deed::Raise), 2);
        assert!(control.records().pool_on(node).await.unwrap().is_empty());
    }
}
