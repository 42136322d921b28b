//! Objects in an S3 bucket.
//!
//! A request is tried again a few times while the server does not answer; then it is an error, within
//! seconds, that names the bucket, the endpoint and the step, and never the secret. An upload of more
//! than one part is aborted when it fails, and also when whoever waits for it goes away.

mod cause;
mod upload;

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer as _};
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore as _,
    ObjectStoreExt as _, RetryConfig,
};

use super::intake::Intake;
use super::location::{Access, Addressing, Role};
use super::{ByteRange, Download, ObjectInfo, ObjectKey, ObjectPrefix, ObjectsError};
use cause::Cause;
use upload::Upload;

/// S3's smallest part, and all that an upload holds in memory. 10,000 of them are 48 GiB.
const PART: usize = 5 << 20;

/// A bucket, or what is below a prefix in it.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    store: Arc<AmazonS3>,
    name: String,
    endpoint: String,
    prefix: String,
}

impl Bucket {
    pub(super) async fn open(
        name: &str,
        prefix: &str,
        access: &Access,
    ) -> Result<Bucket, ObjectsError> {
        let amazon = || format!("https://s3.{}.amazonaws.com", access.region);
        let endpoint = access.endpoint.clone().unwrap_or_else(amazon);
        let store = client(name, &endpoint, access).map_err(|error| ObjectsError::Open {
            place: place(name, &endpoint),
            source: error.into(),
        })?;
        let bucket = Bucket {
            store: Arc::new(store),
            name: name.to_owned(),
            endpoint,
            prefix: prefix.to_owned(),
        };
        bucket.ping().await?;
        Ok(bucket)
    }

    pub(super) async fn ping(&self) -> Result<(), ObjectsError> {
        let options = PaginatedListOptions {
            max_keys: Some(1),
            ..PaginatedListOptions::default()
        };
        // Not the whole bucket: we may have been let into the prefix alone.
        let prefix = Some(self.prefix.as_str()).filter(|prefix| !prefix.is_empty());
        let listed = self.store.list_paginated(prefix, options).await;
        let looked = listed.map(|_| ());
        looked.map_err(|error| self.failed("look into the bucket", error))
    }

    pub(super) async fn put<S>(
        &self,
        key: &ObjectKey,
        mut intake: Intake<'_, S>,
    ) -> Result<u64, ObjectsError>
    where
        S: Stream<Item = io::Result<Bytes>> + Unpin,
    {
        let path = self.path(key);
        let mut piece = intake.piece(PART).await?;
        if piece.len() < PART {
            let put = self.store.put(&path, piece.into()).await;
            put.map_err(|error| self.failed(&format!("put object {key}"), error))?;
            return Ok(intake.taken());
        }
        let begun = self.store.put_multipart(&path).await;
        let begun =
            begun.map_err(|error| self.failed(&format!("begin to put object {key}"), error))?;
        let mut upload = Upload::new(begun);
        let outcome = async {
            let mut number = 1;
            while !piece.is_empty() {
                let sent = upload.part(piece).await;
                sent.map_err(|error| {
                    self.failed(&format!("put part {number} of object {key}"), error)
                })?;
                piece = intake.piece(PART).await?;
                number += 1;
            }
            let completed = upload.complete().await;
            completed.map_err(|error| self.failed(&format!("complete object {key}"), error))
        };
        match outcome.await {
            Ok(()) => Ok(intake.taken()),
            Err(error) => {
                upload.abort().await;
                Err(error)
            }
        }
    }

    pub(super) async fn get(
        &self,
        key: &ObjectKey,
        range: ByteRange,
    ) -> Result<Download, ObjectsError> {
        let mut options = GetOptions::default();
        if range != ByteRange::All {
            // Servers differ in what they answer to a range that is not there: ask for the size.
            let size = self.head(key).await?.size;
            let range = range.of(size).ok_or_else(|| ObjectsError::Range {
                key: key.clone(),
                size,
            })?;
            options.range = Some(GetRange::Bounded(range));
        }
        let answer = self.store.get_opts(&self.path(key), options).await;
        let answer = answer.map_err(|error| self.failed_on("read", key, error))?;
        let (bucket, object) = (self.clone(), key.clone());
        Ok(Download {
            info: info(key.clone(), &answer.meta),
            range: answer.range.clone(),
            content: answer
                .into_stream()
                .map_err(move |error| bucket.failed_on("read", &object, error))
                .boxed(),
        })
    }

    pub(super) async fn head(&self, key: &ObjectKey) -> Result<ObjectInfo, ObjectsError> {
        let found = self.store.head(&self.path(key)).await;
        let found = found.map_err(|error| self.failed_on("look up", key, error))?;
        Ok(info(key.clone(), &found))
    }

    pub(super) fn list(
        &self,
        prefix: &ObjectPrefix,
    ) -> impl Stream<Item = Result<ObjectInfo, ObjectsError>> + Send + 'static {
        let (bucket, prefix) = (self.clone(), prefix.clone());
        let found = self.store.list(Some(&self.path(&prefix)));
        found.filter_map(move |found| {
            let listed = match found {
                // What has a name that is no key was not put by us.
                Ok(found) => bucket.key(&found.location).map(|key| Ok(info(key, &found))),
                Err(error) => {
                    let operation = format!("list the objects below {prefix}");
                    Some(Err(bucket.failed(&operation, error)))
                }
            };
            std::future::ready(listed)
        })
    }

    pub(super) async fn delete(&self, key: &ObjectKey) -> Result<(), ObjectsError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed_on("delete", key, error)),
        }
    }

    pub(super) async fn delete_prefix(&self, prefix: &ObjectPrefix) -> Result<u64, ObjectsError> {
        let found = self.store.list(Some(&self.path(prefix)));
        let paths = found.map_ok(|found| found.location).boxed();
        let removed = self.store.delete_stream(paths);
        let count = removed.try_fold(0, |count, _| std::future::ready(Ok(count + 1)));
        let operation = || format!("delete the objects below {prefix}");
        count
            .await
            .map_err(|error| self.failed(&operation(), error))
    }

    pub(super) async fn link(
        &self,
        key: &ObjectKey,
        valid: Duration,
        content_disposition: Option<&str>,
    ) -> Result<String, ObjectsError> {
        let disposition = content_disposition.map(|text| ("response-content-disposition", text));
        let options = SignedUrlOptions::default().with_query(disposition);
        let path = self.path(key);
        let url = self
            .store
            .signed_url_opts(Method::GET, &path, valid, &options)
            .await;
        let url = url.map_err(|error| self.failed_on("sign a link to", key, error))?;
        Ok(url.into())
    }

    /// A key's place in the bucket: as it is written, for it has nothing in it that a path may not.
    fn path(&self, key: &impl std::fmt::Display) -> Path {
        let path = match self.prefix.as_str() {
            "" => key.to_string(),
            prefix => format!("{prefix}/{key}"),
        };
        Path::parse(path).expect("keys and prefixes are clean paths")
    }

    fn key(&self, path: &Path) -> Option<ObjectKey> {
        let path = match self.prefix.as_str() {
            "" => path.as_ref(),
            prefix => path.as_ref().strip_prefix(prefix)?.strip_prefix('/')?,
        };
        path.parse().ok()
    }

    fn failed_on(&self, verb: &str, key: &ObjectKey, error: object_store::Error) -> ObjectsError {
        match error {
            object_store::Error::NotFound { .. } => ObjectsError::NotFound { key: key.clone() },
            error => self.failed(&format!("{verb} object {key}"), error),
        }
    }

    fn failed(&self, operation: &str, error: object_store::Error) -> ObjectsError {
        let (place, operation) = (place(&self.name, &self.endpoint), operation.to_owned());
        let cause = Cause::of(&error);
        let source = error.into();
        match cause {
            Cause::NoBucket => ObjectsError::NoBucket {
                bucket: self.name.clone(),
                endpoint: self.endpoint.clone(),
            },
            Cause::Denied => ObjectsError::Denied {
                place,
                operation,
                source,
            },
            Cause::Other => ObjectsError::Unavailable {
                place,
                operation,
                source,
            },
        }
    }
}

fn client(name: &str, endpoint: &str, access: &Access) -> object_store::Result<AmazonS3> {
    // Once for the process; it is no error when another part of it was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = ClientOptions::new()
        .with_connect_timeout(Duration::from_secs(5))
        // Between two pieces of an answer: a whole download takes as long as its reader does.
        .with_read_timeout(Duration::from_secs(60))
        .with_timeout_disabled();
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 4,
        retry_timeout: Duration::from_secs(20),
    };
    // Not `from_env`: it takes every variable that starts with AWS_, one of which goes over the endpoint that is
    // set here, and another has requests not signed.
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(name)
        .with_region(&access.region)
        .with_virtual_hosted_style_request(access.addressing == Addressing::Host)
        .with_client_options(options)
        .with_allow_http(endpoint.starts_with("http://"))
        .with_retry(retry);
    if let Some(endpoint) = &access.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
    }
    let Some(credentials) = &access.credentials else {
        return with_role(builder, &access.role).build();
    };
    builder = builder
        .with_access_key_id(&credentials.access_key)
        .with_secret_access_key(&credentials.secret_key);
    if let Some(token) = &credentials.session_token {
        builder = builder.with_token(token);
    }
    builder.build()
}

fn with_role(builder: AmazonS3Builder, role: &Role) -> AmazonS3Builder {
    use AmazonS3ConfigKey as Key;
    let told = match role {
        Role::Machine => vec![],
        Role::WebIdentity {
            token_file,
            arn,
            session_name,
            endpoint,
        } => vec![
            (Key::WebIdentityTokenFile, Some(token_file)),
            (Key::RoleArn, Some(arn)),
            (Key::RoleSessionName, session_name.as_ref()),
            (Key::StsEndpoint, endpoint.as_ref()),
        ],
        Role::Task { path } => vec![(Key::ContainerCredentialsRelativeUri, Some(path))],
        Role::Pod { url, token_file } => vec![
            (Key::ContainerCredentialsFullUri, Some(url)),
            (Key::ContainerAuthorizationTokenFile, Some(token_file)),
        ],
    };
    let tell = |builder: AmazonS3Builder, (key, value): (Key, Option<&String>)| match value {
        Some(value) => builder.with_config(key, value),
        None => builder,
    };
    told.into_iter().fold(builder, tell)
}

fn place(bucket: &str, endpoint: &str) -> String {
    format!("bucket '{bucket}' at {endpoint}")
}

fn info(key: ObjectKey, found: &ObjectMeta) -> ObjectInfo {
    ObjectInfo {
        key,
        size: found.size,
        modified: SystemTime::from(found.last_modified),
    }
}
