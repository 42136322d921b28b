//! Copying a whole tree by several threads.
//!
//! The work is a stack of jobs: enter a directory, or copy some of the files of one. The newest
//! job is taken first, which keeps the number of directories held open near the tree's depth. A
//! directory gets its mode and times when the last job in it is done, so nothing is created in it
//! afterwards; only those whose mode would keep us out, and those that take hard links, wait for
//! the end.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use sandbox_model::{Fingerprint, RelPath};

use super::content::Ways;
use super::directory::{Pair, finish_directory};
use super::links::Links;
use super::worker::Worker;
use super::{Copied, TransferError, attributes};
use crate::progress::{Phase, Progress};
use crate::tree::Tree;

/// More threads than this only wait for each other in the filesystem.
const THREADS_MAX: usize = 4;
/// How often progress is told while other threads are at work.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// One copied entry, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it is.
    pub path: RelPath,
    /// The original.
    pub source: Fingerprint,
    /// The copy.
    pub copy: Fingerprint,
}

/// Whether what was copied is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Every entry, for a manifest.
    On,
    /// Only counts.
    Off,
}

/// Something to do.
pub(super) enum Job {
    /// Copy this directory, child of `above` where that is still open.
    Enter {
        path: RelPath,
        above: Option<Arc<Pair>>,
    },
    /// Copy these entries of a directory; no directories among them.
    Entries {
        pair: Arc<Pair>,
        names: Vec<(Vec<u8>, Option<sandbox_model::EntryKind>)>,
    },
}

/// What the threads share.
pub(super) struct Shared<'t> {
    pub from: &'t Tree,
    pub to: &'t Tree,
    /// The filesystem of the tree's root.
    pub device: u64,
    pub skip: BTreeSet<RelPath>,
    pub recording: Recording,
    pub ways: Ways,
    pub links: Mutex<Links>,
    /// Directories that get their attributes at the end, deepest last.
    pub late: Mutex<Vec<(RelPath, Fingerprint)>>,
    /// Directories held open.
    pub open: AtomicU64,
    pub entries: AtomicU64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    at_work: usize,
    failed: Option<TransferError>,
}

/// Copies everything below `from` into the empty directory `to`.
pub(super) fn copy(
    from: &Tree,
    to: &Tree,
    skip: &[RelPath],
    recording: Recording,
    progress: &mut dyn Progress,
) -> Result<(Copied, Vec<Record>), TransferError> {
    let device = clear_target(from, to).map_err(failed_on(&RelPath::root()))?;
    let shared = Shared {
        from,
        to,
        device,
        skip: skip.iter().cloned().collect(),
        recording,
        ways: Ways::default(),
        links: Mutex::default(),
        late: Mutex::default(),
        open: AtomicU64::new(0),
        entries: AtomicU64::new(0),
        queue: Mutex::default(),
        changed: Condvar::new(),
    };
    shared.push([Job::Enter {
        path: RelPath::root(),
        above: None,
    }]);
    progress.begin(Phase::Copying, None);
    let mut workers = run(&shared, progress);
    progress.finish();
    if let Some(error) = shared.lock().failed.take() {
        return Err(error);
    }
    finish(&shared, &mut workers[0])?;
    let mut copied = Copied::default();
    let mut records = Vec::new();
    for worker in workers {
        copied += worker.copied;
        records.extend(worker.records);
    }
    Ok((copied, records))
}

/// Makes sure that nothing made in `to` inherits a group or a rule that the original does not
/// have. Returns the filesystem of `from`.
fn clear_target(from: &Tree, to: &Tree) -> io::Result<u64> {
    let top = to.root_dir()?;
    top.set_mode_self(0o700)?;
    for attribute in top
        .xattrs(b".")?
        .keys()
        .filter(|name| attributes::is_inherited(name))
    {
        top.remove_xattr(b".", attribute)?;
    }
    Ok(from.root_dir()?.stat_self()?.dev)
}

/// Lets the threads work until nothing is left to do.
fn run<'s>(shared: &'s Shared<'_>, progress: &mut dyn Progress) -> Vec<Worker<'s>> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(THREADS_MAX);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker::new(shared);
                    while let Some(job) = shared.next(None) {
                        shared.done(worker.perform(job));
                    }
                    worker
                })
            })
            .collect();
        let mut worker = Worker::new(shared);
        let mut told = 0;
        let mut tell = || {
            let now = shared.entries.load(Ordering::Relaxed);
            progress.advance(now - told);
            told = now;
        };
        while let Some(job) = shared.next(Some(&mut tell)) {
            shared.done(worker.perform(job));
            tell();
        }
        let mut workers = vec![worker];
        // A thread that panicked took its job with it: its part is missing, and `done` was told.
        workers.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        workers
    })
}

/// What had to wait: hard links, then the attributes of the directories that take them or that
/// would have kept us out.
fn finish(shared: &Shared<'_>, worker: &mut Worker<'_>) -> Result<(), TransferError> {
    let links = std::mem::take(&mut *lock(&shared.links));
    let records = links.make(shared.from, shared.to, shared.recording)?;
    worker.copied.entries += records.made;
    worker.records.extend(records.records);
    let mut late = std::mem::take(&mut *lock(&shared.late));
    late.sort_unstable_by(|a, b| b.0.cmp(&a.0));
    for (path, original) in late {
        let finished = (|| {
            let (from, to) = (shared.from.dir(&path)?, shared.to.dir(&path)?);
            finish_directory(&from, &to, &original)?;
            to.stat_self()
        })();
        let copy = finished.map_err(|source| TransferError {
            path: path.clone(),
            source,
        })?;
        if shared.recording == Recording::On {
            worker.records.push(Record {
                path,
                source: original,
                copy,
            });
        }
    }
    Ok(())
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    pub(super) fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        self.lock().jobs.extend(jobs);
        self.changed.notify_all();
    }

    /// The next job; waits while others may still add some. `None` when all is done or one failed.
    fn next(&self, mut while_waiting: Option<&mut dyn FnMut()>) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.at_work += 1;
                return Some(job);
            }
            if queue.at_work == 0 {
                return None;
            }
            queue = match &mut while_waiting {
                None => self.changed.wait(queue).unwrap_or_else(|e| e.into_inner()),
                Some(tell) => {
                    let waited = self.changed.wait_timeout(queue, TELL_EVERY);
                    let queue = waited.unwrap_or_else(|e| e.into_inner()).0;
                    tell();
                    queue
                }
            };
        }
    }

    fn done(&self, result: Result<(), TransferError>) {
        let mut queue = self.lock();
        queue.at_work -= 1;
        if let Err(error) = result {
            queue.failed.get_or_insert(error);
        }
        if queue.failed.is_some() || (queue.at_work == 0 && queue.jobs.is_empty()) {
            self.changed.notify_all();
        }
    }
}

/// A lock whose data is whole even if a thread panicked with it: it is only ever extended.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Names the entry that a copy failed on.
pub(super) fn failed_on(path: &RelPath) -> impl FnOnce(io::Error) -> TransferError + '_ {
    move |source| TransferError {
        path: path.clone(),
        source,
    }
}
