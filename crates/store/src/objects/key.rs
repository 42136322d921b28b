//! The names of objects.
//!
//! A key is `workspace/SESSION/PATH`. The path is bytes, as names in a workspace are; in a key every
//! byte but letters, digits, `-`, `.`, `_`, `~` and the slash is written as `%XX`, so that any name
//! survives any store, log and URL, and comes back as it was. No segment is empty, `.` or `..`: a
//! key cannot mean anything outside of its session.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sandbox_model::SessionId;
use thiserror::Error;

/// What all keys start with.
const ROOT: &str = "workspace";

/// S3's limit for a key, in its written form.
const LONGEST_KEY: usize = 1024;

/// Every filesystem's limit for a name.
const LONGEST_SEGMENT: usize = 255;

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// An object's name: a session, and a path in its workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    session: SessionId,
    path: Vec<u8>,
}

/// All objects of a session, or those below a directory of its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPrefix {
    session: SessionId,
    /// Empty for the whole session.
    path: Vec<u8>,
}

/// Why something is not an object's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A segment is empty: at the start, the end, or between two slashes.
    #[error("object path has an empty name in it")]
    Empty,
    /// A segment is `.` or `..`.
    #[error("object path has '.' or '..' in it")]
    Dots,
    /// There is a NUL byte.
    #[error("object path has a NUL byte in it")]
    Nul,
    /// A segment is longer than a name may be.
    #[error("object path has a name of more than {LONGEST_SEGMENT} bytes in it")]
    LongSegment,
    /// The key would be longer than S3 allows.
    #[error("object path is too long: its key has more than {LONGEST_KEY} bytes")]
    LongKey,
    /// A text is not a key in its written form.
    #[error("'{0}' is not an object's key; those look like {ROOT}/SESSION/PATH")]
    Shape(String),
}

impl ObjectKey {
    /// The object at `path` in a session's workspace.
    pub fn new(session: SessionId, path: &[u8]) -> Result<ObjectKey, KeyError> {
        let key = ObjectKey {
            path: clean(path)?,
            session,
        };
        match key.to_string().len() {
            ..=LONGEST_KEY => Ok(key),
            _ => Err(KeyError::LongKey),
        }
    }

    /// Reads a key from the path of a URL, however that spells it.
    pub(super) fn from_url(text: &str) -> Result<ObjectKey, KeyError> {
        let shape = || KeyError::Shape(text.to_owned());
        let text: Vec<u8> = percent_decode_str(text).collect();
        let mut parts = text.splitn(3, |byte| *byte == b'/');
        let mut next = || parts.next().ok_or_else(shape);
        let (root, session, path) = (next()?, next()?, next()?);
        let session = std::str::from_utf8(session).ok();
        let session = session.and_then(|session| session.parse().ok());
        if root != ROOT.as_bytes() {
            return Err(shape());
        }
        ObjectKey::new(session.ok_or_else(shape)?, path)
    }

    /// The session it belongs to.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Its path in the workspace.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The path below a directory that keeps objects under their own names.
    pub(super) fn file(&self) -> Vec<u8> {
        file(&self.session, &self.path)
    }
}

impl ObjectPrefix {
    /// All objects of a session.
    pub fn session(session: SessionId) -> ObjectPrefix {
        let path = Vec::new();
        ObjectPrefix { session, path }
    }

    /// The objects below a directory of a session's workspace.
    pub fn directory(session: SessionId, path: &[u8]) -> Result<ObjectPrefix, KeyError> {
        let path = clean(path)?;
        Ok(ObjectPrefix { session, path })
    }

    /// The object at `path` below this prefix.
    pub(super) fn key(&self, path: &[u8]) -> Result<ObjectKey, KeyError> {
        match self.path.as_slice() {
            [] => ObjectKey::new(self.session.clone(), path),
            above => ObjectKey::new(self.session.clone(), &[above, b"/", path].concat()),
        }
    }

    /// As [`ObjectKey::file`].
    pub(super) fn file(&self) -> Vec<u8> {
        file(&self.session, &self.path)
    }
}

fn clean(path: &[u8]) -> Result<Vec<u8>, KeyError> {
    if path.contains(&0) {
        return Err(KeyError::Nul);
    }
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" => return Err(KeyError::Empty),
            b"." | b".." => return Err(KeyError::Dots),
            segment if segment.len() > LONGEST_SEGMENT => return Err(KeyError::LongSegment),
            _ => {}
        }
    }
    Ok(path.to_owned())
}

fn file(session: &SessionId, path: &[u8]) -> Vec<u8> {
    let mut file = format!("{ROOT}/{session}").into_bytes();
    if !path.is_empty() {
        file.push(b'/');
        file.extend_from_slice(path);
    }
    file
}

fn write(f: &mut fmt::Formatter<'_>, session: &SessionId, path: &[u8]) -> fmt::Result {
    write!(f, "{ROOT}/{session}")?;
    match path {
        [] => Ok(()),
        path => write!(f, "/{}", percent_encode(path, ESCAPED)),
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, &self.session, &self.path)
    }
}

impl fmt::Display for ObjectPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, &self.session, &self.path)
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    /// Reads the written form, and only that: each key has one.
    fn from_str(text: &str) -> Result<ObjectKey, KeyError> {
        let shape = || KeyError::Shape(text.to_owned());
        let rest = text
            .strip_prefix(ROOT)
            .and_then(|rest| rest.strip_prefix('/'));
        let (session, path) = rest
            .and_then(|rest| rest.split_once('/'))
            .ok_or_else(shape)?;
        let session = session.parse().map_err(|_| shape())?;
        let path: Vec<u8> = percent_decode_str(path).collect();
        let key = ObjectKey::new(session, &path)?;
        if key.to_string() == text {
            Ok(key)
        } else {
            Err(shape())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn session() -> SessionId {
        SessionId::random([7; 16])
    }

    #[test]
    fn a_key_cannot_leave_its_session() {
        for path in [
            "", "/", "/etc", "a/", "a//b", ".", "..", "../x", "a/../b", "a/.", "a/..",
        ] {
            assert!(
                ObjectKey::new(session(), path.as_bytes()).is_err(),
                "{path}"
            );
        }
        assert_eq!(ObjectKey::new(session(), b"a\0b"), Err(KeyError::Nul));
        for text in [
            "",
            "workspace",
            "workspace/x/y",
            "../workspace/sess_hhhhhhhhhhhhhhhh/a",
        ] {
            assert!(text.parse::<ObjectKey>().is_err(), "{text}");
        }
        for path in [
            "%2e%2e", "%2E%2E/a", "a%2F..", "%00", "a%", "%61", "a b", "ä",
        ] {
            let text = format!("workspace/{}/{path}", session());
            assert!(text.parse::<ObjectKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_as_long_as_names_may_be_and_a_key_too() {
        let long = "a".repeat(LONGEST_SEGMENT);
        assert!(ObjectKey::new(session(), long.as_bytes()).is_ok());
        let longer = "a".repeat(LONGEST_SEGMENT + 1);
        assert_eq!(
            ObjectKey::new(session(), longer.as_bytes()),
            Err(KeyError::LongSegment)
        );
        // `workspace/`, the session's 21 letters and its slash are 32 of them.
        let deep = |length: usize| ObjectKey::new(session(), &b"a/".repeat(512)[..length]);
        assert!(deep(991).is_ok_and(|key| key.to_string().len() == 1023));
        assert_eq!(deep(993), Err(KeyError::LongKey));
    }

    proptest! {
        #[test]
        fn any_name_comes_back_as_it_was(path in prop::collection::vec(any::<u8>(), 1..300)) {
            if let Ok(key) = ObjectKey::new(session(), &path) {
                let text = key.to_string();
                prop_assert!(text.len() <= LONGEST_KEY);
                prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(key.path(), &path[..]);
                prop_assert_eq!(text.parse::<ObjectKey>(), Ok(key));
            }
        }

        #[test]
        fn no_text_is_read_as_a_key_outside_of_its_session(text in "(workspace/sess_hhhhhhhhhhhhhhhh/)?[./%2eEfF0a]{0,20}") {
            if let Ok(key) = text.parse::<ObjectKey>() {
                prop_assert_eq!(key.to_string(), text);
                let is_clean = |segment: &[u8]| !segment.is_empty() && segment != b"." && segment != b"..";
                prop_assert!(key.path().split(|byte| *byte == b'/').all(is_clean));
            }
        }
    }
}
