//! Starting a command behind its walls.
//!
//! The launcher plans, clones the init into new namespaces (or into those of a live run), and waits
//! for the one message that says that the command runs. What can be known before the clone is done
//! before it, so that errors are told in full and the init has little to do.

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{FileType, Mode};
use sandbox_linux::clone::{Child, Namespaces, Parent, clone};
use sandbox_linux::identity::Ids;
use sandbox_linux::signal::{self, Mask};
use sandbox_linux::{exec, message, seccomp};
use sandbox_model::{Network, Wall};

use crate::command::{Prepared, Turn};
use crate::control::{self, Report};
pub use crate::error::LaunchError;
use crate::explain;
use crate::facts::{self, Facts};
use crate::init::{self, Listeners, Task};
use crate::limits::Enforcer;
use crate::network::{self, Doors, Gate, PROXY_PORT, Published, proxy_variables};
use crate::perform::Host;
use crate::plan;
use crate::policy::{Identity, Policy, Terminal};
use crate::runs::{Donor, LaunchLock, LiveRun, Record, Runs};
use crate::scratch::{self, Leftovers};
use crate::step::Failed;
use crate::wait::Parts;
pub use crate::wait::{Ended, Run, Status};

/// Signals that are passed on, or kept from ending the launcher before the command has ended.
pub(crate) const SIGNALS: [i32; 7] = {
    use rustix::process::Signal;
    [
        Signal::TERM.as_raw(),
        Signal::HUP.as_raw(),
        Signal::INT.as_raw(),
        Signal::QUIT.as_raw(),
        Signal::USR1.as_raw(),
        Signal::USR2.as_raw(),
        Signal::WINCH.as_raw(),
    ]
};

/// What the caller does before a command starts, for an error message.
const BEFORE: &str = "note the beginning of the run";

/// Starts `policy`'s command, joining a live run's namespaces where there is one. `lock` is the
/// sandbox's shared lock: the init inside keeps a duplicate, so the sandbox stays busy until its
/// last process is gone. Must be called while the process has a single thread.
pub fn launch(policy: &Policy, runs: &Runs, lock: BorrowedFd<'_>) -> Result<Run, LaunchError> {
    launch_after(policy, runs, lock, || Ok(()))
}

/// As [`launch`], but the command starts only when `before` has been done: it is called while the
/// init makes the mounts, when there is nothing else to do here.
pub fn launch_after(
    policy: &Policy,
    runs: &Runs,
    lock: BorrowedFd<'_>,
    before: impl FnOnce() -> io::Result<()>,
) -> Result<Run, LaunchError> {
    // The init inherits the descriptor itself by being forked; exec closes it in the command.
    let _held_by_init = lock;
    check_streams()?;
    if policy.settings.wall == Wall::Landlock {
        before().map_err(step(BEFORE))?;
        return crate::unwalled::launch(policy, runs);
    }
    if let Network::Isolated { ports, hosts, .. } = &policy.settings.network {
        network::check(ports, hosts)?;
    }
    let mut enforcer = Enforcer::prepare(policy)?;
    let mut facts = facts::look(policy)?;
    let mutex = runs.lock_launches().map_err(records(runs))?;
    let mask = Blocked::new().map_err(step("block signals"))?;
    let mut before = Some(before);
    loop {
        let donor = runs.donor().map_err(records(runs))?;
        if let Some(donor) = &donor {
            donor.check(policy)?;
        }
        let places = scratch::places(policy, &facts);
        let slot = donor.is_none().then(|| scratch::choose(&places));
        facts.slot = slot.map(|slot| slot.to_string()).unwrap_or_default();
        let mut leftovers = Leftovers::default();
        let attempted = attempt(
            policy,
            &facts,
            donor.as_ref(),
            &mut enforcer,
            &mask,
            &mut || before.take().map_or(Ok(()), |before| before()),
            &mut |control| {
                if let Some(slot) = slot {
                    leftovers = Leftovers::beside(slot, &places);
                    leftovers.steps_while(|| !message::waiting(control));
                }
            },
        );
        match attempted? {
            // The run we wanted to join ended meanwhile.
            None => continue,
            Some(started) => {
                let held = Held {
                    enforcer,
                    leftovers,
                    mask,
                    mutex,
                };
                return finish(policy, runs, started, held);
            }
        }
    }
}

/// Every other descriptor is closed at exec; these three are passed as they are.
fn check_streams() -> Result<(), LaunchError> {
    let streams = [
        ("standard input", rustix::stdio::stdin()),
        ("standard output", rustix::stdio::stdout()),
        ("standard error", rustix::stdio::stderr()),
    ];
    for (stream, descriptor) in streams {
        // One that is closed leads nowhere.
        let Ok(status) = rustix::fs::fstat(descriptor) else {
            continue;
        };
        if FileType::from_raw_mode(status.st_mode) == FileType::Directory {
            return Err(LaunchError::Stream { stream });
        }
    }
    Ok(())
}

/// Signals blocked since before the clone, so that none is lost; unblocked when dropped.
#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) before: Mask,
}

impl Blocked {
    pub(crate) fn new() -> io::Result<Blocked> {
        Ok(Blocked {
            before: signal::block(&SIGNALS)?,
        })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let _ = signal::restore(&self.before);
    }
}

/// Sockets between the launcher and the init.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) ours: Ends,
    pub(crate) theirs: Ends,
}

/// One side's ends of them.
#[derive(Debug)]
pub(crate) struct Ends {
    /// For reports.
    pub(crate) control: OwnedFd,
    /// For requests of sockets.
    pub(crate) door: Option<OwnedFd>,
    /// The launcher's alone: what it publishes of the sandbox.
    pub(crate) published: Published,
}

impl Channels {
    fn new(policy: &Policy, joined: bool) -> Result<Channels, LaunchError> {
        let pair = || message::pair().map_err(step("make a socket pair"));
        let (control, their_control) = pair()?;
        let (mut door, mut their_door, mut published) = (None, None, Published::default());
        if let Network::Isolated { publish, .. } = &policy.settings.network
            && !publish.is_empty()
        {
            (door, their_door) = Some(pair()?).unzip();
            published = Published::bind(publish, joined)?;
        }
        Ok(Channels {
            ours: Ends {
                control,
                door,
                published,
            },
            theirs: Ends {
                control: their_control,
                door: their_door,
                published: Published::default(),
            },
        })
    }
}

/// An init that reported its command running.
struct Started {
    init: Child,
    control: OwnedFd,
    descriptors: Vec<OwnedFd>,
    door: Option<OwnedFd>,
    published: Published,
}

/// What the launcher had in hand before it.
struct Held {
    enforcer: Enforcer,
    leftovers: Leftovers,
    mask: Blocked,
    mutex: LaunchLock,
}

fn attempt(
    policy: &Policy,
    facts: &Facts,
    donor: Option<&Donor>,
    enforcer: &mut Enforcer,
    mask: &Blocked,
    before: &mut dyn FnMut() -> io::Result<()>,
    meanwhile: &mut dyn FnMut(&OwnedFd),
) -> Result<Option<Started>, LaunchError> {
    let command = Some(command(policy)?);
    let task = task(policy, facts, command, donor.is_some(), enforcer, mask);
    let channels = Channels::new(policy, donor.is_some())?;
    let (init, ours) = match donor {
        None => fresh(policy, &task, channels)?,
        Some(donor) => match donor.join(&task, channels) {
            Ok(joined) => joined,
            Err(failed) if failed.means_gone() => return Ok(None),
            Err(failed) => return Err(explain(policy, &task, failed)),
        },
    };
    let Ends {
        control,
        door,
        published,
    } = ours;
    let mut go = || {
        if enforcer.needs_placing() {
            let pid = init.pid.as_raw_nonzero().get();
            enforcer.place(pid, donor.map(|donor| donor.run.init))?;
        }
        before().map_err(step(BEFORE))
    };
    if let Err(error) = go() {
        init.kill();
        let _ = init.wait();
        return Err(error);
    }
    // One that has failed already does not hear it; it has said why.
    let _ = message::send(&control, control::GO, &[]);
    meanwhile(&control);
    let failed = match control::receive(&control) {
        Ok(Report::Ready(descriptors)) => {
            return Ok(Some(Started {
                init,
                control,
                descriptors,
                door,
                published,
            }));
        }
        Ok(Report::Failed(failed)) => explain(policy, &task, failed),
        Ok(_) => gone(&init),
        Err(error) => step("hear from the init")(error),
    };
    init.kill();
    let _ = init.wait();
    Err(failed)
}

fn gone(init: &Child) -> LaunchError {
    let status = init
        .wait()
        .ok()
        .and_then(|status| status.terminating_signal());
    let reason = match status {
        Some(signal) => format!("it was killed by signal {signal}"),
        None => "it ended".to_owned(),
    };
    step("set up the sandbox")(io::Error::other(reason))
}

fn fresh(policy: &Policy, task: &Task, channels: Channels) -> Result<(Child, Ends), LaunchError> {
    let Channels { ours, theirs } = channels;
    clone(namespaces(policy, task), Parent::Caller, ours, || {
        init::run(task, &theirs.control, theirs.door)
    })
    .map_err(|error| explain::no_namespaces(&error))
}

/// The namespaces of a sandbox that joins nobody.
pub(crate) fn namespaces(policy: &Policy, task: &Task) -> Namespaces {
    let mut namespaces = Namespaces::NEWNS
        | Namespaces::NEWPID
        | Namespaces::NEWIPC
        | Namespaces::NEWUTS
        | Namespaces::NEWCGROUP;
    if !task.privileged {
        namespaces |= Namespaces::NEWUSER;
    }
    if matches!(policy.settings.network, Network::Isolated { .. }) {
        namespaces |= Namespaces::NEWNET;
    }
    namespaces
}

pub(crate) fn task(
    policy: &Policy,
    facts: &Facts,
    command: Option<exec::Command>,
    joined: bool,
    enforcer: &Enforcer,
    mask: &Blocked,
) -> Task {
    let plan = if joined {
        plan::joined(policy, facts)
    } else {
        plan::plan(policy, facts)
    };
    let network = match &policy.settings.network {
        Network::Host => None,
        Network::Isolated { ports, hosts, .. } => Some(Listeners {
            ports: ports.clone(),
            proxy: !hosts.is_empty(),
            fresh: !joined,
        }),
    };
    Task {
        host: if joined { Host::Sealed } else { Host::Open },
        privileged: facts.privileged,
        map: (!facts.privileged && !joined).then(|| ids(policy)),
        hostname: (!joined).then(|| policy.name.as_str().to_owned()),
        network,
        terminal: policy.terminal,
        wait_for_limits: enforcer.needs_placing(),
        prepared: Prepared {
            command,
            filter: seccomp::filter(),
            directories: vec![policy.cwd.clone(), policy.source.clone()],
            writable: plan.writable.clone(),
            readable: vec![PathBuf::from("/")],
            devices: Vec::new(),
            mask: mask.before,
            umask: current_umask(),
            limits: enforcer.own(),
            turn: Turn::Most,
        },
        plan,
    }
}

/// Who the init is to be inside, and who it is outside.
pub(crate) fn ids(policy: &Policy) -> (Ids, Ids) {
    let outside = Ids::own();
    match policy.identity {
        Identity::Own => (outside, outside),
        Identity::As(inside) => (inside, outside),
    }
}

pub(crate) fn command(policy: &Policy) -> Result<exec::Command, LaunchError> {
    let mut environment = policy.env.clone();
    if let Network::Isolated { hosts, .. } = &policy.settings.network
        && !hosts.is_empty()
    {
        for (name, value) in proxy_variables() {
            environment.retain(|(existing, _)| existing != name);
            environment.push((name.into(), value.into()));
        }
    }
    exec::Command::new(&policy.command, &environment).map_err(|source| exec_error(policy, source))
}

pub(crate) fn exec_error(policy: &Policy, source: io::Error) -> LaunchError {
    exec_error_of(&policy.command, source)
}

pub(crate) fn exec_error_of(command: &[OsString], source: io::Error) -> LaunchError {
    let command = command
        .first()
        .map(|name| name.to_string_lossy().into_owned());
    LaunchError::Exec {
        command: command.unwrap_or_default(),
        source,
    }
}

/// The kernel only tells it by changing it.
pub(crate) fn current_umask() -> Mode {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mask
}

fn finish(policy: &Policy, runs: &Runs, started: Started, held: Held) -> Result<Run, LaunchError> {
    let Started {
        init,
        control,
        descriptors,
        door,
        published,
    } = started;
    let Held {
        enforcer,
        leftovers,
        mask,
        mutex,
    } = held;
    let mut descriptors = descriptors.into_iter();
    let command = descriptors.next();
    let master = match policy.terminal {
        Terminal::Inherit => None,
        Terminal::New => descriptors.next(),
    };
    let run = LiveRun::of(policy, init.pid.as_raw_nonzero().get());
    let record = match Record::write(runs, &run) {
        Ok(record) => record,
        Err(error) => {
            init.kill();
            let _ = init.wait();
            return Err(records(runs)(error));
        }
    };
    drop(mutex);
    let gate = match gate(policy, descriptors, door, published) {
        Ok(gate) => gate,
        Err(error) => {
            init.kill();
            let _ = init.wait();
            return Err(step("open the network gate")(error));
        }
    };
    Ok(Run::new(Parts {
        init,
        control,
        command,
        master,
        gate,
        record,
        enforcer,
        leftovers,
        mask,
    }))
}

/// Opens the gate with the `listeners` that the init made inside.
fn gate(
    policy: &Policy,
    listeners: impl Iterator<Item = OwnedFd>,
    sockets: Option<OwnedFd>,
    published: Published,
) -> io::Result<Option<Gate>> {
    let Some(mut doors) = doors(policy, listeners)? else {
        return Ok(None);
    };
    doors.published = published;
    doors.sockets = sockets;
    Gate::open(doors).map(Some)
}

/// The doors that the `listeners` made inside are; none where the network is not isolated.
pub(crate) fn doors(
    policy: &Policy,
    listeners: impl Iterator<Item = OwnedFd>,
) -> io::Result<Option<Doors>> {
    let Network::Isolated { hosts, .. } = &policy.settings.network else {
        return Ok(None);
    };
    let mut doors = Doors {
        hosts: hosts.clone(),
        ..Doors::default()
    };
    for listener in listeners {
        // Asked of the socket itself: where IPv6 is off, a port has one listener instead of two.
        let address = std::net::SocketAddr::try_from(rustix::net::getsockname(&listener)?)?;
        match address.port() {
            PROXY_PORT if !hosts.is_empty() => doors.proxy = Some(listener),
            port => doors.ports.push((port, vec![listener])),
        }
    }
    Ok(Some(doors))
}

pub(crate) fn step(step: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |source| LaunchError::Step {
        step: step.to_owned(),
        source,
        hint: None,
    }
}

pub(crate) fn records(runs: &Runs) -> impl Fn(io::Error) -> LaunchError {
    let step = format!("keep a record of the run in {}", runs.dir().display());
    move |source| LaunchError::Step {
        step: step.clone(),
        source,
        hint: None,
    }
}

fn explain(policy: &Policy, task: &Task, failed: Failed) -> LaunchError {
    explain::failed(policy, &task.plan, task.privileged, failed)
}
