//! What a directory of objects promises beside what every store does.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use rustix::fs::{FlockOperation, flock};
use sandbox_store::objects::{
    Access, ByteRange, Location, ObjectPrefix, Objects, ObjectsError, SigningKey,
};

use crate::pieces;
use crate::store::{SECRET, Store, key, read, session};

async fn reopened(store: &Store) -> Objects {
    let location = Location::Directory(store.place.clone());
    let access = Access::with(SigningKey::new(&SECRET));
    Objects::open(&location, &access).await.unwrap()
}

#[tokio::test]
async fn the_directory_is_its_owners_alone() {
    let store = Store::files().await;
    store
        .objects
        .put_stream(&key("a/b"), pieces(1), 1)
        .await
        .unwrap();
    let mode = |path: &str| {
        let found = fs::metadata(store.place.join(path)).unwrap();
        found.permissions().mode() & 0o7777
    };
    let object = format!("workspace/{}/a/b", session(1));
    assert_eq!(
        (mode(""), mode("workspace"), mode(&object)),
        (0o700, 0o700, 0o600)
    );
}

#[tokio::test]
async fn no_planted_link_leads_out() {
    let store = Store::files().await;
    store
        .objects
        .put_stream(&key("dir/file"), pieces(1), 1)
        .await
        .unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let workspace = store.place.join("workspace").join(session(1).as_str());
    symlink(outside.path().join("secret"), workspace.join("link")).unwrap();
    symlink(outside.path(), workspace.join("door")).unwrap();
    symlink("dir", workspace.join("inner")).unwrap();

    for path in ["link", "door/secret", "inner/file"] {
        let got = store.objects.get(&key(path), ByteRange::All).await;
        assert!(
            matches!(got, Err(ObjectsError::NotFound { .. })),
            "{path}: {got:?}"
        );
        store.objects.delete(&key("door/secret")).await.unwrap();
    }
    let put = store
        .objects
        .put_stream(&key("door/new"), pieces(1), 1)
        .await;
    assert!(matches!(put, Err(ObjectsError::InTheWay { .. })), "{put:?}");
    store
        .objects
        .put_stream(&key("link"), pieces(3), 3)
        .await
        .unwrap();
    let listed = store.objects.list(&ObjectPrefix::session(session(1)));
    let listed: Vec<_> = listed.map_ok(|info| info.key).try_collect().await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.contains(&key("link")) && listed.contains(&key("dir/file")));

    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_name_is_an_object_or_has_objects_below_it() {
    let store = Store::files().await;
    store
        .objects
        .put_stream(&key("a"), pieces(1), 1)
        .await
        .unwrap();
    let below = store.objects.put_stream(&key("a/b"), pieces(1), 1).await;
    assert!(
        matches!(below, Err(ObjectsError::InTheWay { .. })),
        "{below:?}"
    );
    store
        .objects
        .put_stream(&key("c/d"), pieces(1), 1)
        .await
        .unwrap();
    let above = store.objects.put_stream(&key("c"), pieces(1), 1).await;
    assert!(
        matches!(above, Err(ObjectsError::InTheWay { .. })),
        "{above:?}"
    );
    store.nothing_is_unfinished();
    store.objects.delete(&key("a")).await.unwrap();
    store
        .objects
        .put_stream(&key("a/b"), pieces(1), 1)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_new_start_removes_what_dead_writers_left_and_only_that() {
    let store = Store::files().await;
    let incoming = store.place.join("incoming");
    fs::write(incoming.join("1-0"), "left").unwrap();
    let living = fs::File::create(incoming.join("1-1")).unwrap();
    flock(&living, FlockOperation::LockExclusive).unwrap();
    reopened(&store).await;
    assert!(!incoming.join("1-0").exists());
    assert!(incoming.join("1-1").exists());
}

#[tokio::test]
async fn directories_go_with_their_last_object() {
    let store = Store::files().await;
    store
        .objects
        .put_stream(&key("a/b/c"), pieces(1), 1)
        .await
        .unwrap();
    store
        .objects
        .put_stream(&key("a/d"), pieces(1), 1)
        .await
        .unwrap();
    let workspace = store.place.join("workspace").join(session(1).as_str());
    store.objects.delete(&key("a/b/c")).await.unwrap();
    assert!(!workspace.join("a/b").exists() && workspace.join("a").exists());
    store
        .objects
        .delete_prefix(&ObjectPrefix::session(session(1)))
        .await
        .unwrap();
    assert!(!workspace.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn puts_and_deletes_in_one_directory_do_not_disturb_each_other() {
    let store = Store::files().await;
    let turns = stream::iter(0..400).map(|number| {
        let objects = store.objects.clone();
        tokio::spawn(async move {
            let key = key(&format!("deep/er/{}", number % 4));
            objects.put_stream(&key, pieces(1), 1).await?;
            objects.delete(&key).await
        })
    });
    let outcomes: Vec<_> = turns.buffer_unordered(16).collect().await;
    outcomes
        .into_iter()
        .for_each(|outcome| outcome.unwrap().unwrap());
    store.nothing_is_unfinished();
    store
        .objects
        .put_stream(&key("deep/er/0"), pieces(9), 9)
        .await
        .unwrap();
    assert_eq!(
        read(&store.objects, &key("deep/er/0"), ByteRange::All)
            .await
            .unwrap()
            .len(),
        9
    );
}

#[tokio::test]
async fn a_directory_that_was_replaced_is_noticed() {
    let store = Store::files().await;
    store.objects.ping().await.unwrap();
    fs::rename(&store.place, store.place.with_extension("old")).unwrap();
    fs::create_dir(&store.place).unwrap();
    let error = store.objects.ping().await.unwrap_err();
    assert!(
        error.to_string().contains(store.place.to_str().unwrap()),
        "{error}"
    );
}
