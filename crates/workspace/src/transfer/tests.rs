use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use sandbox_model::{EntryKind, Timestamp};

use super::*;
use crate::progress::{Phase, Silent};
use crate::side::{Side, Xattrs};
use crate::tree::Dir;

fn rel(text: &[u8]) -> RelPath {
    RelPath::new(text).unwrap()
}

/// Everything a copy must keep.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kind: EntryKind,
    mode: u32,
    owner: (u32, u32),
    mtime: Timestamp,
    names: u32,
    rdev: u64,
    contents: Vec<u8>,
    xattrs: Xattrs,
}

fn describe(tree: &Tree) -> BTreeMap<RelPath, Seen> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![RelPath::root()];
    while let Some(path) = pending.pop() {
        let found = tree.stat(&path).unwrap().unwrap();
        let mut contents = Vec::new();
        match found.entry.kind {
            EntryKind::File => drop(
                tree.open(&path)
                    .unwrap()
                    .read_to_end(&mut contents)
                    .unwrap(),
            ),
            EntryKind::Symlink => contents = tree.read_link(&path).unwrap(),
            EntryKind::Directory => {
                pending.extend(tree.list(&path).unwrap().iter().map(|name| path.join(name)));
            }
            _ => {}
        }
        let directory = found.entry.kind == EntryKind::Directory;
        let about = Seen {
            kind: found.entry.kind,
            mode: found.entry.mode,
            owner: (found.entry.uid, found.entry.gid),
            mtime: found.entry.mtime,
            names: if directory { 0 } else { found.nlink },
            rdev: found.entry.rdev,
            contents,
            xattrs: tree.xattrs(&path).unwrap(),
        };
        seen.insert(path, about);
    }
    seen
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A tree with one of everything that a copy could get wrong.
fn menagerie(at: &Path) {
    fs::create_dir_all(at.join("dir/below")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    fs::write(at.join("plain"), "plain").unwrap();
    fs::write(at.join("nothing"), "").unwrap();
    fs::write(at.join(".hidden"), "dot").unwrap();
    fs::write(at.join("large"), vec![7; 300_000]).unwrap();
    fs::write(at.join("dir/below/deep"), "deep").unwrap();
    fs::hard_link(at.join("plain"), at.join("dir/below/second name")).unwrap();
    fs::hard_link(at.join("plain"), at.join("third name")).unwrap();
    symlink("/nonexistent/\u{1b}[2J", at.join("dangling")).unwrap();
    symlink("plain", at.join("link")).unwrap();
    let root = Dir::open(at).unwrap();
    root.create_file(b"odd\n\xff name")
        .unwrap()
        .write_all(b"odd")
        .unwrap();
    root.make_node(b"pipe", EntryKind::Fifo, 0).unwrap();
    root.make_node(b"whiteout", EntryKind::CharDevice, 0)
        .unwrap();
    root.set_xattr(b"plain", b"user.comment", b"hello").unwrap();
    root.set_xattr(b"dir", b"user.overlay.opaque", b"y")
        .unwrap();
    root.set_xattr(b"empty", b"user.big", &[9; 2000]).unwrap();
    // An ACL: rw for the owner, r for user 12345 and the group, mask r.
    let mut rules = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1u16, 6u16, u32::MAX),
        (2, 4, 12345),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        rules.extend(tag.to_le_bytes());
        rules.extend(permissions.to_le_bytes());
        rules.extend(id.to_le_bytes());
    }
    root.set_xattr(b"dir/below/deep", b"system.posix_acl_access", &rules)
        .unwrap();
    root.set_xattr(b"dir", b"system.posix_acl_default", &rules)
        .unwrap();
    fs::write(at.join("dir/after the rule"), "x").unwrap();
    for (name, mode) in [
        ("setuid", 0o4755),
        ("locked", 0o000),
        ("read only", 0o400),
        ("open", 0o666),
    ] {
        fs::write(at.join(name), name).unwrap();
        root.set_xattr(name.as_bytes(), b"user.comment", b"kept")
            .unwrap();
        chmod(&at.join(name), mode);
    }
    for (name, mode) in [
        ("shut", 0o000),
        ("fixed", 0o555),
        ("sticky", 0o1777),
        ("group", 0o2750),
    ] {
        fs::create_dir(at.join(name)).unwrap();
        fs::write(at.join(name).join("inside"), name).unwrap();
        fs::hard_link(at.join("large"), at.join(name).join("large")).unwrap();
        chmod(&at.join(name), mode);
    }
    for (name, seconds) in [
        (&b"plain"[..], -5),
        (b"link", 1),
        (b"dir", 1_000_000_000),
        (b"pipe", 2),
    ] {
        root.set_times(name, Timestamp(seconds, 123_456_789))
            .unwrap();
    }
    chmod(at, 0o751);
}

fn sparse(at: &Path) {
    let mut file = fs::File::create(at).unwrap();
    file.seek(SeekFrom::Start(3 << 20)).unwrap();
    file.write_all(b"in the middle").unwrap();
    file.set_len(64 << 20).unwrap();
}

struct Setting {
    _dir: tempfile::TempDir,
    from: Tree,
    to: Tree,
}

fn setting() -> Setting {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("from")).unwrap();
    fs::create_dir(dir.path().join("to")).unwrap();
    let open = |name| Tree::open(&dir.path().join(name)).unwrap();
    Setting {
        from: open("from"),
        to: open("to"),
        _dir: dir,
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // The directory that holds it cannot remove what its modes forbid.
        for tree in [&self.from, &self.to] {
            let root = tree.root_dir().unwrap();
            for entry in root.entries().unwrap() {
                root.remove_all(&entry.name).unwrap();
            }
        }
    }
}

#[test]
fn a_copy_has_everything_the_original_has() {
    let setting = setting();
    menagerie(setting.from.path());
    let before = describe(&setting.from);
    let copied = copy_tree(&setting.from, &setting.to, &[], &mut Silent).unwrap();
    let mut wanted = describe(&setting.from);
    assert_eq!(before, wanted, "the original is untouched");
    let mut made = describe(&setting.to);
    assert_eq!(copied.entries as usize, made.len() - 1);
    for path in wanted.keys() {
        assert_eq!(made.get(path), wanted.get(path), "{path}");
    }
    wanted.clear();
    made.retain(|path, _| setting.from.stat(path).unwrap().is_none());
    assert!(made.is_empty(), "{made:?}");
    let dir = setting.to.root_dir().unwrap();
    assert_eq!(
        dir.xattr(b"dir", "user.overlay.opaque").unwrap().unwrap(),
        b"y"
    );
}

#[test]
fn every_record_is_what_stands_there() {
    let setting = setting();
    menagerie(setting.from.path());
    let (_, records) = copy_tree_recorded(&setting.from, &setting.to, &[], &mut Silent).unwrap();
    assert!(records.is_sorted_by(|a, b| a.path < b.path));
    assert_eq!(records.len(), describe(&setting.to).len());
    for record in records {
        assert_eq!(
            Some(record.source),
            setting.from.stat(&record.path).unwrap(),
            "{}",
            record.path
        );
        assert_eq!(
            Some(record.copy),
            setting.to.stat(&record.path).unwrap(),
            "{}",
            record.path
        );
    }
}

#[test]
fn holes_stay_holes() {
    let setting = setting();
    sparse(&setting.from.path().join("sparse"));
    copy_tree(&setting.from, &setting.to, &[], &mut Silent).unwrap();
    let made = fs::metadata(setting.to.path().join("sparse")).unwrap();
    assert_eq!(made.len(), 64 << 20);
    assert!(made.blocks() * 512 < 1 << 20, "{} blocks", made.blocks());
    let (mut a, mut b) = (Vec::new(), Vec::new());
    setting
        .from
        .open(&rel(b"sparse"))
        .unwrap()
        .read_to_end(&mut a)
        .unwrap();
    setting
        .to
        .open(&rel(b"sparse"))
        .unwrap()
        .read_to_end(&mut b)
        .unwrap();
    assert!(a == b);
}

#[test]
fn sockets_stay_behind_and_are_counted() {
    let setting = setting();
    let _socket =
        std::os::unix::net::UnixListener::bind(setting.from.path().join("socket")).unwrap();
    let copied = copy_tree(&setting.from, &setting.to, &[], &mut Silent).unwrap();
    assert_eq!((copied.sockets, copied.entries), (1, 0));
}

#[test]
fn what_is_skipped_stays_out() {
    let setting = setting();
    fs::create_dir_all(setting.from.path().join("state/sandboxes/mine")).unwrap();
    fs::write(setting.from.path().join("state/kept"), "x").unwrap();
    copy_tree(
        &setting.from,
        &setting.to,
        &[rel(b"state/sandboxes")],
        &mut Silent,
    )
    .unwrap();
    assert_eq!(setting.to.list(&rel(b"state")).unwrap(), [b"kept".to_vec()]);
}

#[test]
fn many_files_in_one_directory_and_many_directories_all_arrive() {
    struct Count(u64);
    impl Progress for Count {
        fn begin(&mut self, phase: Phase, _: Option<u64>) {
            assert_eq!(phase, Phase::Copying);
        }
        fn advance(&mut self, items: u64) {
            self.0 += items;
        }
        fn finish(&mut self) {}
    }
    let setting = setting();
    for n in 0..1000 {
        fs::write(setting.from.path().join(format!("{n}")), format!("{n}")).unwrap();
        fs::create_dir(setting.from.path().join(format!("d{n}"))).unwrap();
        fs::write(setting.from.path().join(format!("d{n}/f")), format!("{n}")).unwrap();
    }
    let mut count = Count(0);
    copy_tree(&setting.from, &setting.to, &[], &mut count).unwrap();
    assert_eq!(describe(&setting.from), describe(&setting.to));
    assert_eq!(count.0, 2000);
}

#[test]
fn a_tree_deeper_than_any_path_is_copied() {
    let setting = setting();
    let mut deep = setting.from.root_dir().unwrap();
    for _ in 0..300 {
        deep.make_dir(b"aside").unwrap();
        deep = deep
            .make_dir(b"a name long enough that the whole is too long")
            .unwrap();
    }
    deep.create_file(b"bottom").unwrap();
    let copied = copy_tree(&setting.from, &setting.to, &[], &mut Silent).unwrap();
    assert_eq!(copied.entries, 601);
}

#[test]
fn a_device_that_cannot_be_made_is_named() {
    if !rustix::process::geteuid().is_root() {
        // Root's tree, copied by an ordinary user: /dev/null exists everywhere.
        let setting = setting();
        let dev = Tree::open(Path::new("/dev")).unwrap();
        let root = setting.to.root_dir().unwrap();
        let error = copy_entry(&dev, &rel(b"null"), &root, b"null", Privileges::Keep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    } else {
        let setting = setting();
        let root = setting.from.root_dir().unwrap();
        root.make_node(b"null", EntryKind::CharDevice, rustix::fs::makedev(1, 3))
            .unwrap();
        copy_tree(&setting.from, &setting.to, &[], &mut Silent).unwrap();
        assert_eq!(describe(&setting.from), describe(&setting.to));
    }
}

#[test]
fn one_entry_is_copied_like_a_whole_tree() {
    let setting = setting();
    menagerie(setting.from.path());
    let to = setting.to.root_dir().unwrap();
    for name in setting.from.list(&RelPath::root()).unwrap() {
        copy_entry(&setting.from, &rel(&name), &to, &name, Privileges::Keep).unwrap();
        let (a, b) = (
            setting.from.stat(&rel(&name)).unwrap(),
            to.stat(&name).unwrap(),
        );
        let (a, b) = (a.unwrap().entry, b.unwrap().entry);
        assert_eq!(
            (a.kind, a.mode, a.mtime),
            (b.kind, b.mode, b.mtime),
            "{:?}",
            rel(&name)
        );
        assert_eq!(
            setting.from.xattrs(&rel(&name)).unwrap(),
            to.xattrs(&name).unwrap()
        );
    }
}

#[test]
fn privileges_are_stripped_on_the_way_out() {
    let setting = setting();
    fs::write(setting.from.path().join("tool"), "x").unwrap();
    chmod(&setting.from.path().join("tool"), 0o6755);
    fs::create_dir(setting.from.path().join("dir")).unwrap();
    chmod(&setting.from.path().join("dir"), 0o2755);
    let to = setting.to.root_dir().unwrap();
    for name in [&b"tool"[..], b"dir"] {
        copy_entry(&setting.from, &rel(name), &to, name, Privileges::Strip).unwrap();
    }
    assert_eq!(to.stat(b"tool").unwrap().unwrap().entry.mode, 0o755);
    assert_eq!(to.stat(b"dir").unwrap().unwrap().entry.mode, 0o2755);
}
