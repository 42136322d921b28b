//! Sessions on this machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use sandbox_executor::link;
use sandbox_linux::message;
use sandbox_model::id::SessionId;
use sandbox_model::runtime::{LimitsEnforced, Walls};
use thiserror::Error;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};

use crate::line::Line;
use crate::nursery::{Done, Notice, Nursery, Order, What};
use crate::spec::SessionSpec;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum LocalError {
    /// It could not be raised.
    #[error("cannot raise session {session}: {reason}")]
    Raise {
        /// Which one.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// Its workspace could not be removed.
    #[error("cannot remove the workspace of session {session}: {reason}")]
    Discard {
        /// Whose.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// The process that raises sessions is gone.
    #[error("the process that raises sessions is gone")]
    Gone,
    /// It answers something else.
    #[error("the process that raises sessions does not answer to what it was told")]
    Nonsense,
    /// It cannot be told.
    #[error("cannot tell the process that raises sessions")]
    Tell(#[source] io::Error),
}

/// A session that was raised.
#[derive(Debug, Clone)]
pub struct Raised {
    /// The line to its executor.
    pub line: Line,
    /// Which of its limits are enforced.
    pub limits_enforced: LimitsEnforced,
    /// Which walls it has.
    pub walls: Walls,
}

/// A session that ended without being asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Which one.
    pub session: SessionId,
    /// Its executor's exit status.
    pub status: i32,
}

/// This machine as a host of sessions. Clones are the same host.
#[derive(Debug, Clone)]
pub struct Local {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    nursery: Nursery,
    askers: Mutex<Askers>,
}

/// What was done, or why not.
type Answered = Result<Done, String>;

/// Who waits for which order.
#[derive(Debug, Default)]
struct Askers {
    next: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Answered>>,
}

impl Local {
    /// The host behind `nursery`, and the sessions that end by themselves. In a runtime.
    pub fn new(nursery: Nursery) -> io::Result<(Local, mpsc::UnboundedReceiver<Ended>)> {
        let socket = nursery.socket.try_clone()?;
        let shared = Arc::new(Shared {
            nursery,
            askers: Mutex::default(),
        });
        let (sender, ended) = mpsc::unbounded_channel();
        tokio::spawn(listen(socket, Arc::downgrade(&shared), sender));
        Ok((Local { shared }, ended))
    }

    /// Which limits can be enforced here.
    pub fn enforceable(&self) -> LimitsEnforced {
        self.shared.nursery.enforceable
    }

    /// Raises a session, new or not. A limit that cannot be enforced is none; what it has says which.
    pub async fn raise(&self, spec: SessionSpec) -> Result<Raised, LocalError> {
        let (ours, theirs) = link::pair().map_err(LocalError::Tell)?;
        let session = spec.session_id.clone();
        match self.tell(What::Raise(spec), Some(theirs)).await? {
            Ok(Done::Raised(limits_enforced, walls)) => Ok(Raised {
                line: Line::new(ours).map_err(LocalError::Tell)?,
                limits_enforced,
                walls,
            }),
            Ok(_) => Err(LocalError::Nonsense),
            Err(reason) => Err(LocalError::Raise { session, reason }),
        }
    }

    /// Ends a session, with everything that runs in it. Its workspace stays.
    pub async fn end(&self, session: &SessionId) -> Result<(), LocalError> {
        self.tell(What::End(session.clone()), None).await.map(drop)
    }

    /// Ends a session and removes its workspace.
    pub async fn discard(&self, session: &SessionId) -> Result<(), LocalError> {
        let done = self.tell(What::Discard(session.clone()), None).await?;
        done.map(drop).map_err(|reason| LocalError::Discard {
            session: session.clone(),
            reason,
        })
    }

    /// Does the process that raises sessions answer?
    pub async fn ping(&self) -> Result<(), LocalError> {
        self.tell(What::Ping, None).await.map(drop)
    }

    async fn tell(&self, what: What, line: Option<OwnedFd>) -> Result<Answered, LocalError> {
        let (number, done) = self.shared.expect();
        let order = Order { number, what };
        let text = serde_json::to_vec(&order).map_err(|error| LocalError::Tell(error.into()))?;
        let descriptors: Vec<_> = line.iter().map(AsFd::as_fd).collect();
        if let Err(error) = message::send(&self.shared.nursery.socket, &text, &descriptors) {
            self.shared.lock().waiting.remove(&number);
            return Err(LocalError::Tell(error));
        }
        done.await.map_err(|_| LocalError::Gone)
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Askers> {
        // Nothing that is done under it can panic half-way.
        self.askers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expect(&self) -> (u64, oneshot::Receiver<Answered>) {
        let (sender, done) = oneshot::channel();
        let mut askers = self.lock();
        askers.next += 1;
        let number = askers.next;
        askers.waiting.insert(number, sender);
        (number, done)
    }
}

/// Hands out what the nursery says, until it is gone or nobody is left to hear it.
async fn listen(
    socket: OwnedFd,
    shared: std::sync::Weak<Shared>,
    ended: mpsc::UnboundedSender<Ended>,
) {
    // No pipe, but only asked whether there is something to read.
    let readable = socket
        .try_clone()
        .and_then(Receiver::from_owned_fd_unchecked);
    let Ok(readable) = readable else {
        return;
    };
    let waits = || match message::waiting(&socket) {
        true => Ok(()),
        false => Err(io::ErrorKind::WouldBlock.into()),
    };
    while readable.readable().await.is_ok() {
        while readable.try_io(waits).is_ok() {
            let mut bytes = [0; 16 << 10];
            let notice = match message::receive(&socket, &mut bytes) {
                Ok((length, _)) if length > 0 => serde_json::from_slice(&bytes[..length]),
                // Everyone who still waits learns it by their channel's end.
                _ => {
                    if let Some(shared) = shared.upgrade() {
                        shared.lock().waiting.clear();
                    }
                    return;
                }
            };
            let (Ok(notice), Some(shared)) = (notice, shared.upgrade()) else {
                return;
            };
            match notice {
                Notice::Done(number, done) => {
                    let asker = shared.lock().waiting.remove(&number);
                    // Who no longer waits does not want to know.
                    let _ = asker.map(|asker| asker.send(done));
                }
                Notice::Ended(session, status) => {
                    let _ = ended.send(Ended { session, status });
                }
                // Said before anybody listens here.
                Notice::Ready(_) => {}
            }
        }
    }
}
