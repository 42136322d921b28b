//! Stores that are not there, say no, or go away in the middle.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use sandbox_store::objects::{Access, ByteRange, Location, Objects, ObjectsError, SigningKey};
use sandbox_test_servers::S3;
use tokio::sync::mpsc;

use crate::store::{SECRET, Store, access, key, read};
use crate::{MIB, on_both, pattern, pieces};

/// An error with everything that caused it, as an operator would read it.
fn told(error: &ObjectsError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    format!("{text} {error:?}")
}

async fn refused(location: &str, access: &Access) -> ObjectsError {
    let location: Location = location.parse().unwrap();
    Objects::open(&location, access)
        .await
        .expect_err("there is no such store")
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_named_with_its_endpoint_but_not_the_secret() {
    let server = S3::shared();
    let error = refused("s3:no-such-bucket", &access(server)).await;
    let expected = format!("there is no bucket 'no-such-bucket' at {}", server.url());
    assert_eq!(error.to_string(), expected, "{}", told(&error));
    assert!(!told(&error).contains(server.secret_key()));
}

#[tokio::test]
async fn a_wrong_secret_is_refused_and_not_told() {
    let server = S3::shared();
    let bucket = server.fresh_bucket();
    let mut access = access(server);
    access.credentials.as_mut().unwrap().secret_key = String::from("not-the-secret");
    let error = refused(&format!("s3:{bucket}"), &access).await;
    assert!(matches!(error, ObjectsError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains(&bucket) && error.to_string().contains(&server.url()));
    assert!(!told(&error).contains("not-the-secret"));
    assert!(!format!("{access:?}").contains("not-the-secret"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_within_seconds() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    for endpoint in [format!("http://{free}"), format!("https://{free}")] {
        let mut access = access(S3::shared());
        access.endpoint = Some(endpoint.clone());
        let begun = Instant::now();
        let error = refused("s3:bucket", &access).await;
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
        let place = format!("bucket 'bucket' at {endpoint}");
        let expected = format!("cannot look into the bucket: {place} is not available");
        assert_eq!(error.to_string(), expected, "{}", told(&error));
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let location = format!("file:{}/objects", file.path().display());
    let error = refused(&location, &Access::with(SigningKey::new(&SECRET))).await;
    assert!(
        error.to_string().contains(file.path().to_str().unwrap()),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_killed_during_an_upload_is_named_with_the_part_and_works_again_later() {
    let mut server = S3::start();
    let store = Store::on(&server).await;
    let object = key("large");
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(1);
    let content = stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    let objects = store.objects.clone();
    let upload =
        tokio::spawn(async move { objects.put_stream(&key("large"), content, u64::MAX).await });
    for _ in 0..12 {
        sender.send(Ok(Bytes::from(vec![1; MIB]))).await.unwrap();
    }
    server.kill();
    let begun = Instant::now();
    while sender.send(Ok(Bytes::from(vec![2; MIB]))).await.is_ok() {}
    let error = upload.await.unwrap().unwrap_err();
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    let expected = format!("cannot put part 3 of object {object}: bucket ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(
        matches!(error, ObjectsError::Unavailable { .. }),
        "{error:?}"
    );
    assert!(store.objects.ping().await.is_err());

    server.restart();
    store.objects.ping().await.unwrap();
    assert!(matches!(
        store.objects.head(&object).await,
        Err(ObjectsError::NotFound { .. })
    ));
    store
        .objects
        .put_stream(&object, pieces(6 << 20), u64::MAX)
        .await
        .unwrap();
    let content = read(&store.objects, &object, ByteRange::All).await.unwrap();
    assert!(content == pattern(0, 6 * MIB));
}

on_both! {
    async fn an_upload_that_nobody_waits_for_leaves_nothing(store) {
        let objects = store.objects.clone();
        let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(1);
        let content = stream::unfold(receiver, async |mut receiver| {
            Some((receiver.recv().await?, receiver))
        });
        let upload = tokio::spawn(async move { objects.put_stream(&key("large"), content, u64::MAX).await });
        for _ in 0..12 {
            sender.send(Ok(Bytes::from(vec![1; MIB]))).await.unwrap();
        }
        assert!(!store.unfinished().is_empty());
        upload.abort();
        assert!(upload.await.unwrap_err().is_cancelled());
        // The server is told after we are gone; it has heard of it when it has nothing left.
        let deadline = Instant::now() + Duration::from_secs(30);
        while !store.unfinished().is_empty() {
            assert!(Instant::now() < deadline, "it stays");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(matches!(store.objects.head(&key("large")).await, Err(ObjectsError::NotFound { .. })));
    }
}
