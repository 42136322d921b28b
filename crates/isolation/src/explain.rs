//! Turning a failed step into words: what was tried, why it failed, what to do.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use sandbox_linux::mount;

use crate::launch::{LaunchError, exec_error};
use crate::plan::{Mount, Plan};
use crate::policy::Policy;
use crate::step::{Failed, Step};

/// What to do where user namespaces are off.
pub const NAMESPACES_FIX: &str = "turn user namespaces on (`sandbox doctor` shows how), or accept \
    the weaker wall with `--isolation landlock`, as an ordinary user";

/// The clone itself was refused.
pub fn no_namespaces(error: &io::Error) -> LaunchError {
    if Errno::from_io_error(error) == Some(Errno::AGAIN) {
        return LaunchError::Step {
            step: "start a process".to_owned(),
            source: Errno::AGAIN.into(),
            hint: Some(
                "as many processes run as may (`ulimit -u`, or pids.max of the control group): end some, or raise \
                 the limit"
                    .to_owned(),
            ),
        };
    }
    let reason = match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::INVAL) => "this host gives no user namespaces".to_owned(),
        Some(Errno::NOSPC | Errno::USERS) => {
            "the limit of user namespaces is reached (user.max_user_namespaces)".to_owned()
        }
        _ => format!("no new namespaces: {error}"),
    };
    LaunchError::Wall {
        reason,
        hint: NAMESPACES_FIX.to_owned(),
    }
}

/// A step after the clone failed.
pub fn failed(policy: &Policy, plan: &Plan, privileged: bool, failed: Failed) -> LaunchError {
    let Failed { step, error } = failed;
    let denied = matches!(
        Errno::from_io_error(&error),
        Some(Errno::PERM | Errno::ACCESS)
    );
    match step {
        Step::Exec => return exec_error(policy, error),
        // Some hosts make the namespace and then give no power in it.
        Step::Identity | Step::Seal if denied && !privileged => return powerless(),
        Step::Make(index) if denied && !privileged => {
            if matches!(
                plan.operations[index].mount,
                Mount::Scratch(_) | Mount::Devices
            ) {
                return powerless();
            }
        }
        _ => {}
    }
    let hint = match step {
        Step::Make(index) | Step::Attach(index) => hint(
            policy,
            &plan.operations[index].mount,
            &plan.operations[index].target,
            &error,
        ),
        _ => None,
    };
    LaunchError::Step {
        step: words(plan, step),
        source: error,
        hint,
    }
}

fn powerless() -> LaunchError {
    LaunchError::Wall {
        reason: "user namespaces have no power to mount on this host".to_owned(),
        hint: NAMESPACES_FIX.to_owned(),
    }
}

fn hint(policy: &Policy, mount: &Mount, target: &Path, error: &io::Error) -> Option<String> {
    if matches!(mount, Mount::Hide(_) | Mount::Pin) {
        return Some(
            "it was moved or replaced inside, and could be read under another name; `sandbox \
             rollback` to a snapshot from before that, or discard the sandbox"
                .to_owned(),
        );
    }
    let Mount::Overlay { lower, upper, .. } = mount else {
        return None;
    };
    match Errno::from_io_error(error)? {
        Errno::INVAL => Some(match mounts_below(lower) {
            Some(point) => format!(
                "{point} is a mount below {}; unmount it, or use `--backend copy`",
                target.display()
            ),
            None => format!(
                "the filesystem of {} cannot hold an overlay's layer; use `--backend copy`, or \
                 a SANDBOX_ROOT elsewhere",
                upper.display()
            ),
        }),
        Errno::NOENT if !policy.source.exists() => Some("the source is gone".to_owned()),
        Errno::PERM => Some("this kernel has no rootless overlay; use `--backend copy`".to_owned()),
        _ => None,
    }
}

fn mounts_below(directory: &Path) -> Option<String> {
    let mountinfo = std::fs::read("/proc/self/mountinfo").ok()?;
    let found = mount::below(&mountinfo, directory);
    found.first().map(|point| point.display().to_string())
}

fn words(plan: &Plan, step: Step) -> String {
    match step {
        Step::Identity => "map the user into the sandbox".to_owned(),
        Step::Lifeline => "tie the sandbox to this process".to_owned(),
        Step::Join => "join the run that is on".to_owned(),
        Step::Make(index) | Step::Attach(index) => plan.operations[index].describe(),
        Step::Seal => "make the host read-only inside".to_owned(),
        Step::Hostname => "set the hostname inside".to_owned(),
        Step::Loopback => "bring up loopback inside".to_owned(),
        Step::Listen(port) => format!("listen at port {port} inside"),
        Step::Terminal => "open a terminal inside".to_owned(),
        Step::Fork => "start a process inside".to_owned(),
        Step::Directory => "enter the working directory inside".to_owned(),
        Step::Limits => "set the limits inside".to_owned(),
        Step::Privileges => "give up privileges inside".to_owned(),
        Step::Landlock => "enter the Landlock domain".to_owned(),
        Step::Filter => "attach the system-call filter".to_owned(),
        Step::Exec => "run the command".to_owned(),
    }
}
