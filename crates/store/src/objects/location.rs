//! Where objects are kept, and what is needed to get at them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::SigningKey;

/// A place for objects, as `--objects` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// `file:DIR`.
    Directory(PathBuf),
    /// `s3:BUCKET` or `s3://BUCKET/PREFIX`.
    Bucket {
        /// Its name.
        name: String,
        /// What all keys start with, without slashes at the ends; often empty.
        prefix: String,
    },
}

/// What is needed beside the location.
#[derive(Debug, Clone)]
pub struct Access {
    /// What links to files are signed with.
    pub signing_key: SigningKey,
    /// The S3 server's URL; Amazon's own when there is none.
    pub endpoint: Option<String>,
    /// The region that S3 requests are signed for.
    pub region: String,
    /// Where S3 requests name their bucket.
    pub addressing: Addressing,
    /// Who we are to S3; whoever `role` is when there is none.
    pub credentials: Option<Credentials>,
    /// Who gives us credentials that nobody wrote down.
    pub role: Role,
}

/// Where a request names its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Addressing {
    /// In the path, as most servers but Amazon's want it.
    #[default]
    Path,
    /// In the host's name. An endpoint must then have it there.
    Host,
}

/// An access key and its secret, which no `Debug` shows.
#[derive(Clone)]
pub struct Credentials {
    /// The key's name.
    pub access_key: String,
    /// Its secret.
    pub secret_key: String,
    /// What comes with keys that expire.
    pub session_token: Option<String>,
}

/// Who gives us credentials, for a while at a time.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Role {
    /// The machine: its metadata service.
    #[default]
    Machine,
    /// Amazon's token service, for a token that Kubernetes keeps in a file.
    WebIdentity {
        /// The file.
        token_file: String,
        /// Whom the token lets us be.
        arn: String,
        /// What we are called meanwhile, if that matters.
        session_name: Option<String>,
        /// The service's URL; that of the region when there is none.
        endpoint: Option<String>,
    },
    /// Who runs the container, as ECS does: at its own address, under this path.
    Task {
        /// The path.
        path: String,
    },
    /// Who runs the container, as EKS does: at this URL, for the token in a file.
    Pod {
        /// The URL.
        url: String,
        /// The file.
        token_file: String,
    },
}

/// Why a text names no place for objects.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LocationError {
    /// Neither a directory nor a bucket.
    #[error(
        "'{0}' names no place for objects; those look like file:DIR, s3:BUCKET or s3://BUCKET/PREFIX"
    )]
    Scheme(String),
    /// Not a bucket's name.
    #[error("'{0}' is not a bucket's name; those have 3 to 63 small letters, digits, '.' and '-'")]
    Bucket(String),
    /// Not a prefix for keys.
    #[error(
        "'{0}' cannot stand before keys; letters, digits, '-', '.', '_', '~' and '/' can, 128 at most"
    )]
    Prefix(String),
}

impl Access {
    /// For a directory: S3's settings are as they are by default.
    pub fn with(signing_key: SigningKey) -> Access {
        Access {
            signing_key,
            endpoint: None,
            region: String::from("us-east-1"),
            addressing: Addressing::default(),
            credentials: None,
            role: Role::Machine,
        }
    }
}

impl fmt::Debug for Role {
    /// A task's path is all that is needed to ask for its credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Machine => "Machine",
            Role::WebIdentity { .. } => "WebIdentity",
            Role::Task { .. } => "Task",
            Role::Pod { .. } => "Pod",
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Location, LocationError> {
        let scheme = || LocationError::Scheme(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(scheme)?;
        match kind {
            "file" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                match path {
                    "" => Err(scheme()),
                    path => Ok(Location::Directory(PathBuf::from(path))),
                }
            }
            "s3" => bucket(rest.strip_prefix("//").unwrap_or(rest)),
            _ => Err(scheme()),
        }
    }
}

fn bucket(text: &str) -> Result<Location, LocationError> {
    let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
    let in_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    if !(3..=63).contains(&name.len()) || !name.bytes().all(in_name) {
        return Err(LocationError::Bucket(name.to_owned()));
    }
    let prefix = prefix.trim_matches('/');
    let in_prefix = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let is_clean = |segment: &str| !matches!(segment, "" | "." | "..");
    let is_prefix = prefix.is_empty() || prefix.split('/').all(is_clean);
    if prefix.len() > 128 || !prefix.bytes().all(in_prefix) || !is_prefix {
        return Err(LocationError::Prefix(prefix.to_owned()));
    }
    Ok(Location::Bucket {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(name: &str, prefix: &str) -> Result<Location, LocationError> {
        let (name, prefix) = (name.to_owned(), prefix.to_owned());
        Ok(Location::Bucket { name, prefix })
    }

    #[test]
    fn a_place_is_a_directory_or_a_bucket() {
        let directory = |path: &str| Ok(Location::Directory(PathBuf::from(path)));
        assert_eq!("file:data/objects".parse(), directory("data/objects"));
        assert_eq!("file:///srv/objects".parse(), directory("/srv/objects"));
        assert_eq!("file:/srv/objects".parse(), directory("/srv/objects"));
        assert_eq!("s3:my-bucket".parse(), bucket("my-bucket", ""));
        assert_eq!("s3://my-bucket/".parse(), bucket("my-bucket", ""));
        assert_eq!("s3://my-bucket/a/b/".parse(), bucket("my-bucket", "a/b"));
    }

    #[test]
    fn what_names_no_place_is_refused() {
        for text in [
            "",
            "file:",
            "file://",
            "/srv",
            "http://host/",
            "s3",
            "s3:",
            "s3:My_Bucket",
        ] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
        for text in [
            "s3://bucket/../other",
            "s3://bucket/a//b",
            "s3://bucket/a?b",
            "s3://bucket/.",
        ] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let credentials = Credentials {
            access_key: String::from("name"),
            secret_key: String::from("hush"),
            session_token: Some(String::from("hush")),
        };
        assert!(!format!("{credentials:?}").contains("hush"));
        let role = Role::Task {
            path: String::from("/hush"),
        };
        assert!(!format!("{role:?}").contains("hush"));
    }
}
