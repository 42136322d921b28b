//! A gate in a process of its own, for who must not have threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::Signal;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, close_others, leave};

use super::{Doors, Gate};

/// A process that serves a gate. The gate closes with this value, and with whoever opened it.
#[derive(Debug)]
pub struct Gatehouse {
    process: Child,
}

impl Gatehouse {
    /// Opens a gate with these doors. Must be called while the process has a single thread.
    pub fn open(doors: Doors) -> io::Result<Gatehouse> {
        let opener = rustix::process::getpid();
        let (process, ()) = clone(Namespaces::empty(), Parent::Caller, (), || {
            let serve = || -> io::Result<()> {
                close_others(&doors.descriptors())?;
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // Who was gone before that could be asked for is not its parent any more.
                if rustix::process::getppid() != Some(opener) {
                    leave(1);
                }
                rustix::thread::set_no_new_privs(true)?;
                let _gate = Gate::open(doors)?;
                loop {
                    rustix::event::pause();
                }
            };
            i32::from(serve().is_err())
        })?;
        Ok(Gatehouse { process })
    }
}

impl Drop for Gatehouse {
    fn drop(&mut self) {
        self.process.kill();
        let _ = self.process.wait();
    }
}

impl Doors {
    /// Every descriptor that they are made of.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let ports = self.ports.iter().flat_map(|(_, listeners)| listeners);
        let published = self.published.bound.iter().map(|(_, listener)| listener);
        let single = self.proxy.iter().chain(&self.sockets);
        { ports.chain(published).chain(single) }
            .map(AsFd::as_fd)
            .collect()
    }
}
