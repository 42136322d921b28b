//! What a sandbox remembers of itself, on disk as `meta.json` beside the seed's plain files.

use std::path::PathBuf;

use sandbox_model::{BackendKind, Fingerprint, OverlayXattr, SandboxName, Settings, Timestamp};
use serde::{Deserialize, Serialize};

/// The format written by this version.
pub const VERSION: u32 = 1;

/// A sandbox's own record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The format; newer ones are refused, older ones understood.
    pub version: u32,
    /// Its name.
    pub name: SandboxName,
    /// The source's absolute, canonical path, escaped as [`sandbox_model::path::escape`] does.
    #[serde(with = "escaped_path")]
    pub source: PathBuf,
    /// When it was made, for people.
    pub created: jiff::Timestamp,
    /// When it was made, by the coarse clock filesystems stamp with.
    pub created_coarse: Timestamp,
    /// The source's root as it was then.
    pub source_root: Fingerprint,
    /// The source's filesystem type (`f_type` of statfs).
    pub source_fs: i64,
    /// Its backend.
    pub backend: BackendKind,
    /// Where an overlay keeps its marks; `None` for copy.
    pub xattr: Option<OverlayXattr>,
    /// The sandbox it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SandboxName>,
    /// Isolation settings.
    #[serde(default)]
    pub settings: Settings,
}

mod escaped_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&sandbox_model::path::escape(path.as_os_str().as_bytes()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = sandbox_model::path::unescape(&text).map_err(de::Error::custom)?;
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    }
}
