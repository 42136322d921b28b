//! The weaker wall: Landlock and the system-call filter, without namespaces.
//!
//! For hosts that give no user namespaces, asked for by name. The command runs in the workspace's
//! own directory (nothing can be mounted, so only a whole copy will do), may write there, in its
//! private home and in a private temporary directory, and may read the system but not the home. It
//! shares the host's processes, network and sockets: it cannot signal or trace others, but it can
//! connect to whatever listens, and a process that it leaves behind is found only by its parent.

use std::io;
use std::path::{Path, PathBuf};

use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::{landlock, message, seccomp};
use sandbox_model::{Network, WorkspaceMount};

use crate::command::{Prepared, Turn};
use crate::control::{self, Report};
use crate::explain;
use crate::home;
use crate::init::{self, Alone};
use crate::launch::{Blocked, LaunchError, command, current_umask, records, step};
use crate::limits::Enforcer;
use crate::plan::Plan;
use crate::policy::{Policy, Terminal};
use crate::runs::{LiveRun, Record, Runs};
use crate::scratch::Leftovers;
use crate::wait::{Parts, Run};

/// Top directories that may be read; everything else of the host is not there.
pub(crate) const READABLE: [&str; 12] = [
    "/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/sys",
    "/usr",
];

/// Devices that may be written to.
pub(crate) const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/pts",
];

/// Starts `policy`'s command behind the weaker wall.
pub(crate) fn launch(policy: &Policy, runs: &Runs) -> Result<Run, LaunchError> {
    let directory = check(policy)?;
    let mut enforcer = Enforcer::prepare(policy)?;
    let mutex = runs.lock_launches().map_err(records(runs))?;
    let mask = Blocked::new().map_err(step("block signals"))?;
    let alone = Alone {
        wait_for_limits: enforcer.needs_placing(),
        prepared: prepare(policy, directory, &enforcer, &mask)?,
    };
    let (control, theirs) = message::pair().map_err(step("make a socket pair"))?;
    let started = clone(Namespaces::empty(), Parent::Caller, control, || {
        init::run_alone(&alone, &theirs)
    });
    let (init, control) = started.map_err(step("start a process"))?;
    drop(theirs);
    let give_up = |error: LaunchError| {
        init.kill();
        let _ = init.wait();
        error
    };
    let pid = init.pid.as_raw_nonzero().get();
    if alone.wait_for_limits {
        enforcer.place(pid, None).map_err(give_up)?;
        message::send(&control, control::GO, &[])
            .map_err(|error| give_up(step("start the init")(error)))?;
    }
    let mut descriptors = match control::receive(&control) {
        Ok(Report::Ready(descriptors)) => descriptors.into_iter(),
        Ok(Report::Failed(failed)) => {
            let none = Plan {
                operations: Vec::new(),
                writable: Vec::new(),
            };
            return Err(give_up(explain::failed(policy, &none, true, failed)));
        }
        Ok(_) => {
            return Err(give_up(step("hear from the init")(
                io::ErrorKind::BrokenPipe.into(),
            )));
        }
        Err(error) => return Err(give_up(step("hear from the init")(error))),
    };
    let record = Record::write(runs, &LiveRun::of(policy, pid));
    let record = record.map_err(|error| give_up(records(runs)(error)))?;
    drop(mutex);
    Ok(Run::new(Parts {
        init,
        control,
        command: descriptors.next(),
        master: None,
        gate: None,
        record,
        enforcer,
        leftovers: Leftovers::default(),
        mask,
    }))
}

/// What this wall cannot do is refused in words.
fn check(policy: &Policy) -> Result<&Path, LaunchError> {
    let refuse = |reason: &str, hint: &str| LaunchError::Wall {
        reason: reason.to_owned(),
        hint: hint.to_owned(),
    };
    if landlock::version() == 0 {
        return Err(refuse(
            "this kernel has no Landlock, or it is off",
            "boot with lsm=landlock,… (kernel 5.13 or newer), or turn user namespaces on",
        ));
    }
    if policy.settings.network != Network::Host {
        return Err(refuse(
            "an isolated network needs namespaces",
            "leave out `--isolation landlock` or the network options",
        ));
    }
    if policy.terminal == Terminal::New {
        return Err(refuse(
            "a terminal of its own needs namespaces",
            "use `sandbox run` with `--isolation landlock`",
        ));
    }
    match &policy.workspace {
        WorkspaceMount::Bind { dir } => Ok(dir),
        WorkspaceMount::Overlay { .. } => Err(refuse(
            "without namespaces nothing can be mounted, and this sandbox is an overlay",
            "create the sandbox with `--backend copy`",
        )),
    }
}

fn prepare(
    policy: &Policy,
    directory: &Path,
    enforcer: &Enforcer,
    mask: &Blocked,
) -> Result<Prepared, LaunchError> {
    let mut policy = policy.clone();
    let mut writable: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    writable.push(directory.to_owned());
    let mut readable: Vec<PathBuf> = READABLE.iter().map(PathBuf::from).collect();
    if let Some(home) = policy.home.as_ref().map(home::look).transpose()? {
        let temporary = home.root.join("tmp");
        std::fs::create_dir_all(&temporary).map_err(step("make a temporary directory"))?;
        set(&mut policy, "HOME", home.root.clone());
        set(&mut policy, "TMPDIR", temporary);
        readable.extend(home.entries.iter().map(|name| home.path.join(name)));
        writable.push(home.root);
    }
    for exposure in &policy.settings.expose {
        let list = if exposure.writable {
            &mut writable
        } else {
            &mut readable
        };
        list.push(exposure.path.clone());
    }
    let beneath = policy
        .cwd
        .strip_prefix(&policy.source)
        .map(|path| directory.join(path));
    let hidden = |path: &PathBuf| {
        policy
            .settings
            .hide
            .iter()
            .any(|hide| path.starts_with(hide))
    };
    readable.retain(|path| !hidden(path));
    Ok(Prepared {
        command: Some(command(&policy)?),
        filter: seccomp::filter(),
        directories: beneath.into_iter().chain([directory.to_owned()]).collect(),
        writable,
        readable,
        mask: mask.before,
        umask: current_umask(),
        limits: enforcer.own(),
        turn: Turn::Most,
    })
}

fn set(policy: &mut Policy, name: &str, value: PathBuf) {
    policy.env.retain(|(existing, _)| existing != name);
    policy.env.push((name.into(), value.into()));
}
