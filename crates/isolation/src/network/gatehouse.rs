//! A gate in a process of its own, for who must not have threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Resource, Rlimit, Signal};
use sandbox_linux::cgroup::Way;
use sandbox_linux::clone::{Child, Namespaces, Parent, close_others, leave};
use sandbox_linux::powers::{self, Powers};

use super::confine::{Binding, confine};
use super::gate::MOST_CONNECTIONS;
use super::{Doors, Gate};

/// The most descriptors, two for each connection and some for names that are looked up, and the most memory of
/// its own, which counts where no group holds it.
const LIMITS: [(Resource, u64); 2] = [
    (Resource::Nofile, 2 * MOST_CONNECTIONS as u64 + 256),
    (Resource::Data, 256 << 20),
];

/// A process that serves a gate. The gate closes with this value, and with whoever opened it.
#[derive(Debug)]
pub struct Gatehouse {
    process: Child,
}

impl Gatehouse {
    /// Opens a gate with these doors, in the groups that `way` leads into. Must be called while the process
    /// has a single thread.
    pub(crate) fn open(doors: Doors, way: &Way) -> io::Result<Gatehouse> {
        let opener = rustix::process::getpid();
        let body = |entered: io::Result<()>| {
            let serve = || -> io::Result<()> {
                entered?;
                close_others(&doors.descriptors())?;
                for (resource, most) in LIMITS {
                    let most = Some(most);
                    let limit = Rlimit {
                        current: most,
                        maximum: most,
                    };
                    rustix::process::setrlimit(resource, limit)?;
                }
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // Who was gone before that could be asked for is not its parent any more.
                if rustix::process::getppid() != Some(opener) {
                    leave(1);
                }
                // Whoever opened it may have had some.
                powers::drop_all_but(Powers::None)?;
                let _gate = Gate::open(doors)?;
                // The gate's threads are confined already; this one does nothing but wait.
                confine(Binding::Unprivileged)?;
                loop {
                    rustix::event::pause();
                }
            };
            i32::from(serve().is_err())
        };
        let start = || way.start(Namespaces::empty(), Parent::Caller, (), body);
        let (process, ()) = powers::with(Powers::Files, start)??;
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
