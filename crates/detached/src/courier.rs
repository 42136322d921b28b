//! Bringing reports to the control plane.
//!
//! One at a time, the newest first, and each until it is taken or refused. One that has to wait goes behind
//! the others, and everything waits a little longer each time that nobody takes anything. Where the control plane
//! does not know us, it is not likely to for the next one: when it knew us for none of them, they wait long, and
//! whoever ends does not wait for them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use sandbox_model::ExecutionId;
use tokio::sync::Notify;

use crate::content;
use crate::control_plane::{ControlPlane, Telling, Verdict};
use crate::journal;
use crate::random;
use crate::report::Part;
use crate::spool::{Entry, Spool};

/// How long a report may be on its way.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait before something is told again, at first and at most: a control plane that is back holds
/// what it does not hear of for lost after fifteen seconds.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(5);

/// How long to wait where the control plane does not know us, whatever we bring: a secret that was changed by mistake
/// is changed back by hand, and until then everything is refused.
const UNKNOWN: Duration = Duration::from_secs(60);

/// Whoever brings them.
#[derive(Debug)]
pub(crate) struct Courier {
    control_plane: Rc<ControlPlane>,
    spool: Arc<Spool>,
    pending: RefCell<VecDeque<ExecutionId>>,
    /// How many the control plane took for a stranger's since it last took one for ours.
    disowned: Cell<usize>,
    /// There is a new one.
    more: Notify,
    /// One is gone, or will not be for long.
    fewer: Notify,
}

/// Why a report has to be brought again.
#[derive(Debug)]
enum Undelivered {
    /// Nobody took it.
    Untaken(String),
    /// The control plane took our token for a stranger's.
    Unknown(String),
}

/// How long to wait before the next attempt.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(SHORTEST)
    }
}

impl Backoff {
    /// Twice as long each time, and not for everybody the same: many executors lose a control plane at the
    /// same moment.
    pub(crate) fn next(&mut self) -> Duration {
        let [chance] = random::numbers();
        let whole = self.0;
        self.0 = (whole * 2).min(LONGEST);
        whole / 2 + whole.mul_f64(f64::from(chance) / f64::from(u16::MAX) / 2.0)
    }
}

impl Courier {
    /// One with these to bring at first.
    pub(crate) fn new(
        control_plane: Rc<ControlPlane>,
        spool: Arc<Spool>,
        pending: Vec<ExecutionId>,
    ) -> Courier {
        Courier {
            control_plane,
            spool,
            pending: RefCell::new(pending.into()),
            disowned: Cell::new(0),
            more: Notify::new(),
            fewer: Notify::new(),
        }
    }

    /// One more: its report is in the spool.
    pub(crate) fn bring(&self, id: ExecutionId) {
        self.pending.borrow_mut().push_front(id);
        self.more.notify_one();
    }

    /// How many are still to be brought.
    pub(crate) fn pending(&self) -> usize {
        self.pending.borrow().len()
    }

    /// Waits until there is none, or none that the control plane would take from us.
    pub(crate) async fn idle(&self) {
        loop {
            let fewer = self.fewer.notified();
            if self.is_disowned() {
                return;
            }
            fewer.await;
        }
    }

    /// Was the control plane asked in vain for each that there is whether it knows us?
    fn is_disowned(&self) -> bool {
        self.disowned.get() >= self.pending()
    }

    /// Brings them, for ever.
    pub(crate) async fn work(self: Rc<Courier>) {
        let mut backoff = Backoff::default();
        loop {
            let next = self.pending.borrow().front().cloned();
            let Some(id) = next else {
                self.more.notified().await;
                continue;
            };
            match self.deliver(&id).await {
                None => {
                    self.pending.borrow_mut().retain(|other| *other != id);
                    self.disowned.set(0);
                    self.fewer.notify_waiters();
                    backoff = Backoff::default();
                }
                Some(undelivered) => {
                    let (reason, wait) = match undelivered {
                        Undelivered::Untaken(reason) => (reason, backoff.next()),
                        Undelivered::Unknown(reason) => (reason, self.disown()),
                    };
                    let message = format!("the result of {id} waits: {reason}");
                    let seconds = wait.as_secs_f64();
                    journal::warn(
                        message,
                        &[("execution_id", &id), ("wait_seconds", &seconds)],
                    );
                    self.put_off(&id);
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.more.notified() => {}
                    }
                }
            }
        }
    }

    /// One more was taken for a stranger's: how long to wait before the next.
    fn disown(&self) -> Duration {
        self.disowned
            .set((self.disowned.get() + 1).min(self.pending()));
        self.fewer.notify_waiters();
        match self.is_disowned() {
            true => UNKNOWN,
            false => Duration::ZERO,
        }
    }

    fn put_off(&self, id: &ExecutionId) {
        let mut pending = self.pending.borrow_mut();
        pending.retain(|other| other != id);
        pending.push_back(id.clone());
    }

    /// Brings one; a reason where it has to be brought again.
    async fn deliver(&self, id: &ExecutionId) -> Option<Undelivered> {
        let entry = self.beside(id, |spool, id| spool.entry(id)).await;
        match entry {
            Ok(Some(entry)) => {
                if let Err(undelivered) = self.tell(id, entry).await {
                    return Some(undelivered);
                }
            }
            Ok(None) => {}
            Err(error) => {
                let message = format!("the result of {id} cannot be read: {error}");
                journal::error(message, &[("execution_id", id)]);
                return None;
            }
        }
        if let Err(error) = self.beside(id, |spool, id| spool.settle(id)).await {
            // Then it is told once more by whoever starts next, in the same words.
            let message = format!("it cannot be kept that the result of {id} was told: {error}");
            journal::error(message, &[("execution_id", id)]);
        }
        None
    }

    async fn tell(&self, id: &ExecutionId, entry: Entry) -> Result<(), Undelivered> {
        for (part, at, length) in entry.parts {
            let what = part.as_str();
            let telling = Telling {
                to: format!("/executions/{id}/{what}"),
                content: content::of_file(entry.file.clone(), at, length),
                request_id: Some(&entry.request_id),
                key: (part == Part::Result).then(|| format!("{id}_result")),
                patience: PATIENCE,
            };
            let fields: journal::Fields<'_> =
                &[("execution_id", id), ("request_id", &entry.request_id)];
            match self.control_plane.tell(telling).await {
                Verdict::Taken if part == Part::Result => {
                    journal::info(format!("the control plane has the result of {id}"), fields);
                }
                Verdict::Taken => {}
                Verdict::Refused { status, reason } if status == StatusCode::UNAUTHORIZED => {
                    return Err(Undelivered::Unknown(format!("{status}: {reason}")));
                }
                Verdict::Refused { status, reason } => {
                    let message =
                        format!("the control plane refuses the {what} of {id}: {status}: {reason}");
                    journal::error(message, fields);
                }
                Verdict::Later(reason) => return Err(Undelivered::Untaken(reason)),
            }
        }
        Ok(())
    }

    async fn beside<T: Send + 'static>(
        &self,
        id: &ExecutionId,
        work: impl FnOnce(&Spool, &ExecutionId) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (spool, id) = (self.spool.clone(), id.clone());
        beside(move || work(&spool, &id)).await
    }
}

/// Does what waits for the disk, and lets everybody else go on.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_within_bounds() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..20).map(|_| backoff.next()).collect();
        assert!(waits[0] >= SHORTEST / 2 && waits[0] <= SHORTEST);
        assert!(waits[19] >= LONGEST / 2 && waits[19] <= LONGEST);
    }
}
