//! Settings as they were written: texts, each with where it stands.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::setting::Which;

/// Where a text stands, the nearest last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Nowhere: it is what there is when nothing is said.
    Default,
    /// In the file, on this line.
    File(PathBuf, usize),
    /// In this variable.
    Environment(String),
    /// On the command line.
    Flag(&'static str),
}

impl Origin {
    /// What sort of place it is, as `--check --json` calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File(..) => "file",
            Origin::Environment(_) => "environment",
            Origin::Flag(_) => "flag",
        }
    }

    /// Of two origins, does this one count and not the other?
    pub(crate) fn is_nearer_than(&self, other: &Origin) -> bool {
        self.distance() < other.distance()
    }

    fn distance(&self) -> u8 {
        match self {
            Origin::Flag(_) => 0,
            Origin::Environment(_) => 1,
            Origin::File(..) => 2,
            Origin::Default => 3,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => f.write_str(name),
            Origin::Flag(flag) => f.write_str(flag),
        }
    }
}

/// What was written of a setting.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// The text; of a setting that takes several, all of them.
    pub(crate) texts: Vec<String>,
    pub(crate) origin: Origin,
}

impl fmt::Debug for Given {
    /// The texts may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given({})", self.origin)
    }
}

/// Everything that was written in one place, or in all of them.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    given: BTreeMap<Which, Given>,
    /// The file that holds a secret in plain words, if one does.
    pub(crate) secrets_in: Option<PathBuf>,
}

impl Raw {
    /// Adds what was written of a setting.
    pub(crate) fn give(&mut self, which: Which, texts: Vec<String>, origin: Origin) {
        self.given.insert(which, Given { texts, origin });
    }

    /// What was written of it.
    pub(crate) fn get(&self, which: Which) -> Option<&Given> {
        self.given.get(&which)
    }

    /// With `nearer` laid over it.
    pub(crate) fn under(mut self, nearer: Raw) -> Raw {
        self.given.extend(nearer.given);
        self.secrets_in = self.secrets_in.or(nearer.secrets_in);
        self
    }
}

/// A secret's text out of a file's: without the line end that editors leave.
pub(crate) fn secret_in(path: &Path) -> std::io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    match text.trim() {
        "" => Err(std::io::Error::other("the file is empty")),
        secret => Ok(secret.to_owned()),
    }
}
