//! When sessions were last used.
//!
//! Every execution and every file is a use. Writing each of them to the database would double what an
//! execution costs, so they are collected and written every few seconds; whoever asks this server sees
//! them at once. Somebody who stays, on a terminal for instance, uses the session for as long.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use sandbox_model::SessionId;

use crate::control::Control;

/// How often it is noted that somebody is still there, if sessions may be idle for longer than that.
const PRESENT: Duration = Duration::from_secs(10);

/// What was used since it was last written down.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    used: Mutex<HashMap<SessionId, Timestamp>>,
}

impl Activity {
    /// A session is used now.
    pub(crate) fn note(&self, session: &SessionId) {
        self.lock().insert(session.clone(), Timestamp::now());
    }

    /// When a session was used that is not written down yet.
    pub(crate) fn latest(&self, session: &SessionId) -> Option<Timestamp> {
        self.lock().get(session).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Timestamp>> {
        // Nothing that is done under it can panic half-way.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who stays: the session is used until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    control: Control,
    session: SessionId,
    noting: tokio::task::AbortHandle,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.noting.abort();
        self.control.shared.activity.note(&self.session);
    }
}

impl Control {
    /// Somebody is at a session from now on.
    pub(crate) fn attend(&self, session: &SessionId) -> Presence {
        let idle = self.shared.settings.idle_timeout;
        let least = Duration::from_millis(100);
        let often = idle.map_or(PRESENT, |idle| (idle / 4).clamp(least, PRESENT));
        let (control, id) = (self.clone(), session.clone());
        let noting = tokio::spawn(async move {
            loop {
                control.shared.activity.note(&id);
                tokio::time::sleep(often).await;
            }
        });
        Presence {
            control: self.clone(),
            session: session.clone(),
            noting: noting.abort_handle(),
        }
    }

    /// Writes down what was used.
    pub(crate) async fn flush_activity(&self) {
        let used: Vec<_> = self
            .shared
            .activity
            .lock()
            .iter()
            .map(|(id, at)| (id.clone(), *at))
            .collect();
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.shared.records.touch_sessions(&used).await {
            tracing::warn!(%error, "cannot write down when sessions were used");
            return;
        }
        // What was used again meanwhile stays.
        let written: HashMap<_, _> = used.into_iter().collect();
        let is_new = |id: &SessionId, at: &mut Timestamp| written.get(id) != Some(at);
        self.shared.activity.lock().retain(is_new);
    }
}
