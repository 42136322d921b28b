//! Links to objects: S3's own, and ours.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use sandbox_store::objects::{ByteRange, LinkError, ObjectKey, ObjectsError, SigningKey};

use crate::store::{SECRET, Store, key, read, session};
use crate::{pattern, pieces};

/// What a plain HTTP client gets: the head of the answer, and its body.
fn fetch(url: &str) -> (String, Vec<u8>) {
    let rest = url.strip_prefix("http://").expect("a plain URL");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head, answer[end + 4..].to_vec())
}

#[tokio::test]
async fn a_link_to_s3_is_served_by_s3_until_it_expires() {
    let store = Store::s3().await;
    let key = ObjectKey::new(session(1), b"a b/\xff.bin").unwrap();
    store
        .objects
        .put_stream(&key, pieces(1000), 1000)
        .await
        .unwrap();
    let name = "attachment; filename=\"a b.bin\"";
    let link = store
        .objects
        .presign_get(&key, Duration::from_secs(60), Some(name))
        .await
        .unwrap();
    let (head, body) = fetch(&link);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(
        head.contains(&format!("content-disposition: {name}")),
        "{head}"
    );
    assert!(body == pattern(0, 1000));

    let other = link.replace("a%20b.bin", "evil.bin");
    assert_ne!(link, other);
    let (head, _) = fetch(&other);
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");

    let short = store
        .objects
        .presign_get(&key, Duration::from_secs(1), None)
        .await
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while fetch(&short).0.starts_with("HTTP/1.1 200 ") {
        assert!(Instant::now() < deadline, "it does not expire");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(fetch(&short).0.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn a_link_to_a_file_is_verified_by_us_until_it_expires() {
    let store = Store::files().await;
    let file = key("a b");
    store
        .objects
        .put_stream(&file, pieces(1000), 1000)
        .await
        .unwrap();
    let hour = Duration::from_secs(3600);
    let link = store
        .objects
        .presign_get(&file, hour, Some("inline"))
        .await
        .unwrap();
    let (path, query) = link.split_once('?').unwrap();
    let signing_key = SigningKey::new(&SECRET);
    let now = SystemTime::now();
    let grant = signing_key.verify(path, query, now).unwrap();
    assert_eq!(grant.content_disposition.as_deref(), Some("inline"));
    let content = read(&store.objects, &grant.key, ByteRange::All)
        .await
        .unwrap();
    assert!(content == pattern(0, 1000));
    let later = now + hour + Duration::from_secs(1);
    assert_eq!(
        signing_key.verify(path, query, later),
        Err(LinkError::Expired)
    );
    let other = path.replace("a%20b", "other");
    assert_eq!(
        signing_key.verify(&other, query, now),
        Err(LinkError::Forged)
    );
}

#[tokio::test]
async fn no_link_outlives_a_week() {
    let store = Store::files().await;
    let week = Duration::from_secs(7 * 24 * 3600);
    assert!(
        store
            .objects
            .presign_get(&key("a"), week, None)
            .await
            .is_ok()
    );
    let refused = store
        .objects
        .presign_get(&key("a"), week + Duration::from_secs(1), None)
        .await;
    assert!(matches!(refused, Err(ObjectsError::LinkTooLong { .. })));
}
