//! Paths relative to a workspace's root.
//!
//! A `RelPath` is bytes, not text: names may hold newlines or invalid UTF-8. It never starts with
//! `/`, never holds `.`, `..`, an empty component or a NUL, so it cannot point out of its tree by
//! itself; symlinks on disk are the business of whoever opens it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A clean path below a workspace's root. The empty path is the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RelPath(Vec<u8>);

/// Why bytes are not a path below a workspace.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PathError {
    /// It starts with `/`.
    #[error("path is absolute")]
    Absolute,
    /// It holds `..`.
    #[error("path leaves the workspace by '..'")]
    Parent,
    /// It holds a NUL byte.
    #[error("path holds a NUL byte")]
    Nul,
    /// An escape in its textual form is broken.
    #[error("path holds a broken escape")]
    Escape,
}

impl RelPath {
    /// The workspace's root.
    pub const fn root() -> Self {
        RelPath(Vec::new())
    }

    /// Cleans `bytes`: `.` and empty components go, `..`, absolute paths and NULs are refused.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        if bytes.contains(&0) {
            return Err(PathError::Nul);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        for component in bytes.split(|b| *b == b'/') {
            match component {
                b"" | b"." => {}
                b".." => return Err(PathError::Parent),
                name => {
                    if !clean.is_empty() {
                        clean.push(b'/');
                    }
                    clean.extend_from_slice(name);
                }
            }
        }
        Ok(RelPath(clean))
    }

    /// The same for a `Path`.
    pub fn from_path(path: &Path) -> Result<Self, PathError> {
        Self::new(path.as_os_str().as_bytes())
    }

    /// This path with one more component. `name` must be a single directory entry's name.
    pub fn join(&self, name: &[u8]) -> Self {
        debug_assert!(!name.is_empty() && !name.contains(&b'/') && name != b".." && name != b".");
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        RelPath(bytes)
    }

    /// This path with all of `below`'s components after it.
    pub fn join_path(&self, below: &RelPath) -> Self {
        below
            .components()
            .fold(self.clone(), |path, name| path.join(name))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a `Path`; the root is `.`, so that it can be opened relative to a descriptor.
    pub fn as_path(&self) -> &Path {
        if self.0.is_empty() {
            Path::new(".")
        } else {
            Path::new(OsStr::from_bytes(&self.0))
        }
    }

    /// The path below `root`, for showing to people and for handing to other programs.
    pub fn under(&self, root: &Path) -> PathBuf {
        if self.0.is_empty() {
            root.to_owned()
        } else {
            root.join(self.as_path())
        }
    }

    /// Is this the root?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last component; `None` for the root.
    pub fn name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    /// The path without its last component; `None` for the root.
    pub fn parent(&self) -> Option<RelPath> {
        if self.0.is_empty() {
            return None;
        }
        let cut = self.0.iter().rposition(|b| *b == b'/').unwrap_or(0);
        Some(RelPath(self.0[..cut].to_vec()))
    }

    /// Its components, first to last.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/').filter(|c| !c.is_empty())
    }

    /// Is it `other`, or below it?
    pub fn starts_with(&self, other: &RelPath) -> bool {
        other.is_root()
            || self.0 == other.0
            || (self.0.starts_with(&other.0) && self.0.get(other.0.len()) == Some(&b'/'))
    }

    /// A reversible one-line text: backslashes, control characters and invalid UTF-8 become
    /// `\\` and `\xNN`. Safe to print on a terminal, exact in JSON.
    pub fn to_escaped(&self) -> String {
        escape(&self.0)
    }

    /// The reverse of [`RelPath::to_escaped`].
    pub fn from_escaped(text: &str) -> Result<Self, PathError> {
        Self::new(&unescape(text)?)
    }
}

/// Bytes as one printable line; see [`RelPath::to_escaped`].
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if is_unprintable(c) => {
                    let mut buffer = [0; 4];
                    push_hex(&mut text, c.encode_utf8(&mut buffer).as_bytes());
                }
                c => text.push(c),
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text
}

/// Characters that a terminal obeys, and those that show nothing, or reorder or join what is shown
/// (CVE-2021-42574): all of Unicode's categories Cc, Cf, Zl and Zp and its property
/// Default_Ignorable_Code_Point, with the code points that are reserved for it.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str(&format!("\\x{byte:02x}"));
    }
}

/// The reverse of [`escape`].
pub fn unescape(text: &str) -> Result<Vec<u8>, PathError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'\\' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        match tail {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digit = |d: &u8| char::from(*d).to_digit(16).ok_or(PathError::Escape);
                let value = digit(high)? * 16 + digit(low)?;
                bytes.push(u8::try_from(value).map_err(|_| PathError::Escape)?);
                rest = after;
            }
            _ => return Err(PathError::Escape),
        }
    }
    Ok(bytes)
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            f.pad(".")
        } else {
            f.pad(&self.to_escaped())
        }
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({self})")
    }
}

impl From<RelPath> for PathBuf {
    fn from(path: RelPath) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(path.0))
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_escaped())
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        RelPath::from_escaped(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_that_leave_the_workspace_are_refused() {
        assert_eq!(RelPath::new(b"/etc/passwd"), Err(PathError::Absolute));
        assert_eq!(RelPath::new(b"a/../../b"), Err(PathError::Parent));
        assert_eq!(RelPath::new(b"a\0b"), Err(PathError::Nul));
    }

    #[test]
    fn a_path_is_cleaned() {
        assert_eq!(RelPath::new(b"./a//b/./c/").unwrap().as_bytes(), b"a/b/c");
        assert!(RelPath::new(b"./").unwrap().is_root());
    }

    #[test]
    fn characters_that_show_nothing_are_escaped() {
        for hidden in [
            '\u{1b}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{202e}',
            '\u{2028}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{206a}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let text = escape(hidden.to_string().as_bytes());
            assert!(text.is_ascii(), "{:04x}: {text}", u32::from(hidden));
            assert_eq!(unescape(&text).unwrap(), hidden.to_string().as_bytes());
        }
        for shown in ["é", "日本", "ß", "…", "🙂", "ا", "한", "\u{301}", "“x”"] {
            assert_eq!(escape(shown.as_bytes()), shown);
        }
    }

    #[test]
    fn parents_and_names_come_apart_and_together() {
        let path = RelPath::new(b"a/b/c").unwrap();
        assert_eq!(path.name(), Some(&b"c"[..]));
        assert_eq!(path.parent().unwrap().join(b"c"), path);
        assert_eq!(RelPath::new(b"a").unwrap().parent(), Some(RelPath::root()));
        assert_eq!(RelPath::root().parent(), None);
    }

    #[test]
    fn beneath_means_whole_components() {
        let dir = RelPath::new(b"src").unwrap();
        assert!(RelPath::new(b"src/main.rs").unwrap().starts_with(&dir));
        assert!(!RelPath::new(b"src2").unwrap().starts_with(&dir));
        assert!(dir.starts_with(&RelPath::root()));
    }

    #[test]
    fn terminal_escapes_do_not_reach_the_terminal() {
        let path = RelPath::new(b"evil\x1b[2Jname\n\xff\xe2\x80\xae").unwrap();
        assert_eq!(
            path.to_string(),
            "evil\\x1b[2Jname\\x0a\\xff\\xe2\\x80\\xae"
        );
    }

    proptest! {
        #[test]
        fn the_text_form_is_exact(bytes in proptest::collection::vec(1u8.., 0..40)) {
            if let Ok(path) = RelPath::new(&bytes) {
                prop_assert_eq!(RelPath::from_escaped(&path.to_escaped()).unwrap(), path);
            }
        }
    }
}
