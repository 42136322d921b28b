//! Sessions on this machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use sandbox_executor::link;
use sandbox_linux::cgroup::{self, Hierarchy};
use sandbox_linux::message;
use sandbox_model::id::SessionId;
use sandbox_model::runtime::{LimitsEnforced, RuntimeKind};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::image;
use crate::line::Line;
use crate::nursery::{
    self, Done, LONGEST_NOTICE, Notice, Nursery, Order, Refusal, RefusalKind, SANDBOXES, What,
};
use crate::promotion::{Promote, Promotion};
use crate::room::{self, Room};
use crate::runtime::{Asked, ChangeReport, Raised, Runtime, RuntimeError, Usage};
use crate::spec::{Image, SessionSpec};

/// The longest report that is read, in bytes: the longest diff, escaped at worst, and what is around.
const LONGEST_REPORT: u64 = 128 << 20;

/// How many change sets may be made, or sent, at a time. Each takes the memory of its process and then that
/// of its report, however large the workspace is.
const MOST_REPORTS: usize = 4;

/// How long the next one waits for its turn.
const REPORT_PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before something is tried again that the machine had no room for.
const AGAIN: Duration = Duration::from_millis(20);

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
    /// The same socket, and whether there is room in it.
    writable: Sender,
    askers: Arc<Mutex<Askers>>,
    /// What limits the server's own memory, and with it that of its sessions.
    group: Option<Hierarchy>,
    /// Places for reports of changes.
    reports: Arc<Semaphore>,
}

/// What was done, or why not, and a file where there is more to say.
type Answered = (Result<Done, Refusal>, Option<OwnedFd>);

/// Who waits for which order.
#[derive(Debug)]
struct Askers {
    next: u64,
    /// Which supervisor there is.
    supervisor: u64,
    /// It ended, and another one is not there yet.
    is_down: bool,
    waiting: BTreeMap<u64, oneshot::Sender<Answered>>,
    /// Nobody listens any more to what the nursery says.
    is_over: bool,
}

impl Default for Askers {
    fn default() -> Askers {
        Askers {
            next: 0,
            supervisor: 1,
            is_down: false,
            waiting: BTreeMap::new(),
            is_over: false,
        }
    }
}

impl Local {
    /// The host behind `nursery`, and the sessions that end by themselves. In a runtime.
    pub fn new(nursery: Nursery) -> io::Result<(Local, mpsc::UnboundedReceiver<Ended>)> {
        let socket = nursery.socket.try_clone()?;
        // Ours alone: the other end goes on waiting.
        rustix::io::ioctl_fionbio(&socket, true)?;
        let shared = Arc::new(Shared {
            writable: Sender::from_owned_fd_unchecked(nursery.socket.try_clone()?)?,
            nursery,
            askers: Arc::default(),
            // Where it cannot be told, nothing is known to limit it.
            group: cgroup::hierarchy("memory").ok().flatten(),
            reports: Arc::new(Semaphore::new(MOST_REPORTS)),
        });
        let (sender, ended) = mpsc::unbounded_channel();
        let askers = Arc::downgrade(&shared.askers);
        tokio::spawn(listen(socket, askers, sender));
        Ok((Local { shared }, ended))
    }

    /// Which limits can be enforced here.
    pub fn enforceable(&self) -> LimitsEnforced {
        self.shared.nursery.enforceable
    }

    /// Raises a session, new or not. A limit that cannot be enforced is none; what it has says which.
    pub async fn raise(&self, spec: SessionSpec) -> Result<Raised, RuntimeError> {
        let (ours, theirs) = link::pair().map_err(RuntimeError::Tell)?;
        let about = ("raise", spec.session_id.clone());
        match self.done(about, What::Raise(spec), Some(theirs)).await? {
            (Done::Raised(limits_enforced, walls), _) => Ok(Raised {
                line: Line::new(ours).map_err(RuntimeError::Tell)?,
                limits_enforced,
                walls,
            }),
            _ => Err(RuntimeError::Nonsense),
        }
    }

    /// Ends a session, with everything that runs in it. Its workspace stays.
    pub async fn end(&self, session: &SessionId) -> Result<(), RuntimeError> {
        let about = ("end", session.clone());
        let done = self.done(about, What::End(session.clone()), None);
        done.await.map(drop)
    }

    /// Ends a session and removes its workspace.
    pub async fn discard(&self, session: &SessionId) -> Result<(), RuntimeError> {
        let what = What::Discard(session.clone());
        self.report(("discard", session.clone()), what).await
    }

    /// Stops everything in a session where it is, its executor too: nothing is answered until it is
    /// thawed. Time goes on. An execution whose deadline passes meanwhile is ended as soon as it is
    /// thawed.
    pub async fn freeze(&self, session: &SessionId) -> Result<(), RuntimeError> {
        let about = ("freeze", session.clone());
        let done = self.done(about, What::Freeze(session.clone()), None);
        done.await.map(drop)
    }

    /// Lets it go on.
    pub async fn thaw(&self, session: &SessionId) -> Result<(), RuntimeError> {
        let about = ("thaw", session.clone());
        let done = self.done(about, What::Thaw(session.clone()), None);
        done.await.map(drop)
    }

    /// Gives `to`, which has none, a workspace that is a copy of the one of `from`. If that is raised, it
    /// stands still while it is copied.
    pub async fn fork(&self, from: &SessionId, to: &SessionId) -> Result<(), RuntimeError> {
        let what = What::Fork(from.clone(), to.clone());
        self.report(("fork", from.clone()), what).await
    }

    /// The sessions that have a workspace here, raised or not.
    pub async fn workspaces(&self) -> Result<Vec<SessionId>, RuntimeError> {
        let directory = self.shared.nursery.root.join(SANDBOXES);
        let list = move || -> io::Result<Vec<SessionId>> {
            let mut found = Vec::new();
            let entries = match std::fs::read_dir(directory) {
                Ok(entries) => entries,
                // Nothing was ever raised.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
                Err(error) => return Err(error),
            };
            for entry in entries {
                found.extend(
                    entry?
                        .file_name()
                        .to_str()
                        .and_then(|name| name.parse().ok()),
                );
            }
            Ok(found)
        };
        let listed = tokio::task::spawn_blocking(list).await;
        let listed = listed.map_err(|_| RuntimeError::Gone)?;
        listed.map_err(RuntimeError::Room)
    }

    /// What a session's workspace has that it did not start with, raised or not.
    pub async fn changes(&self, session: &SessionId) -> Result<ChangeReport, RuntimeError> {
        let operation = "tell the changes of";
        let place = self.shared.reports.clone().acquire_owned();
        let place = tokio::time::timeout(REPORT_PATIENCE, place).await;
        let Ok(Ok(permit)) = place else {
            return Err(RuntimeError::Busy {
                operation,
                session: session.clone(),
                reason: format!("{MOST_REPORTS} change sets are being made or sent already"),
            });
        };
        let (local, session) = (self.clone(), session.clone());
        // On its own: who goes away in the middle leaves a process at work, whose place is taken until it is done.
        let made = tokio::spawn(async move {
            let what = What::Changes(session.clone());
            let about = (operation, session);
            let (Done::Apart, Some(file)) = local.done(about.clone(), what, None).await? else {
                return Err(RuntimeError::Nonsense);
            };
            let file = File::from(file);
            let place = within(&file, about)?;
            Ok(ChangeReport {
                file,
                place,
                _permit: permit,
            })
        });
        made.await.map_err(|_| RuntimeError::Gone)?
    }

    /// Applies what a session's workspace has become to the directory it is a copy of.
    pub async fn promote(
        &self,
        session: &SessionId,
        what: Promote,
    ) -> Result<Promotion, RuntimeError> {
        let what = What::Promote(session.clone(), what);
        self.report(("promote", session.clone()), what).await
    }

    /// What a session that is raised uses.
    pub async fn usage(&self, session: &SessionId) -> Result<Usage, RuntimeError> {
        let about = ("tell the usage of", session.clone());
        let what = What::Usage(session.clone());
        match self.done(about, what, None).await? {
            (Done::Usage(usage), _) => Ok(usage),
            _ => Err(RuntimeError::Nonsense),
        }
    }

    /// Does the process that raises sessions answer?
    pub async fn ping(&self) -> Result<(), RuntimeError> {
        self.tell(What::Ping, None).await.map(drop)
    }

    /// Has something done whose outcome comes in a file.
    async fn report<T: DeserializeOwned + Send + 'static>(
        &self,
        about: About,
        what: What,
    ) -> Result<T, RuntimeError> {
        let (Done::Apart, Some(file)) = self.done(about.clone(), what, None).await? else {
            return Err(RuntimeError::Nonsense);
        };
        let read = move || -> io::Result<Result<T, Refusal>> {
            let mut file = File::from(file);
            file.rewind()?;
            let mut text = Vec::new();
            file.take(LONGEST_REPORT).read_to_end(&mut text)?;
            Ok(serde_json::from_slice(&text)?)
        };
        // It may be large, and whoever runs other things here should not wait for it.
        let reported = tokio::task::spawn_blocking(read).await;
        let reported = reported.map_err(|_| RuntimeError::Gone)?;
        let reported = reported.map_err(|_| RuntimeError::Nonsense)?;
        reported.map_err(|refusal| refused(about, refusal))
    }

    async fn done(
        &self,
        about: About,
        what: What,
        line: Option<OwnedFd>,
    ) -> Result<(Done, Option<OwnedFd>), RuntimeError> {
        let (done, file) = self.tell(what, line).await?;
        let done = done.map_err(|refusal| refused(about, refusal))?;
        Ok((done, file))
    }

    async fn tell(&self, what: What, line: Option<OwnedFd>) -> Result<Answered, RuntimeError> {
        let mut waits = Waits::new(&self.shared.askers);
        let order = Order {
            number: waits.number,
            supervisor: waits.supervisor,
            what,
        };
        let text = serde_json::to_vec(&order).map_err(|error| RuntimeError::Tell(error.into()))?;
        let apart = match text.len() > nursery::SHORT {
            true => Some(in_memory(&text).map_err(RuntimeError::Tell)?),
            false => None,
        };
        let text = match apart {
            Some(_) => format!("{}{}", char::from(nursery::APART), waits.number).into_bytes(),
            None => text,
        };
        let descriptors: Vec<_> = apart.iter().chain(&line).map(AsFd::as_fd).collect();
        self.shared
            .send(&text, &descriptors, &mut waits.done)
            .await?;
        // From here on it is the nursery's, and nothing of it is ours.
        drop(line);
        (&mut waits.done).await.map_err(|_| RuntimeError::Gone)
    }
}

/// Where in a report, a `Result<T, Refusal>` as JSON, the JSON of what was found is.
fn within(report: &File, about: About) -> Result<Range<u64>, RuntimeError> {
    const FOUND: &[u8] = br#"{"Ok":"#;
    let nonsense = |_| RuntimeError::Nonsense;
    let length = report.metadata().map_err(nonsense)?.len();
    let mut start = [0; FOUND.len()];
    report.read_exact_at(&mut start, 0).map_err(nonsense)?;
    if start == FOUND {
        return Ok(FOUND.len() as u64..length - 1);
    }
    // Why not is said in a few words.
    let mut text = vec![0; usize::try_from(length.min(1 << 20)).unwrap_or(0)];
    report.read_exact_at(&mut text, 0).map_err(nonsense)?;
    match serde_json::from_slice::<Result<IgnoredAny, Refusal>>(&text) {
        Ok(Err(refusal)) => Err(refused(about, refusal)),
        _ => Err(RuntimeError::Nonsense),
    }
}

/// A file in memory with this in it.
fn in_memory(text: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("order", MemfdFlags::CLOEXEC)?);
    file.write_all(text)?;
    Ok(file.into())
}

impl Runtime for Local {
    fn kind(&self) -> RuntimeKind {
        RuntimeKind::Local
    }

    fn enforceable(&self) -> LimitsEnforced {
        self.enforceable()
    }

    fn room(&self) -> Result<Room, RuntimeError> {
        let Shared { nursery, group, .. } = &*self.shared;
        room::here(&nursery.root, group.as_ref()).map_err(RuntimeError::Room)
    }

    fn check_image(&self, image: &Image) -> Result<(), String> {
        match image {
            Image::Host => Ok(()),
            Image::Directory(directory) => {
                let Nursery { root, users, .. } = &self.shared.nursery;
                image::check(root, *users, directory)
            }
        }
    }

    fn ping(&self) -> Asked<'_, ()> {
        Box::pin(self.ping())
    }

    fn raise(&self, spec: SessionSpec) -> Asked<'_, Raised> {
        Box::pin(self.raise(spec))
    }

    fn end<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()> {
        Box::pin(self.end(session))
    }

    fn discard<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()> {
        Box::pin(self.discard(session))
    }

    fn freeze<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()> {
        Box::pin(self.freeze(session))
    }

    fn thaw<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ()> {
        Box::pin(self.thaw(session))
    }

    fn fork<'a>(&'a self, from: &'a SessionId, to: &'a SessionId) -> Asked<'a, ()> {
        Box::pin(self.fork(from, to))
    }

    fn workspaces(&self) -> Asked<'_, Vec<SessionId>> {
        Box::pin(self.workspaces())
    }

    fn changes<'a>(&'a self, session: &'a SessionId) -> Asked<'a, ChangeReport> {
        Box::pin(self.changes(session))
    }

    fn promote<'a>(&'a self, session: &'a SessionId, what: Promote) -> Asked<'a, Promotion> {
        Box::pin(self.promote(session, what))
    }

    fn usage<'a>(&'a self, session: &'a SessionId) -> Asked<'a, Usage> {
        Box::pin(self.usage(session))
    }
}

/// What is done, and to which session.
type About = (&'static str, SessionId);

fn refused((operation, session): About, refusal: Refusal) -> RuntimeError {
    let Refusal { kind, reason } = refusal;
    match kind {
        RefusalKind::NotFound => RuntimeError::NotFound {
            operation,
            session,
            reason,
        },
        RefusalKind::Conflict => RuntimeError::Conflict {
            operation,
            session,
            reason,
        },
        RefusalKind::Full => RuntimeError::Full {
            operation,
            session,
            reason,
        },
        RefusalKind::Unlimited => RuntimeError::Unlimited {
            operation,
            session,
            reason,
        },
        RefusalKind::Failed => RuntimeError::Failed {
            operation,
            session,
            reason,
        },
    }
}

/// Somebody who waits for an order; who waits no longer is forgotten.
struct Waits<'a> {
    askers: &'a Mutex<Askers>,
    number: u64,
    supervisor: u64,
    done: oneshot::Receiver<Answered>,
}

impl Waits<'_> {
    fn new(askers: &Mutex<Askers>) -> Waits<'_> {
        let (sender, done) = oneshot::channel();
        let mut all = lock(askers);
        all.next += 1;
        let (number, supervisor) = (all.next, all.supervisor);
        // Who is not among those who wait learns at once that there is nothing to wait for.
        if !all.is_over && !all.is_down {
            all.waiting.insert(number, sender);
        }
        Waits {
            askers,
            number,
            supervisor,
            done,
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        lock(self.askers).waiting.remove(&self.number);
    }
}

fn lock(askers: &Mutex<Askers>) -> MutexGuard<'_, Askers> {
    // Nothing that is done under it can panic half-way.
    askers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Sends an order as soon as there is room for it. Nothing is sent to a supervisor that is gone.
    async fn send(
        &self,
        text: &[u8],
        descriptors: &[BorrowedFd<'_>],
        done: &mut oneshot::Receiver<Answered>,
    ) -> Result<(), RuntimeError> {
        loop {
            if let Err(oneshot::error::TryRecvError::Closed) = done.try_recv() {
                return Err(RuntimeError::Gone);
            }
            let sent = self
                .writable
                .try_io(|| message::send(&self.nursery.socket, text, descriptors));
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable.writable().await.map_err(RuntimeError::Tell)?;
                }
                outcome => return outcome.map_err(RuntimeError::Tell),
            }
        }
    }
}

/// Hands out what the nursery says, until it is gone for good, or nobody is left to hear it.
async fn listen(socket: OwnedFd, askers: Weak<Mutex<Askers>>, ended: mpsc::UnboundedSender<Ended>) {
    hear(&socket, &askers, &ended).await;
    if let Some(askers) = askers.upgrade() {
        let mut all = lock(&askers);
        all.is_over = true;
        // Everyone who still waits learns it by their channel's end.
        all.waiting.clear();
    }
}

async fn hear(
    socket: &OwnedFd,
    askers: &Weak<Mutex<Askers>>,
    ended: &mpsc::UnboundedSender<Ended>,
) {
    // No pipe, but only asked whether there is something to read.
    let readable = socket
        .try_clone()
        .and_then(Receiver::from_owned_fd_unchecked);
    let Ok(readable) = readable else {
        return;
    };
    let waits = || match message::waiting(socket) {
        true => Ok(()),
        false => Err(io::ErrorKind::WouldBlock.into()),
    };
    while readable.readable().await.is_ok() {
        while readable.try_io(waits).is_ok() {
            let mut bytes = [0; LONGEST_NOTICE];
            let (notice, file) = match message::receive(socket, &mut bytes) {
                Ok((0, _)) => return,
                Ok((length, mut descriptors)) => {
                    let notice = serde_json::from_slice(&bytes[..length]);
                    (notice, descriptors.pop())
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot receive from the process that raises sessions");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            let Some(askers) = askers.upgrade() else {
                return;
            };
            let notice = match notice {
                Ok(notice) => notice,
                Err(error) => {
                    tracing::warn!(%error, "cannot read what the process that raises sessions reports");
                    continue;
                }
            };
            match notice {
                Notice::Done(number, done) => {
                    let asker = lock(&askers).waiting.remove(&number);
                    // Who no longer waits does not want to know.
                    let _ = asker.map(|asker| asker.send((done, file)));
                }
                Notice::Ended(session, status) => {
                    let _ = ended.send(Ended { session, status });
                }
                Notice::Down(reason) => {
                    tracing::error!(
                        reason,
                        "the process that raises sessions ended, and all sessions with it: {reason}; starting it again"
                    );
                    let mut all = lock(&askers);
                    all.is_down = true;
                    // Nobody will answer those who wait.
                    all.waiting.clear();
                }
                Notice::Ready(supervisor, _) => {
                    let mut all = lock(&askers);
                    all.is_down = false;
                    // The first one said it before anybody listened here.
                    if supervisor != all.supervisor {
                        all.supervisor = supervisor;
                        all.waiting.clear();
                        tracing::info!("the process that raises sessions was started again");
                    }
                }
                Notice::Trouble(reason) => {
                    tracing::warn!(reason, "the process that raises sessions: {reason}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Both ends of a nursery's socket, and who listens at ours.
    fn listened() -> (OwnedFd, Arc<Mutex<Askers>>, mpsc::UnboundedReceiver<Ended>) {
        let (ours, theirs) = message::pair().unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        let askers = Arc::<Mutex<Askers>>::default();
        let (ended, ends) = mpsc::unbounded_channel();
        tokio::spawn(listen(ours, Arc::downgrade(&askers), ended));
        (theirs, askers, ends)
    }

    fn say(theirs: &OwnedFd, notice: &Notice) {
        message::send(theirs, &serde_json::to_vec(notice).unwrap(), &[]).unwrap();
    }

    async fn soon<T>(what: impl Future<Output = T>) -> T {
        let soon = tokio::time::timeout(Duration::from_secs(10), what).await;
        soon.expect("it does not take long")
    }

    #[tokio::test]
    async fn a_report_that_cannot_be_read_ends_nothing() {
        let (theirs, askers, mut ends) = listened();
        let mut asked = Waits::new(&askers);
        message::send(&theirs, b"what nobody says", &[]).unwrap();
        say(&theirs, &Notice::Done(asked.number, Ok(Done::Plain)));
        soon(async {
            assert!((&mut asked.done).await.unwrap().0.is_ok());
            // Whoever comes when the other end is gone does not wait.
            let mut before = Waits::new(&askers);
            drop(theirs);
            assert!((&mut before.done).await.is_err());
            assert_eq!(ends.recv().await, None);
            assert!((&mut Waits::new(&askers).done).await.is_err());
        })
        .await;
    }

    #[tokio::test]
    async fn nobody_waits_for_a_supervisor_that_ended() {
        let (theirs, askers, _ends) = listened();
        let mut before = Waits::new(&askers);
        assert_eq!(before.supervisor, 1);
        say(&theirs, &Notice::Down("it was killed".to_owned()));
        soon(async {
            assert!((&mut before.done).await.is_err());
            assert!((&mut Waits::new(&askers).done).await.is_err());
            say(&theirs, &Notice::Ready(2, LimitsEnforced::default()));
            let mut after = loop {
                let after = Waits::new(&askers);
                if after.supervisor == 2 {
                    break after;
                }
                tokio::task::yield_now().await;
            };
            say(&theirs, &Notice::Done(after.number, Ok(Done::Plain)));
            assert!((&mut after.done).await.unwrap().0.is_ok());
        })
        .await;
    }
}
