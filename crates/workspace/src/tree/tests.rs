use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use sandbox_model::EntryKind;

use super::*;

fn path(text: &str) -> RelPath {
    RelPath::new(text.as_bytes()).unwrap()
}

fn tree() -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

#[test]
fn a_symlink_on_the_way_leads_nowhere() {
    let (dir, tree) = tree();
    symlink("/etc", dir.path().join("link")).unwrap();
    assert_eq!(tree.stat(&path("link/passwd")).unwrap(), None);
    assert!(tree.open(&path("link/passwd")).is_err());
    assert!(tree.dir(&path("link")).is_err());
    assert_eq!(
        tree.stat(&path("link")).unwrap().unwrap().entry.kind,
        EntryKind::Symlink
    );
    assert_eq!(tree.read_link(&path("link")).unwrap(), b"/etc");
}

#[test]
fn step_by_step_is_as_strict_as_at_once() {
    let (dir, tree) = tree();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    symlink("b", dir.path().join("a/link")).unwrap();
    assert!(tree.walk(&path("a/b")).is_ok());
    assert!(tree.walk(&path("a/link")).is_err());
}

#[test]
fn what_is_below_a_file_is_not_there() {
    let (dir, tree) = tree();
    fs::write(dir.path().join("file"), "x").unwrap();
    assert_eq!(tree.stat(&path("file/below")).unwrap(), None);
    assert_eq!(tree.stat(&path("absent/below")).unwrap(), None);
}

#[test]
fn a_fifo_is_not_opened() {
    let (_dir, tree) = tree();
    tree.root_dir()
        .unwrap()
        .make_node(b"pipe", EntryKind::Fifo, 0)
        .unwrap();
    let error = tree.open(&path("pipe")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn attributes_are_read_without_the_overlays_marks() {
    let (dir, tree) = tree();
    fs::write(dir.path().join("file"), "x").unwrap();
    let root = tree.root_dir().unwrap();
    root.set_xattr(b"file", b"user.comment", b"kept").unwrap();
    root.set_xattr(b"file", b"user.overlay.opaque", b"y")
        .unwrap();
    let found = tree.xattrs(&path("file")).unwrap();
    assert_eq!(found.get(&b"user.comment"[..]).unwrap(), b"kept");
    assert!(!found.keys().any(|name| is_overlay_mark(name)));
    assert_eq!(
        root.xattr(b"file", "user.overlay.opaque").unwrap().unwrap(),
        b"y"
    );
    assert_eq!(root.xattr(b"file", "user.absent").unwrap(), None);
}

#[test]
fn removing_does_not_follow_symlinks() {
    let (dir, tree) = tree();
    fs::create_dir(dir.path().join("precious")).unwrap();
    fs::write(dir.path().join("precious/file"), "x").unwrap();
    fs::create_dir(dir.path().join("doomed")).unwrap();
    symlink("../precious", dir.path().join("doomed/link")).unwrap();
    tree.root_dir().unwrap().remove_all(b"doomed").unwrap();
    assert!(!dir.path().join("doomed").exists());
    assert!(dir.path().join("precious/file").exists());
}

#[test]
fn a_tree_deeper_than_the_descriptors_is_removed() {
    let (_dir, tree) = tree();
    let root = tree.root_dir().unwrap();
    let mut deep = root.make_dir(b"d").unwrap();
    for _ in 0..1500 {
        deep.create_file(b"f").unwrap();
        deep = deep.make_dir(b"d").unwrap();
    }
    root.remove_all(b"d").unwrap();
    assert_eq!(root.stat(b"d").unwrap(), None);
}

#[test]
fn nothing_to_remove_is_fine() {
    let (_dir, tree) = tree();
    tree.root_dir().unwrap().remove_all(b"absent").unwrap();
}

#[test]
fn directories_that_forbid_it_are_removed_all_the_same() {
    let (dir, tree) = tree();
    for (name, mode) in [("none", 0o000), ("fixed", 0o500), ("unsearchable", 0o600)] {
        let below = dir.path().join("top").join(name);
        fs::create_dir_all(below.join("sub")).unwrap();
        fs::write(below.join("sub/file"), "x").unwrap();
        fs::set_permissions(&below, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(dir.path().join("top"), fs::Permissions::from_mode(0o500)).unwrap();
    tree.root_dir().unwrap().remove_all(b"top").unwrap();
    assert!(!dir.path().join("top").exists());
}

#[test]
fn exchange_swaps_and_no_replace_refuses() {
    let (dir, tree) = tree();
    fs::write(dir.path().join("a"), "a").unwrap();
    fs::write(dir.path().join("b"), "b").unwrap();
    let root = tree.root_dir().unwrap();
    let refused = root.rename(b"a", &root, b"b", Replace::No).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    root.rename(b"a", &root, b"b", Replace::Exchange).unwrap();
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"b");
}
