//! Unlinking many files by several threads.
//!
//! Where a filesystem tells the disk about every block it frees (ext4 mounted with `discard` and
//! without a journal does so at once), an unlink mostly waits. The waits overlap, so the threads
//! are more than the processors. The order in which names go is not promised; all are gone when
//! [`unlinking`] returns well.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

use super::Dir;

/// They wait more than they work.
const THREADS: usize = 8;
/// Up to this many names a thread costs more than it saves.
const FEW: usize = 16;
/// Jobs that wait for a thread. Each holds a directory open.
const WAITING: usize = 32;

/// Names to remove from one directory.
struct Job {
    dir: Arc<Dir>,
    names: Vec<Vec<u8>>,
}

/// What takes names.
pub(crate) struct Unlinker<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    shared: &'e Shared,
    sender: SyncSender<Job>,
    threads: Vec<ScopedJoinHandle<'s, ()>>,
    seen: usize,
}

struct Shared {
    jobs: Mutex<Receiver<Job>>,
    failed: Mutex<Option<io::Error>>,
}

/// Gives `choose` an unlinker, and waits until everything it was given is gone. Once something cannot
/// be removed, the rest may stay.
pub(crate) fn unlinking<T>(
    choose: impl FnOnce(&mut Unlinker<'_, '_>) -> io::Result<T>,
) -> io::Result<T> {
    let (sender, jobs) = sync_channel(WAITING);
    let shared = Shared {
        jobs: Mutex::new(jobs),
        failed: Mutex::default(),
    };
    let chosen = std::thread::scope(|scope| {
        let mut unlinker = Unlinker {
            scope,
            shared: &shared,
            sender,
            threads: Vec::new(),
            seen: 0,
        };
        let chosen = choose(&mut unlinker);
        unlinker.wait();
        chosen
    });
    let failed = shared.failed.into_inner();
    match failed.unwrap_or_else(PoisonError::into_inner) {
        Some(error) => chosen.and(Err(error)),
        None => chosen,
    }
}

impl Unlinker<'_, '_> {
    /// Removes `names`, none of them a directory's, from `dir`; what is gone already is fine. A
    /// directory whose mode forbids it is opened meanwhile.
    pub fn unlink(&mut self, dir: Dir, names: Vec<Vec<u8>>) -> io::Result<()> {
        self.seen += names.len();
        let dir = Arc::new(dir);
        if self.seen <= FEW {
            return Job { dir, names }.perform();
        }
        // Two threads would open and close such a directory against each other.
        let whole = dir.stat_self()?.entry.mode & 0o300 != 0o300;
        let size = if whole { names.len().max(1) } else { FEW };
        for names in names.chunks(size) {
            let (dir, names) = (dir.clone(), names.to_vec());
            self.hand_over(Job { dir, names })?;
        }
        Ok(())
    }

    fn hand_over(&mut self, job: Job) -> io::Result<()> {
        if self.threads.len() < THREADS {
            let shared = self.shared;
            let thread = std::thread::Builder::new();
            match thread.spawn_scoped(self.scope, || shared.work()) {
                Ok(thread) => self.threads.push(thread),
                // Fewer must do; without any it is done here.
                Err(_) if !self.threads.is_empty() => {}
                Err(_) => return job.perform(),
            }
        }
        self.sender.send(job).map_err(io::Error::other)
    }

    /// Lets the threads run dry. They are joined, not only done: what comes next may fork.
    fn wait(self) {
        drop(self.sender);
        for thread in self.threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let job = {
                let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
                jobs.recv()
            };
            let Ok(job) = job else { return };
            let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed().is_some() {
                continue;
            }
            if let Err(error) = job.perform() {
                failed().get_or_insert(error);
            }
        }
    }
}

impl Job {
    fn perform(&self) -> io::Result<()> {
        self.dir.while_writable(|dir| {
            for name in &self.names {
                match dir.unlink(name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    unlinked => unlinked?,
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn everything_given_is_gone_and_nothing_else() {
        let made = tempfile::tempdir().unwrap();
        for directory in 0..40 {
            let path = made.path().join(directory.to_string());
            fs::create_dir(&path).unwrap();
            for file in 0..30 {
                fs::write(path.join(file.to_string()), "x").unwrap();
            }
            let mode = if directory % 2 == 0 { 0o755 } else { 0o555 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let names: Vec<_> = (1..31).map(|file| file.to_string().into_bytes()).collect();
        unlinking(|unlinker| {
            for directory in 0..40 {
                let path = made.path().join(directory.to_string());
                unlinker.unlink(Dir::open(&path)?, names.clone())?;
            }
            Ok(())
        })
        .unwrap();
        for directory in 0..40 {
            let path = made.path().join(directory.to_string());
            let left: Vec<_> = fs::read_dir(&path).unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "{path:?}");
            assert_eq!(left[0].file_name(), "0");
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if directory % 2 == 0 { 0o755 } else { 0o555 });
        }
    }

    #[test]
    fn what_cannot_go_is_an_error_also_from_a_thread() {
        let made = tempfile::tempdir().unwrap();
        let names: Vec<_> = (0..200).map(|file| file.to_string().into_bytes()).collect();
        for file in 0..199 {
            fs::write(made.path().join(file.to_string()), "x").unwrap();
        }
        fs::create_dir(made.path().join("199")).unwrap();
        let unlinked = unlinking(|unlinker| unlinker.unlink(Dir::open(made.path())?, names));
        assert_eq!(unlinked.unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
