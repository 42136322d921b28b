//! How a workspace becomes visible at its source's path: what a backend hands to the launcher.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to mount at the source's own path inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceMount {
    /// An overlay. One superblock per upper at a time: later runs join the first one's.
    Overlay {
        /// The source, or its frozen snapshot.
        lower: PathBuf,
        /// Where changes go.
        upper: PathBuf,
        /// The overlay's own scratch directory, beside `upper`.
        work: PathBuf,
        /// Which attributes the layer's marks are kept in.
        xattr: OverlayXattr,
    },
    /// A plain directory with the whole copy.
    Bind {
        /// That directory.
        dir: PathBuf,
    },
}

/// The namespace of the extended attributes an overlay keeps its marks in. Fixed at create: a
/// layer written with one cannot be read with the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverlayXattr {
    /// `user.overlay.*`: mounted in a user namespace, with neither redirects nor metacopy.
    User,
    /// `trusted.overlay.*`: mounted by real root, with `redirect_dir` and `metacopy`.
    Trusted,
}

impl OverlayXattr {
    /// The attributes' prefix.
    pub const fn prefix(self) -> &'static str {
        match self {
            OverlayXattr::User => "user.overlay.",
            OverlayXattr::Trusted => "trusted.overlay.",
        }
    }
}
