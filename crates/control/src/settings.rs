//! What the control plane is told when it starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use sandbox_model::{NodeId, TemplateId};

/// What can be chosen. Every duration that ends something can be none: then it ends nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What this machine is called among the nodes.
    pub node_id: NodeId,
    /// What tells this server from another that takes itself for the same node: kept with its workspaces.
    pub instance: String,
    /// A session that nobody used for so long ends.
    pub idle_timeout: Option<Duration>,
    /// A session ends at this age, renewed or not.
    pub max_lifetime: Option<Duration>,
    /// Sessions end when they expire.
    pub expire: bool,
    /// How often sessions are looked at for ending.
    pub reap_interval: Duration,
    /// How long the workspace of a session is kept after its end.
    pub retention: Duration,
    /// A session that ended so long ago is forgotten, with its executions, once its workspace is gone.
    pub record_retention: Option<Duration>,
    /// The processes of a session that nobody used for so long are ended; its next use starts them again.
    pub hibernate_after: Duration,
    /// Refuse a session whose template's limits cannot be enforced here.
    pub strict_limits: bool,
    /// The most live sessions on this node.
    pub max_sessions: u64,
    /// How much memory and disk a new session may be promised, in percent of what is free.
    pub overcommit_percent: u32,
    /// Directories below which a session's source may be.
    pub source_roots: Vec<PathBuf>,
    /// Whether what a session changed may be applied to its source.
    pub promote: bool,
    /// Addresses that sessions may be allowed to reach though they are not public names, as `host:port`.
    pub allowed_addresses: Vec<String>,
    /// How many sessions of each template wait to be asked for.
    pub pool: BTreeMap<TemplateId, u32>,
    /// Where other servers on the same database reach this one, as a URL.
    pub endpoint: String,
    /// How long executions may go on when the server is asked to end.
    pub drain_timeout: Duration,
}

impl Settings {
    /// What there is when nothing is chosen.
    pub fn new(node_id: NodeId) -> Settings {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Settings {
            node_id,
            instance: String::new(),
            idle_timeout: Some(minutes(30)),
            max_lifetime: Some(minutes(6 * 60)),
            expire: true,
            reap_interval: Duration::from_secs(10),
            retention: minutes(24 * 60),
            record_retention: None,
            hibernate_after: minutes(1),
            strict_limits: false,
            max_sessions: 20_000,
            overcommit_percent: 200,
            source_roots: Vec::new(),
            promote: false,
            allowed_addresses: Vec::new(),
            pool: usual_pool(),
            endpoint: String::new(),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// A few of those that start in a moment anyway: enough for the first code to find an interpreter waiting.
fn usual_pool() -> BTreeMap<TemplateId, u32> {
    let sizes = [("python-basic", 2), ("nodejs-basic", 1)];
    let size = |(id, size): (&str, u32)| Some((id.parse().ok()?, size));
    sizes.into_iter().filter_map(size).collect()
}
