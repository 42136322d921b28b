//! What is measured.

use sandbox_runtime::RuntimeError;

use crate::control::Control;

impl Control {
    /// Brings what is measured now and then up to date.
    pub async fn measure(&self) {
        let raised = self.shared.live.count();
        metrics::gauge!("sandbox_sessions_raised").set(raised as f64);
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
