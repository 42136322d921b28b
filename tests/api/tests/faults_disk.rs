//! A disk that is full: that is told, and everything goes on when there is room.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;
use sandbox_api_tests::load::A_FEW_SECONDS;
use sandbox_api_tests::{Options, Server, Storage};
use sandbox_tests::{finish, unmount};
use serde_json::json;

/// A small disk where a server has its data.
struct Disk<'d>(&'d Path);

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        unmount(self.0);
    }
}

#[test]
fn a_full_disk_is_told_and_everything_goes_on_when_there_is_room() {
    let mut server = Options::on(Storage::SqliteAndFiles).start();
    server.stop();
    let data = server.data();
    let mounted = finish(
        Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=48m,mode=0755", "tmpfs"])
            .arg(&data),
    );
    assert_eq!(mounted.code(), 0, "{mounted:?}");
    let disk = Disk(&data);
    server.start();
    let session = server.session();
    server.upload(&session, "before", b"before").json(200);
    let code = "echo > begun; until [ -e go ]; do sleep 0.05; done; echo 'the result'";
    let slow = server.submit(
        &session,
        json!({ "language": "shell", "code": code, "timeout": 300 }),
    );
    server.until_file(&session, "begun");
    server.until(&slow, "running");
    // Not an empty one: it needs no room.
    server.upload(&session, "go", b"").json(200);
    let filler = data.join("filler");
    fill(&filler);

    let begin = Instant::now();
    let mut told = Vec::new();
    told.push(server.post(
        "/sessions",
        &json!({ "template_id": "python-basic", "pool": "never" }),
    ));
    told.push(server.upload(&session, "more", &[7; 1 << 16]));
    let execute = format!("/sessions/{session}/execute?wait=true");
    told.push(server.post(
        &execute,
        &json!({ "language": "shell", "code": "head -c 1M /dev/zero > more" }),
    ));
    assert!(begin.elapsed() < 3 * A_FEW_SECONDS);
    for answer in told {
        // Code is told by its own system call, if it came that far.
        let is_told_inside = answer.status == 200 && answer.text().contains("No space left");
        assert!(
            is_told_inside || answer.status == 503,
            "{}: {}",
            answer.status,
            answer.text()
        );
        let text = answer.text().to_lowercase();
        let words = ["full", "no space", "no room"];
        assert!(words.iter().any(|word| text.contains(word)), "{text}");
    }
    // What needs no room is answered.
    assert_eq!(
        server.get(&format!("/sessions/{session}")).json(200)["status"],
        "running"
    );

    fs::remove_file(&filler).unwrap();
    server.until(&slow, "completed");
    assert_eq!(
        server.get(&format!("/executions/{slow}/result")).json(200)["stdout"],
        "the result\n"
    );
    assert_eq!(
        server
            .get(&format!("/sessions/{session}/files/before"))
            .expect(200)
            .text(),
        "before"
    );
    server
        .get(&format!("/sessions/{session}/files/more"))
        .error(404, "Sandbox.FileNotFound");
    server.upload(&session, "more", &[7; 1 << 16]).json(200);
    assert_eq!(server.shell(&session, "wc -c < more"), "65536");
    server.session();
    // It is all readable by the next life, too.
    end(&mut server);
    server.start();
    assert_eq!(server.shell(&session, "wc -c < more"), "65536");
    end(&mut server);
    drop(disk);
}

/// Ends it in order. Everybody on the machine sees its disk, so nobody is one of its processes for that.
fn end(server: &mut Server) {
    server.signal(Signal::TERM);
    let status = server.wait();
    assert!(status.success(), "{status}: {}", server.log());
}

/// Fills the disk that a file is on with it.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).unwrap();
    for size in [1 << 20, 4096] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
    file.sync_all().unwrap();
}
