//! Opening a database, losing it, and finding it again.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use sandbox_model::Failure;
use sandbox_store::Records;
use sandbox_store::records::{Pool, StoreError};

use crate::databases::{Database, Kind, database};
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    the_clock_is_told_to_the_microsecond,
    what_is_closed_is_unavailable
);

async fn the_clock_is_told_to_the_microsecond(database: Database) {
    let records = open(&database).await;
    records.ping().await.unwrap();
    let mut finer_than_milliseconds = false;
    for _ in 0..20 {
        let before = jiff::Timestamp::now();
        let now = records.now().await.unwrap();
        let after = jiff::Timestamp::now();
        let micros = |time: jiff::Timestamp| time.as_microsecond();
        assert!(
            micros(before) <= micros(now) && now <= after,
            "{before} {now} {after}"
        );
        finer_than_milliseconds |= micros(now) % 1000 != 0;
    }
    assert!(finer_than_milliseconds);
}

async fn what_is_closed_is_unavailable(database: Database) {
    let records = open(&database).await;
    records.close().await;
    let error = records.insert_template(&template()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("the database {} does not answer", records.name())
    );
}

fn no_secrets(error: &StoreError, password: &str) {
    let told = format!("{error} {error:?}");
    assert!(!told.contains(password), "{told}");
}

/// What waits for a database that does not come must not wait long here.
pub fn impatient() -> Pool {
    Pool {
        acquire_timeout: Duration::from_secs(2),
        ..pool()
    }
}

async fn a_server_that_was_killed_is_found_again(kind: Kind) {
    let mut database = database(kind);
    let records = Records::open(&database.url, &impatient()).await.unwrap();
    let kept = template();
    records.insert_template(&kept).await.unwrap();
    // Several connections, all of which are about to be dead.
    let pings: Vec<_> = (0..10)
        .map(|_| {
            let records = records.clone();
            tokio::spawn(async move { records.nodes().await })
        })
        .collect();
    for ping in pings {
        ping.await.unwrap().unwrap();
    }
    database.kill();
    let errors = [
        records.template(&kept.id).await.unwrap_err(),
        records.insert_template(&template()).await.unwrap_err(),
        records.insert_session(&session(&kept)).await.unwrap_err(),
        records.ping().await.unwrap_err(),
        records.now().await.unwrap_err(),
        Records::open(&database.url, &impatient())
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let text = format!("the database {} does not answer", records.name());
        assert_eq!(error.to_string(), text);
        no_secrets(&error, database.password());
    }
    database.restart();
    let found = records.template(&kept.id).await.unwrap();
    assert_eq!(found.unwrap().value, kept);
    records.insert_session(&session(&kept)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_was_killed_is_found_again() {
    a_server_that_was_killed_is_found_again(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mariadb_that_was_killed_is_found_again() {
    a_server_that_was_killed_is_found_again(Kind::MariaDb).await;
}

/// Where nobody listens: the port was somebody's a moment ago.
fn nobodys_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_database_that_is_down_is_told_at_once() {
    for scheme in ["postgres", "mysql"] {
        let port = nobodys_port();
        let url = format!("{scheme}://ada:s3cr3t-of-the-test@127.0.0.1:{port}/records");
        let begun = Instant::now();
        let error = Records::open(&url, &Pool::default()).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{error:?}");
        no_secrets(&error, "s3cr3t-of-the-test");
        let text = format!("the database {scheme}://127.0.0.1:{port}/records does not answer");
        assert_eq!(error.to_string(), text);
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("refused"), "{cause}");
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn a_database_that_says_nothing_is_not_waited_for() {
    // The kernel takes the connection; nobody ever speaks on it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://ada:s3cr3t-of-the-test@127.0.0.1:{port}/records");
        let begun = Instant::now();
        let error = Records::open(&url, &impatient()).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(4), "{error:?}");
        no_secrets(&error, "s3cr3t-of-the-test");
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(cause, "no answer within 2s");
    }
}

#[tokio::test]
async fn a_way_that_must_be_encrypted_is_not_taken_in_the_clear() {
    let database = database(Kind::Postgres);
    let url = format!("{}?sslmode=require", database.url);
    let error = Records::open(&url, &impatient()).await.unwrap_err();
    no_secrets(&error, database.password());
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("TLS"), "{cause}");
}

#[tokio::test]
async fn a_wrong_password_is_not_told() {
    let database = database(Kind::MariaDb);
    let url = database.url.replace(database.password(), "another-s3cr3t");
    let error = Records::open(&url, &impatient()).await.unwrap_err();
    let told = format!("{error} {error:?}");
    assert!(!told.contains("another-s3cr3t"), "{told}");
    assert!(told.contains("Access denied"), "{told}");
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_without_its_password() {
    const PASSWORD: &str = "s3cr3t-of-the-test";
    for url in [
        format!("postgres://ada:{PASSWORD}@host:port/db"),
        format!("mysql://ada:{PASSWORD}@host:port/db"),
        format!("oracle://ada:{PASSWORD}@host/db"),
        format!("postgres:{PASSWORD}"),
        "sqlite:".to_owned(),
        "sqlite:records.db?mode=rwc".to_owned(),
        String::new(),
    ] {
        let pool = Pool {
            acquire_timeout: Duration::from_millis(100),
            ..Pool::default()
        };
        let error = Records::open(&url, &pool).await.unwrap_err();
        no_secrets(&error, PASSWORD);
        assert!(matches!(error, StoreError::BadUrl(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_sqlite_file_is_for_its_owner_only() {
    let database = database(Kind::SqliteFile);
    let records = open(&database).await;
    records.insert_template(&template()).await.unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(database.dir()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        files += 1;
    }
    // The database, what is written ahead, and the memory its readers share.
    assert_eq!(files, 3);
}

#[tokio::test]
async fn a_sqlite_file_in_no_directory_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/absent/records.db", dir.path().display());
    let error = Records::open(&url, &pool()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot open the database file of {url}")
    );
    assert!(!dir.path().join("absent").exists());
}
