//! The machines that share a database, and this one among them.
//!
//! Every server says now and then that it is there. One that has not for a while is told of as unhealthy by
//! whoever notices first, and what was running on it is written down as lost. A local session is on the
//! node that made it: whoever is asked for it elsewhere passes the request on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::{Node, NodeId, NodeStatus, SessionId};
use sandbox_store::StoreError;
use serde_json::json;

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};

/// How often a server says that it is there.
pub(crate) const BEAT: Duration = Duration::from_secs(10);

/// How long one may be silent: three times.
const SILENCE: Duration = Duration::from_secs(30);

impl Control {
    /// Every node, by name.
    pub async fn nodes(&self) -> Result<Vec<Node>, ControlError> {
        let nodes = self.shared.records.nodes().await?;
        Ok(nodes.into_iter().map(|stored| stored.value).collect())
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

    /// Where to ask for a session that is not on this node; none when it is, or is over.
    pub async fn elsewhere(&self, id: &SessionId) -> Result<Option<String>, ControlError> {
        // Most servers are alone, and need not look.
        if !self.shared.has_peers.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let session = self.session(id).await?;
        if session.node_id == self.shared.settings.node_id {
            return Ok(None);
        }
        let node = self.node(&session.node_id).await?;
        match node.status {
            NodeStatus::Online | NodeStatus::Draining => Ok(Some(node.api_endpoint)),
            // What was kept of its files can be had here.
            _ if session.status.is_over() && self.shared.objects.is_elsewhere() => Ok(None),
            NodeStatus::Unhealthy | NodeStatus::Offline => Err(ControlError::Unavailable {
                part: "the node that has the session",
                source: format!("node {} is {}", node.id, node.status).into(),
            }),
        }
    }

    /// May sessions be made here?
    pub(crate) async fn check_node(&self) -> Result<(), ControlError> {
        if self.shared.is_draining.load(Ordering::Relaxed) {
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
        loop {
            beat.tick().await;
            if let Err(error) = self.look_at_nodes().await {
                tracing::warn!(%error, "cannot say that this node is there");
            }
        }
    }

    /// Says that this node is there, and looks after the others.
    pub(crate) async fn look_at_nodes(&self) -> Result<(), ControlError> {
        let id = &self.shared.settings.node_id;
        let known = self.shared.records.node(id).await?;
        let is_draining = known.is_some_and(|known| known.value.status == NodeStatus::Draining);
        self.shared
            .is_draining
            .store(is_draining, Ordering::Relaxed);
        let status = match is_draining {
            true => NodeStatus::Draining,
            false => NodeStatus::Online,
        };
        self.shared
            .records
            .upsert_node(&self.this_node(status)?)
            .await?;
        let nodes = self.nodes().await?;
        let has_peers = nodes.iter().any(|node| node.id != *id);
        self.shared.has_peers.store(has_peers, Ordering::Relaxed);
        let silent = Timestamp::now()
            .checked_sub(SILENCE)
            .unwrap_or(Timestamp::MIN);
        let is_lost = |node: &&Node| {
            node.id != *id
                && matches!(node.status, NodeStatus::Online | NodeStatus::Draining)
                && node.last_heartbeat_at < silent
        };
        for node in nodes.iter().filter(is_lost) {
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
                        let is_draining = status == NodeStatus::Draining;
                        self.shared
                            .is_draining
                            .store(is_draining, Ordering::Relaxed);
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
