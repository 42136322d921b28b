//! The user ids that sessions have on the host, where the server is root.

use sandbox_linux::identity::Ids;

/// The users of all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// For sessions that have none of their own.
    pub user: Ids,
    /// From these each session gets its own; `None` where all have the same.
    pub each: Option<UserRange>,
}

impl From<Ids> for Users {
    fn from(user: Ids) -> Users {
        Users { user, each: None }
    }
}

/// Users and groups by number. The first is the supervisor's, the second may be that of sessions that have none of their
/// own, and the others are the sessions'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRange {
    /// The first.
    pub first: u32,
    /// How many there are, at least three.
    pub count: u32,
}

impl UserRange {
    /// The last.
    pub fn last(self) -> u32 {
        self.first + (self.count - 1)
    }

    /// Is this number in it?
    pub fn contains(self, id: u32) -> bool {
        (self.first..=self.last()).contains(&id)
    }

    /// The user of the process that starts sessions.
    pub fn supervisor(self) -> Ids {
        Ids {
            user: self.first,
            group: self.first,
        }
    }

    /// The user of sessions that have none of their own, where no other was named.
    pub fn shared(self) -> Ids {
        Ids {
            user: self.first + 1,
            group: self.first + 1,
        }
    }

    /// Is it the user of a session, with the group of the same number?
    pub(crate) fn holds_session(self, ids: Ids) -> bool {
        self.contains(ids.user) && ids.user != self.first && ids.user == ids.group
    }
}
