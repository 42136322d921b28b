//! The user ids of sessions on the host.
//!
//! The kernel counts many things per user: descriptors in flight, inotify instances, pipe pages. Sessions with the
//! same user could use them up for each other. So where the server is root, each session has its own user id from a
//! range. The supervisor has one, too, and acts as a session's user in everything that concerns that session. The
//! owner of a workspace's directory records which user the session has.
//!
//! All sessions that start from a directory have the same user, because they change that directory's files.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use sandbox_linux::clone::leave;
use sandbox_linux::identity::Ids;
use sandbox_linux::powers::{Powers, act_as};
use sandbox_model::id::SessionId;

use super::Refusal;
use super::workspaces::{self, SANDBOXES};
use crate::spec::{SessionSpec, Workspace};
use crate::users::{UserRange, Users};

/// Everybody may get through the directory of all workspaces, and nobody may list it.
const PASSABLE: u32 = 0o711;

/// Everybody may read the directory that empty workspaces are copies of.
const READABLE: u32 = 0o755;

/// So many users that were given last are not given again, whatever the disk says: their workspaces may be under way.
const RECENT: usize = 1000;

/// The users of sessions.
pub(super) enum Owners {
    /// All have the user of this process.
    Own,
    /// Each has one of a range.
    Each(Box<Each>),
}

/// One user for each session.
pub(super) struct Each {
    root: PathBuf,
    /// The user of sessions that have none of their own.
    shared: Ids,
    range: UserRange,
    /// Users that have a workspace, or had one.
    taken: BTreeSet<u32>,
    /// Those that were given last, the newest last.
    recent: VecDeque<u32>,
    next: u32,
    watcher: Option<Pid>,
}

/// The user of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of this process.
    Own,
    /// That of all sessions that have none of their own.
    Shared(Ids),
    /// One that no other session has.
    Single(Ids),
}

impl Owners {
    /// The owners of the sessions in `root`, for a supervisor that has its own user and all its powers.
    pub(super) fn open(root: &Path, users: Option<Users>) -> io::Result<Owners> {
        let Some(Users {
            user,
            each: Some(range),
        }) = users
        else {
            return Ok(Owners::Own);
        };
        prepare(root, user)?;
        let mut each = Each {
            root: root.to_owned(),
            shared: user,
            range,
            taken: BTreeSet::new(),
            recent: VecDeque::new(),
            next: 0,
            watcher: rustix::process::getppid(),
        };
        each.look()?;
        Ok(Owners::Each(Box::new(each)))
    }

    /// Returns the owner of a session, and makes it a workspace where it has none.
    pub(super) fn of_spec(&mut self, spec: &SessionSpec) -> Result<Owner, Refusal> {
        let Owners::Each(each) = self else {
            return Ok(Owner::Own);
        };
        if let Some(owner) = each.known(&spec.session_id)? {
            return Ok(owner);
        }
        let (owner, powers) = match &spec.workspace {
            // Copying a large one takes long.
            Workspace::Source(_) => (Owner::Shared(each.shared), Powers::Kill),
            // The directory of all workspaces is another user's.
            Workspace::Empty => (Owner::Single(each.allot()?), Powers::Files),
        };
        let make = || workspaces::of(&each.root, spec).map(drop);
        each.acting(owner, powers, make)??;
        match each.known(&spec.session_id)? {
            Some(found) if found == owner => Ok(owner),
            found => Err(Refusal::from(format!(
                "its workspace was made for {owner:?}, and belongs to {found:?}"
            ))),
        }
    }

    /// Returns the owner of a session that has a workspace.
    pub(super) fn of(&self, id: &SessionId) -> Result<Owner, Refusal> {
        match self {
            Owners::Own => Ok(Owner::Own),
            Owners::Each(each) => Ok(each.known(id)?.unwrap_or(Owner::Shared(each.shared))),
        }
    }

    /// Returns who may discard a session's workspace: the supervisor, if its owner is not one of the range.
    pub(super) fn of_discard(&self, id: &SessionId) -> Owner {
        match self {
            Owners::Own => Owner::Own,
            Owners::Each(each) => {
                let supervisor = Owner::Single(each.range.supervisor());
                self.of(id).unwrap_or(supervisor)
            }
        }
    }

    /// Who owns what is promoted, and the sessions that start from a directory.
    pub(super) fn of_sources(&self) -> Owner {
        match self {
            Owners::Own => Owner::Own,
            Owners::Each(each) => Owner::Shared(each.shared),
        }
    }

    /// Who owns a copy of the workspace of `from` that is yet to be made.
    pub(super) fn of_copy(&mut self, from: &SessionId) -> Result<Owner, Refusal> {
        match (self.of(from)?, self) {
            (Owner::Single(_), Owners::Each(each)) => Ok(Owner::Single(each.allot()?)),
            (owner, _) => Ok(owner),
        }
    }

    /// Does `work` as the owner of a session, with these powers.
    pub(super) fn acting<T>(
        &self,
        owner: Owner,
        powers: Powers,
        work: impl FnOnce() -> T,
    ) -> io::Result<T> {
        match self {
            Owners::Own => Ok(work()),
            Owners::Each(each) => each.acting(owner, powers, work),
        }
    }
}

impl Each {
    /// Notes which users cannot be given to a new session.
    fn look(&mut self) -> io::Result<()> {
        self.taken.insert(self.shared.user);
        let directory = self.root.join(SANDBOXES);
        for entry in std::fs::read_dir(directory)? {
            // What is gone by now has no owner.
            if let Ok(found) = entry?.metadata()
                && found.is_dir()
            {
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
        Err(Refusal::from(format!(
            "{} belongs to user {user}, who is not one of {first} to {last}: start the server with the \
             --session-uids that it was made with",
            directory.display()
        )))
    }

    /// A user that no session has.
    fn allot(&mut self) -> Result<Ids, Refusal> {
        let mut found = self.free();
        if found.is_none() {
            // Those whose workspaces were removed meanwhile.
            self.taken = self.recent.iter().copied().collect();
            self.look()?;
            found = self.free();
        }
        let Some(user) = found else {
            let (first, last) = (self.range.first, self.range.last());
            return Err(Refusal::from(format!(
                "every user from {first} to {last} has a workspace: use a larger --session-uids or a shorter \
                 --retention"
            )));
        };
        self.recent.push_back(user);
        if self.recent.len() > RECENT.min(self.range.count as usize / 2) {
            self.recent.pop_front();
        }
        Ok(Ids { user, group: user })
    }

    /// The next user that is not taken.
    fn free(&mut self) -> Option<u32> {
        let many = self.range.count - 1;
        for _ in 0..many {
            let user = self.range.first + 1 + self.next;
            self.next = (self.next + 1) % many;
            if self.taken.insert(user) {
                return Some(user);
            }
        }
        None
    }

    fn acting<T>(&self, owner: Owner, powers: Powers, work: impl FnOnce() -> T) -> io::Result<T> {
        match owner {
            Owner::Own => return Ok(work()),
            Owner::Shared(user) | Owner::Single(user) => {
                if let Err(error) = act_as(user, powers) {
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

/// Makes the directories that workspaces of different users are in, which belong to `shared`, as `root` does.
fn prepare(root: &Path, shared: Ids) -> io::Result<()> {
    let root = open_directory(CWD, root)?;
    let mode =
        Mode::from_raw_mode(rustix::fs::fstat(&root)?.st_mode) | Mode::from_raw_mode(PASSABLE);
    rustix::fs::fchmod(&root, mode)?;
    for (name, mode) in [(SANDBOXES, PASSABLE), (workspaces::EMPTY, READABLE)] {
        match rustix::fs::mkdirat(&root, name, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let directory = open_directory(&root, name)?;
        let (user, group) = (Uid::from_raw(shared.user), Gid::from_raw(shared.group));
        rustix::fs::fchown(&directory, Some(user), Some(group))?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode))?;
    }
    Ok(())
}

fn open_directory(parent: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, path, flags, Mode::empty())?)
}
