//! The users of this machine whom sessions belong to, where the server is root.

use sandbox_linux::identity::Ids;

/// Whom sessions belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// Those that have no user of their own.
    pub user: Ids,
    /// Out of which each session has a user of its own; none where all have the same.
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

    pub(crate) fn is_session(self, user: u32) -> bool {
        self.contains(user) && user != self.first
    }

    /// Is it a user of a session, with the group that goes with it?
    pub(crate) fn holds_session(self, ids: Ids) -> bool {
        self.is_session(ids.user) && ids.user == ids.group
    }
}
