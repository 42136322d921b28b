//! The machines that share a database, and this one among them.
//!
//! Every server says now and then that it is there. One that has not for a while is told of as unhealthy by
//! whoever notices first, and what was running on it is written down as lost. A local session is on the
//! node that made it: whoever is asked for it elsewhere passes the request on.

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
const SILENCE: Duration = Duration::from_secs(30);

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
    /// This was read or written of this node. What is heard late does not count.
    fn hear(&self, node: &Stored<Node>) {
        let mut heard = self.lock();
        if node.version > heard.version {
            *heard = Heard {
                version: node.version,
                is_draining: node.value.status == NodeStatus::Draining,
            };
        }
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

    /// Where to ask for a persistent session of an agent whose workspace is not on this node; none when it is,
    /// or there is none yet.
    pub async fn elsewhere_for(&self, agent: &str) -> Result<Option<Elsewhere>, ControlError> {
        if !self.shared.records.is_shared() {
            return Ok(None);
        }
        match self.shared.records.latest_persistent_session(agent).await? {
            Some(latest) if latest.value.workspace_removed_at.is_none() => {
                self.reached_at(&latest.value.node_id).await
            }
            _ => Ok(None),
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
            NodeStatus::Unhealthy | NodeStatus::Offline => Err(ControlError::Unavailable {
                part: format!("node {id}, which has the workspace,").into(),
                source: format!("it is {status}").into(),
            }),
        }
    }

    /// May sessions be made here?
    pub(crate) async fn check_node(&self) -> Result<(), ControlError> {
        if self.shared.draining.lock().is_draining {
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
                let now = self.say_here().await?;
                // While nobody could say that they are there, silence means nothing.
                match failed.is_some_and(|failed| failed.elapsed() < SILENCE) {
                    true => Ok(()),
                    false => self.miss_silent(now).await,
                }
            };
            if let Err(error) = looked.await {
                tracing::warn!(%error, "cannot say that this node is there");
                failed = Some(Instant::now());
            }
        }
    }

    /// Says that this node is there, by the clock of the database, which is everybody's: what that says.
    pub(crate) async fn say_here(&self) -> Result<Timestamp, ControlError> {
        let id = &self.shared.settings.node_id;
        let known = self.shared.records.node(id).await?;
        if let Some(known) = &known {
            self.shared.draining.hear(known);
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
            let node = self.this_node(NodeStatus::Offline)?;
            self.shared.records.upsert_node(&node).await?;
            Ok::<_, ControlError>(())
        };
        if let Err(error) = left.await {
            tracing::warn!(%error, "cannot say that this node leaves");
        }
    }

    /// A node is silent: what ran there is lost.
    async fn lose(&self, node: &Node) -> Result<(), ControlError> {
        // Only one of those who notice does it.
        let current = self.shared.records.node(&node.id).await?;
        let Some(current) = current.filter(|current| current.value == *node) else {
            return Ok(());
        };
        let mut new = current.value.clone();
        new.status = NodeStatus::Unhealthy;
        match self.shared.records.update_node(&current, &new).await {
            Ok(_) => {}
            Err(StoreError::Stale { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let id = &node.id;
        tracing::warn!(node = %id, "node {id} has not been heard of since {}", node.last_heartbeat_at);
        let detail = json!({ "last_heartbeat_at": node.last_heartbeat_at });
        self.audit(&Caller::nobody(), "node.unhealthy", id.as_str(), detail)
            .await;
        self.crash_all_on(id, "its node has not been heard of")
            .await
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
                        self.shared.draining.hear(&changed);
                    }
                    return Ok(changed.value);
                }
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
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
    use tokio::runtime::Handle;
    use tokio::task::block_in_place;

    use super::*;
    use crate::stage::Stage;

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
