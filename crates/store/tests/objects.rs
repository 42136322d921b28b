//! What objects promise, on files and on a real S3 server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "objects/store.rs"]
mod store;

#[path = "objects/faults.rs"]
mod faults;
#[path = "objects/links.rs"]
mod links;
#[path = "objects/on_files.rs"]
mod on_files;
#[path = "objects/roles.rs"]
mod roles;

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use sandbox_store::objects::{ByteRange, ObjectKey, ObjectPrefix, ObjectsError};
use sandbox_test_servers::S3;
use store::{Store, forget_peak_memory, key, on_both, peak_memory, read, session};

const MIB: usize = 1 << 20;

/// Bytes that show when they are not where they belong.
fn pattern(start: u64, length: usize) -> Bytes {
    let byte = |place: u64| (place ^ (place >> 8) ^ (place >> 16)) as u8;
    (start..start + length as u64).map(byte).collect()
}

/// A pattern of `length`, in pieces of an odd size.
fn pieces(length: u64) -> impl stream::Stream<Item = io::Result<Bytes>> + Send {
    const PIECE: u64 = 60_001;
    let starts = (0..length).step_by(PIECE as usize);
    stream::iter(starts.map(move |start| Ok(pattern(start, PIECE.min(length - start) as usize))))
}

on_both! {
    async fn what_is_put_comes_back(store) {
        for size in [0, 1, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, 10 * MIB] {
            let key = key("dir/file");
            let put = store.objects.put_stream(&key, pieces(size as u64), u64::MAX).await;
            assert_eq!(put.unwrap(), size as u64);
            assert_eq!(store.objects.head(&key).await.unwrap().size, size as u64);
            let content = read(&store.objects, &key, ByteRange::All).await.unwrap();
            assert!(content == pattern(0, size), "{size}");
        }
        store.nothing_is_unfinished();
    }

    async fn a_copy_is_what_the_file_was(store) {
        let directory = tempfile::tempdir().unwrap();
        for size in [0, 1, 6 * MIB, 70 * MIB] {
            let path = directory.path().join("file");
            std::fs::write(&path, pattern(0, size)).unwrap();
            let (key, file) = (key("dir/copy"), std::fs::File::open(&path).unwrap());
            let put = store.objects.put_copy(&key, file.into(), size as u64).await;
            assert_eq!(put.unwrap(), size as u64);
            // The file may change or go: the object stays what it was.
            std::fs::write(&path, "something else").unwrap();
            let content = read(&store.objects, &key, ByteRange::All).await.unwrap();
            assert!(content == pattern(0, size), "{size}");
        }
        store.nothing_is_unfinished();
    }

    async fn of_a_file_that_grows_nothing_is_copied(store) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, pattern(0, 70 * MIB)).unwrap();
        for most in [0, 69 * MIB] {
            let (key, file) = (key("dir/grown"), std::fs::File::open(&path).unwrap());
            let put = store.objects.put_copy(&key, file.into(), most as u64).await;
            assert!(matches!(put, Err(ObjectsError::TooLarge { .. })), "{put:?}");
            let found = store.objects.head(&key).await;
            assert!(matches!(found, Err(ObjectsError::NotFound { .. })), "{found:?}");
        }
        store.nothing_is_unfinished();
    }

    async fn a_large_object_passes_in_little_memory(store) {
        const SIZE: u64 = 100_000_000;
        // What the first request loads is not the object's.
        store.objects.put_stream(&key("first"), pieces(1), SIZE).await.unwrap();
        read(&store.objects, &key("first"), ByteRange::All).await.unwrap();
        let before = forget_peak_memory();

        let put = store.objects.put_stream(&key("large"), pieces(SIZE), SIZE).await;
        assert_eq!(put.unwrap(), SIZE);
        let mut download = store.objects.get(&key("large"), ByteRange::All).await.unwrap();
        let mut place = 0;
        while let Some(piece) = download.content.try_next().await.unwrap() {
            assert!(piece == pattern(place, piece.len()), "at {place}");
            place += piece.len() as u64;
        }
        assert_eq!(place, SIZE);

        let grown = peak_memory() - before;
        assert!(grown < 32 << 20, "{grown} bytes");
    }

    async fn a_range_is_just_that(store) {
        let key = key("file");
        store.objects.put_stream(&key, pieces(100_000), u64::MAX).await.unwrap();
        for (range, expected) in [
            (ByteRange::From(99_999), 99_999..100_000),
            (ByteRange::Within(10..20), 10..20),
            (ByteRange::Within(99_990..200_000), 99_990..100_000),
            (ByteRange::Last(5), 99_995..100_000),
            (ByteRange::Last(1_000_000), 0..100_000),
        ] {
            let download = store.objects.get(&key, range.clone()).await.unwrap();
            assert_eq!((download.info.size, &download.range), (100_000, &expected), "{range:?}");
            let content = read(&store.objects, &key, range).await.unwrap();
            assert!(content == pattern(expected.start, content.len()));
            assert_eq!(content.len() as u64, expected.end - expected.start);
        }
        for range in [ByteRange::From(100_000), ByteRange::Last(0), ByteRange::Within(5..5)] {
            let refused = store.objects.get(&key, range.clone()).await;
            assert!(matches!(refused, Err(ObjectsError::Range { size: 100_000, .. })), "{range:?}");
        }
    }

    async fn what_is_not_there_is_not_found_and_can_be_deleted(store) {
        let missing = key("no/such");
        let got = store.objects.get(&missing, ByteRange::All).await;
        assert!(matches!(got, Err(ObjectsError::NotFound { .. })));
        let looked = store.objects.head(&missing).await;
        assert!(matches!(looked, Err(ObjectsError::NotFound { .. })));
        store.objects.delete(&missing).await.unwrap();
        let listed: Vec<_> = store.objects.list(&ObjectPrefix::session(session(9))).collect().await;
        assert!(listed.is_empty());
        store.objects.ping().await.unwrap();
    }

    async fn too_much_is_refused_and_nothing_of_it_stays(store) {
        let large = key("large");
        for (size, most) in [(100, 99), (6 << 20, 1 << 20), (12 << 20, 11 << 20)] {
            let refused = store.objects.put_stream(&large, pieces(size), most).await;
            let expected = format!("object {large} is larger than {most} bytes");
            assert_eq!(refused.unwrap_err().to_string(), expected);
        }
        let looked = store.objects.head(&large).await;
        assert!(matches!(looked, Err(ObjectsError::NotFound { .. })));
        store.nothing_is_unfinished();
        store.objects.put_stream(&large, pieces(100), 100).await.unwrap();
    }

    async fn content_that_fails_leaves_what_stood_there(store) {
        let key = key("file");
        store.objects.put_stream(&key, pieces(10), 10).await.unwrap();
        let broken = pieces(7 << 20).chain(stream::iter([Err(io::ErrorKind::BrokenPipe.into())]));
        let failed = store.objects.put_stream(&key, broken, u64::MAX).await;
        assert!(matches!(failed, Err(ObjectsError::Content { .. })), "{failed:?}");
        let content = read(&store.objects, &key, ByteRange::All).await.unwrap();
        assert!(content == pattern(0, 10));
        store.nothing_is_unfinished();
    }

    async fn any_name_is_kept_as_it_is(store) {
        let names: [&[u8]; 16] = [
            b"plain", b"with space", "\u{fc}\u{1f980}".as_bytes(), b"\xff\xfe", b"%2e%2e", b"%2E%2E%2Fx",
            b"..hidden", b"new\nline", b"-rf", b"*?[]{}", b"back\\slash", b"a:b", b"quo'te\"",
            b"\x01\x7f", b"a/b/c", b"?x=1&y#z+",
        ];
        for name in names {
            let key = ObjectKey::new(session(1), name).unwrap();
            let content = stream::iter([Ok(Bytes::from_static(name))]);
            store.objects.put_stream(&key, content, 100).await.unwrap();
        }
        let listed: Vec<_> = store.objects.list(&ObjectPrefix::session(session(1))).try_collect().await.unwrap();
        let listed: BTreeMap<&[u8], u64> = listed.iter().map(|info| (info.key.path(), info.size)).collect();
        let expected: BTreeMap<&[u8], u64> = names.iter().map(|name| (*name, name.len() as u64)).collect();
        assert_eq!(listed, expected);
        for name in names {
            let key = ObjectKey::new(session(1), name).unwrap();
            assert_eq!(read(&store.objects, &key, ByteRange::All).await.unwrap(), name);
            store.objects.delete(&key).await.unwrap();
            assert!(store.objects.head(&key).await.is_err());
        }
    }

    async fn a_long_list_is_complete_and_goes_at_once(store) {
        const COUNT: u64 = 2_500;
        let key = |number: u64| key(&format!("many/{}/{number}", number % 3));
        let puts = stream::iter(0..COUNT).map(|number| {
            let objects = store.objects.clone();
            async move { objects.put_stream(&key(number), pieces(number % 7), 7).await }
        });
        let sizes: Vec<u64> = puts.buffer_unordered(8).try_collect().await.unwrap();
        assert_eq!(sizes.len() as u64, COUNT);
        let neighbour = ObjectKey::new(session(1), b"many-more").unwrap();
        store.objects.put_stream(&neighbour, pieces(1), 1).await.unwrap();

        let many = ObjectPrefix::directory(session(1), b"many").unwrap();
        let listed: Vec<_> = store.objects.list(&many).try_collect().await.unwrap();
        let listed: BTreeMap<_, _> = listed.into_iter().map(|info| (info.key, info.size)).collect();
        let expected: BTreeMap<_, _> = (0..COUNT).map(|number| (key(number), number % 7)).collect();
        assert_eq!(listed, expected);

        assert_eq!(store.objects.delete_prefix(&many).await.unwrap(), COUNT);
        let left: Vec<_> = store.objects.list(&ObjectPrefix::session(session(1))).try_collect().await.unwrap();
        assert_eq!(left.into_iter().map(|info| info.key).collect::<Vec<_>>(), [neighbour]);
    }

    async fn a_session_does_not_see_another(store) {
        let other = ObjectKey::new(session(2), b"file").unwrap();
        store.objects.put_stream(&other, pieces(1), 1).await.unwrap();
        store.objects.put_stream(&key("file"), pieces(1), 1).await.unwrap();
        assert_eq!(store.objects.delete_prefix(&ObjectPrefix::session(session(1))).await.unwrap(), 1);
        assert!(store.objects.head(&other).await.is_ok());
    }
}

#[tokio::test]
async fn keys_in_a_bucket_are_written_as_they_are_told() {
    let server = S3::shared();
    let bucket = server.fresh_bucket();
    let object = ObjectKey::new(session(1), b"a b/c").unwrap();
    for (prefix, place) in [("", String::new()), ("/x/y", String::from("x/y/"))] {
        let store = Store::at(server, &format!("s3://{bucket}{prefix}")).await;
        store
            .objects
            .put_stream(&object, pieces(1), 1)
            .await
            .unwrap();
        let file = format!("{bucket}/{place}workspace/{}/a%20b/c", session(1));
        assert!(store.place.join(&file).is_file(), "{file}");
        let listed = store.objects.list(&ObjectPrefix::session(session(1)));
        let listed: Vec<_> = listed.map_ok(|info| info.key).try_collect().await.unwrap();
        assert_eq!(listed, std::slice::from_ref(&object));
    }
}
