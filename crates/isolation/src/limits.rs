//! Limits, and which of them this host can hold.
//!
//! Memory, processors and processes are held by control groups: version 2 where a subtree was
//! delegated to us, version 1 for root. Without either, an ordinary user's processes are still
//! counted by the kernel per user namespace (`RLIMIT_NPROC`), and disk space by us: the waiting
//! launcher looks at the layer, more often the closer it is to the limit. What cannot be held is
//! refused.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::{Resource, getrlimit};
use sandbox_linux::cgroup::{self, Entrance, Limit, Version, Way};
use sandbox_linux::powers::{self, Powers};
use sandbox_model::Limits;
use sandbox_model::runtime::LimitsEnforced;
use serde::Serialize;

use crate::accounting::Accounting;
use crate::kills::Tally;
use crate::launch::LaunchError;
use crate::policy::Policy;

pub use sandbox_linux::cgroup::{Consumption, Ground, Group};

/// How one limit is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The flag: "--memory".
    pub limit: &'static str,
    /// The value asked for.
    pub value: String,
    /// By what ("cgroup v1", "RLIMIT_NPROC", "accounting"), or why not.
    pub by: Result<String, String>,
}

/// Groups are called this and the launcher's pid, so that leftovers can be told.
const PREFIX: &str = "sandbox-run-";

/// The groups that runs left whose launcher was killed. The next run with a limit removes them, too.
pub fn abandoned() -> Vec<PathBuf> {
    cgroup::leftovers(PREFIX)
}

/// Removes one of them. `false` when somebody is in it after all, or was faster.
pub fn remove_abandoned(group: &Path) -> bool {
    cgroup::remove_leftover(group)
}

/// How each limit asked for would be held on this host.
pub fn holding(limits: &Limits) -> Vec<Held> {
    let mut held = Vec::new();
    for (limit, flag, value) in groupable(limits) {
        let by = match try_group(&[limit]) {
            Ok(by) => Ok(by),
            Err(_) if by_rlimit(limit) => Ok("RLIMIT_NPROC".to_owned()),
            Err(reason) => Err(reason),
        };
        held.push(Held {
            limit: flag,
            value,
            by,
        });
    }
    if let Some(size) = limits.size {
        let by = Ok("accounting".to_owned());
        held.push(Held {
            limit: "--size",
            value: size.to_string(),
            by,
        });
    }
    held
}

/// The limits that control groups can hold, with their flags and values.
fn groupable(limits: &Limits) -> Vec<(Limit, &'static str, String)> {
    let mut wanted = Vec::new();
    if let Some(bytes) = limits.memory {
        wanted.push((Limit::Memory(bytes.0), "--memory", bytes.to_string()));
    }
    if let Some(millis) = limits.cpu_millis {
        let cpus = format!("{}", f64::from(millis) / 1000.0);
        wanted.push((Limit::Cpu(millis), "--cpus", cpus));
    }
    if let Some(most) = limits.pids {
        wanted.push((Limit::Pids(most), "--pids", most.to_string()));
    }
    wanted
}

/// Root is exempt from `RLIMIT_NPROC`, inside of namespaces too.
fn by_rlimit(limit: Limit) -> bool {
    matches!(limit, Limit::Pids(_)) && !rustix::process::geteuid().is_root()
}

/// Makes a group and removes it again: by what it was held, or why not.
fn try_group(limits: &[Limit]) -> Result<String, String> {
    let name = format!(
        "{PREFIX}trial-{}",
        rustix::process::getpid().as_raw_nonzero()
    );
    match Group::make(&name, limits) {
        Ok(mut group) => {
            group.remove();
            let version = limits.first().and_then(|limit| {
                cgroup::hierarchy(limit.controller())
                    .ok()
                    .flatten()
                    .map(|found| found.version)
            });
            Ok(match version {
                Some(Version::V2) => "cgroup v2".to_owned(),
                _ => "cgroup v1".to_owned(),
            })
        }
        Err((limit, error)) => Err(reason(limit, &error)),
    }
}

fn reason(limit: Limit, error: &std::io::Error) -> String {
    let controller = limit.controller();
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("the host has no {controller} controller that could be used")
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            format!("no control group with the {controller} controller is delegated to this user")
        }
        _ => format!("the {controller} controller refused: {error}"),
    }
}

/// Which limits of sandboxes that are kept can be enforced with groups on `ground`.
pub fn enforceable(ground: &Ground) -> LimitsEnforced {
    let held = ground.enforceable(&[Limit::Memory(1 << 30), Limit::Cpu(1000), Limit::Pids(100)]);
    let counted = by_rlimit(Limit::Pids(1)).then_some(1);
    enforced(&held, counted)
}

/// The limits of one that is kept, as far as the host enforces them.
#[derive(Debug)]
pub struct Bounds {
    pub(crate) enforcer: Enforcer,
    /// Where what the keeper starts is held to what the keeper is not.
    pub(crate) entrance: Entrance,
    /// Where it is counted who is killed for disk space.
    pub(crate) tally: Option<Tally>,
    /// Which are.
    pub enforced: LimitsEnforced,
}

/// What handles crashed processes on the host, often as root, is none of a sandbox's business. It is
/// called in spite of a limit of nothing; one byte is what the kernel takes for no.
const NO_CORE: OwnLimit = OwnLimit::both(Resource::Core, 1);

/// A limit that the command's process puts on itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnLimit {
    /// Of what.
    pub resource: Resource,
    /// What it has at first.
    pub soft: u64,
    /// What it can have at most.
    pub hard: u64,
}

impl OwnLimit {
    const fn both(resource: Resource, most: u64) -> OwnLimit {
        OwnLimit {
            resource,
            soft: most,
            hard: most,
        }
    }
}

/// How many descriptors a process of code may have at most, and how many it has at first.
const DESCRIPTORS: u64 = 4096;
const USUAL_DESCRIPTORS: u64 = 1024;

/// Signals and timers, bytes of message queues, and bytes of memory that cannot be swapped out.
const SIGNALS: u64 = 4096;
const QUEUES: u64 = 200 << 10;
const LOCKED: u64 = 8 << 20;

/// What the kernel counts for a user or a user namespace as a whole, and code shares with its executor. A
/// process may go on as long as the sum is below its own limit; so code has limits far below those of the
/// executor, which does not notice when code has used them up. The one of descriptors counts for those that are
/// in flight over Unix sockets.
pub(crate) fn of_code() -> Vec<OwnLimit> {
    // A namespace has as much as whoever made it, and namespaces of one user share that.
    let part = |all: Option<u64>, most: u64| all.map_or(most, |all| (all / 4).min(most));
    let descriptors = part(getrlimit(Resource::Nofile).maximum, DESCRIPTORS);
    let others = [
        (Resource::Sigpending, SIGNALS),
        (Resource::Msgqueue, QUEUES),
        (Resource::Memlock, LOCKED),
    ];
    let others = others
        .map(|(resource, most)| OwnLimit::both(resource, part(getrlimit(resource).current, most)));
    let descriptors = OwnLimit {
        resource: Resource::Nofile,
        soft: descriptors.min(USUAL_DESCRIPTORS),
        hard: descriptors,
    };
    [descriptors].into_iter().chain(others).collect()
}

/// Memory for the keeper itself. Who is bound by the limit cannot have it.
const KEEPERS_OWN: u64 = 64 << 20;

impl Bounds {
    /// `limits`, held by a group called `name` on `ground`. Disk space is not held by a group: see
    /// [`crate::accountant`].
    pub fn on(ground: &Ground, name: &str, limits: &Limits) -> Bounds {
        let wanted = groupable(limits).into_iter().map(|(limit, ..)| limit);
        // The ground may be another user's.
        let made = powers::with(Powers::Files, || ground.group(name));
        let mut group = made.and_then(|made| made).ok();
        let mut entrance = Entrance::default();
        let mut held = Vec::new();
        for limit in wanted {
            let Some(group) = &mut group else { break };
            let holds = match limit {
                Limit::Memory(most) => {
                    let all = Limit::Memory(most.saturating_add(KEEPERS_OWN));
                    let divided = group.divide(limit, &mut entrance);
                    divided.and_then(|()| group.limit(all))
                }
                Limit::Cpu(_) => group.divide(limit, &mut entrance),
                Limit::Pids(_) => group.limit(limit),
            };
            held.extend(holds.is_ok().then_some(limit));
        }
        let mut own = vec![NO_CORE];
        own.extend(of_code());
        let counted = limits.pids.filter(|most| {
            let most = Limit::Pids(*most);
            !held.contains(&most) && by_rlimit(most)
        });
        own.extend(counted.map(|most| OwnLimit::both(Resource::Nproc, u64::from(most))));
        own.extend(limits.size.map(|size| file_size(size.0)));
        let enforcer = Enforcer {
            group,
            grouped: held.clone(),
            own,
            accounting: None,
        };
        let mut enforced = enforced(&held, counted);
        enforced.disk &= limits.size.is_some();
        Bounds {
            enforcer,
            entrance,
            // Without it they are killed all the same, and nobody can say why.
            tally: Tally::new().ok(),
            enforced,
        }
    }
}

/// Lets the caller's user namespace have a part of the inotify instances and watches that its maker's user has.
/// The namespace must be the caller's own. Where this is refused, it has what that user has.
pub(crate) fn bound_namespace() {
    for (own, of_user) in [
        ("max_inotify_instances", "max_user_instances"),
        ("max_inotify_watches", "max_user_watches"),
    ] {
        let all = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{of_user}"));
        let all = all.ok().and_then(|all| all.trim().parse::<u64>().ok());
        if let Some(all) = all {
            let _ = std::fs::write(format!("/proc/sys/user/{own}"), (all / 4).to_string());
        }
    }
}

fn enforced(held: &[Limit], counted: Option<u32>) -> LimitsEnforced {
    let by_group = |controller| held.iter().any(|limit| limit.controller() == controller);
    LimitsEnforced {
        cpu: by_group("cpu"),
        memory: by_group("memory"),
        disk: true,
        max_processes: by_group("pids") || counted.is_some(),
    }
}

/// No single file may be larger than everything together; the little more lets the look that follows
/// see which limit it was.
fn file_size(most: u64) -> OwnLimit {
    OwnLimit::both(Resource::Fsize, most.saturating_add(1 << 20))
}

/// What holds the limits of one run.
#[derive(Debug)]
pub(crate) struct Enforcer {
    group: Option<Group>,
    grouped: Vec<Limit>,
    own: Vec<OwnLimit>,
    accounting: Option<Accounting>,
}

impl Enforcer {
    /// Makes the control group, or refuses what cannot be held.
    pub(crate) fn prepare(policy: &Policy) -> Result<Enforcer, LaunchError> {
        let limits = &policy.settings.limits;
        let mut enforcer = Enforcer {
            group: None,
            grouped: Vec::new(),
            own: Vec::new(),
            accounting: None,
        };
        if !limits.any() {
            return Ok(enforcer);
        }
        cgroup::sweep(PREFIX);
        let wanted = groupable(limits);
        let all: Vec<Limit> = wanted.iter().map(|(limit, ..)| *limit).collect();
        if !all.is_empty() {
            enforcer.hold(&all)?;
        }
        if let Some(size) = limits.size {
            let mut places = vec![policy.layer.clone()];
            places.extend(policy.home.as_ref().map(|home| home.layer.clone()));
            enforcer.account(places, size.0);
        }
        Ok(enforcer)
    }

    fn hold(&mut self, all: &[Limit]) -> Result<(), LaunchError> {
        let name = format!("{PREFIX}{}", rustix::process::getpid().as_raw_nonzero());
        let (limit, error) = match Group::make(&name, all) {
            Ok(group) => {
                self.group = Some(group);
                self.grouped = all.to_vec();
                return Ok(());
            }
            Err(refused) => refused,
        };
        // What the kernel counts without a group need not be in one.
        if let Limit::Pids(most) = limit
            && by_rlimit(limit)
        {
            // The init is counted too.
            self.own
                .push(OwnLimit::both(Resource::Nproc, u64::from(most) + 1));
            let rest: Vec<Limit> = all
                .iter()
                .filter(|other| **other != limit)
                .copied()
                .collect();
            return if rest.is_empty() {
                Ok(())
            } else {
                self.hold(&rest)
            };
        }
        Err(refuse(limit, &error))
    }

    fn account(&mut self, places: Vec<PathBuf>, most: u64) {
        self.own.push(file_size(most));
        self.accounting = Some(Accounting::new(places, most));
    }

    /// The way into the group, for an init that is to be made; none leads nowhere.
    pub(crate) fn way(&self) -> Result<Way, LaunchError> {
        let way = self.group.as_ref().map(Group::way).transpose();
        way.map(Option::unwrap_or_default).map_err(unplaced)
    }

    /// Must the init wait until it was put into a group?
    pub(crate) fn needs_placing(&self) -> bool {
        self.group.is_some()
    }

    /// Puts the init under the limits: its own, or those of the run it joins, because what is
    /// limited is the sandbox, however many runs it has.
    pub(crate) fn place(&mut self, init: i32, joined: Option<i32>) -> Result<(), LaunchError> {
        let Some(own) = &mut self.group else {
            return Ok(());
        };
        let shared = joined
            .and_then(|donor| Group::of(donor, PREFIX, &self.grouped).ok().flatten())
            .filter(|shared| shared.place(init).is_ok());
        if let Some(shared) = shared {
            std::mem::replace(own, shared).remove();
            return Ok(());
        }
        own.place(init).map_err(unplaced)
    }

    /// What the command's process puts on itself.
    pub(crate) fn own(&self) -> Vec<OwnLimit> {
        self.own.clone()
    }

    /// Adds to what the command's process puts on itself.
    pub(crate) fn add_own(&mut self, limits: Vec<OwnLimit>) {
        self.own.extend(limits);
    }

    /// When to look at the size next.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.accounting.as_ref().map(Accounting::next)
    }

    /// Looks at the size, if it is time: the bytes used, if they are too many.
    pub(crate) fn over_size(&mut self) -> Option<u64> {
        self.accounting.as_mut().and_then(Accounting::check)
    }

    /// The same at the end of a run.
    pub(crate) fn over_size_now(&mut self) -> Option<u64> {
        self.accounting.as_mut().and_then(Accounting::check_now)
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    pub(crate) fn out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::out_of_memory)
    }

    /// Lets go of the group, which is somebody else's to remove.
    pub(crate) fn leave_group(&mut self) -> Option<Group> {
        self.group.take()
    }

    pub(crate) fn release(&mut self) {
        if let Some(mut group) = self.group.take() {
            group.remove();
        }
    }
}

impl Drop for Enforcer {
    fn drop(&mut self) {
        self.release();
    }
}

fn unplaced(source: std::io::Error) -> LaunchError {
    LaunchError::Step {
        step: "put the sandbox into its control group".to_owned(),
        source,
        hint: None,
    }
}

fn refuse(limit: Limit, error: &std::io::Error) -> LaunchError {
    let flag = match limit {
        Limit::Memory(_) => "--memory",
        Limit::Cpu(_) => "--cpus",
        Limit::Pids(_) => "--pids",
    };
    LaunchError::Limit {
        limit: flag,
        reason: reason(limit, error),
        hint:
            "run under `systemd-run --user --scope -p Delegate=yes`, or as root, or without this \
            limit; `sandbox doctor` shows what this host delegates"
                .to_owned(),
    }
}
