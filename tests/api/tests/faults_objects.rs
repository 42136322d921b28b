//! An object store that is killed is missed only by who needs it, and has everything that it should when it is back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use sandbox_api_tests::load::{A_FEW_SECONDS, Crowd, Load, under_load};
use sandbox_api_tests::{Answer, Call, Options, Server, Storage, eventually};
use sandbox_test_servers::S3;
use serde_json::json;

/// How many have code run meanwhile. Sessions are made by those who end them.
const CLIENTS: usize = 8;

/// How many read, each a large file of its own.
const READERS: usize = 3;

/// How many end sessions at once, and how many each of them does.
const ENDERS: usize = 4;
const EACH: usize = 3;

/// Large enough to be handed out by a link.
const LARGE: usize = 12 << 20;

/// Large enough to be put in parts.
const LONG: usize = 6 << 20;

/// Where the store is in its course: it is there, it is away, it is there again.
#[derive(Default)]
struct Course(AtomicUsize);

impl Course {
    const AWAY: usize = 1;

    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn go_on(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A line again and again, up to that length: as `yes LINE | head -c LENGTH` writes it.
fn lines(line: &str, length: usize) -> Vec<u8> {
    let line = format!("{line}\n");
    line.bytes().cycle().take(length).collect()
}

/// Somebody who reads a large file again and again, by the links that are handed out.
struct Reader {
    path: String,
    content: Vec<u8>,
    read: AtomicUsize,
    missed: AtomicUsize,
}

impl Reader {
    fn new(server: &Server, number: usize) -> Reader {
        let (session, line) = (server.session(), format!("large-{number}"));
        server.shell(&session, &format!("yes {line} | head -c {LARGE} > .large"));
        Reader {
            path: format!("/sessions/{session}/files/.large"),
            content: lines(&line, LARGE),
            read: AtomicUsize::new(0),
            missed: AtomicUsize::new(0),
        }
    }

    /// Reads until it is over. It is told, or breaks off, only while the store is away.
    fn go_on(&self, server: &Server, load: &Load, course: &Course) {
        while !load.is_over() {
            let (before, begin) = (course.now(), Instant::now());
            let answer = server.get(&self.path);
            let is_read = match answer.header("location") {
                Some(link) => self.is_whole_at(link),
                None => {
                    must_name_the_store(answer, begin);
                    false
                }
            };
            let was_away = before == Course::AWAY || before != course.now();
            assert!(is_read || was_away, "the store was there all the time");
            let count = if is_read { &self.read } else { &self.missed };
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Follows a link. What is answered as whole must be the file.
    fn is_whole_at(&self, link: &str) -> bool {
        let rest = link.strip_prefix("http://").unwrap();
        let (host, _) = rest.split_once('/').unwrap();
        let call = Call::new(host.parse().unwrap(), "GET", &rest[host.len()..]);
        match call.try_send() {
            Ok(found) if found.status == 200 => {
                assert!(found.body == self.content, "another file is at {link}");
                true
            }
            _ => false,
        }
    }
}

/// Waits until every reader has counted one more.
fn until_each(what: &str, readers: &[Reader], count: impl Fn(&Reader) -> &AtomicUsize) {
    for reader in readers {
        let now = || count(reader).load(Ordering::SeqCst);
        let before = now();
        eventually(what, || (now() > before).then_some(()));
    }
}

/// Who needs the store is told so, soon.
#[track_caller]
fn must_name_the_store(answer: Answer, begin: Instant) {
    assert!(begin.elapsed() < A_FEW_SECONDS, "{:?}", begin.elapsed());
    let error = answer.error(503, "Sandbox.Unavailable");
    let told = error["description"].as_str().unwrap();
    assert!(told.contains("the object store"), "{error}");
}

/// A session that ended: its files are due in the bucket.
struct Left {
    session: String,
    mark: String,
}

impl Left {
    /// Makes a session, has files in it, and ends it. That waits for no store.
    fn behind(server: &Server, mark: String) -> Left {
        let session = server.session();
        let code = format!("mkdir a; printf {mark} > a/short; yes {mark} | head -c {LONG} > long");
        server.shell(&session, &code);
        let begin = Instant::now();
        server.delete(&format!("/sessions/{session}")).json(200);
        assert!(begin.elapsed() < A_FEW_SECONDS, "{:?}", begin.elapsed());
        Left { session, mark }
    }

    /// Its files in the bucket, when all of them are there.
    fn kept(&self, bucket: &Path) -> Option<[PathBuf; 2]> {
        let workspace = bucket.join("workspace").join(&self.session);
        let files = ["a/short", "long"].map(|file| workspace.join(file));
        files.iter().all(|file| file.exists()).then_some(files)
    }

    fn check(&self, bucket: &Path) {
        let Left { session, mark } = self;
        let kept = eventually("its files are kept", || self.kept(bucket));
        let [short, long] = kept.map(|file| fs::read(file).unwrap());
        assert_eq!(String::from_utf8_lossy(&short), *mark);
        assert!(long == lines(mark, LONG), "another file of {session}");
    }
}

/// Ends sessions, several at once.
fn end_sessions(server: &Server, when: &str, left: &Mutex<Vec<Left>>) {
    std::thread::scope(|scope| {
        for ender in 0..ENDERS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let ended = Left::behind(server, format!("{when}-{ender}-{number}"));
                    left.lock().unwrap().push(ended);
                }
            });
        }
    });
}

#[test]
fn an_object_store_that_is_killed_is_missed_only_by_who_needs_it() {
    let mut s3 = S3::start();
    let name = s3.fresh_bucket();
    let bucket = s3.directory().join("data").join(&name);
    let server = Options::on(Storage::SqliteAndFiles)
        .with(&["--objects", &format!("s3:{name}")])
        .env("S3_ENDPOINT", s3.url())
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", s3.access_key())
        .env("AWS_SECRET_ACCESS_KEY", s3.secret_key())
        .start();
    let mut crowd = Crowd::of(&server, CLIENTS, 0);
    let readers: Vec<_> = (0..READERS).map(|it| Reader::new(&server, it)).collect();
    let session = server.session();
    server.shell(&session, "head -c 1K /dev/zero > small");
    let (course, left) = (Course::default(), Mutex::new(Vec::new()));
    let load = under_load(&server, &mut crowd, 50, |load| {
        std::thread::scope(|scope| {
            let (server, course, left) = (&server, &course, &left);
            for reader in &readers {
                scope.spawn(move || reader.go_on(server, load, course));
            }
            let _ending = load.ending();
            until_each("it is read", &readers, |reader| &reader.read);
            scope.spawn(move || end_sessions(server, "before", left));
            eventually("the files of one are kept", || {
                let left = left.lock().unwrap();
                left.iter().find_map(|ended| ended.kept(&bucket))
            });
            course.go_on();
            s3.kill();
            let begin = Instant::now();
            must_name_the_store(server.get(&readers[0].path), begin);
            end_sessions(server, "meanwhile", left);
            until_each("it is missed", &readers, |reader| &reader.missed);
            let small = server.get(&format!("/sessions/{session}/files/small"));
            assert_eq!(small.expect(200).body.len(), 1024);
            let health = server.stranger("GET", "/health").send().json(200);
            assert_eq!(
                (
                    &health["status"],
                    &health["components"]["object_store"]["status"]
                ),
                (&json!("degraded"), &json!("unhealthy"))
            );
            load.until_answered_more(CLIENTS);
            let ending = scope.spawn(move || end_sessions(server, "afterwards", left));
            s3.restart();
            course.go_on();
            until_each("it is read again", &readers, |reader| &reader.read);
            ending.join().unwrap();
        });
    });
    // Nobody else noticed.
    let odd = load.odd();
    assert!(odd.is_empty(), "{odd:?}");
    // What ended while it was away is there, too.
    let left = left.into_inner().unwrap();
    assert_eq!(left.len(), 3 * ENDERS * EACH);
    for ended in &left {
        ended.check(&bucket);
    }
    crowd.check(&server);
}
