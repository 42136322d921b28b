//! Diffs that real tools apply.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use sandbox_model::EntryKind;
use sandbox_model::OverlayXattr::{Trusted, User};

use super::{Colour, stat, unified};
use crate::fixture::{Fixture, write};
use crate::tree::Dir;

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn odd(root: &Path, name: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(name))
}

/// The diff, and what is listed beside it.
fn rendered(fixture: &Fixture, colour: Colour) -> (Vec<u8>, String) {
    let (mut out, mut beside) = (Vec::new(), Vec::new());
    unified(
        &fixture.view(),
        &fixture.changes(),
        colour,
        &mut out,
        &mut beside,
    )
    .unwrap();
    (out, String::from_utf8(beside).unwrap())
}

/// Feeds `patch` to a tool in `dir`.
fn apply(dir: &Path, tool: &str, arguments: &[&str], patch: &[u8]) {
    let mut child = Command::new(tool)
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{tool} is needed by this test: {error}"));
    child.stdin.take().unwrap().write_all(patch).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{tool}: {}{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(patch)
    );
}

fn git_apply(dir: &Path, patch: &[u8]) {
    if !patch.is_empty() {
        apply(dir, "git", &["apply", "--whitespace=nowarn", "-"], patch);
    }
}

fn gnu_patch(dir: &Path, patch: &[u8]) {
    if !patch.is_empty() {
        apply(
            dir,
            "patch",
            &["-p1", "--no-backup-if-mismatch", "--quiet", "--force"],
            patch,
        );
    }
}

/// What a patch can carry of a tree: files with contents and executable bit, symlinks.
fn carried(root: &Path) -> Vec<String> {
    fn go(root: &Path, at: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap();
            let executable = found.permissions().mode() & 0o100 != 0;
            match EntryKind::from_mode(found.permissions().mode()) {
                Some(EntryKind::Directory) => go(root, &path, lines),
                Some(EntryKind::File) => {
                    lines.push(format!(
                        "{name:?} {executable} {:?}",
                        fs::read(&path).unwrap()
                    ));
                }
                Some(EntryKind::Symlink) => {
                    lines.push(format!("{name:?} -> {:?}", fs::read_link(&path).unwrap()));
                }
                _ => {}
            }
        }
    }
    let mut lines = Vec::new();
    go(root, root, &mut lines);
    lines.sort();
    lines
}

/// A copy of the source to apply a diff to.
fn copy_of(source: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let status = Command::new("cp")
        .arg("-a")
        .arg(source)
        .arg(dir.path().join("copy"))
        .status();
    assert!(status.unwrap().success());
    dir
}

/// Does `act` in the sandbox and on a plain copy; the diff turns the source into that copy.
fn carries(
    fixture: &Fixture,
    appliers: &[fn(&Path, &[u8])],
    act: impl Fn(&Path) -> io::Result<()>,
) {
    let expected = copy_of(fixture.source());
    act(&expected.path().join("copy")).unwrap();
    fixture.run(&act);
    let (patch, _) = rendered(fixture, Colour::Plain);
    for applier in appliers {
        let copy = copy_of(fixture.source());
        let root = copy.path().join("copy");
        applier(&root, &patch);
        assert_eq!(
            carried(&root),
            carried(&expected.path().join("copy")),
            "{}",
            String::from_utf8_lossy(&patch)
        );
    }
}

fn sample(source: &Path) {
    let lines: String = (0..40).map(|n| format!("line {n}\n")).collect();
    write(source, "text.txt", &lines);
    write(source, "moved.txt", lines.replace("line", "other"));
    write(source, "tool.sh", "#!/bin/sh\n");
    write(source, "unended", "no newline");
    write(source, "empty", "");
    write(source, "gone/a", "a\n");
    write(source, "gone/b", "b\n");
    write(source, "name with spaces", "x\n");
    fs::write(odd(source, b"odd \"quotes\" \\ and\ttab\n\xff"), "odd\n").unwrap();
    symlink("text.txt", source.join("link")).unwrap();
}

fn edit(root: &Path) -> io::Result<()> {
    let text = fs::read_to_string(root.join("text.txt"))?;
    fs::write(
        root.join("text.txt"),
        text.replace("line 3\n", "").replace("line 30", "LINE 30"),
    )?;
    fs::rename(root.join("moved.txt"), root.join("gone/moved to.txt"))?;
    let moved = fs::read_to_string(root.join("gone/moved to.txt"))?;
    fs::write(root.join("gone/moved to.txt"), moved + "one more\n")?;
    chmod(&root.join("tool.sh"), 0o755)?;
    fs::write(root.join("unended"), "still no newline")?;
    fs::write(root.join("empty"), "ended\n")?;
    fs::write(root.join("new empty"), "")?;
    fs::remove_file(root.join("gone/a"))?;
    fs::write(root.join("name with spaces"), "y\n")?;
    fs::write(odd(root, b"odd \"quotes\" \\ and\ttab\n\xff"), "odder\n")?;
    fs::write(odd(root, "n\u{e4}w\u{1b}[31m".as_bytes()), "new\n")?;
    fs::remove_file(root.join("link"))?;
    symlink("tool.sh", root.join("link"))?;
    symlink("nowhere", root.join("second link"))
}

#[test]
fn git_and_patch_turn_the_source_into_the_workspace() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        carries(&fixture, &[git_apply, gnu_patch], edit);
    }
}

/// `patch` deletes last, so it cannot put a directory where a file was, or the reverse.
#[test]
fn git_carries_a_file_that_became_a_directory_and_the_reverse() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, |source| {
            write(source, "turned", "into a directory\n");
            write(source, "folder/inner", "into a file\n");
        });
        carries(&fixture, &[git_apply], |root| {
            fs::remove_file(root.join("turned"))?;
            fs::create_dir(root.join("turned"))?;
            fs::write(root.join("turned/inner"), "inner\n")?;
            fs::remove_dir_all(root.join("folder"))?;
            fs::write(root.join("folder"), "a file now\n")
        });
    }
}

#[test]
fn git_carries_binary_files_and_their_renames() {
    let noise: Vec<u8> = (0u32..5000)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let fixture = Fixture::overlay(User, |source| {
        write(source, "image", &noise);
        write(source, "deleted", b"\0gone");
        write(source, "becomes text", b"\0\0");
    });
    carries(&fixture, &[git_apply], |root| {
        let mut image = fs::read(root.join("image"))?;
        image[100] ^= 0xff;
        fs::remove_file(root.join("image"))?;
        fs::write(root.join("renamed"), image)?;
        fs::remove_file(root.join("deleted"))?;
        fs::write(root.join("becomes text"), "text\n")?;
        fs::write(root.join("created"), b"\0new")
    });
}

#[test]
fn what_became_a_symlink_is_carried() {
    let fixture = Fixture::overlay(User, |source| {
        write(source, "file", "file\n");
        symlink("file", source.join("link")).unwrap();
    });
    carries(&fixture, &[git_apply], |root| {
        fs::remove_file(root.join("link"))?;
        fs::write(root.join("link"), "a file\n")?;
        fs::remove_file(root.join("file"))?;
        symlink("link", root.join("file"))
    });
}

#[test]
fn what_a_patch_cannot_carry_is_listed_beside_it() {
    let fixture = Fixture::overlay(Trusted, |source| {
        write(source, "kept/only", "x\n");
        write(source, "private", "x\n");
        write(source, "noted", "x\n");
        fs::create_dir(source.join("vanishing")).unwrap();
    });
    fixture.run(|root| {
        fs::create_dir_all(root.join("hollow/inner"))?;
        fs::remove_file(root.join("kept/only"))?;
        fs::remove_dir(root.join("vanishing"))?;
        chmod(&root.join("private"), 0o600)?;
        chmod(&root.join("kept"), 0o700)?;
        write(root, "secret", "s\n");
        chmod(&root.join("secret"), 0o640)?;
        fs::File::create(root.join("bomb"))?.set_len(1 << 41)?;
        let dir = Dir::open(root)?;
        dir.make_node(b"fifo", EntryKind::Fifo, 0)?;
        dir.set_mode(b"fifo", 0o644)?;
        dir.set_xattr(b"noted", b"user.note", b"n")
    });
    let (patch, beside) = rendered(&fixture, Colour::Plain);
    let expected = "bomb: contents not in the patch: too large\n\
        fifo: new fifo; mode 0644\n\
        hollow: new empty directory\n\
        hollow/inner: new empty directory\n\
        kept: mode 0755 to 0700; empty directory kept\n\
        noted: extended attributes\n\
        private: mode 0644 to 0600\n\
        secret: mode 0640\n\
        vanishing: empty directory deleted\n";
    assert_eq!(beside, expected);
    assert!(
        String::from_utf8(patch)
            .unwrap()
            .contains("Binary files /dev/null and b/bomb differ")
    );
}

#[test]
fn a_terminal_gets_nothing_to_obey() {
    let fixture = Fixture::overlay(User, |source| write(source, "evil.txt", "quiet\n"));
    let bidi = "if admin \u{202e} { \u{2066} \u{61c}\u{ad}\u{2060}\u{3164}\u{e0041}\n";
    fixture.run(|root| {
        fs::write(
            root.join("evil.txt"),
            format!("\x1b]0;title\x07\x1b[2J\r\u{9b}31m\n{bidi}"),
        )?;
        fs::write(odd(root, b"\x1b[31mname\n\xff"), b"\x1b[41m")?;
        fs::write(root.join("nul"), b"\0\x1b[2J")
    });
    let (text, beside) = rendered(&fixture, Colour::Terminal);
    let text = String::from_utf8(text).unwrap();
    let mut stats = Vec::new();
    stat(
        &fixture.view(),
        &fixture.changes(),
        Colour::Terminal,
        &mut stats,
    )
    .unwrap();
    let all = format!("{text}{beside}{}", String::from_utf8(stats).unwrap());
    let uncoloured = ["\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[m"]
        .iter()
        .fold(all.clone(), |text, colour| text.replace(colour, ""));
    let obeyed = |c: char| c != '\n' && sandbox_model::path::is_unprintable(c);
    assert!(!uncoloured.contains(obeyed), "{uncoloured:?}");
    assert!(
        text.contains("+\\x1b]0;title\\x07\\x1b[2J\\x0d\\xc2\\x9b31m"),
        "{text}"
    );
    assert!(
        text.contains("\\xd8\\x9c\\xc2\\xad\\xe2\\x81\\xa0\\xe3\\x85\\xa4\\xf3\\xa0\\x81\\x81"),
        "{text}"
    );
    assert!(text.contains("b/\\x1b[31mname\\x0a\\xff"), "{text}");
    assert!(
        text.contains("Binary files /dev/null and b/nul differ"),
        "{text}"
    );
}

#[test]
fn a_diff_speaks_of_the_base_not_of_what_the_source_became() {
    let fixture = Fixture::overlay(User, |source| write(source, "f", "one\n"));
    fixture.run(|root| fs::write(root.join("f"), "two\n"));
    fs::write(fixture.source().join("f"), "three\n").unwrap();
    let (patch, _) = rendered(&fixture, Colour::Plain);
    let patch = String::from_utf8(patch).unwrap();
    assert!(patch.ends_with("@@ -1 +1 @@\n-one\n+two\n"), "{patch}");
}

#[test]
fn stat_counts_as_git_does() {
    let fixture = Fixture::overlay(User, |source| {
        sample(source);
        write(source, "image", b"\0\0\0");
    });
    fixture.run(|root| {
        edit(root)?;
        fs::write(root.join("image"), b"\0\0\0\0\0")
    });
    let mut ours = Vec::new();
    stat(
        &fixture.view(),
        &fixture.changes(),
        Colour::Plain,
        &mut ours,
    )
    .unwrap();
    let ours = String::from_utf8(ours).unwrap();
    let row = |name: &str| {
        let found = ours
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        found
            .unwrap_or_else(|| panic!("no {name} in {ours}"))
            .split(" | ")
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(row("text.txt").trim(), "3 +--");
    assert_eq!(row("image"), "Bin 3 -> 5 bytes");
    assert_eq!(row("moved.txt => gone/moved to.txt").trim(), "1 +");
    assert_eq!(row("new empty").trim(), "0");
    let last = ours.lines().last().unwrap();
    assert!(
        last.contains(" files changed, ") && last.contains(" insertions(+), "),
        "{last}"
    );
}

/// Contents that are hard on a line-based format.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "[ab]{0,2}\n",
        1 => Just("\\ No newline at end of file\n".to_owned()),
        1 => Just("--- a/x\n+++ b/x\n@@ -1 +1 @@\n".to_owned()),
        1 => "\r?\n",
        1 => "[ -~\u{80}-\u{fff}]{0,9}\n",
    ];
    let text = (proptest::collection::vec(line, 0..30), "[ab]?")
        .prop_map(|(lines, tail)| (lines.concat() + &tail).into_bytes());
    prop_oneof![
        5 => text,
        1 => proptest::collection::vec(any::<u8>(), 0..300),
        1 => proptest::collection::vec(any::<u8>(), 0..99).prop_map(|mut bytes| {
            bytes.push(0);
            bytes
        }),
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => "[a-c]".prop_map(String::into_bytes),
        1 => "[ -.0-~]{1,6}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(1u8.., 1..6),
    ]
    .prop_filter("a name", |name| {
        !name.contains(&b'/') && name != b"." && name != b".." && !name.starts_with(b".git")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn git_applies_any_edit(
        before in proptest::collection::btree_map(name(), contents(), 0..5),
        after in proptest::collection::btree_map(name(), contents(), 0..5),
        executable: bool,
    ) {
        let fixture = Fixture::overlay(User, |source| {
            for (name, contents) in &before {
                fs::write(odd(source, name), contents).unwrap();
            }
        });
        carries(&fixture, &[git_apply], |root| {
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                fs::remove_file(odd(root, name))?;
            }
            for (name, contents) in &after {
                fs::write(odd(root, name), contents)?;
                chmod(&odd(root, name), if executable { 0o755 } else { 0o644 })?;
            }
            Ok(())
        });
    }
}
