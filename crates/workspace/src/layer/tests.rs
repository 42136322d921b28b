//! Real overlays, read without the kernel's help.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sandbox_model::OverlayXattr::{Trusted, User};
use sandbox_model::{EntryKind, RelPath};

use super::{Below, Contents, Descent, Layer, Touched};
use crate::fixture::{Fixture, path, write};
use crate::side::Side;

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Every path of a tree with what can be said about it, by the kernel through a mount.
fn seen(root: &Path) -> io::Result<Vec<String>> {
    fn go(root: &Path, at: &RelPath, lines: &mut Vec<String>) -> io::Result<()> {
        let mut names: Vec<_> = fs::read_dir(at.under(root))?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<_>>()?;
        names.sort();
        for name in names {
            let at = at.join(name.as_bytes());
            let path = at.under(root);
            let found = fs::symlink_metadata(&path)?;
            let mode = found.permissions().mode();
            let held = match EntryKind::from_mode(mode) {
                Some(EntryKind::File) => format!("{:?}", fs::read(&path)?),
                Some(EntryKind::Symlink) => {
                    format!("{:?}", fs::read_link(&path)?.as_os_str().as_bytes())
                }
                _ => String::new(),
            };
            lines.push(format!("{at} {mode:o} {held}"));
            if found.is_dir() {
                go(root, &at, lines)?;
            }
        }
        Ok(())
    }
    let mut lines = Vec::new();
    go(root, &RelPath::root(), &mut lines)?;
    Ok(lines)
}

fn bytes(mut file: fs::File) -> Vec<u8> {
    let mut held = Vec::new();
    io::Read::read_to_end(&mut file, &mut held).unwrap();
    held
}

/// The same through a side, which must tell the same of an entry at once and bit by bit.
fn read(side: &dyn Side) -> Vec<String> {
    fn go(side: &dyn Side, at: &RelPath, lines: &mut Vec<String>) {
        for name in side.list(at).unwrap() {
            let at = at.join(&name);
            let found = side.stat(&at).unwrap().expect("listed");
            let whole = side.whole(&at).unwrap().expect("listed");
            assert_eq!(whole.fingerprint, found, "{at}");
            assert_eq!(whole.xattrs, side.xattrs(&at).unwrap(), "{at}");
            let contents = whole.contents.map(bytes);
            let held = match found.entry.kind {
                EntryKind::File => {
                    let held = bytes(side.open(&at).unwrap());
                    assert_eq!(contents.as_ref(), Some(&held), "{at}");
                    format!("{held:?}")
                }
                EntryKind::Symlink => format!("{:?}", side.read_link(&at).unwrap()),
                _ => String::new(),
            };
            let mode = found.entry.mode | found.entry.kind.mode_bits();
            lines.push(format!("{at} {mode:o} {held}"));
            if found.entry.kind == EntryKind::Directory {
                go(side, &at, lines);
            }
        }
    }
    let mut lines = Vec::new();
    go(side, &RelPath::root(), &mut lines);
    lines
}

fn touched(fixture: &Fixture) -> Vec<Touched> {
    let mut touched = Vec::new();
    let layer = Layer::open(&fixture.sandbox).unwrap();
    layer
        .walk(&mut |found| {
            touched.push(found);
            Ok(Descent::Into)
        })
        .unwrap();
    touched.sort_by(|a, b| a.path.cmp(&b.path));
    touched
}

/// Touched paths but the root: `-` for gone, `+` for new, `=` for there before and after.
fn touched_names(fixture: &Fixture) -> Vec<String> {
    let sign = |found: &Touched| match (found.was, found.now) {
        (Some(_), None) => '-',
        (None, Some(_)) => '+',
        (Some(_), Some(_)) => '=',
        (None, None) => '?',
    };
    let found = touched(fixture);
    let shown = found.iter().filter(|found| !found.path.is_root());
    shown
        .map(|found| format!("{}{}", sign(found), found.path))
        .collect()
}

/// Does `act` inside, and checks that our reading of the layers is the kernel's.
fn agrees(fixture: &Fixture, act: impl FnOnce(&Path) -> io::Result<()>) {
    let (mut reader, mut writer) = io::pipe().unwrap();
    fixture.inside(|root| {
        act(root)?;
        io::Write::write_all(&mut writer, seen(root)?.join("\n").as_bytes())
    });
    drop(writer);
    let mut kernel = String::new();
    io::Read::read_to_string(&mut reader, &mut kernel).unwrap();
    let ours = read(&Layer::open(&fixture.sandbox).unwrap()).join("\n");
    assert_eq!(ours, kernel);
}

fn sample(source: &Path) {
    write(source, "top.txt", "top");
    write(source, "dir/one.txt", "one");
    write(source, "dir/two.txt", "two");
    write(source, "dir/sub/deep.txt", "deep");
    write(source, "other/file", "other");
    symlink("dir/one.txt", source.join("link")).unwrap();
}

#[test]
fn an_untouched_workspace_shows_the_source_and_touches_nothing() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |_| Ok(()));
        assert_eq!(touched_names(&fixture), Vec::<String>::new());
    }
}

#[test]
fn edits_and_creations_are_touched() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |root| {
            fs::write(root.join("dir/one.txt"), "changed")?;
            fs::write(root.join("dir/new.txt"), "new")?;
            fs::create_dir(root.join("fresh"))?;
            fs::write(root.join("fresh/x"), "x")
        });
        let expected = ["=dir", "+dir/new.txt", "=dir/one.txt", "+fresh", "+fresh/x"];
        assert_eq!(touched_names(&fixture), expected);
    }
}

#[test]
fn a_whiteout_over_a_directory_deletes_everything_below_it() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |root| fs::remove_dir_all(root.join("dir")));
        let expected = [
            "-dir",
            "-dir/one.txt",
            "-dir/sub",
            "-dir/sub/deep.txt",
            "-dir/two.txt",
        ];
        assert_eq!(touched_names(&fixture), expected);
    }
}

#[test]
fn an_opaque_directory_deletes_what_it_hides() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |root| {
            fs::remove_dir_all(root.join("dir"))?;
            fs::create_dir(root.join("dir"))?;
            fs::write(root.join("dir/two.txt"), "second")
        });
        let expected = [
            "=dir",
            "-dir/one.txt",
            "-dir/sub",
            "-dir/sub/deep.txt",
            "=dir/two.txt",
        ];
        assert_eq!(touched_names(&fixture), expected);
        let dir = touched(&fixture)
            .into_iter()
            .find(|found| found.path == path("dir"))
            .unwrap();
        assert_eq!(dir.below, Below::Replaced);
    }
}

#[test]
fn a_directory_that_became_a_file_deletes_what_was_below_it() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |root| {
            fs::remove_dir_all(root.join("dir"))?;
            fs::write(root.join("dir"), "now a file")
        });
        let expected = [
            "=dir",
            "-dir/one.txt",
            "-dir/sub",
            "-dir/sub/deep.txt",
            "-dir/two.txt",
        ];
        assert_eq!(touched_names(&fixture), expected);
    }
}

#[test]
fn a_file_that_became_a_directory_is_followed_into_it() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        agrees(&fixture, |root| {
            fs::remove_file(root.join("top.txt"))?;
            fs::create_dir(root.join("top.txt"))?;
            fs::write(root.join("top.txt/in"), "in")
        });
        assert_eq!(touched_names(&fixture), ["=top.txt", "+top.txt/in"]);
    }
}

#[test]
fn rootless_renaming_a_lower_directory_is_refused_by_the_kernel() {
    let fixture = Fixture::overlay(User, sample);
    let error = fixture
        .try_inside(|root| fs::rename(root.join("dir"), root.join("moved")))
        .unwrap_err();
    let sandbox_linux::trial::TrialError::Use(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
}

#[test]
fn a_redirected_directory_is_read_where_its_contents_are() {
    let fixture = Fixture::overlay(Trusted, sample);
    agrees(&fixture, |root| {
        fs::rename(root.join("dir"), root.join("other/moved"))
    });
    let redirect = crate::tree::Dir::open(&fixture.sandbox.dir.join("upper/other")).unwrap();
    let redirect = redirect
        .xattr(b"moved", "trusted.overlay.redirect")
        .unwrap();
    assert_eq!(
        redirect.as_deref(),
        Some(&b"/dir"[..]),
        "an absolute redirect is what we test"
    );
    let expected = [
        "-dir",
        "-dir/one.txt",
        "-dir/sub",
        "-dir/sub/deep.txt",
        "-dir/two.txt",
        "=other",
        "+other/moved",
        "+other/moved/one.txt",
        "+other/moved/sub",
        "+other/moved/sub/deep.txt",
        "+other/moved/two.txt",
    ];
    assert_eq!(touched_names(&fixture), expected);
    let moved = touched(&fixture)
        .into_iter()
        .find(|found| found.path == path("other/moved/one.txt"));
    assert_eq!(
        moved.unwrap().contents,
        Contents::Lower(path("dir/one.txt"))
    );
}

#[test]
fn a_directory_renamed_in_place_is_redirected_by_its_name_alone() {
    let fixture = Fixture::overlay(Trusted, sample);
    agrees(&fixture, |root| {
        fs::rename(root.join("dir/sub"), root.join("dir/renamed"))?;
        fs::write(root.join("dir/renamed/deep.txt"), "edited")?;
        fs::write(root.join("dir/renamed/more.txt"), "more")
    });
    let redirect = crate::tree::Dir::open(&fixture.sandbox.dir.join("upper/dir")).unwrap();
    let redirect = redirect
        .xattr(b"renamed", "trusted.overlay.redirect")
        .unwrap();
    assert_eq!(
        redirect.as_deref(),
        Some(&b"sub"[..]),
        "a relative redirect is what we test"
    );
}

#[test]
fn redirects_below_redirects_and_swapped_directories_are_followed() {
    let fixture = Fixture::overlay(Trusted, sample);
    agrees(&fixture, |root| {
        fs::rename(root.join("dir"), root.join("a"))?;
        fs::rename(root.join("a/sub"), root.join("other/s"))?;
        fs::rename(root.join("other"), root.join("dir"))?;
        fs::rename(root.join("dir/s"), root.join("dir/sub"))?;
        fs::remove_file(root.join("a/one.txt"))
    });
    let expected = [
        "+a",
        "?a/one.txt",
        "?a/sub",
        "+a/two.txt",
        "=dir",
        "+dir/file",
        "-dir/one.txt",
        // Back where it was: nothing below it is touched.
        "=dir/sub",
        "-dir/two.txt",
        "-other",
        "-other/file",
    ];
    assert_eq!(touched_names(&fixture), expected);
}

#[test]
fn a_metacopied_file_has_the_lower_ones_contents() {
    let fixture = Fixture::overlay(Trusted, sample);
    agrees(&fixture, |root| {
        chmod(&root.join("top.txt"), 0o600)?;
        fs::rename(root.join("dir/one.txt"), root.join("other/renamed.txt"))
    });
    let upper = crate::tree::Dir::open(&fixture.sandbox.dir.join("upper")).unwrap();
    let metacopy = upper.xattr(b"top.txt", "trusted.overlay.metacopy").unwrap();
    assert!(metacopy.is_some(), "a metacopy is what we test");
    let found = touched(&fixture);
    let contents = |name: &str| {
        found
            .iter()
            .find(|found| found.path == path(name))
            .unwrap()
            .contents
            .clone()
    };
    assert_eq!(contents("top.txt"), Contents::Lower(path("top.txt")));
    assert_eq!(
        contents("other/renamed.txt"),
        Contents::Lower(path("dir/one.txt"))
    );
}

#[test]
fn whiteouts_kept_in_attributes_are_whiteouts() {
    for (xattr, prefix) in [(User, "user"), (Trusted, "trusted")] {
        let fixture = Fixture::overlay(xattr, sample);
        let upper = fixture.sandbox.dir.join("upper");
        write(&upper, "dir/one.txt", "");
        let (root, dir) = (
            crate::tree::Dir::open(&upper).unwrap(),
            crate::tree::Dir::open(&upper.join("dir")).unwrap(),
        );
        root.set_xattr(b"dir", format!("{prefix}.overlay.opaque").as_bytes(), b"x")
            .unwrap();
        dir.set_xattr(
            b"one.txt",
            format!("{prefix}.overlay.whiteout").as_bytes(),
            b"y",
        )
        .unwrap();
        write(&upper, "dir/empty", "");
        assert_eq!(
            touched_names(&fixture),
            ["=dir", "+dir/empty", "-dir/one.txt"]
        );
    }
}

#[test]
fn hard_links_of_the_lower_split_on_write() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, |source| {
            write(source, "a", "shared");
            fs::hard_link(source.join("a"), source.join("b")).unwrap();
        });
        agrees(&fixture, |root| fs::write(root.join("a"), "mine"));
        assert_eq!(touched_names(&fixture), ["=a"]);
        assert_eq!(fs::read(fixture.source().join("b")).unwrap(), b"shared");
    }
}

#[test]
fn the_sandbox_root_inside_the_source_is_no_part_of_it() {
    let fixture = Fixture::with_root(User, sample, |dir| dir.join("source/dir/.sandboxes"));
    let upper = fixture.sandbox.dir.join("upper");
    // Everything is deleted, as far as the layer can say it.
    let dir = crate::tree::Dir::open(&upper).unwrap();
    dir.make_node(b"dir", EntryKind::CharDevice, 0).unwrap();
    write(fixture.source(), ".sandbox-stage-1/x", "a promote's");
    let expected = [
        "-dir",
        "-dir/one.txt",
        "-dir/sub",
        "-dir/sub/deep.txt",
        "-dir/two.txt",
    ];
    assert_eq!(touched_names(&fixture), expected);
    let layer = Layer::open(&fixture.sandbox).unwrap();
    assert_eq!(layer.stat(&path("dir/.sandboxes/box")).unwrap(), None);
    assert_eq!(
        layer.list(&RelPath::root()).unwrap(),
        [&b"link"[..], b"other", b"top.txt"]
    );
}

#[test]
fn odd_names_and_odd_entries_are_read() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        let odd = |name: &[u8]| std::ffi::OsStr::from_bytes(name).to_owned();
        agrees(&fixture, |root| {
            fs::write(root.join(odd(b"new\nline\xff")), "odd")?;
            symlink("/etc/passwd", root.join("outward"))?;
            let root = crate::tree::Dir::open(root)?;
            root.make_node(b"fifo", EntryKind::Fifo, 0)?;
            root.make_node(b"socket", EntryKind::Socket, 0)
        });
        let expected = ["+fifo", "+new\\x0aline\\xff", "+outward", "+socket"];
        assert_eq!(touched_names(&fixture), expected);
        let layer = Layer::open(&fixture.sandbox).unwrap();
        let refused = layer.open(&path("fifo")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn a_tree_deeper_than_a_path_may_be_long_is_walked() {
    let fixture = Fixture::overlay(User, |_| {});
    fixture.inside(|root| {
        let mut dir = crate::tree::Dir::open(root)?;
        for _ in 0..700 {
            dir = dir.make_dir(b"deeper")?;
        }
        dir.create_file(b"bottom").map(drop)
    });
    let names = touched_names(&fixture);
    assert_eq!(names.len(), 701);
    assert!(names[700].ends_with("deeper/bottom"));
}

#[test]
fn every_directory_is_one_step_from_the_one_above_it_however_deep() {
    const DEPTH: usize = 400;
    let fixture = Fixture::overlay(User, |_| {});
    let mut dir = crate::tree::Dir::open(&fixture.sandbox.layer_dir()).unwrap();
    for _ in 0..DEPTH {
        dir = dir.make_dir(b"d").unwrap();
    }
    let Layer::Overlay(overlay) = Layer::open(&fixture.sandbox).unwrap() else {
        panic!("an overlay")
    };
    let looks = |overlay: &super::Overlay| overlay.looks.load(std::sync::atomic::Ordering::Relaxed);
    let mut met = 0;
    let walked = overlay.walk(&mut |touched| {
        met += 1;
        // As whoever compares it asks about it.
        overlay.xattrs(&touched.path).unwrap();
        overlay.stat(&touched.path).unwrap();
        Ok(Descent::Into)
    });
    walked.unwrap();
    assert_eq!(met, DEPTH + 1);
    assert!(looks(&overlay) <= 4 * DEPTH, "{}", looks(&overlay));
}

#[test]
fn a_directory_swapped_for_a_symlink_is_not_followed() {
    let fixture = Fixture::overlay(User, sample);
    fixture.inside(|root| fs::write(root.join("dir/one.txt"), "changed"));
    let upper = fixture.sandbox.dir.join("upper");
    let layer = Layer::open(&fixture.sandbox).unwrap();
    let mut visited = Vec::new();
    layer
        .walk(&mut |found| {
            if found.path == path("dir") {
                fs::rename(upper.join("dir"), upper.join("gone")).unwrap();
                symlink("/etc", upper.join("dir")).unwrap();
            }
            visited.push(found.path);
            Ok(Descent::Into)
        })
        .unwrap();
    assert_eq!(visited, [RelPath::root(), path("dir")]);
}
