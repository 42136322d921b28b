//! What is measured.

use sandbox_runtime::{Room, RuntimeError};

use crate::control::Control;

impl Control {
    /// Brings what is measured now and then up to date.
    pub async fn measure(&self) {
        let raised = self.shared.live.count();
        metrics::gauge!("sandbox_sessions_raised").set(raised as f64);
        match self.shared.live.runtime().room() {
            Ok(room) => tell(&room),
            Err(error) => tracing::warn!(%error, "cannot tell what this node has"),
        }
        match self.live_sessions().await {
            Ok(live) => metrics::gauge!("sandbox_sessions_active").set(live as f64),
            Err(error) => tracing::warn!(%error, "cannot count the sessions"),
        }
    }

    /// Does what raises sessions answer?
    pub async fn ping_runtime(&self) -> Result<(), RuntimeError> {
        self.shared.live.runtime().ping().await
    }
}

/// What this node has, and what of it is used.
fn tell(room: &Room) {
    for (state, capacity) in [("total", room.total), ("used", room.used())] {
        let cores = capacity.cpu_thousandths as f64 / 1000.0;
        metrics::gauge!("sandbox_node_cpu_cores", "state" => state).set(cores);
        metrics::gauge!("sandbox_node_memory_bytes", "state" => state)
            .set(capacity.memory_bytes as f64);
        metrics::gauge!("sandbox_node_disk_bytes", "state" => state)
            .set(capacity.disk_bytes as f64);
    }
}
