//! The control plane as a whole: what its parts share.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sandbox_model::SessionId;
use sandbox_runtime::{Ended, Runtime};
use sandbox_store::{Objects, Records};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::activity::Activity;
use crate::error::ControlError;
use crate::events::Events;
use crate::execution::Underway;
use crate::keeping::Leaving;
use crate::live::Live;
use crate::packages::Packages;
use crate::pool::Pool;
use crate::settings::Settings;
use crate::template::Templates;
use crate::terminal::Terminals;

/// The control plane. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
}

/// What all parts share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) records: Records,
    pub(crate) objects: Objects,
    pub(crate) live: Arc<Live>,
    pub(crate) activity: Activity,
    pub(crate) events: Events,
    pub(crate) templates: Templates,
    pub(crate) underway: Underway,
    pub(crate) terminals: Terminals,
    pub(crate) pool: Pool,
    pub(crate) packages: Packages,
    pub(crate) leaving: Leaving,
    /// Sessions whose workspaces are being removed.
    pub(crate) cleaning: std::sync::Mutex<HashSet<SessionId>>,
    /// This node takes no new sessions.
    pub(crate) is_draining: AtomicBool,
    stopped: tokio::sync::OnceCell<()>,
    /// What goes on beside requests; ends with the control plane.
    background: std::sync::Mutex<JoinSet<()>>,
}

impl Control {
    /// Puts the control plane together, sets right what the server before it left, and starts what goes
    /// on beside requests. `ended` tells of sessions whose processes ended by themselves.
    pub async fn start(
        settings: Settings,
        records: Records,
        objects: Objects,
        runtime: Arc<dyn Runtime>,
        ended: mpsc::UnboundedReceiver<Ended>,
    ) -> Result<Control, ControlError> {
        let (leaving, left) = mpsc::unbounded_channel();
        let control = Control {
            shared: Arc::new(Shared {
                settings,
                records,
                objects,
                live: Arc::new(Live::new(runtime)),
                activity: Activity::default(),
                events: Events::default(),
                templates: Templates::default(),
                underway: Underway::default(),
                terminals: Terminals::default(),
                pool: Pool::default(),
                packages: Packages::default(),
                leaving,
                cleaning: std::sync::Mutex::default(),
                is_draining: AtomicBool::new(false),
                stopped: tokio::sync::OnceCell::new(),
                background: std::sync::Mutex::default(),
            }),
        };
        control.seed_templates().await?;
        control.recover().await?;
        control.say_here().await?;
        control.in_background(control.clone().look_after_nodes());
        control.in_background(control.clone().fill_pool());
        control.in_background(control.clone().reap());
        control.in_background(control.clone().keep_all(left));
        control.in_background(control.clone().watch_ends(ended));
        Ok(control)
    }

    /// The records, for whoever tells of their health.
    pub fn records(&self) -> &Records {
        &self.shared.records
    }

    /// The objects, for whoever hands them out.
    pub fn objects(&self) -> &Objects {
        &self.shared.objects
    }

    /// What it was told when it started.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Ends it: takes nothing new, lets executions go on for a while, then writes down what was interrupted.
    /// Whoever asks again waits for the same end.
    pub async fn stop(&self) {
        self.shared.stopped.get_or_init(|| self.stop_now()).await;
    }

    async fn stop_now(&self) {
        self.shared.underway.close();
        self.shared.terminals.close().await;
        let finished = self.shared.underway.drained();
        let patience = self.shared.settings.drain_timeout;
        if tokio::time::timeout(patience, finished).await.is_err() {
            // Their lines are cut, which each of them writes down.
            self.shared.live.end_all().await;
            let last = std::time::Duration::from_secs(5);
            let _ = tokio::time::timeout(last, self.shared.underway.drained()).await;
        }
        self.flush_activity().await;
        self.background().abort_all();
        if let Err(error) = self.empty_pool().await {
            tracing::warn!(%error, "cannot empty the pool");
        }
        self.shared.live.end_all().await;
        self.leave().await;
        self.shared.records.close().await;
    }

    fn in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background().spawn(task);
    }

    fn background(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        let lock = self.shared.background.lock();
        lock.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
