//! What sandboxes keep besides the changes: the home inside, and what undoes promotes. It is shown,
//! rolled back, and deleted when it belongs to nothing.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::symlink;

use sandbox_tests::{BOX, Fixture, Snapshot, User, as_both, finish};

fn boxed(user: User) -> Fixture {
    let fixture = Fixture::new(user);
    fixture.write("source/file", "source\n");
    fixture.write("home/.cache/kept", "cached");
    fixture.create(&[]);
    fixture
}

const WRITE: &str = "echo $TEXT > file; echo $TEXT > ~/.profile; echo $TEXT > ~/.cache/kept";
const READ: &str = "cat file ~/.profile ~/.cache/kept; ls -A ~/.cache";

fn write(fixture: &Fixture, text: &str) {
    fixture.run(&format!("TEXT={text}; {WRITE}")).succeeded();
}

as_both! {
    fn rollback_and_fork_cover_the_home(user) {
        let fixture = boxed(user);
        write(&fixture, "one");
        let then = fixture.run(READ).succeeded().out();
        fixture.ok(["snapshot", BOX, "good"]);
        write(&fixture, "two");
        fixture.run("rm ~/.cache/kept; touch ~/.cache/more").succeeded();
        let outcome = fixture.ok(["rollback", BOX, "good", "--yes"]);
        assert!(outcome.err().contains("and its home"), "{outcome}");
        assert_eq!(fixture.run(READ).succeeded().out(), then);
        fixture.ok(["fork", BOX, "other"]);
        assert_eq!(fixture.ok(["run", "other", "--", "sh", "-c", READ]).out(), then);
        let kept = fs::read_to_string(fixture.home().join(".cache/kept")).unwrap();
        assert_eq!(kept, "cached", "the host's own home was touched");
    }

    fn the_home_alone_can_be_reset(user) {
        let fixture = boxed(user);
        fixture.ok(["snapshot", BOX, "good"]);
        write(&fixture, "one");
        fixture.ok(["snapshot", BOX, "later"]);
        fixture.sandbox(["rollback", BOX, "--home"]).failed(1);
        fixture.sandbox(["rollback", BOX, "--yes"]).failed(1);
        fixture.ok(["rollback", BOX, "--home", "--yes"]);
        let seen = fixture.run("cat file ~/.cache/kept; ls -A ~").succeeded().out();
        assert!(seen.starts_with("one\ncached") && !seen.contains(".profile"), "{seen}");
        fixture.ok(["rollback", BOX, "later", "--home", "--yes"]);
        assert_eq!(fixture.run("cat ~/.profile").succeeded().out(), "one\n");
        fixture.ok(["rollback", BOX, "good", "--home", "--yes"]);
        assert_eq!(fixture.run("cat ~/.profile").code(), 1);
        assert_eq!(fixture.run("cat file").succeeded().out(), "one\n");
    }

    fn a_snapshot_without_a_home_still_rolls_back(user) {
        let fixture = boxed(user);
        write(&fixture, "one");
        fixture.ok(["snapshot", BOX, "old"]);
        // As versions before made it.
        fs::remove_dir_all(fixture.root().join(BOX).join("snapshots/old/home")).unwrap();
        write(&fixture, "two");
        let listed = fixture.ok(["snapshot", BOX, "--list", "--json"]).out();
        assert!(listed.contains("\"home\": false"), "{listed}");
        let outcome = fixture.ok(["rollback", BOX, "old", "--yes"]);
        assert!(outcome.err().contains("does not hold the home"), "{outcome}");
        let seen = fixture.run("cat file ~/.profile").succeeded().out();
        assert_eq!(seen, "one\ntwo\n");
        let outcome = fixture.sandbox(["rollback", BOX, "old", "--home", "--yes"]).failed(1);
        assert!(outcome.err().contains("does not hold its home"), "{outcome}");
    }

    /// What is inside the home layer was written by somebody else: a link in it leads nowhere.
    fn links_in_the_home_are_copied_not_followed(user) {
        let fixture = boxed(user);
        let host = fixture.write("host/precious", "precious");
        let before = Snapshot::of(&fixture.host());
        let script = format!("ln -s {0} ~/way; ln -s {0} ~/.cache/way; ln -s / ~/root", fixture.host().display());
        fixture.run(&script).succeeded();
        fixture.ok(["snapshot", BOX, "links"]);
        let home = fixture.root().join(BOX).join("snapshots/links/home/root");
        assert!(fs::symlink_metadata(home.join("way")).unwrap().is_symlink());
        fixture.ok(["rollback", BOX, "links", "--yes"]);
        fixture.ok(["rollback", BOX, "--home", "--yes"]);
        // The layer's own directories, swapped for links, too.
        let layer = fixture.root().join(BOX).join("home");
        fs::remove_dir_all(&layer).unwrap();
        fs::create_dir(&layer).unwrap();
        symlink(fixture.host(), layer.join("root")).unwrap();
        fixture.user.own(&layer);
        fixture.ok(["info", BOX]);
        fixture.ok(["snapshot", BOX, "swapped"]);
        let copy = fixture.root().join(BOX).join("snapshots/swapped/home/root");
        assert!(fs::symlink_metadata(copy).unwrap().is_symlink());
        fixture.ok(["rollback", BOX, "--home", "--yes"]);
        Snapshot::of(&fixture.host()).must_equal(&before, "a link was followed");
        assert_eq!(fs::read_to_string(host).unwrap(), "precious");
    }

    fn info_shows_the_home_and_what_undo_keeps(user) {
        let fixture = boxed(user);
        write(&fixture, "one");
        fixture.run("head -c 1000000 /dev/zero | tr '\\0' x > ~/large").succeeded();
        fixture.ok(["promote", BOX, "--yes"]);
        let info = fixture.ok(["info", BOX]).out();
        assert!(info.contains("1 promote of the source kept"), "{info}");
        assert!(info.contains("at most 20, for 30 days"), "{info}");
        assert!(info.contains("files written inside"), "{info}");
        let info = fixture.ok(["info", BOX, "--json"]).out();
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        assert!(info["home"]["size"].as_u64().unwrap() >= 1_000_000, "{info}");
        assert!(info["home"]["files"].as_u64().unwrap() >= 3, "{info}");
        assert_eq!(info["undo"]["promotes"], 1);
        assert_eq!(info["undo"]["keep_promotes"], 20);
        assert_eq!(info["undo"]["keep_days"], 30);
    }

    fn gc_deletes_what_is_kept_for_a_source_that_is_gone(user) {
        let fixture = boxed(user);
        let large = "x".repeat(1_000_000);
        fixture.write("source/large", &large);
        fixture.run("echo small > large").succeeded();
        fixture.ok(["promote", BOX, "--yes"]);
        let kept = fixture.ok(["gc", "--json"]).out();
        assert!(kept.contains("kept to undo 1 promote") && kept.contains("at most 20, for 30 days"), "{kept}");
        assert!(kept.contains("\"deleted\": false"), "{kept}");
        fs::remove_dir_all(fixture.source()).unwrap();
        // From elsewhere: the usual working directory is gone.
        let ok = |words: &[&str]| finish(fixture.command(words).current_dir("/")).succeeded();
        let undo = fixture.root().join(".undo");
        let count = || fs::read_dir(&undo).unwrap().count();
        ok(&["gc"]);
        assert_eq!(count(), 1, "the sandbox still names the source, which may come back");
        ok(&["discard", BOX, "-f"]);
        let found = ok(&["gc", "--dry-run", "--json"]).out();
        assert!(found.contains("a source that is gone"), "{found}");
        assert_eq!(count(), 1, "a dry run deletes nothing");
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let orphaned = found.as_array().unwrap().iter().find(|found| {
            found["what"].as_str().unwrap().contains("a source that is gone")
        });
        assert!(orphaned.unwrap()["size"].as_u64().unwrap() >= 1_000_000, "{found}");
        ok(&["gc"]);
        assert_eq!(count(), 0);
    }
}
