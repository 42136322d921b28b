//! The control plane as a whole: what its parts share.

use std::collections::HashSet;
use std::sync::Arc;

use sandbox_model::SessionId;
use sandbox_runtime::{Ended, Runtime};
use sandbox_store::{Objects, Records};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::activity::Activity;
use crate::error::ControlError;
use crate::events::Events;
use crate::live::Live;
use crate::node::Draining;
use crate::packages::Packages;
use crate::pool::Pool;
use crate::repetition::Requests;
use crate::settings::Settings;
use crate::template::Templates;
use crate::tenure::Tenure;
use crate::terminal::Terminals;
use crate::underway::Underway;

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
    /// A session ended whose files are to be kept.
    pub(crate) left: Notify,
    /// Sessions whose workspaces are being removed.
    pub(crate) cleaning: std::sync::Mutex<HashSet<SessionId>>,
    pub(crate) requests: Requests,
    /// Held by whoever takes one of the last places for sessions.
    pub(crate) admission: tokio::sync::Mutex<()>,
    pub(crate) draining: Draining,
    pub(crate) tenure: Tenure,
    drained: tokio::sync::OnceCell<()>,
    stopped: tokio::sync::OnceCell<()>,
    hurry: Notify,
    /// What hosts the sessions is gone.
    pub(crate) lost: Notify,
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
        let control = Control::new(settings, records, objects, runtime);
        control.take_node().await?;
        let there = control.shared.live.runtime().workspaces().await?;
        control.seed_templates().await?;
        control.recover().await?;
        control.say_here().await?;
        control.in_background(control.clone().clear_strays(there));
        control.in_background(control.clone().look_after_nodes());
        control.in_background(control.clone().fill_pool());
        control.in_background(control.clone().reap());
        control.in_background(control.clone().tidy());
        control.in_background(control.clone().keep_all());
        control.in_background(control.clone().watch_ends(ended));
        Ok(control)
    }

    /// Puts it together and does nothing yet.
    pub(crate) fn new(
        settings: Settings,
        records: Records,
        objects: Objects,
        runtime: Arc<dyn Runtime>,
    ) -> Control {
        let shared = Shared {
            settings,
            requests: Requests::default(),
            admission: tokio::sync::Mutex::default(),
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
            left: Notify::new(),
            cleaning: std::sync::Mutex::default(),
            draining: Draining::default(),
            tenure: Tenure::default(),
            drained: tokio::sync::OnceCell::new(),
            stopped: tokio::sync::OnceCell::new(),
            hurry: Notify::new(),
            lost: Notify::new(),
            background: std::sync::Mutex::default(),
        };
        let shared = Arc::new(shared);
        Control { shared }
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

    /// Takes no new executions, lets those under way go on for a while, and then interrupts them: what became
    /// of each is written down. Streams of events end. Whoever asks again waits for the same end.
    pub async fn drain(&self) {
        self.shared.drained.get_or_init(|| self.drain_now()).await;
    }

    async fn drain_now(&self) {
        self.shared.underway.close();
        self.shared.terminals.close().await;
        let patience = tokio::time::sleep(self.shared.settings.drain_timeout);
        let is_drained = tokio::select! {
            () = self.shared.underway.drained() => true,
            () = patience => false,
            () = self.shared.hurry.notified() => false,
        };
        if !is_drained {
            self.shared.underway.interrupt();
            // Their lines are cut, which each of them writes down.
            self.shared.live.end_all().await;
            let last = std::time::Duration::from_secs(5);
            let _ = tokio::time::timeout(last, self.shared.underway.drained()).await;
        }
        self.shared.events.end();
    }

    /// Whoever drains it waits no longer.
    pub fn hurry(&self) {
        self.shared.hurry.notify_one();
    }

    /// Waits until what hosts the sessions is gone, which it should never be.
    pub async fn runtime_lost(&self) {
        self.shared.lost.notified().await;
    }

    /// Ends it, after draining it. Whoever asks again waits for the same end.
    pub async fn stop(&self) {
        self.drain().await;
        self.shared.stopped.get_or_init(|| self.stop_now()).await;
    }

    async fn stop_now(&self) {
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
