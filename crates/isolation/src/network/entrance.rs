//! Where connections come in: the listeners, and what each leads to.
//!
//! A published port that another run of the same sandbox holds is awaited, and taken over when that
//! run ends.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use sandbox_model::PublishedPort;

use super::PROXY_PORT;
use super::publish::{self, Published};

/// How often an awaited port is tried.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Where a listener's connections lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Port(u16),
    Proxy,
    Published { host: u16, inside: u16 },
}

/// All listeners of a gate.
#[derive(Debug, Default)]
pub(super) struct Entrances {
    listeners: Vec<OwnedFd>,
    /// For each listener.
    doors: Vec<Door>,
    /// Ports to publish that another run still holds.
    awaited: Vec<PublishedPort>,
    next_try: Option<Instant>,
}

impl Entrances {
    /// Takes the listeners that were made inside and those of the published ports.
    pub(super) fn new(
        ports: Vec<(u16, Vec<OwnedFd>)>,
        proxy: Option<OwnedFd>,
        published: Published,
    ) -> io::Result<Entrances> {
        let mut entrances = Entrances::default();
        for (port, inside) in ports {
            for listener in inside {
                entrances.add(listener, Door::Port(port))?;
            }
        }
        if let Some(listener) = proxy {
            entrances.add(listener, Door::Proxy)?;
        }
        for (port, listener) in published.bound {
            entrances.add(listener, Door::from(port))?;
        }
        entrances.awaited = published.awaited;
        entrances.next_try = Some(Instant::now() + TRY_AGAIN);
        Ok(entrances)
    }

    /// Is there nowhere to come in, now or later?
    pub(super) fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.awaited.is_empty()
    }

    /// The listeners, and where the connections of each lead.
    pub(super) fn listeners(&self) -> impl Iterator<Item = (&OwnedFd, Door)> {
        self.listeners.iter().zip(self.doors.iter().copied())
    }

    /// Is one of the awaited ports for the system's own services?
    pub(super) fn awaits_system_port(&self) -> bool {
        self.awaited.iter().any(|port| port.host < 1024)
    }

    /// When to try the awaited ports next, if there are any.
    pub(super) fn next_try(&self) -> Option<Instant> {
        self.next_try.filter(|_| !self.awaited.is_empty())
    }

    /// Takes over the awaited ports that are free now, if it is time to try.
    pub(super) fn take_over(&mut self) {
        let now = Instant::now();
        if self.next_try().is_none_or(|next| now < next) {
            return;
        }
        self.next_try = Some(now + TRY_AGAIN);
        for port in std::mem::take(&mut self.awaited) {
            let taken = publish::listen(port.host).ok();
            if taken.is_none_or(|listener| self.add(listener, Door::from(port)).is_err()) {
                self.awaited.push(port);
            }
        }
    }

    fn add(&mut self, listener: OwnedFd, door: Door) -> io::Result<()> {
        // Or accept would block when a client has gone between poll and accept.
        rustix::io::ioctl_fionbio(&listener, true)?;
        self.listeners.push(listener);
        self.doors.push(door);
        Ok(())
    }
}

impl From<PublishedPort> for Door {
    fn from(PublishedPort { host, inside }: PublishedPort) -> Door {
        Door::Published { host, inside }
    }
}

impl Door {
    pub(super) fn describe(self) -> String {
        match self {
            Door::Port(port) => format!("127.0.0.1:{port}"),
            Door::Proxy => format!("127.0.0.1:{PROXY_PORT}"),
            Door::Published { host, inside } => format!("published {host}:{inside}"),
        }
    }
}
