//! A store to test, and small ways to look at it.

use std::fs;
use std::path::PathBuf;

use bytes::BytesMut;
use futures_util::stream::TryStreamExt as _;
use sandbox_model::SessionId;
use sandbox_store::objects::{
    Access, ByteRange, Credentials, Location, ObjectKey, Objects, ObjectsError, SigningKey,
};
use sandbox_test_servers::S3;
use tempfile::TempDir;

/// A store with nothing in it.
pub struct Store {
    pub objects: Objects,
    /// Where its files are, whoever keeps them.
    pub place: PathBuf,
    _directory: Option<TempDir>,
}

pub const SECRET: [u8; 32] = [5; 32];

impl Store {
    pub async fn files() -> Store {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("objects");
        let location = Location::Directory(place.clone());
        let access = Access::with(SigningKey::new(&SECRET));
        Store {
            objects: Objects::open(&location, &access).await.expect("a store"),
            place,
            _directory: Some(directory),
        }
    }

    pub async fn s3() -> Store {
        Store::on(S3::shared()).await
    }

    /// In a bucket of `server`'s, below a prefix.
    pub async fn on(server: &S3) -> Store {
        let bucket = server.fresh_bucket();
        Store::at(server, &format!("s3://{bucket}/some/prefix")).await
    }

    /// In a bucket that is there.
    pub async fn at(server: &S3, location: &str) -> Store {
        let location = location.parse().expect("a location");
        Store {
            objects: Objects::open(&location, &access(server))
                .await
                .expect("a store"),
            place: server.directory().join("data"),
            _directory: None,
        }
    }

    /// No upload has left anything.
    #[track_caller]
    pub fn nothing_is_unfinished(&self) {
        let left = self.unfinished();
        assert!(left.is_empty(), "{left:?}");
    }

    /// What uploads under way have on disk: our incoming files, or the server's parts.
    pub fn unfinished(&self) -> Vec<String> {
        let incoming = self.place.join("incoming");
        let is_ours = incoming.is_dir();
        let place = if is_ours { &incoming } else { &self.place };
        fs::read_dir(place)
            .expect("the store's directory")
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| is_ours || name.starts_with(".upload") || name.starts_with(".tmp"))
            .collect()
    }
}

pub fn access(server: &S3) -> Access {
    Access {
        endpoint: Some(server.url()),
        credentials: Some(Credentials {
            access_key: server.access_key().to_owned(),
            secret_key: server.secret_key().to_owned(),
            session_token: None,
        }),
        ..Access::with(SigningKey::new(&SECRET))
    }
}

pub fn session(number: u16) -> SessionId {
    SessionId::random([number; 16])
}

pub fn key(path: &str) -> ObjectKey {
    ObjectKey::new(session(1), path.as_bytes()).expect("a clean path")
}

/// A whole object, or a range of it.
pub async fn read(
    objects: &Objects,
    key: &ObjectKey,
    range: ByteRange,
) -> Result<BytesMut, ObjectsError> {
    let download = objects.get(key, range).await?;
    let collect = |mut all: BytesMut, piece: bytes::Bytes| {
        all.extend_from_slice(&piece);
        std::future::ready(Ok(all))
    };
    download.content.try_fold(BytesMut::new(), collect).await
}

/// Forgets the most memory that this process ever had; gives what it has now.
pub fn forget_peak_memory() -> u64 {
    fs::write("/proc/self/clear_refs", "5").expect("the kernel forgets");
    peak_memory()
}

/// The most memory this process had.
pub fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("our own status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.expect("a number of KiB") << 10
}

/// One promise, tested on files and on S3.
macro_rules! on_both {
    ($($(#[$meta:meta])* async fn $promise:ident($store:ident) $body:block)+) => {$(
        $(#[$meta])*
        mod $promise {
            #[allow(unused_imports, reason = "a promise may need nothing of its file")]
            use super::*;

            async fn holds_on($store: Store) $body

            #[tokio::test]
            async fn on_files() {
                holds_on(Store::files().await).await;
            }

            #[tokio::test]
            async fn on_s3() {
                holds_on(Store::s3().await).await;
            }
        }
    )+};
}
pub(crate) use on_both;
