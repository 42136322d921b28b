//! Which mechanism gives a workspace its private copy.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The mechanism behind one workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// A read-only snapshot of the source's subvolume as the lower layer of an overlay.
    Btrfs,
    /// An overlay over the live source.
    Overlay,
    /// A full copy, reflinked where the filesystem can.
    Copy,
}

/// What the user asked for: a backend by name, or the best that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// Try btrfs, then overlay, then copy, and take the first that really works.
    #[default]
    Auto,
    /// This one or an error.
    Only(BackendKind),
}

/// A backend name that is none of ours.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("unknown backend '{0}'")]
pub struct UnknownBackend(pub String);

impl BackendKind {
    /// Every backend, best first.
    pub const ALL: [BackendKind; 3] = [BackendKind::Btrfs, BackendKind::Overlay, BackendKind::Copy];

    /// The name used in files, flags and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            BackendKind::Btrfs => "btrfs",
            BackendKind::Overlay => "overlay",
            BackendKind::Copy => "copy",
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "btrfs" => Ok(BackendKind::Btrfs),
            "overlay" | "overlayfs" => Ok(BackendKind::Overlay),
            "copy" | "rsync" => Ok(BackendKind::Copy),
            other => Err(UnknownBackend(other.to_owned())),
        }
    }
}

impl FromStr for BackendChoice {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(BackendChoice::Auto),
            named => named.parse().map(BackendChoice::Only),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_name_parses_back() {
        for kind in BackendKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
    }

    #[test]
    fn rsync_is_the_older_spelling_of_copy() {
        assert_eq!("rsync".parse(), Ok(BackendKind::Copy));
        assert_eq!(
            "zfs".parse::<BackendKind>(),
            Err(UnknownBackend("zfs".into()))
        );
        assert_eq!("auto".parse(), Ok(BackendChoice::Auto));
    }
}
