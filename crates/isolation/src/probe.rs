//! What this host really offers, found by trying it.
//!
//! Each trial happens in a child of its own, in namespaces of its own, so nothing of it remains.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sandbox_linux::clone::{Namespaces, Parent, clone};
use sandbox_linux::identity::Ids;
use sandbox_linux::trial::{self, OverlayTrial, TrialError};
use sandbox_linux::{capabilities, identity, landlock, mount, seccomp};
use sandbox_model::{ByteSize, Limits, OverlayXattr};
use serde::Serialize;

use crate::limits;

/// One thing tried.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// What: "user namespaces", "mount in a user namespace", "Landlock".
    pub feature: &'static str,
    /// Does it work?
    pub works: bool,
    /// What was seen: a version, an error.
    pub detail: String,
    /// What it means for sandboxes.
    pub meaning: &'static str,
    /// How to get it, when it does not work.
    pub fix: Option<String>,
    /// Sandboxes need it.
    pub required: bool,
}

/// Tries everything. `state` is a directory for trial mounts (the sandbox root).
pub fn host(state: &Path) -> Vec<Finding> {
    let mut findings = vec![user_namespace(), mount_inside(), processes_inside()];
    findings.extend(in_state(state));
    findings.extend([filter(), landlock_wall()]);
    findings.extend(control_groups());
    findings.push(virtual_machines());
    findings
}

/// Tried as an ordinary user would, by root too: root's own sandboxes put the command in one.
fn user_namespace() -> Finding {
    let outcome = attempt(Namespaces::NEWUSER, || Ok(()));
    Finding {
        feature: "user namespaces",
        works: outcome.is_ok(),
        detail: seen(&outcome, "a namespace was made and mapped"),
        meaning: "every sandbox is made in one; without, only `--isolation landlock` is left",
        fix: outcome.is_err().then(namespace_fix),
        required: true,
    }
}

fn mount_inside() -> Finding {
    let outcome = attempt(Namespaces::NEWUSER | Namespaces::NEWNS, || {
        mount::seal()?;
        mount::tmpfs(0o755).map(drop)
    });
    Finding {
        feature: "mount in a user namespace",
        works: outcome.is_ok(),
        detail: seen(&outcome, "a tmpfs was mounted, the host was sealed"),
        meaning: "the host is shown read-only and the workspace at its own path",
        fix: outcome.is_err().then(namespace_fix),
        required: true,
    }
}

fn processes_inside() -> Finding {
    let namespaces = Namespaces::NEWUSER | Namespaces::NEWNS | Namespaces::NEWPID;
    let outcome = attempt(namespaces, || mount::proc().map(drop));
    Finding {
        feature: "fresh /proc",
        works: outcome.is_ok(),
        detail: seen(&outcome, "a procfs of a new PID namespace was mounted"),
        meaning: "processes in a sandbox see themselves only",
        fix: outcome.is_err().then(|| {
            "in a container, unmask its /proc (docker: --security-opt systempaths=unconfined)"
                .to_owned()
        }),
        required: true,
    }
}

fn in_state(state: &Path) -> Vec<Finding> {
    let trial = match Trial::new(state) {
        Ok(trial) => trial,
        Err(error) => {
            return vec![Finding {
                feature: "sandbox root",
                works: false,
                detail: format!("{}: {error}", state.display()),
                meaning: "sandboxes are kept there",
                fix: Some(
                    "make it writable, or set SANDBOX_ROOT to a directory that is".to_owned(),
                ),
                required: true,
            }];
        }
    };
    let mut findings = vec![overlay(&trial, OverlayXattr::User)];
    if rustix::process::geteuid().is_root() {
        findings.push(overlay(&trial, OverlayXattr::Trusted));
    }
    findings.extend([btrfs(state), reflink(&trial)]);
    findings
}

/// A directory for trials, removed afterwards.
struct Trial {
    path: PathBuf,
}

impl Trial {
    fn new(state: &Path) -> io::Result<Trial> {
        let path = state.join(format!(".trial-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        for name in ["lower", "upper", "work", "upper-trusted", "work-trusted"] {
            std::fs::create_dir_all(path.join(name))?;
        }
        Ok(Trial { path })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // The overlay leaves a directory that its own owner may not search.
        for name in ["work", "work-trusted"] {
            let _ = rustix::fs::chmod(self.path.join(name).join("work"), Mode::RWXU);
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Tried by the same code with which `create` chooses its backend, so that the two agree.
fn overlay(trial: &Trial, xattr: OverlayXattr) -> Finding {
    let (upper, work) = match xattr {
        OverlayXattr::User => ("upper", "work"),
        OverlayXattr::Trusted => ("upper-trusted", "work-trusted"),
    };
    let layers = OverlayTrial {
        lower: &trial.path.join("lower"),
        upper: &trial.path.join(upper),
        work: &trial.path.join(work),
        xattr,
    };
    let outcome = trial::overlay(&layers, |merged| {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(merged, "file", flags, Mode::RUSR).map(drop)?)
    });
    Finding {
        feature: match xattr {
            OverlayXattr::User => "overlay in a user namespace",
            OverlayXattr::Trusted => "overlay by root",
        },
        works: outcome.is_ok(),
        detail: match &outcome {
            Ok(()) => "mounted on the sandbox root and written to".to_owned(),
            Err(error) => match error.source() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
        },
        meaning: "sandboxes are made at once and cost only what changes; without, by copying",
        fix: outcome
            .err()
            .map(|error| overlay_fix(&error, filesystem(&trial.path))),
        required: false,
    }
}

/// How to get an overlay, by the step that failed and the type of the sandbox root's filesystem.
fn overlay_fix(error: &TrialError, filesystem: Option<u64>) -> String {
    const OVERLAYFS: u64 = 0x794c_7630;
    const NFS: u64 = 0x6969;
    let copy = "or use `--backend copy`";
    match (error, filesystem) {
        (TrialError::Start(_), _) => "free memory or processes, and try again".to_owned(),
        (TrialError::Namespace(_), _) => namespace_fix(),
        (_, Some(OVERLAYFS | NFS)) => format!(
            "the sandbox root is on overlayfs or NFS: put SANDBOX_ROOT on ext4, xfs, btrfs or tmpfs, {copy}"
        ),
        (TrialError::Mount(cause), _) if Errno::from_io_error(cause) == Some(Errno::NODEV) => {
            format!("load the kernel's overlay module (`modprobe overlay`), {copy}")
        }
        (TrialError::Mount(cause), _) if Errno::from_io_error(cause) == Some(Errno::PERM) => {
            format!(
                "use Linux 5.11 or newer, or allow mounts where a container filters them, {copy}"
            )
        }
        (TrialError::Mount(_) | TrialError::Use(_), _) => {
            format!("put SANDBOX_ROOT on another filesystem (ext4, xfs, btrfs or tmpfs), {copy}")
        }
    }
}

/// The type of the filesystem at `path`, as its magic number.
fn filesystem(path: &Path) -> Option<u64> {
    let found = rustix::fs::statfs(path).ok()?;
    Some(found.f_type as u64)
}

fn btrfs(state: &Path) -> Finding {
    const MAGIC: u64 = 0x9123_683e;
    let works = filesystem(state) == Some(MAGIC);
    Finding {
        feature: "btrfs",
        works,
        detail: match works {
            true => "the sandbox root is on btrfs".to_owned(),
            false => "the sandbox root is not on btrfs".to_owned(),
        },
        meaning: "a subvolume is sandboxed as a frozen snapshot",
        fix: (!works).then(|| "put source and SANDBOX_ROOT on one btrfs filesystem".to_owned()),
        required: false,
    }
}

fn reflink(trial: &Trial) -> Finding {
    let clone = || -> io::Result<()> {
        let (from, to) = (trial.path.join("from"), trial.path.join("to"));
        std::fs::write(&from, vec![1; 65536])?;
        let to = std::fs::File::create(to)?;
        Ok(rustix::fs::ioctl_ficlone(to, std::fs::File::open(from)?)?)
    };
    let outcome = clone();
    Finding {
        feature: "reflink",
        works: outcome.is_ok(),
        detail: seen(&outcome, "a file was cloned in the sandbox root"),
        meaning: "copies share their blocks; without, copying takes time and space",
        fix: outcome
            .is_err()
            .then(|| "use btrfs, or xfs with reflink=1".to_owned()),
        required: false,
    }
}

fn filter() -> Finding {
    let outcome = attempt(Namespaces::empty(), || {
        capabilities::drop_all()?;
        seccomp::attach(&seccomp::filter())?;
        // Refused by the filter, or nobody obeys it.
        match sandbox_linux::clone::unshare(Namespaces::NEWUSER) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => Ok(()),
            _ => Err(Errno::NOSYS.into()),
        }
    });
    Finding {
        feature: "seccomp",
        works: outcome.is_ok(),
        detail: seen(&outcome, "a filter was attached and obeyed"),
        meaning: "system calls that have no business in a sandbox are refused",
        fix: outcome
            .is_err()
            .then(|| "use a kernel with CONFIG_SECCOMP_FILTER".to_owned()),
        required: true,
    }
}

fn landlock_wall() -> Finding {
    let version = landlock::version();
    Finding {
        feature: "Landlock",
        works: version > 0,
        detail: match version {
            0 => "not there".to_owned(),
            version => format!("version {version}"),
        },
        meaning: match version {
            0 => "the second wall behind the mounts is missing",
            1..6 => "a second wall behind the mounts; abstract sockets and signals need version 6",
            _ => "a second wall behind the mounts, abstract sockets and signals included",
        },
        fix: (version == 0).then(|| "boot with lsm=landlock,… (kernel 5.13 or newer)".to_owned()),
        required: false,
    }
}

fn control_groups() -> Vec<Finding> {
    let limits = Limits {
        memory: Some(ByteSize(1 << 30)),
        cpu_millis: Some(1000),
        pids: Some(1000),
        size: None,
    };
    let meaning = |flag: &str| match flag {
        "--memory" => ("limit of memory", "`--memory` is enforced, or else refused"),
        "--cpus" => (
            "limit of processors",
            "`--cpus` is enforced, or else refused",
        ),
        _ => (
            "limit of processes",
            "`--pids` is enforced, or else refused",
        ),
    };
    let finding = |held: limits::Held| {
        let (feature, meaning) = meaning(held.limit);
        let fix = held.by.is_err().then(|| {
            "run under `systemd-run --user --scope -p Delegate=yes`, or as root".to_owned()
        });
        let works = held.by.is_ok();
        let detail = held.by.unwrap_or_else(|reason| reason);
        Finding {
            feature,
            works,
            detail,
            meaning,
            fix,
            required: false,
        }
    };
    limits::holding(&limits).into_iter().map(finding).collect()
}

fn virtual_machines() -> Finding {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let outcome = rustix::fs::open("/dev/kvm", flags, Mode::empty()).map(drop);
    let outcome = outcome.map_err(io::Error::from);
    Finding {
        feature: "KVM",
        works: outcome.is_ok(),
        detail: seen(&outcome, "/dev/kvm can be opened"),
        meaning: "virtual machines could be run; sandboxes do not need them",
        fix: outcome
            .is_err()
            .then(|| "turn virtualization on, join the group kvm".to_owned()),
        required: false,
    }
}

/// Runs `trial` in a child in `namespaces`.
fn attempt(namespaces: Namespaces, trial: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // Asked before the clone: in a new user namespace nobody is anybody.
    let own = Ids::own();
    let map = || match namespaces.contains(Namespaces::NEWUSER) {
        true => identity::map_self(own, own),
        false => Ok(()),
    };
    let body = || match map().and_then(|()| trial()) {
        Ok(()) => 0,
        Err(error) => error
            .raw_os_error()
            .filter(|errno| *errno < 256)
            .unwrap_or(255),
    };
    let (child, ()) = clone(namespaces, Parent::Caller, (), body)?;
    match child.wait()?.exit_status() {
        Some(0) => Ok(()),
        Some(255) | None => Err(io::Error::other("it failed for an unknown reason")),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn seen(outcome: &io::Result<()>, success: &str) -> String {
    match outcome {
        Ok(()) => success.to_owned(),
        Err(error) => error.to_string(),
    }
}

/// What turns user namespaces on here, by what turned them off.
fn namespace_fix() -> String {
    let setting = |name: &str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    if setting("kernel.unprivileged_userns_clone") == "0" {
        "sysctl -w kernel.unprivileged_userns_clone=1".to_owned()
    } else if setting("user.max_user_namespaces") == "0" {
        "sysctl -w user.max_user_namespaces=15000".to_owned()
    } else if setting("kernel.apparmor_restrict_unprivileged_userns") == "1" {
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile that \
         allows `userns` to this program"
            .to_owned()
    } else {
        "use a kernel with CONFIG_USER_NS, outside of a container that filters it (see \
         kernel.unprivileged_userns_clone, user.max_user_namespaces, \
         kernel.apparmor_restrict_unprivileged_userns)"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sandboxes_need_is_found_here_and_nothing_is_left() {
        let state = tempfile::tempdir().unwrap();
        let findings = host(state.path());
        for finding in findings.iter().filter(|finding| finding.required) {
            assert!(finding.works, "{finding:?}");
        }
        for finding in &findings {
            assert_eq!(finding.works, finding.fix.is_none(), "{finding:?}");
        }
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
    }

    #[test]
    fn overlay_advice_names_what_failed() {
        let mount = |errno: Errno| TrialError::Mount(errno.into());
        let (ext4, overlayfs) = (Some(0xef53), Some(0x794c_7630));
        for (error, filesystem, advice) in [
            (mount(Errno::INVAL), overlayfs, "is on overlayfs"),
            (mount(Errno::NODEV), ext4, "modprobe overlay"),
            (mount(Errno::PERM), ext4, "Linux 5.11"),
            (mount(Errno::INVAL), ext4, "another filesystem"),
            (TrialError::Namespace(Errno::PERM.into()), ext4, "kernel."),
        ] {
            let fix = overlay_fix(&error, filesystem);
            assert!(fix.contains(advice), "{error:?}: {fix}");
        }
    }

    #[test]
    fn a_root_that_cannot_be_written_is_named() {
        let findings = host(Path::new("/proc"));
        assert!(
            findings
                .iter()
                .any(|finding| finding.feature == "sandbox root" && !finding.works)
        );
    }
}
