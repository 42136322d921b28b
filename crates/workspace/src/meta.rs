//! What a sandbox remembers of itself, on disk as `meta.json` beside the seed's plain files.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use sandbox_model::{BackendKind, Fingerprint, OverlayXattr, SandboxName, Settings, Timestamp};
use serde::{Deserialize, Serialize};

use crate::tree::{Dir, Replace};

/// The record's file.
pub(crate) const FILE: &str = "meta.json";

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

impl Meta {
    /// Reads the record in the sandbox's directory. `NotFound` when there is none.
    pub fn read(dir: &Path) -> io::Result<Meta> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let text = std::fs::read(dir.join(FILE))?;
        // The version first: the rest of a newer record may not parse.
        let Versioned { version } = serde_json::from_slice(&text)?;
        if version > VERSION {
            let text = format!("it was written by a newer sandbox (format {version})");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(serde_json::from_slice(&text)?)
    }

    /// Writes the record and the plain files beside it into the directory of a sandbox that nobody
    /// sees yet. A sandbox is a throwaway, so it is not forced to the disk.
    pub fn write_new(&self, dir: &Dir) -> io::Result<()> {
        let write = |name: &str, text: &[u8]| {
            // Over what a sandbox before it left: that is cheaper than to free a block and get one.
            let mut file = dir.open_or_create_file(name.as_bytes())?;
            file.write_all(text)?;
            file.set_len(text.len() as u64)
        };
        let mut source = self.source.as_os_str().as_bytes().to_vec();
        source.push(b'\n');
        write("source", &source)?;
        write("created", format!("{}\n", self.created).as_bytes())?;
        write("backend", format!("{}\n", self.backend).as_bytes())?;
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write(FILE, &text)
    }
}

/// Puts `contents` at `name`, at once or not at all.
pub(crate) fn replace_file(dir: &Dir, name: &str, contents: &[u8]) -> io::Result<()> {
    let temporary = format!(".{name}.{}", std::process::id());
    dir.remove_all(temporary.as_bytes())?;
    dir.create_file(temporary.as_bytes())?.write_all(contents)?;
    dir.rename(temporary.as_bytes(), dir, name.as_bytes(), Replace::Yes)
}

/// Now, by the clock filesystems stamp with.
pub fn coarse_now() -> Timestamp {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Timestamp(now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The filesystem type of what is at `path` (`f_type` of statfs).
pub(crate) fn filesystem_type(path: &Path) -> io::Result<i64> {
    let file = rustix::fs::openat(
        CWD,
        path,
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    Ok(rustix::fs::fstatfs(&file)?.f_type as i64)
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
