//! Each server answers, keeps its data when it is killed, and leaves nothing.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use sandbox_test_servers::{Database, S3};

/// Processes that were started for `directory`, or run in it.
fn processes_of(directory: &Path) -> Vec<Pid> {
    let text = directory.to_str().expect("a plain path");
    let concerns = |process: &Path| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let place = fs::read_link(process.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(text) || place.starts_with(directory)
    };
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(|entry| concerns(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// Waits for every process of `directory` to end, and looks whether the directory is gone.
fn nothing_stays(directory: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Some(pid) = processes_of(directory).first() {
        assert!(Instant::now() < deadline, "{pid:?} stays");
        if let Ok(process) = pidfd_open(*pid, PidfdFlags::empty()) {
            let mut watched = [rustix::event::PollFd::new(
                &process,
                rustix::event::PollFlags::IN,
            )];
            let second = Duration::from_secs(1).try_into().expect("a second fits");
            let _ = rustix::event::poll(&mut watched, Some(&second));
        }
    }
    assert!(!directory.exists(), "{} stays", directory.display());
}

#[test]
fn postgres_keeps_what_was_committed_when_it_is_killed_and_leaves_nothing() {
    let mut server = Database::postgres();
    let directory = server.directory().to_owned();
    let url = server.url();
    server.query("postgres", "CREATE TABLE kept (n int)");
    server.query("postgres", "INSERT INTO kept VALUES (7)");
    server.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).is_err());
    server.restart();
    assert_eq!(server.url(), url);
    assert_eq!(server.query("postgres", "SELECT n FROM kept"), "7");
    server.stop();
    server.restart();
    assert_eq!(server.query("postgres", "SELECT n FROM kept"), "7");
    drop(server);
    nothing_stays(&directory);
}

#[test]
fn mariadb_keeps_what_was_committed_when_it_is_killed_and_leaves_nothing() {
    let mut server = Database::mariadb();
    let directory = server.directory().to_owned();
    let url = server.fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    server.query(&database, "CREATE TABLE kept (n int) ENGINE=InnoDB");
    server.query(&database, "INSERT INTO kept VALUES (7)");
    server.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).is_err());
    server.restart();
    assert_eq!(server.query(&database, "SELECT n FROM kept"), "7");
    server.stop();
    server.restart();
    assert_eq!(server.query(&database, "SELECT n FROM kept"), "7");
    drop(server);
    nothing_stays(&directory);
}

#[test]
fn s3_keeps_its_buckets_when_it_is_killed_and_leaves_nothing() {
    let mut server = S3::start();
    let directory = server.directory().to_owned();
    let (url, bucket) = (server.url(), server.fresh_bucket());
    server.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).is_err());
    server.restart();
    assert_eq!(server.url(), url);
    assert!(directory.join("data").join(bucket).is_dir());
    server.stop();
    server.restart();
    drop(server);
    nothing_stays(&directory);
}

#[test]
fn each_fresh_database_is_empty() {
    let server = Database::postgres();
    let (one, other) = (server.fresh_database(), server.fresh_database());
    assert_ne!(one, other);
    server.query(one.rsplit('/').next().unwrap(), "CREATE TABLE mine ()");
    let tables = "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'";
    assert_eq!(server.query(other.rsplit('/').next().unwrap(), tables), "0");
}

#[test]
fn two_servers_at_once_do_not_meet() {
    let (one, other) = (S3::start(), S3::start());
    assert_ne!(one.port(), other.port());
    assert_ne!(one.secret_key(), other.secret_key());
    assert_ne!(one.directory(), other.directory());
}

#[test]
#[should_panic(expected = "does not start again")]
fn a_port_that_another_took_is_told() {
    let mut server = S3::start();
    server.kill();
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    server.restart();
}

/// The other half of the test below: what it kills.
#[test]
#[ignore = "started by `a_killed_test_leaves_nothing`"]
fn a_test_that_hangs() {
    let (postgres, mariadb) = (Database::postgres(), Database::mariadb());
    let directories = [
        postgres.directory(),
        mariadb.directory(),
        S3::shared().directory(),
    ];
    for directory in directories {
        println!("at {}", directory.display());
    }
    println!("ready");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_test_leaves_nothing() {
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_test_that_hangs", "--nocapture"])
        .process_group(0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(test.stdout.take().unwrap());
    let directories: Vec<PathBuf> = said
        .lines()
        .map(|line| line.expect("the test speaks"))
        .take_while(|line| line != "ready")
        .filter_map(|line| line.strip_prefix("at ").map(PathBuf::from))
        .collect();
    assert_eq!(directories.len(), 3);
    for directory in &directories {
        assert!(!processes_of(directory).is_empty());
    }
    // As a runner does that has lost its patience.
    kill_process_group(Pid::from_child(&test), Signal::KILL).unwrap();
    test.wait().unwrap();
    directories
        .iter()
        .for_each(|directory| nothing_stays(directory));
}

/// The other half of the test below: what it kills.
#[test]
#[ignore = "started by `a_test_killed_while_data_is_made_leaves_nothing`"]
fn a_test_that_starts_a_server() {
    Database::mariadb();
}

#[test]
fn a_test_killed_while_data_is_made_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, place.path(), inotify::WatchFlags::CREATE).unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_test_that_starts_a_server"])
        .env("TMPDIR", place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let events = &mut [std::mem::MaybeUninit::uninit(); 512];
    inotify::Reader::new(&watch, events).next().unwrap();
    let entry = fs::read_dir(place.path()).unwrap().next().unwrap();
    let directory = entry.unwrap().path();
    // It takes a second or two; once there is a log it is under way.
    inotify::add_watch(&watch, &directory, inotify::WatchFlags::CREATE).unwrap();
    while !directory.join("log").exists() {
        inotify::Reader::new(&watch, events).next().unwrap();
    }
    test.kill().unwrap();
    test.wait().unwrap();
    nothing_stays(&directory);
}
