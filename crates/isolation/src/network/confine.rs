//! What a gate's threads may do: speak with the network and look names up.
//!
//! They parse what comes from inside and from the world, and their host's resolver parses more. All of
//! this is put on a thread, and on those it starts: a run's gate is in the launcher, whose other threads go on
//! as they were.

use std::io;

use rustix::fs::{CWD, Mode, OFlags};
use sandbox_linux::landlock::{Domain, Grant};
use sandbox_linux::{capabilities, seccomp};

/// What resolvers read, where the reader is root: only that, because root owns all the rest, too.
const FILES: [&str; 9] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ld.so.cache",
    "/etc/localtime",
];

/// For everybody else, the directory that these are in: a file that is replaced is another one, and the
/// network of a laptop changes while a session lasts.
const SETTINGS: [&str; 1] = ["/etc"];

/// Where their settings really are on many systems, and the libraries that they load.
const DIRECTORIES: [&str; 9] = [
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
];

/// Whether ports of the system have still to be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// Some, which another run of root's holds: its capabilities are needed for that.
    Privileged,
    /// None.
    Unprivileged,
}

/// Confines the calling thread, for good, with every thread that it starts.
pub(super) fn confine(binding: Binding) -> io::Result<()> {
    if binding == Binding::Unprivileged {
        capabilities::drop_all()?;
    }
    let settings: &[&str] = match rustix::process::geteuid().is_root() {
        true => &FILES,
        false => &SETTINGS,
    };
    let mut domain = Domain::new()?;
    for place in settings.iter().chain(&DIRECTORIES) {
        // Few systems have all of them.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        if let Ok(place) = rustix::fs::openat(CWD, *place, flags, Mode::empty()) {
            domain = domain.allow(place, Grant::Read)?;
        }
    }
    // A kernel may have no Landlock; the filter below lets nothing be written all the same.
    domain.enter()?;
    seccomp::attach(&seccomp::filter_for_proxy(std::process::id()))
}
