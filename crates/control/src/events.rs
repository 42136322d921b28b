//! What happens to sessions, for whoever watches.
//!
//! Every event is written down before anybody hears of it, under a number that only grows. A watcher
//! reads on from the number it has; being woken is only a hint to read. So nothing is missed by one
//! that was away, and what another server writes is found by looking now and then. Where there can be no
//! other server, whoever writes wakes, and nobody looks.

use std::time::Duration;

use sandbox_model::{SessionId, SessionNotice};
use serde_json::Value;
use tokio::sync::{broadcast, watch};

use crate::control::Control;
use crate::error::ControlError;

/// How many sessions may have news while a watcher is busy. One that is late looks for itself.
const BACKLOG: usize = 1024;

/// How often a watcher looks for what another server wrote. Following all that is written would take fewer questions,
/// but for no number to be missed, everybody who writes would wait at the gate each time.
const LOOK: Duration = Duration::from_secs(2);

/// How many events are read at once.
const BATCH: u64 = 200;

/// Who is woken when a session has news.
#[derive(Debug)]
pub(crate) struct Events {
    wake: broadcast::Sender<SessionId>,
    over: watch::Sender<bool>,
}

impl Default for Events {
    fn default() -> Events {
        let (wake, _) = broadcast::channel(BACKLOG);
        let (over, _) = watch::channel(false);
        Events { wake, over }
    }
}

impl Events {
    /// Nobody watches any longer: the server ends.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }
}

/// A session's events, one batch after another.
#[derive(Debug)]
pub struct Watch {
    control: Control,
    session: SessionId,
    after: i64,
    /// How often it looks without being woken; never where nobody but this server writes.
    look: Option<Duration>,
    wake: broadcast::Receiver<SessionId>,
    over: watch::Receiver<bool>,
}

impl Control {
    /// Watches a session from the event numbered `after` on; 0 is before the first.
    pub async fn watch(&self, session: &SessionId, after: i64) -> Result<Watch, ControlError> {
        self.session(session).await?;
        Ok(Watch {
            control: self.clone(),
            session: session.clone(),
            after,
            look: self.shared.records.is_shared().then_some(LOOK),
            wake: self.shared.events.wake.subscribe(),
            over: self.shared.events.over.subscribe(),
        })
    }

    /// Wakes who watches a session: something was written down.
    pub(crate) fn wake(&self, session: &SessionId) {
        // Nobody watches: that is fine.
        drop(self.shared.events.wake.send(session.clone()));
    }

    /// Writes down what happened to a session, and wakes who watches it. Where this fails, what happened
    /// stands, and the log has it.
    pub(crate) async fn notice(&self, session: &SessionId, kind: &str, detail: Value) {
        let detail = detail.to_string();
        match self
            .shared
            .records
            .append_notice(session, kind, &detail)
            .await
        {
            Ok(_) => self.wake(session),
            Err(error) => {
                tracing::error!(%session, kind, %error, "cannot write down the event {kind} of session {session}");
            }
        }
    }
}

impl Watch {
    /// The next events, when there are some; none when the server ends.
    pub async fn next(&mut self) -> Result<Vec<SessionNotice>, ControlError> {
        loop {
            let records = &self.control.shared.records;
            let notices = records.notices(&self.session, self.after, BATCH).await?;
            if let Some(last) = notices.last() {
                self.after = last.id;
                return Ok(notices);
            }
            if *self.over.borrow() {
                return Ok(Vec::new());
            }
            self.wait().await;
        }
    }

    /// Until there may be something to read.
    async fn wait(&mut self) {
        let woken = async {
            loop {
                match self.wake.recv().await {
                    Ok(session) if session != self.session => {}
                    // Also when so much happened that some was dropped.
                    _ => return,
                }
            }
        };
        let look = async {
            match self.look {
                Some(look) => tokio::time::sleep(look).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = woken => {}
            () = look => {}
            _ = self.over.changed() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Stage, soon};

    /// How long a test waits for what is not to come, by a clock that does not.
    const AN_HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn nobody_looks_for_what_nobody_else_can_write() {
        let stage = Stage::still().await;
        let session = stage.written(|_| {}).await;
        let mut watch = stage.control.watch(&session.id, 0).await.unwrap();
        tokio::time::pause();
        let waited = tokio::time::timeout(AN_HOUR, watch.wait()).await;
        assert!(waited.is_err());
        // On a database that others use it does.
        watch.look = Some(LOOK);
        let waited = tokio::time::timeout(AN_HOUR, watch.wait()).await;
        assert!(waited.is_ok());
    }

    #[tokio::test]
    async fn who_watches_is_woken_by_what_is_written_and_by_the_end() {
        let stage = Stage::still().await;
        let session = stage.written(|_| {}).await;
        let mut watch = stage.control.watch(&session.id, 0).await.unwrap();
        let news = tokio::spawn(async move {
            let notices = watch.next().await.unwrap();
            (watch, notices)
        });
        stage.control.notice(&session.id, "news", Value::Null).await;
        let (mut watch, notices) = soon(news).await.unwrap();
        assert_eq!(notices[0].kind, "news");
        let end = tokio::spawn(async move { watch.next().await.unwrap() });
        tokio::task::yield_now().await;
        stage.control.shared.events.end();
        assert!(soon(end).await.unwrap().is_empty());
    }
}
