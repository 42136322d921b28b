//! Who may speak to the control plane.
//!
//! A key is a secret that is shown once; what is kept is its hash, and that never leaves the records.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::KeyId;
use crate::session::StatusError;

/// What a key allows. Each scope allows what the ones before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To look.
    Read,
    /// To make, use and end sessions.
    Operate,
    /// Everything: templates, nodes, other keys.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Operate, Scope::Admin];

    /// Does a key with this scope do where `needed` is asked for?
    pub fn allows(self, needed: Scope) -> bool {
        self >= needed
    }

    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = StatusError;

    fn from_str(text: &str) -> Result<Self, StatusError> {
        let known = Scope::ALL;
        known
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| StatusError {
                text: text.to_owned(),
                known: known.map(Scope::as_str).join(", "),
            })
    }
}

/// A key, as it is shown: without its secret and without the secret's hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its identifier.
    pub id: KeyId,
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it opens nothing.
    pub revoked_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_allows_what_the_lesser_ones_do() {
        let allowed = |has: Scope| Scope::ALL.map(|needed| has.allows(needed));
        assert_eq!(allowed(Scope::Read), [true, false, false]);
        assert_eq!(allowed(Scope::Operate), [true, true, false]);
        assert_eq!(allowed(Scope::Admin), [true, true, true]);
    }

    #[test]
    fn a_scope_reads_as_it_is_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
        }
        assert!("root".parse::<Scope>().is_err());
    }
}
