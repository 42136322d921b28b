//! What ended sessions leave: it is kept in the object store, for as long as is promised.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Answer, Call, Options, Server, Storage, eventually};
use sandbox_test_servers::{ContainerCredentials, Database, S3};
use serde_json::json;

/// Follows a link to an object store on this machine.
fn follow(link: &str) -> Answer {
    let rest = link.strip_prefix("http://").unwrap();
    let (host, _) = rest.split_once('/').unwrap();
    let call = Call::new(host.parse().unwrap(), "GET", &rest[host.len()..]);
    call.send()
}

/// A server on this database and in this bucket.
fn start(node: &str, database: &str, s3: &S3, bucket: &str) -> Server {
    let objects = format!("s3:{bucket}");
    let arguments = [
        "--database",
        database,
        "--objects",
        &objects,
        "--node-id",
        node,
    ];
    Options::on(Storage::SqliteAndFiles)
        .with(&arguments)
        .env("S3_ENDPOINT", s3.url())
        .env("AWS_ACCESS_KEY_ID", s3.access_key())
        .env("AWS_SECRET_ACCESS_KEY", s3.secret_key())
        .start()
}

/// Waits until a file of a session is in the bucket. It is copied beside requests.
fn until_kept(s3: &S3, bucket: &str, session: &str, file: &str) {
    let stored = format!("data/{bucket}/workspace/{session}/{file}");
    let stored = s3.directory().join(stored);
    eventually("it is kept", || stored.exists().then_some(()));
}

#[test]
fn files_of_ended_sessions_are_had_though_their_node_is_away() {
    let (database, s3) = (Database::postgres(), S3::shared());
    let (url, bucket) = (database.fresh_database(), s3.fresh_bucket());
    let start = |node: &str| start(node, &url, s3, &bucket);
    let (mut one, other) = (start("one"), start("other"));
    let sessions = [(); 2].map(|()| {
        let session = one.session();
        one.shell(
            &session,
            "mkdir -p a/b; echo small > a/b/small; ln -s small a/link",
        );
        one.delete(&format!("/sessions/{session}")).json(200);
        // One after the other: when the second is there, all of the first was.
        until_kept(s3, &bucket, &session, "a/b/small");
        session
    });
    let [session, _] = sessions;
    let kept = |server: &Server| server.get(&format!("/sessions/{session}/files/a/b/small"));
    one.stop();
    let answer = kept(&other);
    assert_eq!(answer.status, 307, "{}", answer.text());
    assert_eq!(follow(answer.header("location").unwrap()).text(), "small\n");
    let missing = other.get(&format!("/sessions/{session}/files/a/missing"));
    missing.error(404, "Sandbox.FileNotFound");
    // Nothing is made up: what was not kept is the node's to tell.
    other
        .get(&format!("/sessions/{session}/files"))
        .error(503, "Sandbox.Unavailable");
}

#[test]
fn files_that_a_server_could_not_copy_are_copied_by_the_next() {
    let (database, mut s3) = (Database::postgres(), S3::start());
    let (url, bucket) = (database.fresh_database(), s3.fresh_bucket());
    let mut one = start("one", &url, &s3, &bucket);
    let other = start("other", &url, &s3, &bucket);
    let session = one.session();
    one.shell(&session, "echo small > small");
    s3.kill();
    one.delete(&format!("/sessions/{session}")).json(200);
    one.stop();
    s3.restart();
    // Nobody can look whether it is there, so nobody says that it is not.
    eventually("the objects are there again", || {
        let answer = other.get(&format!("/sessions/{session}/files/small"));
        answer.error(503, "Sandbox.Unavailable");
        let is_due = other.log().contains("its files were not copied yet");
        is_due.then_some(())
    });
    one.start();
    until_kept(&s3, &bucket, &session, "small");
}

#[test]
fn a_container_keeps_objects_by_its_role() {
    let s3 = S3::shared();
    let (bucket, container) = (s3.fresh_bucket(), ContainerCredentials::of(s3));
    let objects = format!("s3:{bucket}");
    let token = container.token_file();
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--objects", &objects, "--s3-endpoint", &s3.url()])
        .env("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url())
        .env(
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            token.to_str().unwrap(),
        )
        // Where nobody is, and what is not for us: neither goes over what was said, nor beside it.
        .env("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
        .env("AWS_SKIP_SIGNATURE", "true")
        .start();
    let session = server.session();
    server.shell(&session, "echo small > file");
    server.delete(&format!("/sessions/{session}")).json(200);
    let stored = s3
        .directory()
        .join(format!("data/{bucket}/workspace/{session}/file"));
    eventually("it is kept", || stored.exists().then_some(()));
}

#[test]
fn what_was_kept_is_removed_when_its_time_is_over() {
    let options = Options::on(Storage::SqliteAndFiles);
    let server = options
        .with(&["--retention", "2s", "--reap-interval", "1s"])
        .start();
    let session = server.session();
    server.shell(&session, "head -c 11000000 /dev/zero > large");
    let path = format!("/sessions/{session}/files/large");
    server.get(&path).expect(307);
    let objects = server.data().join("objects");
    let holds = || {
        let found = std::process::Command::new("find")
            .arg(&objects)
            .args(["-type", "f"])
            .output();
        String::from_utf8(found.unwrap().stdout)
            .unwrap()
            .contains(&session)
    };
    assert!(holds());
    server.delete(&format!("/sessions/{session}")).json(200);
    let gone = eventually("it is removed", || {
        let answer = server.get(&path);
        (answer.status == 409).then_some(answer)
    });
    gone.error(409, "Sandbox.StateConflict");
    eventually("its objects are removed", || (!holds()).then_some(()));
    assert_eq!(
        server.get(&format!("/sessions/{session}")).json(200)["status"],
        json!("terminated")
    );
}
