//! Whom sessions belong to on the host.
//!
//! The kernel counts many things for a user as a whole: descriptors in flight, inotify instances, pages of
//! pipes. Sessions of one user could take them from each other. So where the server is root, each session has a
//! user of its own out of a range, and so has the supervisor, which acts as the session's user in everything
//! that concerns that session. The owner of a workspace's directory is the record of who that is.
//!
//! A session that starts from a copy of a directory belongs to the user that the server was told: what it
//! changes there, and what is promoted, has that directory's owner.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};
use sandbox_linux::clone::leave;
use sandbox_linux::identity::Ids;
use sandbox_linux::powers::{Powers, act_as};
use sandbox_model::id::SessionId;

use super::workspaces::{self, SANDBOXES};
use super::{Refusal, RefusalKind};
use crate::spec::{SessionSpec, Workspace};
use crate::users::{UserRange, Users};

/// Everybody may get through the directory of all workspaces, and nobody may list it.
const PASSABLE: u32 = 0o711;

/// Everybody may read the directory that empty workspaces are copies of.
const READABLE: u32 = 0o755;

/// Whom sessions belong to.
pub(super) enum Owners {
    /// Whoever runs the server.
    Own,
    /// Users of a range.
    Each(Box<Each>),
}

/// One user each.
pub(super) struct Each {
    root: PathBuf,
    /// Whom those belong to that have no user of their own.
    shared: Ids,
    range: UserRange,
    /// Users that have a workspace, or had one.
    taken: BTreeSet<u32>,
    next: u32,
    watcher: Option<Pid>,
}

/// Who owns one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// Whoever runs the server.
    Own,
    /// The user that the server was told.
    Shared(Ids),
    /// A user that no other session has.
    Single(Ids),
}

impl Owners {
    /// The owners of the sessions in `root`, for a supervisor that is nobody yet in particular.
    pub(super) fn open(root: &Path, users: Option<Users>) -> io::Result<Owners> {
        let Some(Users {
            user,
            each: Some(range),
        }) = users
        else {
            return Ok(Owners::Own);
        };
        let mut each = Each {
            root: root.to_owned(),
            shared: user,
            range,
            taken: BTreeSet::new(),
            next: 0,
            watcher: rustix::process::getppid(),
        };
        each.acting(Owner::Shared(user), || prepare(root))??;
        each.look()?;
        Ok(Owners::Each(Box::new(each)))
    }

    /// Who owns a session. A new one is made a workspace that is its owner's.
    pub(super) fn of_spec(&mut self, spec: &SessionSpec) -> Result<Owner, Refusal> {
        let Owners::Each(each) = self else {
            return Ok(Owner::Own);
        };
        match (each.known(&spec.session_id)?, &spec.workspace) {
            (Some(owner), _) => Ok(owner),
            (None, Workspace::Source(_)) => Ok(Owner::Shared(each.shared)),
            (None, Workspace::Empty) => {
                let owner = each.allot()?;
                let root = each.root.clone();
                let made = each.acting(Owner::Shared(each.shared), || {
                    workspaces::of(&root, spec).map(drop)
                });
                made.map_err(Refusal::from)??;
                give(&each.directory(&spec.session_id), owner)?;
                Ok(Owner::Single(owner))
            }
        }
    }

    /// Who owns a session that has a workspace.
    pub(super) fn of(&self, id: &SessionId) -> Result<Owner, Refusal> {
        match self {
            Owners::Own => Ok(Owner::Own),
            Owners::Each(each) => Ok(each.known(id)?.unwrap_or(Owner::Shared(each.shared))),
        }
    }

    /// Who owns a copy of the workspace of `from` that is yet to be made.
    pub(super) fn of_copy(&mut self, from: &SessionId) -> Result<Owner, Refusal> {
        match (self.of(from)?, self) {
            (Owner::Single(_), Owners::Each(each)) => Ok(Owner::Single(each.allot()?)),
            (owner, _) => Ok(owner),
        }
    }

    /// Does `work` as the owner of a session.
    pub(super) fn acting<T>(&self, owner: Owner, work: impl FnOnce() -> T) -> io::Result<T> {
        match self {
            Owners::Own => Ok(work()),
            Owners::Each(each) => each.acting(owner, work),
        }
    }
}

impl Owner {
    /// What a process that acts as the owner may do beyond that: a user of a session's own is nobody in the
    /// directories that all of them are in.
    fn powers(self) -> Powers {
        match self {
            Owner::Own | Owner::Shared(_) => Powers::None,
            Owner::Single(_) => Powers::All,
        }
    }

    /// What of that an errand keeps, where the supervisor has any.
    pub(super) fn left_to_errands(self) -> Option<Powers> {
        match self {
            Owner::Own => None,
            Owner::Shared(_) => Some(Powers::None),
            Owner::Single(_) => Some(Powers::Others),
        }
    }
}

impl Each {
    /// Notes which users have a workspace.
    fn look(&mut self) -> io::Result<()> {
        let directory = self.root.join(SANDBOXES);
        for entry in std::fs::read_dir(directory)? {
            // What is gone by now has no owner.
            if let Ok(found) = entry?.metadata() {
                self.taken.insert(found.uid());
            }
        }
        Ok(())
    }

    fn directory(&self, id: &SessionId) -> PathBuf {
        self.root.join(SANDBOXES).join(id.as_str())
    }

    /// The owner of a workspace; none where there is no such workspace.
    fn known(&self, id: &SessionId) -> Result<Option<Owner>, Refusal> {
        let found = match self.directory(id).symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        let owner = Ids {
            user: found.uid(),
            group: found.gid(),
        };
        if owner == self.shared {
            return Ok(Some(Owner::Shared(owner)));
        }
        if self.range.holds_session(owner) {
            return Ok(Some(Owner::Single(owner)));
        }
        let (user, directory) = (owner.user, self.directory(id));
        let (first, last) = (self.range.first, self.range.last());
        Err(Refusal {
            kind: RefusalKind::Conflict,
            reason: format!(
                "its workspace belongs to user {user}, which is not among the users of sessions, {first} to \
                 {last}: start the server with the range that it was made with, or change the owner of {} to \
                 {}:{}",
                directory.display(),
                self.shared.user,
                self.shared.group
            ),
        })
    }

    /// A user that no session has.
    fn allot(&mut self) -> Result<Ids, Refusal> {
        if let Some(found) = self.free() {
            return Ok(found);
        }
        // Those whose workspaces were removed meanwhile.
        self.taken.clear();
        self.look()?;
        if let Some(found) = self.free() {
            return Ok(found);
        }
        let (first, last) = (self.range.first, self.range.last());
        Err(Refusal {
            kind: RefusalKind::Full,
            reason: format!("every user from {first} to {last} has a workspace"),
        })
    }

    /// The next user that nobody is known to have.
    fn free(&mut self) -> Option<Ids> {
        let many = self.range.count - 1;
        for _ in 0..many {
            let user = self.range.first + 1 + self.next;
            self.next = (self.next + 1) % many;
            if self.taken.insert(user) {
                return Some(Ids { user, group: user });
            }
        }
        None
    }

    fn acting<T>(&self, owner: Owner, work: impl FnOnce() -> T) -> io::Result<T> {
        match owner {
            Owner::Own => return Ok(work()),
            Owner::Shared(user) | Owner::Single(user) => {
                if let Err(error) = act_as(user, owner.powers()) {
                    self.come_back();
                    return Err(error);
                }
            }
        }
        let done = work();
        self.come_back();
        Ok(done)
    }

    /// Makes this process the supervisor again. One that cannot is of no use, and the next one is.
    fn come_back(&self) {
        let back = || -> io::Result<()> {
            act_as(self.range.supervisor(), Powers::All)?;
            // Changing the user takes this away.
            Ok(rustix::process::set_parent_process_death_signal(Some(
                Signal::KILL,
            ))?)
        };
        if back().is_err() || rustix::process::getppid() != self.watcher {
            leave(1);
        }
    }
}

/// Makes the directories that workspaces of different users are in. As the one to whom `root` belongs.
fn prepare(root: &Path) -> io::Result<()> {
    let mode = root.metadata()?.permissions().mode() | PASSABLE;
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(mode))?;
    for (name, mode) in [(SANDBOXES, PASSABLE), (workspaces::EMPTY, READABLE)] {
        let directory = root.join(name);
        std::fs::create_dir_all(&directory)?;
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Gives a workspace that was just made, and that nothing was written to, to its owner.
fn give(directory: &Path, owner: Ids) -> io::Result<()> {
    let to = (Some(owner.user), Some(owner.group));
    for entry in std::fs::read_dir(directory)? {
        lchown(entry?.path(), to.0, to.1)?;
    }
    // Last: whose it is says that the rest is, too.
    lchown(directory, to.0, to.1)
}
