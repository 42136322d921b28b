//! Objects as files below a directory, under the names that their keys have.
//!
//! What is put is written to `incoming/`, synced, and renamed to its place, whose directory is then
//! synced: a crash leaves the old object or the new one. An incoming file is locked for as long as
//! its writer lives; whoever opens the store next removes those that nobody holds. The library that
//! we use for S3 has files too, but follows links and leaves durability to chance.
//!
//! All that touches the disk is in `directory` and `incoming` and blocks; here it is moved to threads
//! that may, a piece at a time.

mod directory;
mod incoming;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream::{Stream, TryStreamExt as _, try_unfold};
use rustix::io::Errno;

use super::intake::Intake;
use super::{ByteRange, Download, ObjectInfo, ObjectKey, ObjectPrefix, ObjectsError, SigningKey};
use directory::{Directory, Walk};
use incoming::Incoming;

/// How much is written at once.
const WRITTEN: usize = 1 << 20;

/// How much is read at once.
const READ: u64 = 256 << 10;

/// How much of a file is copied at once.
const COPIED: u64 = 64 << 20;

/// A directory of objects.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: Arc<Directory>,
    signing_key: SigningKey,
}

impl Files {
    pub(super) async fn open(
        path: PathBuf,
        signing_key: SigningKey,
    ) -> Result<Files, ObjectsError> {
        let place = path.display().to_string();
        let directory = blocking(move || Directory::open(path)).await;
        let directory = directory.map_err(|error| ObjectsError::Open {
            place,
            source: error.into(),
        })?;
        Ok(Files {
            directory: Arc::new(directory),
            signing_key,
        })
    }

    pub(super) async fn ping(&self) -> Result<(), ObjectsError> {
        let outcome = self.with(Directory::check).await;
        outcome.map_err(|error| self.unavailable("look at the objects", error))
    }

    pub(super) async fn put<S>(
        &self,
        key: &ObjectKey,
        mut intake: Intake<'_, S>,
    ) -> Result<u64, ObjectsError>
    where
        S: Stream<Item = io::Result<Bytes>> + Unpin,
    {
        let unavailable = |error| self.unavailable(&format!("put object {key}"), error);
        let incoming = self.with(Incoming::new).await;
        let mut incoming = incoming.map_err(unavailable)?;
        loop {
            let piece = intake.piece(WRITTEN).await?;
            let is_last = piece.len() < WRITTEN;
            incoming = blocking(move || incoming.write(&piece))
                .await
                .map_err(unavailable)?;
            if is_last {
                break;
            }
        }
        let file = key.file();
        let kept = self
            .with(move |directory| incoming.keep(directory, &file))
            .await;
        kept.map_err(|error| self.not_kept(key, error))?;
        Ok(intake.taken())
    }

    pub(super) async fn put_copy(
        &self,
        key: &ObjectKey,
        file: OwnedFd,
        most_bytes: u64,
    ) -> Result<u64, ObjectsError> {
        let unavailable = |error| self.unavailable(&format!("put object {key}"), error);
        let incoming = self.with(Incoming::new).await;
        let (mut incoming, mut file) = (incoming.map_err(unavailable)?, File::from(file));
        let mut size = 0;
        loop {
            let copied;
            // In parts, because one that is under way cannot be given up.
            let part = move || {
                let copied = incoming.copy(&file, COPIED)?;
                Ok((incoming, file, copied))
            };
            (incoming, file, copied) = blocking(part).await.map_err(unavailable)?;
            size += copied;
            if size > most_bytes {
                let key = key.clone();
                return Err(ObjectsError::TooLarge { key, most_bytes });
            }
            if copied < COPIED {
                break;
            }
        }
        let path = key.file();
        let placed = self
            .with(move |directory| incoming.place(directory, &path))
            .await;
        let placed = placed.map_err(|error| self.not_kept(key, error))?;
        // Nobody waits for it, and nobody could do anything about it.
        drop(tokio::task::spawn_blocking(move || placed.sync()));
        Ok(size)
    }

    /// Why an object that is all there has not got its place.
    fn not_kept(&self, key: &ObjectKey, error: io::Error) -> ObjectsError {
        match Errno::from_io_error(&error) {
            // A file where a directory must be, a directory where the file must be, or a link,
            // which is none of ours.
            Some(Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST | Errno::LOOP) => {
                ObjectsError::InTheWay { key: key.clone() }
            }
            _ => self.unavailable(&format!("put object {key}"), error),
        }
    }

    pub(super) async fn get(
        &self,
        key: &ObjectKey,
        range: ByteRange,
    ) -> Result<Download, ObjectsError> {
        let path = key.file();
        let opened = self.with(move |directory| directory.object(&path)).await;
        let (file, size, modified) = opened.map_err(|error| self.failed("read", key, error))?;
        let info = ObjectInfo {
            key: key.clone(),
            size,
            modified,
        };
        let range = range.of(size).ok_or_else(|| ObjectsError::Range {
            key: key.clone(),
            size,
        })?;
        let (files, key) = (self.clone(), key.clone());
        let content = try_unfold((Arc::new(file), range.clone()), move |(file, left)| {
            let (files, key) = (files.clone(), key.clone());
            async move {
                if left.is_empty() {
                    return Ok(None);
                }
                let length = READ.min(left.end - left.start);
                let (reader, start) = (Arc::clone(&file), left.start);
                let piece = blocking(move || {
                    let mut piece = vec![0; length as usize];
                    reader.read_exact_at(&mut piece, start)?;
                    Ok(Bytes::from(piece))
                });
                let piece = piece
                    .await
                    .map_err(|error| files.failed("read", &key, error))?;
                Ok(Some((piece, (file, start + length..left.end))))
            }
        });
        Ok(Download {
            info,
            range,
            content: Box::pin(content),
        })
    }

    pub(super) async fn head(&self, key: &ObjectKey) -> Result<ObjectInfo, ObjectsError> {
        let path = key.file();
        let opened = self.with(move |directory| directory.object(&path)).await;
        let (_, size, modified) = opened.map_err(|error| self.failed("look up", key, error))?;
        Ok(ObjectInfo {
            key: key.clone(),
            size,
            modified,
        })
    }

    pub(super) fn list(
        &self,
        prefix: &ObjectPrefix,
    ) -> impl Stream<Item = Result<ObjectInfo, ObjectsError>> + Send + 'static {
        let (files, prefix) = (self.clone(), prefix.clone());
        let pages = try_unfold(Walk::new(prefix.file()), move |mut walk| {
            let (files, prefix) = (files.clone(), prefix.clone());
            async move {
                let page = files
                    .with(move |directory| Ok((walk.page(directory)?, walk)))
                    .await;
                let operation = || format!("list the objects below {prefix}");
                let (page, walk) = page.map_err(|error| files.unavailable(&operation(), error))?;
                // What has a name that no key has was not put by us.
                let objects = page.into_iter().filter_map(move |found| {
                    let key = prefix.key(&found.path).ok()?;
                    Some(Ok(ObjectInfo {
                        key,
                        size: found.size,
                        modified: found.modified,
                    }))
                });
                let is_over = walk.is_over();
                let objects: Vec<_> = objects.collect();
                match (objects.is_empty(), is_over) {
                    (true, true) => Ok(None),
                    _ => Ok(Some((futures_util::stream::iter(objects), walk))),
                }
            }
        });
        pages.try_flatten()
    }

    pub(super) async fn delete(&self, key: &ObjectKey) -> Result<(), ObjectsError> {
        let path = key.file();
        let removed = self.with(move |directory| directory.remove(&path)).await;
        removed.map_err(|error| self.unavailable(&format!("delete object {key}"), error))
    }

    pub(super) async fn delete_prefix(&self, prefix: &ObjectPrefix) -> Result<u64, ObjectsError> {
        let mut objects = std::pin::pin!(self.list(prefix));
        let mut count = 0;
        while let Some(object) = objects.try_next().await? {
            self.delete(&object.key).await?;
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn link(
        &self,
        key: &ObjectKey,
        expires: SystemTime,
        content_disposition: Option<&str>,
    ) -> String {
        self.signing_key.link(key, expires, content_disposition)
    }

    /// Runs `work` on the directory where blocking is allowed.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Directory) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let directory = Arc::clone(&self.directory);
        blocking(move || work(&directory)).await
    }

    fn failed(&self, verb: &str, key: &ObjectKey, error: io::Error) -> ObjectsError {
        match error.kind() {
            io::ErrorKind::NotFound => ObjectsError::NotFound { key: key.clone() },
            _ => self.unavailable(&format!("{verb} object {key}"), error),
        }
    }

    fn unavailable(&self, operation: &str, error: io::Error) -> ObjectsError {
        ObjectsError::Unavailable {
            place: self.directory.path().display().to_string(),
            operation: operation.to_owned(),
            source: error.into(),
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        // The runtime is going down, or the work panicked.
        Err(error) => Err(io::Error::other(error)),
    }
}
