//! The machines that share a database, and this one among them.
//!
//! Every server says now and then that it is there. One that has not for a while is told of as unhealthy by
//! whoever notices first, and what was running on it is written down as lost. A local session is on the
//! node that made it: whoever is asked for it elsewhere passes the request on. What becomes of sessions whose node is
//! lost is `lost`'s affair.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sandbox_model::{Node, NodeId, NodeStatus, SessionId};
use sandbox_store::records::{Page, PageRequest};
use sandbox_store::{StoreError, Stored};
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};

/// How often a server says that it is there.
pub(crate) const BEAT: Duration = Duration::from_secs(10);

/// How long one may be silent: three times.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// Another server, and where it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Which.
    pub node: NodeId,
    /// Where, as a URL.
    pub endpoint: String,
}

/// Whether this node takes no new sessions, as far as was heard.
#[derive(Debug, Default)]
pub(crate) struct Draining {
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    version: i64,
    is_draining: bool,
}

impl Draining {
    /// This was read or written of this node. What is heard late does not count. Tells whether it begins to drain.
    fn hear(&self, node: &Stored<Node>) -> bool {
        let mut heard = self.lock();
        if node.version <= heard.version {
            return false;
        }
        let before = std::mem::replace(
            &mut *heard,
            Heard {
                version: node.version,
                is_draining: node.value.status == NodeStatus::Draining,
            },
        );
        heard.is_draining && !before.is_draining
    }

    /// Does it take no new sessions?
    pub(crate) fn is_on(&self) -> bool {
        self.lock().is_draining
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        // Nothing that is done under it can panic half-way.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// Nodes, by name.
    pub async fn nodes(&self, page: &PageRequest) -> Result<Page<Node>, ControlError> {
        let page = self.shared.records.node_page(page).await?;
        Ok(Page {
            items: page.items.into_iter().map(|stored| stored.value).collect(),
            total: page.total,
            next: page.next,
        })
    }

    /// The node of that name.
    pub async fn node(&self, id: &NodeId) -> Result<Node, ControlError> {
        let node = self.shared.records.node(id).await?;
        let node = node.ok_or_else(|| ControlError::not_found(Kind::Node, id))?;
        Ok(node.value)
    }

    /// Lets a node take no new sessions; those it has go on.
    pub async fn drain_node(&self, caller: &Caller, id: &NodeId) -> Result<Node, ControlError> {
        let node = self.set_node(id, NodeStatus::Draining).await?;
        self.audit(caller, "node.drain", id.as_str(), json!({}))
            .await;
        Ok(node)
    }

    /// Where to ask for a session that is not on this node; none when it is.
    pub async fn elsewhere(&self, id: &SessionId) -> Result<Option<Elsewhere>, ControlError> {
        // Nobody else can use a database that is a file, and nobody need look.
        if !self.shared.records.is_shared() {
            return Ok(None);
        }
        let session = self.session(id).await?;
        match self.reached_at(&session.node_id).await {
            // What was kept of its files can be had here.
            Err(_) if session.status.is_over() && self.shared.objects.is_elsewhere() => Ok(None),
            reached => reached,
        }
    }

    /// Where to ask for the end of a session that is not on this node; none when it is, or its node is lost: then
    /// any server writes it down.
    pub async fn elsewhere_to_end(
        &self,
        id: &SessionId,
    ) -> Result<Option<Elsewhere>, ControlError> {
        if !self.shared.records.is_shared() {
            return Ok(None);
        }
        let node = self.session(id).await?.node_id;
        match self.reached_at(&node).await {
            Err(_) if self.is_lost(&node).await? => Ok(None),
            reached => reached,
        }
    }

    /// Where to ask for a persistent session of an agent whose workspace is not on this node; none when it is,
    /// or there is none yet.
    pub async fn elsewhere_for(&self, agent: &str) -> Result<Option<Elsewhere>, ControlError> {
        if !self.shared.records.is_shared() {
            return Ok(None);
        }
        let latest = self.shared.records.latest_persistent_session(agent).await?;
        let Some(Stored { value: latest, .. }) = latest else {
            return Ok(None);
        };
        match self.is_workspace_kept(&latest).await? {
            true => self.reached_at(&latest.node_id).await,
            false => Ok(None),
        }
    }

    /// Where a node is reached, if it is not this one.
    async fn reached_at(&self, id: &NodeId) -> Result<Option<Elsewhere>, ControlError> {
        if *id == self.shared.settings.node_id {
            return Ok(None);
        }
        let Node {
            id,
            status,
            api_endpoint: endpoint,
            ..
        } = self.node(id).await?;
        match status {
            NodeStatus::Online | NodeStatus::Draining => Ok(Some(Elsewhere { node: id, endpoint })),
            NodeStatus::Unhealthy | NodeStatus::Offline => {
                Err(ControlError::away(&id, format!("it is {status}")))
            }
        }
    }

    /// May sessions be made here?
    pub(crate) async fn check_node(&self) -> Result<(), ControlError> {
        if self.shared.draining.is_on() {
            return Err(ControlError::Exhausted {
                problem: format!(
                    "node {} takes no new sessions",
                    self.shared.settings.node_id
                ),
                solution: "ask another server".to_owned(),
            });
        }
        Ok(())
    }

    /// Says that this node is there, and looks after the others, for as long as the server runs.
    pub(crate) async fn look_after_nodes(self) {
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failed: Option<Instant> = None;
        loop {
            beat.tick().await;
            let looked = async {
                self.keep_node().await?;
                let now = self.say_here().await?;
                // While nobody could say that they are there, silence means nothing.
                match failed.is_some_and(|failed| failed.elapsed() < SILENCE) {
                    true => Ok(()),
                    false => self.miss_silent(now).await,
                }
            };
            match looked.await {
                Ok(()) => {}
                Err(error @ ControlError::Held { .. }) => {
                    tracing::error!(%error, "{error}: end one of the two");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot say that this node is there");
                    failed = Some(Instant::now());
                }
            }
        }
    }

    /// Says that this node is there, by the clock of the database, which is everybody's: what that says.
    pub(crate) async fn say_here(&self) -> Result<Timestamp, ControlError> {
        let id = &self.shared.settings.node_id;
        let known = self.shared.records.node(id).await?;
        if let Some(known) = &known {
            self.hear_of_node(known);
        }
        let status = match known.as_ref().map(|known| known.value.status) {
            Some(NodeStatus::Draining) => NodeStatus::Draining,
            _ => NodeStatus::Online,
        };
        let now = self.shared.records.now().await?;
        let mut node = self.this_node(status)?;
        node.last_heartbeat_at = now;
        match known {
            // Somebody who drains it meanwhile is heard the next time.
            Some(known) => match self.shared.records.update_node(&known, &node).await {
                Ok(_) | Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            },
            None => {
                self.shared.records.upsert_node(&node).await?;
            }
        }
        Ok(now)
    }

    /// Looks for nodes that have not said for too long that they are there.
    async fn miss_silent(&self, now: Timestamp) -> Result<(), ControlError> {
        let id = &self.shared.settings.node_id;
        let nodes = self.shared.records.nodes().await?;
        let silent = now.checked_sub(SILENCE).unwrap_or(Timestamp::MIN);
        let is_lost = |node: &&Node| {
            node.id != *id
                && matches!(node.status, NodeStatus::Online | NodeStatus::Draining)
                && node.last_heartbeat_at < silent
        };
        for node in nodes.iter().map(|stored| &stored.value).filter(is_lost) {
            self.lose(node).await?;
        }
        Ok(())
    }

    /// Tells of this node that it leaves, so that nobody waits for it.
    pub(crate) async fn leave(&self) {
        let left = async {
            // Of a node that another server has by now, nothing is said.
            self.keep_node().await?;
            let node = self.this_node(NodeStatus::Offline)?;
            self.shared.records.upsert_node(&node).await?;
            self.give_node_up().await
        };
        if let Err(error) = left.await {
            tracing::warn!(%error, "cannot say that this node leaves");
        }
    }

    /// A node is silent: what ran there is lost.
    async fn lose(&self, node: &Node) -> Result<(), ControlError> {
        let id = &node.id;
        let current = self.shared.records.node(id).await?;
        let Some(current) = current.filter(|current| current.value == *node) else {
            return Ok(());
        };
        // Before that is written down, after which nobody looks again. Whoever else notices finds it done.
        self.fail_unmade_on(id, "its node was lost while it was being made")
            .await?;
        self.crash_all_on(id, "its node has not been heard of")
            .await?;
        let mut new = current.value.clone();
        new.status = NodeStatus::Unhealthy;
        match self.shared.records.update_node(&current, &new).await {
            Ok(_) => {}
            Err(StoreError::Stale { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        tracing::warn!(node = %id, "node {id} has not been heard of since {}", node.last_heartbeat_at);
        let detail = json!({ "last_heartbeat_at": node.last_heartbeat_at });
        self.audit(&Caller::nobody(), "node.unhealthy", id.as_str(), detail)
            .await;
        for session in self.shared.records.live_sessions_on(id).await? {
            let session = &session.value.id;
            self.notice(session, "node_lost", json!({ "node_id": id }))
                .await;
        }
        Ok(())
    }

    async fn set_node(&self, id: &NodeId, status: NodeStatus) -> Result<Node, ControlError> {
        loop {
            let current = self.shared.records.node(id).await?;
            let current = current.ok_or_else(|| ControlError::not_found(Kind::Node, id))?;
            let mut new = current.value.clone();
            new.status = status;
            match self.shared.records.update_node(&current, &new).await {
                Ok(changed) => {
                    if *id == self.shared.settings.node_id {
                        self.hear_of_node(&changed);
                    }
                    return Ok(changed.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// This was read or written of this node.
    fn hear_of_node(&self, node: &Stored<Node>) {
        if self.shared.draining.hear(node) {
            // Nobody is to get anything of it.
            self.shared.pool.look_again();
        }
    }

    fn this_node(&self, status: NodeStatus) -> Result<Node, ControlError> {
        let settings = &self.shared.settings;
        let room = self.shared.live.runtime().room()?;
        let hostname = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Ok(Node {
            id: settings.node_id.clone(),
            hostname,
            runtime: self.shared.live.runtime().kind(),
            api_endpoint: settings.endpoint.clone(),
            status,
            total: room.total,
            allocated: room.used(),
            cached_images: BTreeSet::from(["host".to_owned()]),
            labels: BTreeMap::new(),
            last_heartbeat_at: Timestamp::now(),
        })
    }
}

#[cfg(test)]
mod tests {
    use sandbox_model::SessionStatus;
    use tokio::runtime::Handle;
    use tokio::task::block_in_place;

    use super::*;
    use crate::settings::Settings;
    use crate::stage::Stage;

    #[tokio::test]
    async fn sessions_of_a_node_that_is_lost_are_told_and_those_that_were_being_made_fail() {
        let stage = Stage::still().await;
        let (here, node) = (&stage.control, &stage.control.settings().node_id);
        let (there, _) = stage.beside(Settings::new("there".parse().unwrap()));
        here.say_here().await.unwrap();
        let running = stage.written(|_| {}).await;
        let over = stage
            .written(|session| session.status = SessionStatus::Terminated)
            .await;
        let unmade = stage
            .written(|session| session.status = SessionStatus::Creating)
            .await;
        let silent = here.node(node).await.unwrap();
        // Of those who notice, one tells of it.
        for _ in 0..2 {
            there.lose(&silent).await.unwrap();
        }
        let status = here.node(node).await.unwrap().status;
        assert_eq!(status, NodeStatus::Unhealthy);
        let told = async |session: &SessionId| {
            let notices = here.records().notices(session, 0, 10).await.unwrap();
            let told = notices.into_iter().map(|it| (it.kind, it.detail));
            told.collect::<Vec<_>>()
        };
        let lost = ("node_lost".to_owned(), r#"{"node_id":"here"}"#.to_owned());
        assert_eq!(told(&running.id).await, [lost]);
        assert!(told(&over.id).await.is_empty());
        let session = here.session(&unmade.id).await.unwrap();
        assert_eq!(session.status, SessionStatus::Failed);
        let session = here.session(&running.id).await.unwrap();
        assert_eq!(session.status, SessionStatus::Running);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_node_that_is_drained_while_it_says_that_it_is_there_is_drained() {
        let stage = Stage::still().await;
        let control = &stage.control;
        let node = &control.settings().node_id;
        control.say_here().await.unwrap();
        assert_eq!(control.node(node).await.unwrap().status, NodeStatus::Online);
        control.check_node().await.unwrap();
        let (drainer, drained) = (control.clone(), node.clone());
        // It looks at the room there is after it has read what is known of it, and before it writes.
        stage.host.interrupt(move || {
            let drain = async move { drainer.drain_node(&Caller::nobody(), &drained).await };
            block_in_place(|| Handle::current().block_on(drain)).unwrap();
        });
        for _ in 0..2 {
            control.say_here().await.unwrap();
            let status = control.node(node).await.unwrap().status;
            assert_eq!(status, NodeStatus::Draining);
            control.check_node().await.unwrap_err();
        }
    }

    #[tokio::test]
    async fn what_is_heard_late_of_a_node_does_not_count() {
        let stage = Stage::still().await;
        let control = &stage.control;
        let node = &control.settings().node_id;
        control.say_here().await.unwrap();
        let before = control.records().node(node).await.unwrap().unwrap();
        let drained = control.drain_node(&Caller::nobody(), node).await;
        assert_eq!(drained.unwrap().status, NodeStatus::Draining);
        control.shared.draining.hear(&before);
        control.check_node().await.unwrap_err();
    }
}
