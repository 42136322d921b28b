//! Objects: the files of sessions, kept beside the records, in a directory or in an S3 bucket.
//!
//! An object appears whole or not at all, is streamed in and out in pieces of a few MiB, and has a
//! key that cannot leave its session. [`Objects`] behaves alike on both kinds of store; the one
//! difference that users see is a link to an object, which S3 serves by itself and for files our
//! server does, after [`SigningKey::verify`]. What the objects mean is others' business.

mod content;
mod error;
mod files;
mod intake;
mod key;
mod link;
mod location;
mod range;
mod s3;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};

pub use content::content_of;
pub use error::ObjectsError;
pub use key::{KeyError, ObjectKey, ObjectPrefix};
pub use link::{Grant, LINK_PATH, LinkError, SigningKey};
pub use location::{Access, Addressing, Credentials, Location, LocationError, Role};
pub use range::ByteRange;

use files::Files;
use s3::Bucket;

/// Longest life of a link, S3's own limit.
pub const LONGEST_LINK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A store of objects. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Objects(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Files(Files),
    S3(Bucket),
}

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its key.
    pub key: ObjectKey,
    /// Its size in bytes.
    pub size: u64,
    /// When it was put.
    pub modified: SystemTime,
}

/// An object on its way out.
pub struct Download {
    /// The whole object's size and age.
    pub info: ObjectInfo,
    /// The bytes that come.
    pub range: std::ops::Range<u64>,
    /// Their content.
    pub content: BoxStream<'static, Result<Bytes, ObjectsError>>,
}

impl Objects {
    /// Opens the store at `location`. A directory is made where there is none; a bucket must be
    /// there and answer.
    pub async fn open(location: &Location, access: &Access) -> Result<Objects, ObjectsError> {
        let kind = match location {
            Location::Directory(path) => {
                Kind::Files(Files::open(path.clone(), access.signing_key.clone()).await?)
            }
            Location::Bucket { name, prefix } => {
                Kind::S3(Bucket::open(name, prefix, access).await?)
            }
        };
        Ok(Objects(kind))
    }

    /// Is the store beyond this machine, where other servers find what is in it?
    pub fn is_elsewhere(&self) -> bool {
        match &self.0 {
            Kind::Files(_) => false,
            Kind::S3(_) => true,
        }
    }

    /// Does the store answer?
    pub async fn ping(&self) -> Result<(), ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.ping().await,
            Kind::S3(bucket) => bucket.ping().await,
        }
    }

    /// Puts what `content` brings, in the place of what stood there. Nothing of it stays when
    /// `content` fails, brings more than `most_bytes`, or this future is dropped. Gives the size.
    pub async fn put_stream(
        &self,
        key: &ObjectKey,
        content: impl Stream<Item = io::Result<Bytes>> + Send,
        most_bytes: u64,
    ) -> Result<u64, ObjectsError> {
        let intake = intake::Intake::new(key, Box::pin(content), most_bytes);
        match &self.0 {
            Kind::Files(files) => files.put(key, intake).await,
            Kind::S3(bucket) => bucket.put(key, intake).await,
        }
    }

    /// Puts a copy of `file`, from where it stands to its end, in the place of what stood there: for what
    /// is in another place still and could be copied again. It appears whole or not at all, and a store of
    /// files writes it out to the disk only after this has returned: nobody waits for that, and a power
    /// cut a moment later may take it. Nothing of it stays when there are more than `most_bytes`: whoever
    /// writes to it may never end. Gives the size.
    pub async fn put_copy(
        &self,
        key: &ObjectKey,
        file: OwnedFd,
        most_bytes: u64,
    ) -> Result<u64, ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.put_copy(key, file, most_bytes).await,
            Kind::S3(_) => self.put_stream(key, content_of(file), most_bytes).await,
        }
    }

    /// Reads an object, or a part of it.
    pub async fn get(&self, key: &ObjectKey, range: ByteRange) -> Result<Download, ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.get(key, range).await,
            Kind::S3(bucket) => bucket.get(key, range).await,
        }
    }

    /// Looks an object up.
    pub async fn head(&self, key: &ObjectKey) -> Result<ObjectInfo, ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.head(key).await,
            Kind::S3(bucket) => bucket.head(key).await,
        }
    }

    /// Everything below `prefix`, in no particular order, fetched a page at a time.
    pub fn list(
        &self,
        prefix: &ObjectPrefix,
    ) -> BoxStream<'static, Result<ObjectInfo, ObjectsError>> {
        match &self.0 {
            Kind::Files(files) => files.list(prefix).boxed(),
            Kind::S3(bucket) => bucket.list(prefix).boxed(),
        }
    }

    /// Removes an object; it is no error when there is none.
    pub async fn delete(&self, key: &ObjectKey) -> Result<(), ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.delete(key).await,
            Kind::S3(bucket) => bucket.delete(key).await,
        }
    }

    /// Removes everything below `prefix`; gives how many objects that were.
    pub async fn delete_prefix(&self, prefix: &ObjectPrefix) -> Result<u64, ObjectsError> {
        match &self.0 {
            Kind::Files(files) => files.delete_prefix(prefix).await,
            Kind::S3(bucket) => bucket.delete_prefix(prefix).await,
        }
    }

    /// A link by which anyone can read the object for as long as it is `valid`, whole seconds of it.
    /// It is served with `content_disposition`. For files it is a path on our own server, to be
    /// verified there.
    pub async fn presign_get(
        &self,
        key: &ObjectKey,
        valid: Duration,
        content_disposition: Option<&str>,
    ) -> Result<String, ObjectsError> {
        if valid > LONGEST_LINK {
            return Err(ObjectsError::LinkTooLong { valid });
        }
        match &self.0 {
            Kind::Files(files) => {
                Ok(files.link(key, SystemTime::now() + valid, content_disposition))
            }
            Kind::S3(bucket) => bucket.link(key, valid, content_disposition).await,
        }
    }
}

impl std::fmt::Debug for Download {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Download")
            .field("info", &self.info)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
