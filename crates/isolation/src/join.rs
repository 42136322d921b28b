//! Joining a live run: its mounts, its network, a process tree of one's own.
//!
//! An overlay's layer may be mounted once at a time, so a second run of a sandbox does not mount it
//! again: it enters the first one's namespaces and takes a copy of its mounts, which share the one
//! superblock. Each run keeps its own PID namespace, so ending one ends nothing of the other, and
//! the namespaces live as long as anyone is in them.

use rustix::io::Errno;
use sandbox_linux::clone::{Child, Namespaces, Parent, clone, enter, unshare};
use sandbox_model::Settings;

use crate::control::{self, Report};
use crate::init::{self, Task};
use crate::launch::{Channels, Ends, LaunchError};
use crate::policy::Policy;
use crate::runs::Donor;
use crate::step::{Failed, Step};

impl Donor {
    /// May `policy` be run behind this run's walls?
    pub(crate) fn check(&self, policy: &Policy) -> Result<(), LaunchError> {
        match differences(&self.run.settings, &policy.settings) {
            what if what.is_empty() => Ok(()),
            what => Err(LaunchError::Joined {
                what: what.join(", "),
            }),
        }
    }

    /// Starts an init in this run's namespaces.
    pub(crate) fn join(&self, task: &Task, channels: Channels) -> Result<(Child, Ends), Failed> {
        let Channels { ours, theirs } = channels;
        // A process may leave for other namespaces but not come back, so a helper goes, and leaves
        // the init behind as the launcher's own child.
        let body = || match self.step_in(task, theirs) {
            Ok(()) => 0,
            Err(()) => 1,
        };
        let helper = clone(Namespaces::empty(), Parent::Caller, ours, body);
        let (helper, ours) = helper.map_err(Step::Fork.failed())?;
        let report = control::receive(&ours.control);
        let _ = helper.wait();
        match report.map_err(Step::Join.failed())? {
            Report::Joined(pid, pidfd) => match rustix::process::Pid::from_raw(pid) {
                Some(pid) => Ok((Child { pid, pidfd }, ours)),
                None => Err(Step::Join.failed()(Errno::SRCH.into())),
            },
            Report::Failed(failed) => Err(failed),
            _ => Err(Step::Join.failed()(Errno::SRCH.into())),
        }
    }

    fn step_in(&self, task: &Task, theirs: Ends) -> Result<(), ()> {
        let Ends { control, door, .. } = theirs;
        let joined = self
            .enter(task)
            .map_err(Step::Join.failed())
            .and_then(|()| {
                clone(Namespaces::empty(), Parent::Grandparent, (), || {
                    init::run(task, &control, door)
                })
                .map_err(Step::Fork.failed())
            });
        let told = match joined {
            Ok((init, ())) => {
                use std::os::fd::AsFd;
                let pid = init.pid.as_raw_nonzero().get();
                control::send_joined(&control, pid, init.pidfd.as_fd())
            }
            Err(failed) => control::send_failed(&control, &failed),
        };
        told.map_err(drop)
    }

    fn enter(&self, task: &Task) -> std::io::Result<()> {
        use std::os::fd::AsFd;
        let mut shared =
            Namespaces::NEWNS | Namespaces::NEWIPC | Namespaces::NEWUTS | Namespaces::NEWCGROUP;
        if !task.privileged {
            shared |= Namespaces::NEWUSER;
        }
        if task.network.is_some() {
            shared |= Namespaces::NEWNET;
        }
        enter(self.pidfd.as_fd(), shared)?;
        unshare(Namespaces::NEWNS | Namespaces::NEWPID)
    }
}

impl Failed {
    /// Did the run that was to be joined end meanwhile?
    pub(crate) fn means_gone(&self) -> bool {
        self.step == Step::Join && Errno::from_io_error(&self.error) == Some(Errno::SRCH)
    }
}

/// The settings that a joined run must share: they are part of the namespaces it joins.
fn differences(theirs: &Settings, ours: &Settings) -> Vec<&'static str> {
    let mut what = Vec::new();
    if theirs.wall != ours.wall {
        what.push("isolation");
    }
    if theirs.network != ours.network {
        what.push("network");
    }
    if theirs.expose != ours.expose {
        what.push("exposed paths");
    }
    if theirs.hide != ours.hide {
        what.push("hidden paths");
    }
    what
}
