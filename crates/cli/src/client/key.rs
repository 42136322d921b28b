//! The API key: where it is found, and that nobody sees it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use reqwest::header::HeaderValue;

use super::error::ClientError;

const VARIABLE: &str = "SANDBOX_API_KEY";
const FILE_VARIABLE: &str = "SANDBOX_API_KEY_FILE";

/// Where a server keeps the admin's key, in its data directory.
const ADMIN_KEY: &str = "admin.key";

/// No server looks at a longer one, and no file with one is larger than this.
const LONGEST: usize = 256;

/// A key, which is written nowhere but into a request.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(HeaderValue);

impl Key {
    /// Reads a key. `origin` says where it stands.
    fn new(text: &str, origin: &str) -> Result<Key, ClientError> {
        let text = text.trim();
        let plain = |byte: u8| byte.is_ascii_graphic();
        let fits = (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain);
        let header = HeaderValue::from_str(&format!("Bearer {text}")).ok();
        match header.filter(|_| fits) {
            Some(mut header) => {
                header.set_sensitive(true);
                Ok(Key(header))
            }
            None => Err(ClientError::NoKeyAtAll(origin.to_owned())),
        }
    }

    fn in_file(path: &Path) -> Result<Key, ClientError> {
        let text = read(path).map_err(|source| ClientError::KeyFile {
            path: path.to_owned(),
            source,
        })?;
        Key::new(&text, &path.display().to_string())
    }

    /// What says so in a request.
    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A named file may be anything, a device among it: no more is read than a key needs.
fn read(path: &Path) -> io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let most = 2 * LONGEST as u64;
    std::fs::File::open(path)?
        .take(most)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Where keys are looked for.
pub(super) struct Places<'a> {
    /// `--key-file`.
    pub(super) flag: Option<&'a Path>,
    /// A variable that is set to something.
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The data directory of a server on this machine, if the key is for one.
    pub(super) data: Option<PathBuf>,
}

/// The key: the flag's, the environment's, or that of this machine's own server where we can read it.
pub(super) fn find(places: &Places<'_>) -> Result<Option<Key>, ClientError> {
    if let Some(path) = places.flag {
        return Key::in_file(path).map(Some);
    }
    let plain = (places.variable)(VARIABLE);
    let file = (places.variable)(FILE_VARIABLE).map(PathBuf::from);
    match (plain, file) {
        (Some(_), Some(_)) => Err(ClientError::Twice(VARIABLE, FILE_VARIABLE)),
        (Some(text), None) => {
            let text = text.into_string();
            let text = text.map_err(|_| ClientError::NotText(VARIABLE))?;
            Key::new(&text, VARIABLE).map(Some)
        }
        (None, Some(path)) => Key::in_file(&path).map(Some),
        (None, None) => Ok(places.data.as_deref().and_then(admin)),
    }
}

/// The key of a server on this machine. One that is not there, or not ours to read, is none.
fn admin(data: &Path) -> Option<Key> {
    Key::in_file(&data.join(ADMIN_KEY)).ok()
}

/// Where `sandbox serve` keeps its data when it is not told: an administrator's server or one's own.
pub(super) fn data(
    variable: &dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
    is_root: bool,
) -> Option<PathBuf> {
    match variable("SANDBOX_DATA") {
        Some(directory) => Some(PathBuf::from(directory)),
        None if is_root => Some(PathBuf::from("/var/lib/sandbox")),
        None => Some(home?.join(".local/share/daedalos/server")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::flags::Flags;
    use crate::serve::{Surroundings, settle};

    fn found(
        flag: Option<&Path>,
        variables: &[(&str, &str)],
        data: Option<&Path>,
    ) -> Result<Option<Key>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let places = Places {
            flag,
            variable: &variable,
            data: data.map(Path::to_owned),
        };
        find(&places).map_err(|error| error.to_string())
    }

    #[test]
    fn the_nearest_key_counts_and_two_at_once_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let flag = at("flag", "of-the-flag\n");
        let file = at("file", "of-the-file\n");
        at("admin.key", "of-the-admin\n");
        let file = file.to_str().unwrap();
        let data = Some(directory.path());
        let key = |text: &str| Ok(Some(Key::new(text, "").unwrap()));
        let variable = (VARIABLE, "of-the-variable");
        let named = (FILE_VARIABLE, file);
        assert_eq!(
            found(Some(&flag), &[variable, named], data),
            key("of-the-flag")
        );
        assert_eq!(found(None, &[variable], data), key("of-the-variable"));
        assert_eq!(found(None, &[named], data), key("of-the-file"));
        assert_eq!(found(None, &[], data), key("of-the-admin"));
        assert_eq!(found(None, &[], None), Ok(None));
        assert_eq!(found(None, &[], Some(Path::new("/nowhere"))), Ok(None));
        let twice = found(None, &[variable, named], data);
        assert_eq!(
            twice,
            Err(format!("{VARIABLE} and {FILE_VARIABLE} are both set"))
        );
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_told() {
        for text in [
            "",
            "hunter2 hunter3",
            "hunter2\u{e9}",
            "a\nb",
            &"x".repeat(300),
        ] {
            let error = Key::new(text, "SANDBOX_API_KEY").unwrap_err().to_string();
            assert_eq!(error, "what is in SANDBOX_API_KEY is not an API key");
        }
        let key = Key::new("hunter2", "").unwrap();
        assert!(!format!("{key:?} {:?}", key.header()).contains("hunter2"));
        assert!(found(Some(Path::new("/nowhere")), &[], None).is_err());
        assert!(found(Some(Path::new("/dev/zero")), &[], None).is_err());
    }

    #[test]
    fn the_admins_key_is_looked_for_where_the_server_keeps_it() {
        for is_root in [true, false] {
            let surroundings = Surroundings {
                variable: &|_| None,
                home: Ok("/home/ada".into()),
                is_root,
                hostname: "host".to_owned(),
            };
            let settled = settle(&Flags::default(), surroundings).unwrap();
            let ours = data(&|_| None, Some("/home/ada".into()), is_root);
            assert_eq!(ours, Some(settled.settings.data));
        }
        let moved = |name: &str| (name == "SANDBOX_DATA").then(|| OsString::from("/srv/x"));
        assert_eq!(data(&moved, None, true), Some("/srv/x".into()));
        assert_eq!(data(&|_| None, None, false), None);
    }
}
