//! Change sets of real overlays.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use sandbox_model::OverlayXattr::{Trusted, User};
use sandbox_model::{ChangeKind, EntryKind, Flag, RelPath};

use super::{Budget, ChangeOptions, Renames, Search, listing};
use crate::fixture::{Fixture, listed, next_tick, path, write};
use crate::progress::Silent;
use crate::tree::Dir;

fn chmod(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn sample(source: &Path) {
    write(source, "a.txt", "line one\nline two\nline three\n");
    write(source, "b.txt", "something else\n");
    write(source, "dir/c.txt", "the third file\n");
    write(source, "dir/d.txt", "the fourth file\n");
    symlink("a.txt", source.join("link")).unwrap();
}

#[test]
fn what_was_copied_up_but_is_the_same_is_no_change() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            let same = fs::read(root.join("a.txt"))?;
            fs::write(root.join("a.txt"), same)?;
            chmod(&root.join("b.txt"), 0o600)?;
            chmod(&root.join("b.txt"), 0o644)?;
            fs::remove_file(root.join("dir/c.txt"))?;
            fs::write(root.join("dir/c.txt"), "the third file\n")?;
            fs::remove_file(root.join("link"))?;
            symlink("a.txt", root.join("link"))
        });
        assert_eq!(fixture.listed(), Vec::<String>::new());
    }
}

#[test]
fn a_modification_time_alone_is_no_change() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        let file = fs::File::options().write(true).open(root.join("a.txt"))?;
        file.set_modified(std::time::UNIX_EPOCH)
    });
    assert_eq!(fixture.listed(), Vec::<String>::new());
}

#[test]
fn same_size_and_time_with_other_bytes_is_a_change() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        let time = fs::metadata(root.join("b.txt"))?.modified()?;
        fs::write(root.join("b.txt"), "SOMETHING ELSE\n")?;
        fs::File::options()
            .write(true)
            .open(root.join("b.txt"))?
            .set_modified(time)
    });
    assert_eq!(fixture.listed(), ["M b.txt"]);
}

#[test]
fn every_kind_of_change_is_told_apart() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            fs::write(root.join("a.txt"), "edited\n")?;
            chmod(&root.join("b.txt"), 0o600)?;
            fs::remove_file(root.join("dir/c.txt"))?;
            fs::remove_file(root.join("dir/d.txt"))?;
            fs::create_dir(root.join("dir/d.txt"))?;
            fs::remove_file(root.join("link"))?;
            symlink("b.txt", root.join("link"))?;
            fs::write(root.join("new"), "new")
        });
        let expected = [
            "M a.txt",
            "P b.txt",
            "D dir/c.txt",
            "T dir/d.txt",
            "M link",
            "A new",
        ];
        assert_eq!(fixture.listed(), expected);
    }
}

#[test]
fn attributes_and_directory_modes_are_changes() {
    let fixture = Fixture::overlay(Trusted, sample);
    fixture.run(|root| {
        chmod(&root.join("dir"), 0o700)?;
        Dir::open(root)?.set_xattr(b"a.txt", b"user.note", b"mine")
    });
    let changes = fixture.changes();
    assert_eq!(listed(&changes), ["P a.txt", "P dir"]);
    assert!(changes.changes[0].xattrs_changed && !changes.changes[1].xattrs_changed);
}

#[test]
fn the_workspace_root_itself_can_change() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| chmod(root, 0o700));
    assert_eq!(fixture.listed(), ["P ."]);
}

#[test]
fn renames_are_found_by_contents_and_by_likeness() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            fs::rename(root.join("b.txt"), root.join("moved.txt"))?;
            fs::rename(root.join("a.txt"), root.join("dir/a2.txt"))?;
            fs::write(root.join("dir/a2.txt"), "line one\nline two\nline 3\n")
        });
        assert_eq!(
            fixture.listed(),
            ["R62 a.txt dir/a2.txt", "R100 b.txt moved.txt"]
        );
        let split = ChangeOptions {
            renames: Renames::Split,
            ..ChangeOptions::default()
        };
        let split = listed(&fixture.changes_with(&split));
        assert_eq!(split, ["D a.txt", "D b.txt", "A dir/a2.txt", "A moved.txt"]);
    }
}

#[test]
fn equal_files_are_paired_by_name_first() {
    let fixture = Fixture::overlay(User, |source| {
        write(source, "x/one", "same");
        write(source, "x/two", "same");
    });
    fixture.run(|root| {
        fs::create_dir(root.join("y"))?;
        fs::rename(root.join("x/one"), root.join("y/one"))?;
        fs::rename(root.join("x/two"), root.join("y/two"))
    });
    assert_eq!(
        fixture.listed(),
        ["A y", "R100 x/one y/one", "R100 x/two y/two"]
    );
}

#[test]
fn empty_files_are_never_paired() {
    let fixture = Fixture::overlay(User, |source| write(source, "empty", ""));
    fixture.run(|root| fs::rename(root.join("empty"), root.join("void")));
    assert_eq!(fixture.listed(), ["D empty", "A void"]);
}

#[test]
fn a_renamed_directory_is_a_rename_of_each_file() {
    let fixture = Fixture::overlay(Trusted, sample);
    fixture.run(|root| fs::rename(root.join("dir"), root.join("there")));
    let expected = [
        "D dir",
        "A there",
        "R100 dir/c.txt there/c.txt",
        "R100 dir/d.txt there/d.txt",
    ];
    assert_eq!(fixture.listed(), expected);
}

#[test]
fn a_change_set_speaks_of_what_the_sandbox_did_not_the_source() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            fs::write(root.join("a.txt"), "ours\n")?;
            fs::remove_dir_all(root.join("dir"))?;
            fs::create_dir(root.join("new"))?;
            fs::write(root.join("new/file"), "new\n")
        });
        fs::write(fixture.source().join("a.txt"), "theirs\n").unwrap();
        fs::write(fixture.source().join("b.txt"), "theirs too\n").unwrap();
        fs::write(fixture.source().join("dir/late.txt"), "late\n").unwrap();
        fs::remove_file(fixture.source().join("dir/c.txt")).unwrap();
        write(fixture.source(), "new/file", "theirs as well\n");
        let changes = fixture.changes();
        let expected = ["M a.txt", "D dir", "D dir/d.txt", "A new", "A new/file"];
        assert_eq!(listed(&changes), expected);
        let view = fixture.view();
        let mut base = String::new();
        let mut file = view.before().open(&path("a.txt")).unwrap();
        io::Read::read_to_string(&mut file, &mut base).unwrap();
        assert_eq!(base, "line one\nline two\nline three\n");
    }
}

#[test]
fn undoing_an_edit_by_hand_undoes_the_change() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| fs::write(root.join("b.txt"), "ours\n"));
    fs::write(fixture.source().join("b.txt"), "theirs\n").unwrap();
    fixture.run(|root| fs::write(root.join("b.txt"), "something else\n"));
    assert_eq!(fixture.listed(), Vec::<String>::new());
}

#[test]
fn only_what_is_asked_for_is_told() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::write(root.join("a.txt"), "edited\n")?;
        fs::rename(root.join("dir/c.txt"), root.join("moved"))
    });
    let only = |text: &str| ChangeOptions {
        paths: vec![path(text)],
        ..ChangeOptions::default()
    };
    assert_eq!(listed(&fixture.changes_with(&only("a.txt"))), ["M a.txt"]);
    assert_eq!(
        listed(&fixture.changes_with(&only("dir"))),
        ["R100 dir/c.txt moved"]
    );
}

#[test]
fn since_leaves_out_what_is_older() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::write(root.join("a.txt"), "early\n")?;
        fs::remove_file(root.join("dir/c.txt"))
    });
    next_tick();
    let since = Some(crate::base::run_began(&fixture.sandbox).unwrap());
    fixture.run(|root| fs::write(root.join("late"), "late\n"));
    let options = ChangeOptions {
        since,
        ..ChangeOptions::default()
    };
    assert_eq!(listed(&fixture.changes_with(&options)), ["A late"]);
}

#[test]
fn what_deserves_a_second_look_is_flagged() {
    let fixture = Fixture::overlay(Trusted, |source| {
        sample(source);
        write(source, ".git/config", "[core]\n");
    });
    fixture.run(|root| {
        write(root, ".git/config", "[core]\n\tfsmonitor = evil\n");
        write(root, ".git/hooks/post-checkout", "evil");
        write(root, ".envrc", "evil");
        write(root, "tool", "#!/bin/sh\n");
        chmod(&root.join("tool"), 0o755)?;
        write(root, "root-shell", "x");
        chmod(&root.join("root-shell"), 0o4755)?;
        write(root, "bare/HEAD", "ref: refs/heads/main\n");
        fs::create_dir(root.join("bare/objects"))?;
        write(root, "bare/config", "[core]\n");
        symlink("/etc/passwd", root.join("out"))?;
        Dir::open(root)?.make_node(b"device", EntryKind::CharDevice, 0x0103)
    });
    let changes = fixture.changes();
    let flags = |name: &str| {
        let found = changes
            .changes
            .iter()
            .find(|change| change.path == path(name));
        found.unwrap_or_else(|| panic!("no {name}")).flags.clone()
    };
    assert_eq!(flags(".git/config"), [Flag::GitControl]);
    assert_eq!(flags(".git/hooks/post-checkout"), [Flag::GitControl]);
    assert_eq!(flags("bare/config"), [Flag::GitControl]);
    assert_eq!(flags(".envrc"), [Flag::RunsOnHost]);
    assert_eq!(flags("tool"), [Flag::Executable]);
    assert_eq!(flags("root-shell"), [Flag::Executable, Flag::Privilege]);
    assert_eq!(flags("out"), [Flag::OutwardSymlink]);
    assert_eq!(flags("device"), [Flag::Unpromotable]);
}

#[test]
fn commands_of_a_package_are_flagged_when_they_change() {
    let fixture = Fixture::overlay(User, |source| {
        for name in ["a", "b", "c"] {
            write(
                source,
                &format!("{name}/package.json"),
                r#"{"scripts": {"x": "y"}}"#,
            );
        }
    });
    fixture.run(|root| {
        write(
            root,
            "a/package.json",
            r#"{"version": "2", "scripts": {"x": "y"}}"#,
        );
        write(
            root,
            "b/package.json",
            r#"{"scripts": {"x": "y", "postinstall": "evil"}}"#,
        );
        write(root, "c/package.json", "{ not json");
        write(root, "d/package.json", r#"{"name": "d"}"#);
        write(root, "e/package.json", r#"{"lint-staged": {"*": "evil"}}"#);
        Ok(())
    });
    let changes = fixture.changes().changes;
    let flagged: Vec<String> = changes
        .iter()
        .filter(|change| change.flags.contains(&Flag::RunsOnHost))
        .map(|change| change.path.to_string())
        .collect();
    assert_eq!(
        flagged,
        ["b/package.json", "c/package.json", "e/package.json"]
    );
}

/// The paths that carry `flag`, as a promote sees them.
fn flagged(fixture: &Fixture, flag: Flag) -> Vec<String> {
    let options = ChangeOptions {
        renames: Renames::Split,
        search: Search::Whole,
        ..ChangeOptions::default()
    };
    let changes = fixture.changes_with(&options).changes;
    let flagged = changes.iter().filter(|change| change.flags.contains(&flag));
    flagged.map(|change| change.path.to_string()).collect()
}

#[test]
fn links_by_names_that_run_on_the_host_are_flagged() {
    let fixture = Fixture::overlay(User, |source| write(source, "notes/old", "x"));
    fixture.run(|root| {
        write(root, "notes/settings.json", "evil");
        write(root, "other/file", "x");
        for name in [".claude", ".cargo", ".husky", "sub/.idea", ".github"] {
            fs::create_dir_all(root.join("sub"))?;
            let up = if name.starts_with("sub") {
                "../notes"
            } else {
                "notes"
            };
            symlink(up, root.join(name))?;
        }
        symlink("other", root.join("plain"))
    });
    assert_eq!(
        flagged(&fixture, Flag::RunsOnHost),
        [
            ".cargo",
            ".claude",
            ".github",
            ".husky",
            "notes/settings.json",
            "sub/.idea"
        ]
    );
}

#[test]
fn what_standing_links_lead_to_is_flagged() {
    let fixture = Fixture::overlay(User, |source| {
        write(source, "docs/x.md", "x");
        write(source, "docs/y.md", "y");
        symlink("docs/x.md", source.join("CLAUDE.md")).unwrap();
        write(source, "deep/er/file", "x");
        symlink("../settings", source.join("deep/.vscode")).unwrap();
        symlink("real", source.join("settings")).unwrap();
        write(source, "real/tasks.json", "x");
        write(source, "config/hooks.json", "x");
        // It is not above anything that changes.
        write(source, "away/file", "x");
        symlink("../config", source.join("away/.cursor")).unwrap();
    });
    fixture.run(|root| {
        write(root, "docs/x.md", "evil");
        write(root, "docs/y.md", "fine");
        write(root, "real/tasks.json", "evil");
        write(root, "config/hooks.json", "evil");
        fs::remove_file(root.join("settings"))?;
        symlink("elsewhere", root.join("settings"))?;
        write(root, "elsewhere/tasks.json", "evil");
        Ok(())
    });
    assert_eq!(
        flagged(&fixture, Flag::RunsOnHost),
        [
            "config/hooks.json",
            "docs/x.md",
            "elsewhere",
            "elsewhere/tasks.json",
            "real/tasks.json",
            "settings"
        ]
    );
}

#[test]
fn a_link_out_by_way_of_another_is_flagged() {
    let fixture = Fixture::overlay(User, |source| {
        symlink("/etc", source.join("out")).unwrap();
        write(source, "dir/file", "x");
    });
    fixture.run(|root| {
        symlink("out/passwd", root.join("through"))?;
        symlink("dir/file", root.join("within"))?;
        // Only in the source does it lead out still.
        fs::remove_file(root.join("out"))?;
        fs::create_dir(root.join("out"))
    });
    let changes = fixture.changes().changes;
    let flagged: Vec<String> = changes
        .iter()
        .filter(|change| change.flags.contains(&Flag::OutwardSymlink))
        .map(|change| change.path.to_string())
        .collect();
    assert_eq!(flagged, ["through"]);
}

#[test]
fn a_file_capability_is_flagged() {
    let fixture = Fixture::overlay(Trusted, sample);
    // VFS_CAP_REVISION_2, effective, CAP_NET_BIND_SERVICE.
    let capability = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    fixture.run(|root| Dir::open(root)?.set_xattr(b"a.txt", b"security.capability", &capability));
    let changes = fixture.changes();
    assert_eq!(listed(&changes), ["P a.txt"]);
    assert_eq!(changes.changes[0].flags, [Flag::Privilege]);
}

#[test]
fn odd_entries_neither_block_nor_break() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::remove_file(root.join("a.txt"))?;
        let dir = Dir::open(root)?;
        dir.make_node(b"a.txt", EntryKind::Fifo, 0)?;
        dir.make_node(b"socket", EntryKind::Socket, 0)?;
        fs::write(root.join(OsStr::from_bytes(b"\xffodd\n\x1b[2J")), "x")?;
        let bomb = fs::File::create(root.join("bomb"))?;
        bomb.set_len(1 << 42)
    });
    let changes = fixture.changes();
    assert_eq!(
        listed(&changes),
        ["T a.txt", "A bomb", "A socket", "A \\xffodd\\x0a\\x1b[2J"]
    );
    let text = serde_json::to_string(&changes).unwrap();
    assert_eq!(
        serde_json::from_str::<sandbox_model::ChangeSet>(&text).unwrap(),
        changes
    );
}

#[test]
fn a_sparse_bomb_for_a_sparse_file_is_compared_by_its_data() {
    let fixture = Fixture::overlay(User, |source| {
        fs::File::create(source.join("disk"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
    });
    fixture.run(|root| {
        fs::remove_file(root.join("disk"))?;
        fs::File::create(root.join("disk"))?.set_len(1 << 40)
    });
    assert_eq!(fixture.listed(), Vec::<String>::new());
}

#[test]
fn a_workspace_that_lost_everything_lists_everything() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            for entry in fs::read_dir(root)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        });
        let changes = fixture.changes();
        assert_eq!(changes.changes.len(), 6);
        assert!(
            changes
                .changes
                .iter()
                .all(|change| change.kind == ChangeKind::Deleted)
        );
        assert!(
            !changes
                .changes
                .iter()
                .any(|change| change.path == RelPath::root())
        );
    }
}

#[test]
fn names_of_one_file_are_known_as_such() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| {
            fs::write(root.join("x"), "linked")?;
            fs::hard_link(root.join("x"), root.join("dir/y"))?;
            fs::hard_link(root.join("a.txt"), root.join("a2.txt"))
        });
        assert_eq!(fixture.listed(), ["A a2.txt", "A dir/y", "A x"]);
        let groups = super::hard_links(&fixture.view()).unwrap();
        assert_eq!(
            groups,
            [
                vec![path("a.txt"), path("a2.txt")],
                vec![path("dir/y"), path("x")]
            ]
        );
    }
}

#[test]
fn a_budget_bounds_what_is_listed_by_its_bytes() {
    let fixture = Fixture::overlay(User, sample);
    let name = "n".repeat(200);
    fixture.run(|root| {
        let mut at = Dir::open(root)?;
        for _ in 0..60 {
            at = at.make_dir(name.as_bytes())?;
        }
        fs::write(root.join("new"), "one\n")
    });
    let view = fixture.view();
    let list = |budget: Budget| {
        let options = ChangeOptions::default();
        listing(&view, &options, &budget, &mut Silent).unwrap()
    };
    let all = list(Budget::NONE);
    assert!(all.complete && all.total == 61 && all.set.changes.len() == 61);
    // One path more is as long as all names above it together.
    let listed_bytes = 100 << 10;
    let some = list(Budget {
        listed_bytes,
        ..Budget::NONE
    });
    let bytes = some
        .set
        .changes
        .iter()
        .map(|change| change.path.as_bytes().len());
    assert!(bytes.sum::<usize>() <= listed_bytes);
    assert!(some.complete && some.total == 61);
    assert!((10..60).contains(&some.set.changes.len()));
    let few = list(Budget {
        listed: 3,
        walked_bytes: 100 << 10,
        ..Budget::NONE
    });
    assert!(!few.complete && few.total < 61 && few.set.changes.len() == 3);
}
