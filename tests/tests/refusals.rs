//! What cannot be promoted is named before anything is touched: what belongs to another, and what
//! the source's filesystem does not keep.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

use sandbox_tests::{BOX, Filesystem, Fixture, Snapshot, User, finish};

/// A tree of the ordinary user's in which some things are not his. Copied, they can be changed
/// inside.
fn mixed() -> Fixture {
    let fixture = Fixture::new(User::Tester);
    for file in ["mine", "roots", "grouped", "shut/in", "open/in"] {
        fixture.write(format!("source/{file}"), "before\n");
    }
    let at = |name: &str| fixture.source().join(name);
    for name in ["roots", "shut", "shut/in", "open"] {
        chown(at(name), Some(0), Some(0)).unwrap();
    }
    chown(at("grouped"), None, Some(0)).unwrap();
    fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fixture.create(&["--backend", "copy"]);
    fixture
}

/// Does `work`, and promotes: only `refused` is named, with `reason`, and nothing is applied. What
/// is left then is promoted by name.
#[track_caller]
fn refuses(fixture: &Fixture, work: &str, refused: &str, reason: &str) {
    fixture.run(work).succeeded();
    fixture.run("echo after > mine").succeeded();
    let before = Snapshot::of(&fixture.source());
    let dry = fixture.sandbox(["promote", BOX, "--yes", "--dry-run"]);
    for outcome in [dry, fixture.sandbox(["promote", BOX, "--yes"])] {
        assert_eq!(outcome.code(), 3, "{outcome}");
        let told = outcome.out() + &outcome.err();
        assert!(told.contains(&format!("{refused}: {reason}")), "{told}");
        assert!(told.contains("1 path cannot be promoted"), "{told}");
    }
    Snapshot::of(&fixture.source()).must_equal(&before, "something was applied");
    fixture.ok(["promote", BOX, "--yes", "mine"]);
    let mine = fs::read_to_string(fixture.source().join("mine")).unwrap();
    assert_eq!(mine, "after\n", "the rest can be promoted");
    fixture.ok(["promote", BOX, "--undo", "--yes"]);
}

#[test]
fn a_file_of_another_user_is_not_replaced() {
    let reason = "it belongs to user 0 in the source";
    refuses(&mixed(), "echo mine > roots", "roots", reason);
    refuses(&mixed(), "chmod 600 roots", "roots", reason);
}

#[test]
fn a_file_of_another_group_does_not_change_it() {
    let fixture = mixed();
    let reason = "it belongs to group 0 in the source, which is not yours";
    refuses(&fixture, "echo mine > grouped", "grouped", reason);
    assert_eq!(
        fixture.source().join("grouped").metadata().unwrap().gid(),
        0
    );
}

#[test]
fn a_directory_of_another_user_keeps_its_names() {
    let reason = "its directory belongs to user 0 in the source";
    refuses(&mixed(), "rm shut/in", "shut/in", reason);
    refuses(&mixed(), "echo new > open/new", "open/new", reason);
    refuses(&mixed(), "echo new > open/in", "open/in", reason);
}

#[test]
fn what_belongs_to_another_can_be_deleted_from_a_directory_of_ones_own() {
    let fixture = mixed();
    fixture.run("rm roots grouped").succeeded();
    fixture.ok(["promote", BOX, "--yes"]);
    assert!(!fixture.source().join("roots").exists());
    fixture.ok(["promote", BOX, "--undo", "--yes"]);
    assert_eq!(fixture.source().join("roots").metadata().unwrap().uid(), 0);
}

/// Access control lists go along; who is named in them is the file owner's to say.
#[test]
fn access_control_lists_are_promoted_and_taken_back() {
    let fixture = Fixture::new(User::Root);
    fixture.write("source/listed", "before\n");
    fixture.write("source/plain", "before\n");
    let lists = "getfacl -cpR . | grep -v '^$'";
    fixture.shell("setfacl -m u:daemon:rw listed").succeeded();
    let before = fixture.shell(lists).succeeded().out();
    fixture.create(&[]);
    fixture
        .run(
            "echo a >> listed; setfacl -m u:bin:r plain; mkdir d; setfacl -dm u:daemon:rx d; > d/f",
        )
        .succeeded();
    let inside = fixture.run(lists).succeeded().out();
    fixture.ok(["promote", BOX, "--yes"]);
    assert_eq!(fixture.shell(lists).succeeded().out(), inside);
    assert!(inside.contains("user:bin:r--") && inside.contains("default:user:daemon:r-x"));
    fixture.ok(["promote", BOX, "--undo", "--yes"]);
    assert_eq!(fixture.shell(lists).succeeded().out(), before);
}

#[test]
fn an_access_control_list_that_the_source_cannot_keep_is_named() {
    let mounted = Filesystem::Btrfs.mount(256);
    finish(
        Command::new("mount")
            .args(["-o", "remount,noacl"])
            .arg(mounted.path()),
    )
    .succeeded();
    let fixture = Fixture::new(User::Root);
    fs::remove_dir_all(fixture.source()).unwrap();
    std::os::unix::fs::symlink(mounted.path().join("source"), fixture.source()).unwrap();
    fs::create_dir(mounted.path().join("source")).unwrap();
    fixture
        .shell("echo before > mine; echo before > listed")
        .succeeded();
    fixture.create(&["--backend", "overlay"]);
    let reason = "it has an access control list, which the source's filesystem does not keep";
    refuses(&fixture, "setfacl -m u:daemon:r listed", "listed", reason);
}
