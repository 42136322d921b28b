//! Nodes.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sandbox_model::{Capacity, Node, NodeId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::authentication::{Admin, Reader};
use crate::error::{ApiError, ErrorView};
use crate::query::Id;
use crate::state::App;

/// A machine that sessions run on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    node_id: String,
    hostname: String,
    /// local, docker or kubernetes.
    runtime_type: String,
    /// Where it is spoken to.
    api_endpoint: String,
    /// online, unhealthy, draining or offline.
    status: String,
    total_resources: CapacityView,
    allocated_resources: CapacityView,
    cached_images: Vec<String>,
    labels: BTreeMap<String, String>,
    #[schema(format = DateTime)]
    last_heartbeat_at: String,
}

/// What a node has, or has given away.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Capacity)]
pub(crate) struct CapacityView {
    /// Processors.
    cpu: f64,
    memory_bytes: u64,
    disk_bytes: u64,
}

/// Every node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// By name.
    nodes: Vec<NodeView>,
    total: u64,
}

/// Every node, by name.
#[utoipa::path(get, path = "/nodes", tag = "nodes",
    responses((status = 200, body = NodeList), (status = 401, body = ErrorView)))]
pub(crate) async fn list(State(app): State<App>, _: Reader) -> Result<Json<NodeList>, ApiError> {
    let nodes = app.control.nodes().await?;
    let nodes: Vec<_> = nodes.into_iter().map(NodeView::of).collect();
    let total = nodes.len() as u64;
    Ok(Json(NodeList { nodes, total }))
}

/// Lets a node take no new sessions; those it has go on.
#[utoipa::path(post, path = "/nodes/{node_id}/drain", tag = "nodes",
    params(("node_id" = String, Path)),
    responses((status = 200, body = NodeView), (status = 403, body = ErrorView), (status = 404, body = ErrorView)))]
pub(crate) async fn drain(
    State(app): State<App>,
    Admin(caller): Admin,
    Id(id): Id<NodeId>,
) -> Result<Json<NodeView>, ApiError> {
    let node = app.control.drain_node(&caller, &id).await?;
    Ok(Json(NodeView::of(node)))
}

impl NodeView {
    fn of(node: Node) -> NodeView {
        NodeView {
            node_id: node.id.to_string(),
            hostname: node.hostname,
            runtime_type: node.runtime.to_string(),
            api_endpoint: node.api_endpoint,
            status: node.status.to_string(),
            total_resources: CapacityView::of(node.total),
            allocated_resources: CapacityView::of(node.allocated),
            cached_images: node.cached_images.into_iter().collect(),
            labels: node.labels,
            last_heartbeat_at: node.last_heartbeat_at.to_string(),
        }
    }
}

impl CapacityView {
    fn of(capacity: Capacity) -> CapacityView {
        CapacityView {
            cpu: capacity.cpu_thousandths as f64 / 1000.0,
            memory_bytes: capacity.memory_bytes,
            disk_bytes: capacity.disk_bytes,
        }
    }
}
