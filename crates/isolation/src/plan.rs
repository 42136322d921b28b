//! The launch plan: every mount in order, and every place that may be written, as data.
//!
//! Planning is pure: what it needs to know of the host is in [`Facts`]. The rule for what is seen
//! at a path is that the deepest path that was named decides; so operations are sorted by depth and
//! each covers what its ancestors put there. Performing a plan is [`crate::perform`]'s job.

use std::path::{Path, PathBuf};

use sandbox_linux::mount::{Access, MountPoint};
use sandbox_model::{OverlayXattr, WorkspaceMount};

use crate::facts::{Facts, System};
use crate::policy::{Policy, Root};

/// One mount inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Where.
    pub target: PathBuf,
    /// What.
    pub mount: Mount,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A root of its own, with this in it.
    Root(System),
    /// An empty tmpfs, with this mode.
    Scratch(u32),
    /// A minimal `/dev`.
    Devices,
    /// The processes of the sandbox; for real root with everything that changes the host covered.
    Processes(Kernel),
    /// A copy-on-write view.
    Overlay {
        /// What shines through.
        lower: PathBuf,
        /// Where changes go.
        upper: PathBuf,
        /// The overlay's scratch.
        work: PathBuf,
        /// Where it keeps its marks.
        xattr: OverlayXattr,
    },
    /// The private home, and in it, each copy-on-write, what of the real one is let through. All of
    /// it is one overlay of the real home, of which only these entries are ever attached.
    Home {
        /// The private directory.
        root: PathBuf,
        /// The real home.
        lower: PathBuf,
        /// Where changes to the entries go.
        upper: PathBuf,
        /// The overlay's scratch.
        work: PathBuf,
        /// Where it keeps its marks.
        xattr: OverlayXattr,
        /// Names in it.
        entries: Vec<PathBuf>,
    },
    /// A path of the host.
    Bind {
        /// Which.
        source: PathBuf,
        /// To do what with.
        access: Access,
        /// A directory or a file.
        kind: MountPoint,
    },
    /// Emptiness, read-only. Nothing where there is nothing to cover.
    Cover(MountPoint),
    /// The same in the workspace, where a command could have moved it away: it must be there.
    Hide(MountPoint),
    /// A directory mounted upon itself: the kernel does not let a mount point be renamed or removed.
    Pin,
}

/// How much of `/proc` beside the processes is left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// All of it: the modes keep an ordinary user out.
    Open,
    /// What real root could change the host with is read-only.
    ReadOnly,
}

/// All mounts, and what follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are attached.
    pub operations: Vec<Operation>,
    /// Beneath these writing is allowed; all else may be read and executed only.
    pub writable: Vec<PathBuf>,
}

/// Fresh directories that replace the host's: a read-only mount does not stop a connect to a socket
/// in them.
const SCRATCH: [(&str, u32); 3] = [("/run", 0o755), ("/tmp", 0o1777), ("/var/tmp", 0o1777)];

/// The mounts for `policy`.
pub fn plan(policy: &Policy, facts: &Facts) -> Plan {
    let source = policy.source.as_path();
    let mut operations = root(policy, facts);
    operations.extend(system(facts));
    operations.retain(|operation| operation.target != source);
    operations.extend(home(policy, facts));
    operations.extend(worktree(facts, &operations));
    operations.extend(covers(policy, facts, &operations));
    operations.push(Operation {
        target: source.to_owned(),
        mount: workspace(policy, facts),
    });
    operations.extend(exposures(facts));
    // Stable: of two at one path the later one above stays the later one, and is seen.
    operations.sort_by_key(|operation| operation.target.components().count());
    let writable = writable(&operations);
    Plan {
        operations,
        writable,
    }
}

/// The plan of a run that joins another's mounts: all it needs of its own is its processes.
pub fn joined(policy: &Policy, facts: &Facts) -> Plan {
    let Plan {
        operations,
        writable,
    } = plan(policy, facts);
    let own = |operation: &Operation| matches!(operation.mount, Mount::Processes(_));
    Plan {
        operations: operations.into_iter().filter(own).collect(),
        writable,
    }
}

/// The plan of one execution in a sandbox that is kept open: processes and scratch of its own.
pub fn inner(kept: &Plan) -> Plan {
    let own =
        |operation: &&Operation| matches!(operation.mount, Mount::Processes(_) | Mount::Scratch(_));
    let mut operations: Vec<Operation> = kept.operations.iter().filter(own).cloned().collect();
    operations.push(Operation {
        target: "/dev/shm".into(),
        mount: Mount::Scratch(0o1777),
    });
    Plan {
        operations,
        writable: kept.writable.clone(),
    }
}

fn root(policy: &Policy, facts: &Facts) -> Vec<Operation> {
    match policy.root {
        Root::Host => Vec::new(),
        Root::Built | Root::Image(_) => vec![Operation {
            target: "/".into(),
            mount: Mount::Root(facts.system.clone()),
        }],
    }
}

fn system(facts: &Facts) -> Vec<Operation> {
    let kernel = if facts.privileged {
        Kernel::ReadOnly
    } else {
        Kernel::Open
    };
    let mut operations = vec![
        Operation {
            target: "/dev".into(),
            mount: Mount::Devices,
        },
        Operation {
            target: "/proc".into(),
            mount: Mount::Processes(kernel),
        },
    ];
    let separate = facts.separate_var_run.then_some(("/var/run", 0o755));
    for (target, mode) in SCRATCH.into_iter().chain(separate) {
        if !facts
            .missing
            .iter()
            .any(|missing| missing == Path::new(target))
        {
            operations.push(Operation {
                target: target.into(),
                mount: Mount::Scratch(mode),
            });
        }
    }
    operations
}

fn home(policy: &Policy, facts: &Facts) -> Vec<Operation> {
    // A sandbox of the home itself, or of what contains it, shows it: that is what was asked for.
    let Some(home) = &facts.home else {
        return Vec::new();
    };
    let mut operations: Vec<Operation> = home
        .covered
        .iter()
        .filter(|covered| !covered.path.starts_with(&policy.source))
        .map(|covered| Operation {
            target: covered.path.clone(),
            mount: Mount::Cover(covered.kind),
        })
        .collect();
    if home.path.starts_with(&policy.source) {
        return operations;
    }
    let open = |name: &Path| !home.path.join(name).starts_with(&policy.source);
    let mount = Mount::Home {
        root: home.root.clone(),
        lower: home.path.clone(),
        upper: home.upper.clone(),
        work: home.work.join(&facts.slot),
        xattr: facts.xattr(),
        entries: home
            .entries
            .iter()
            .filter(|name| open(name))
            .cloned()
            .collect(),
    };
    operations.push(Operation {
        target: home.path.clone(),
        mount,
    });
    for identity in home.identity.iter().filter(|file| open(&file.name)) {
        let mount = Mount::Bind {
            source: identity.source.clone(),
            access: Access::ReadOnly,
            kind: MountPoint::File,
        };
        operations.push(Operation {
            target: home.path.join(&identity.name),
            mount,
        });
    }
    operations
}

/// A git worktree's own repository, where it would be covered.
fn worktree(facts: &Facts, operations: &[Operation]) -> Option<Operation> {
    let repository = facts.repository.as_ref()?;
    let covered = operations.iter().any(|operation| {
        repository.starts_with(&operation.target) && !matches!(operation.mount, Mount::Devices)
    });
    covered.then(|| Operation {
        target: repository.clone(),
        mount: Mount::Bind {
            source: repository.clone(),
            access: Access::ReadOnly,
            kind: MountPoint::Directory,
        },
    })
}

fn covers(policy: &Policy, facts: &Facts, others: &[Operation]) -> Vec<Operation> {
    let mut operations: Vec<Operation> = Vec::new();
    let is_within = |path: &Path, above: &Path| path != above && path.starts_with(above);
    for hidden in &facts.hidden {
        let path = hidden.path.as_path();
        if path == policy.source {
            continue;
        }
        // Beneath another mount nothing of the workspace is seen.
        let mut above = others.iter().map(|operation| operation.target.as_path());
        let is_elsewhere = !is_within(path, &policy.source)
            || above.any(|above| is_within(above, &policy.source) && path.starts_with(above));
        let is_hidden_already = facts
            .hidden
            .iter()
            .any(|other| is_within(path, &other.path));
        let mount = match is_elsewhere || is_hidden_already {
            true => Mount::Cover(hidden.kind),
            false => Mount::Hide(hidden.kind),
        };
        if matches!(mount, Mount::Hide(_)) && can_rename_directories(policy) {
            let above = path.ancestors().skip(1);
            for directory in above.take_while(|above| is_within(above, &policy.source)) {
                if !operations.iter().any(|other| other.target == directory) {
                    operations.push(Operation {
                        target: directory.to_owned(),
                        mount: Mount::Pin,
                    });
                }
            }
        }
        operations.push(Operation {
            target: path.to_owned(),
            mount,
        });
    }
    operations
}

/// Can a command give a directory of the source another name, together with what is in it? An
/// ordinary user's overlay refuses that, and a program that copies it instead copies what is hidden
/// as it sees it.
fn can_rename_directories(policy: &Policy) -> bool {
    match policy.workspace {
        WorkspaceMount::Bind { .. } => true,
        WorkspaceMount::Overlay { xattr, .. } => xattr == OverlayXattr::Trusted,
    }
}

fn workspace(policy: &Policy, facts: &Facts) -> Mount {
    match policy.workspace.clone() {
        WorkspaceMount::Overlay {
            lower,
            upper,
            work,
            xattr,
        } => Mount::Overlay {
            lower,
            upper,
            work: work.join(&facts.slot),
            xattr,
        },
        WorkspaceMount::Bind { dir } => Mount::Bind {
            source: dir,
            access: Access::Writable,
            kind: MountPoint::Directory,
        },
    }
}

fn exposures(facts: &Facts) -> Vec<Operation> {
    let operation = |exposed: &crate::facts::Exposed| Operation {
        target: exposed.path.clone(),
        mount: Mount::Bind {
            source: exposed.path.clone(),
            access: if exposed.writable {
                Access::Writable
            } else {
                Access::ReadOnly
            },
            kind: exposed.kind,
        },
    };
    facts.exposed.iter().map(operation).collect()
}

fn writable(operations: &[Operation]) -> Vec<PathBuf> {
    let may_write = |mount: &Mount| match mount {
        Mount::Bind { access, .. } => *access == Access::Writable,
        Mount::Cover(_) | Mount::Hide(_) | Mount::Pin | Mount::Root(_) => false,
        _ => true,
    };
    let mut places: Vec<PathBuf> = Vec::new();
    for operation in operations
        .iter()
        .filter(|operation| may_write(&operation.mount))
    {
        if !places
            .iter()
            .any(|place| operation.target.starts_with(place))
        {
            places.push(operation.target.clone());
        }
    }
    places
}

impl Operation {
    /// What is done, for an error message: "mount the overlay at /home/ada/app".
    pub fn describe(&self) -> String {
        let target = self.target.display();
        match &self.mount {
            Mount::Root(_) => "make a root of its own".to_owned(),
            Mount::Scratch(_) => format!("mount a fresh {target}"),
            Mount::Devices => format!("make a minimal {target}"),
            Mount::Processes(_) => format!("mount a fresh {target}"),
            Mount::Overlay { .. } => format!("mount the overlay at {target}"),
            Mount::Bind { source, .. } if *source == self.target => format!("expose {target}"),
            Mount::Home { .. } => format!("make the private home {target}"),
            Mount::Bind {
                kind: MountPoint::File,
                ..
            } => format!("show a copy of {target}"),
            Mount::Bind { .. } => format!("bind the workspace's files at {target}"),
            Mount::Cover(_) | Mount::Hide(_) => format!("hide {target}"),
            Mount::Pin => format!("hide what is in {target}"),
        }
    }
}

#[cfg(test)]
mod tests;
