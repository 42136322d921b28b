//! The weaker wall: Landlock and the system-call filter, without namespaces.
//!
//! For hosts that give no user namespaces, asked for by name. The command runs in the workspace's
//! own directory (nothing can be mounted, so only a whole copy will do), may write there, in its
//! private home and in a private temporary directory, and may read the system but not the home. It
//! shares the host's processes, network and sockets: it cannot signal or trace others, but it can
//! connect to whatever listens, and a process that it leaves behind is found only by its parent.
//!
//! Landlock only allows, and what it allows at a directory it allows for all that is in it. Where
//! something in a directory is to be kept out, the directory's other entries are allowed one by one,
//! so what is made in it later is kept out, too. What cannot be kept out like that is refused.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::mount::{self, MountPoint};
use sandbox_linux::{landlock, message, seccomp};
use sandbox_model::{Network, WorkspaceMount};

use crate::command::{Prepared, Turn};
use crate::control::{self, Report};
use crate::explain;
use crate::facts;
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
pub(crate) const READABLE: [&str; 11] = [
    "/bin", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/sbin", "/sys", "/usr",
];

/// Devices that may be used: no others, least of all the terminals of others.
pub(crate) const DEVICES: [&str; 6] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
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
    if rustix::process::geteuid().is_root() {
        return Err(refuse(
            "without namespaces the command would be root",
            "run it as an ordinary user, or leave out `--isolation landlock`",
        ));
    }
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
    let mut writable = vec![directory.to_owned()];
    let hidden = hidden(&policy, directory)?;
    let mut system = hidden.clone();
    let mut readable = Vec::new();
    if let Some(home) = policy.home.as_ref().map(home::look).transpose()? {
        let temporary = make_temporary(&home.root).map_err(step("make a temporary directory"))?;
        set(&mut policy, "HOME", home.root.clone());
        set(&mut policy, "TMPDIR", temporary);
        let covered = home.covered.iter().map(|covered| covered.path.clone());
        system.push(home.path.clone());
        system.extend(covered);
        let withheld = home.withheld.iter().map(|name| home.path.join(name));
        let kept_out: Vec<PathBuf> = hidden.iter().cloned().chain(withheld).collect();
        for name in &home.entries {
            allow_without(&home.path.join(name), &kept_out, &mut readable);
        }
        writable.push(home.root);
    }
    for top in READABLE {
        // A link to another of them is not needed itself, and one to elsewhere is not for us to follow.
        let top = Path::new(top);
        if top.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            allow_without(top, &system, &mut readable);
        }
    }
    for exposed in facts::exposed(&policy)? {
        match exposed.writable {
            true => {
                if let Some(path) = hidden.iter().find(|path| path.starts_with(&exposed.path)) {
                    return Err(cannot_hide(path, "it lies in what can be written to"));
                }
                writable.push(exposed.path);
            }
            false => allow_without(&exposed.path, &hidden, &mut readable),
        }
    }
    let beneath = policy
        .cwd
        .strip_prefix(&policy.source)
        .map(|path| directory.join(path));
    Ok(Prepared {
        command: Some(command(&policy)?),
        filter: seccomp::filter(),
        directories: beneath.into_iter().chain([directory.to_owned()]).collect(),
        writable,
        readable,
        devices: DEVICES
            .iter()
            .map(PathBuf::from)
            .chain(terminals())
            .collect(),
        mask: mask.before,
        umask: current_umask(),
        limits: enforcer.own(),
        turn: Turn::Most,
    })
}

/// What is to be kept out by name, without symlinks: the sandbox root, and what the user hides.
fn hidden(policy: &Policy, directory: &Path) -> Result<Vec<PathBuf>, LaunchError> {
    let mut hidden = Vec::new();
    for path in &policy.settings.hide {
        let found = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if [policy.source.as_path(), directory]
            .iter()
            .any(|workspace| found.starts_with(workspace))
        {
            return Err(cannot_hide(path, "it is part of the workspace"));
        }
        if found == Path::new("/") || found.starts_with("/proc") {
            return Err(cannot_hide(path, "no program works without it"));
        }
        hidden.push(found);
    }
    let own = policy.hide.iter();
    hidden.extend(own.filter_map(|path| std::fs::canonicalize(path).ok()));
    Ok(hidden)
}

fn cannot_hide(path: &Path, why: &str) -> LaunchError {
    LaunchError::Wall {
        reason: format!(
            "Landlock alone cannot hide {}: {why}",
            sandbox_model::path::escape(path.as_os_str().as_encoded_bytes())
        ),
        hint: "leave out `--isolation landlock`, or do not hide it".to_owned(),
    }
}

/// Allows `path`; where something in it is `kept_out`, what else is in it, one by one. Links are passed
/// over: what they lead to is allowed where it lies, or not at all.
fn allow_without(path: &Path, kept_out: &[PathBuf], allowed: &mut Vec<PathBuf>) {
    if kept_out.iter().any(|out| path.starts_with(out)) {
        return;
    }
    if !kept_out.iter().any(|out| out.starts_with(path)) {
        allowed.push(path.to_owned());
        return;
    }
    // What cannot be listed stays shut as a whole.
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            allow_without(&entry.path(), kept_out, allowed);
        }
    }
}

/// The terminals that the command has already, so that it may open them by name, too.
fn terminals() -> Vec<PathBuf> {
    let streams = [
        std::io::stdin().is_terminal(),
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    ];
    let terminals = (0..).zip(streams).filter(|(_, is_terminal)| *is_terminal);
    let paths = terminals
        .filter_map(|(stream, _)| std::fs::read_link(format!("/proc/self/fd/{stream}")).ok());
    paths.filter(|path| path.starts_with("/dev")).collect()
}

/// Beneath the private home and through no link: commands write to it.
fn make_temporary(root: &Path) -> io::Result<PathBuf> {
    const NAME: &str = "tmp";
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::open(root, flags, Mode::empty())?;
    mount::resolve_or_make(place.as_fd(), Path::new(NAME), MountPoint::Directory)?;
    Ok(root.join(NAME))
}

fn set(policy: &mut Policy, name: &str, value: PathBuf) {
    policy.env.retain(|(existing, _)| existing != name);
    policy.env.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_out_splits_the_directories_above_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for made in ["a/b", "a/c", "d"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        for file in ["a/b/secret", "a/b/plain", "e"] {
            std::fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("a/b/secret"), at("a/link")).unwrap();
        let allowed = |kept_out: &[PathBuf]| {
            let mut allowed = Vec::new();
            allow_without(directory.path(), kept_out, &mut allowed);
            allowed.sort();
            allowed
        };
        assert_eq!(allowed(&[]), [directory.path()]);
        let rest = ["a/b/plain", "a/c", "d", "e"].map(at);
        assert_eq!(allowed(&[at("a/b/secret")]), rest);
        assert_eq!(allowed(&[at("a")]), ["d", "e"].map(at));
        assert_eq!(
            allowed(&[directory.path().to_owned()]),
            Vec::<PathBuf>::new()
        );
    }
}
