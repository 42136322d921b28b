//! Nodes.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use sandbox_model::{Capacity, Node, NodeId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::words::{NodeStatusView, RuntimeTypeView};
use crate::authentication::{Admin, Reader};
use crate::error::{ApiError, ErrorView};
use crate::paging::{self, Paging};
use crate::query::{Id, Query};
use crate::state::App;

/// A machine that sessions run on.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Node)]
pub(crate) struct NodeView {
    /// What it is called.
    node_id: String,
    /// What the machine calls itself.
    hostname: String,
    /// What hosts sessions there.
    #[schema(value_type = RuntimeTypeView)]
    runtime_type: String,
    /// Where other servers reach it.
    #[schema(example = "http://10.0.0.7:8000")]
    api_endpoint: String,
    /// How it is.
    #[schema(value_type = NodeStatusView)]
    status: String,
    /// What it has.
    total_resources: CapacityView,
    /// What it has given away.
    allocated_resources: CapacityView,
    /// Images that are there already.
    cached_images: Vec<String>,
    /// What its operator says of it.
    labels: BTreeMap<String, String>,
    /// When it was last heard of.
    #[schema(format = DateTime)]
    last_heartbeat_at: String,
}

/// What a node has, or has given away.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Capacity)]
pub(crate) struct CapacityView {
    /// Processors.
    cpu: f64,
    /// Memory.
    memory_bytes: u64,
    /// Disk; 0 where it is not known.
    disk_bytes: u64,
}

/// A page of nodes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// By name.
    nodes: Vec<NodeView>,
    /// How many there are on all pages together.
    total: u64,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Lists the nodes, by name.
///
/// The machines that share this server's database, and this one among them.
#[utoipa::path(get, path = "/nodes", tag = "nodes", operation_id = "list_nodes",
    security(("api_key" = ["read"])), params(Paging),
    responses((status = 200, body = NodeList, description = "A page of them"),
        (status = 400, body = ErrorView, description = "The page is not one")))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Reader,
    Query(paging): Query<Paging>,
) -> Result<Json<NodeList>, ApiError> {
    let page = app.control.nodes(&paging.request()?).await?;
    Ok(Json(NodeList {
        total: page.total,
        next_cursor: paging::next(&page),
        nodes: page.items.into_iter().map(NodeView::of).collect(),
    }))
}

/// Lets a node take no new sessions.
///
/// Those it has go on.
#[utoipa::path(post, path = "/nodes/{node_id}/drain", tag = "nodes", operation_id = "drain_node",
    security(("api_key" = ["admin"])),
    params(("node_id" = String, Path, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description = "The node", example = "local")),
    responses((status = 200, body = NodeView, description = "It takes none"), (status = 404, body = ErrorView)))]
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
