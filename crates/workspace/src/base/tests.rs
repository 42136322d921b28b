//! What is known of the source at first touch.

use std::fs;
use std::io;
use std::path::Path;

use sandbox_model::OverlayXattr::{Trusted, User};
use sandbox_model::RelPath;

use super::{BaseContent, BaseStore, record, run_began};
use crate::fixture::{Fixture, next_tick, path, write};
use crate::side::Side;

fn sample(source: &Path) {
    write(source, "file", "first\n");
    write(source, "dir/inner", "inner\n");
    write(source, "dir/other", "other\n");
}

fn store(fixture: &Fixture) -> BaseStore {
    BaseStore::open(&fixture.sandbox).unwrap()
}

fn read(side: &dyn Side, name: &str) -> String {
    let mut text = String::new();
    io::Read::read_to_string(&mut side.open(&path(name)).unwrap(), &mut text).unwrap();
    text
}

fn ino(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

#[test]
fn the_first_touch_is_recorded_and_stays() {
    for xattr in [User, Trusted] {
        let fixture = Fixture::overlay(xattr, sample);
        fixture.run(|root| fs::write(root.join("dir/inner"), "ours\n"));
        fs::write(fixture.source().join("dir/inner"), "theirs\n").unwrap();
        fixture.run(|root| fs::write(root.join("dir/inner"), "ours again\n"));
        let store = store(&fixture);
        let base = store.get(&path("dir/inner")).unwrap();
        assert!(!base.uncertain);
        assert_eq!(
            base.chain,
            [ino(fixture.source()), ino(&fixture.source().join("dir"))]
        );
        assert_eq!(read(&store, "dir/inner"), "inner\n");
        let now = fixture.view().source.stat(&path("dir/inner")).unwrap();
        assert!(!base.stands(now.as_ref()));
        assert_eq!(store.get(&path("file")), None);
    }
}

#[test]
fn a_run_that_touches_nothing_writes_nothing() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| fs::read(root.join("file")).map(drop));
    assert!(!fixture.sandbox.dir.join("bases/index").exists());
}

#[test]
fn a_created_directory_is_recorded_once_and_not_entered() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::create_dir_all(root.join("target/debug"))?;
        fs::write(root.join("target/debug/out"), "x")
    });
    let index = fs::read_to_string(fixture.sandbox.dir.join("bases/index")).unwrap();
    assert_eq!(index.lines().count(), 2, "the root and target: {index}");
    let base = store(&fixture).get(&path("target/debug/out")).unwrap();
    assert_eq!(
        (base.entry, base.chain),
        (None, vec![ino(fixture.source())])
    );
}

#[test]
fn what_the_source_puts_into_a_deleted_directory_was_not_there_at_first() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| fs::remove_dir_all(root.join("dir")));
    write(fixture.source(), "dir/late", "late");
    fixture.run(|root| {
        fs::create_dir(root.join("dir"))?;
        fs::write(root.join("dir/late"), "ours")
    });
    let store = store(&fixture);
    assert_eq!(store.get(&path("dir/late")).unwrap().entry, None);
    assert!(store.get(&path("dir/inner")).unwrap().entry.is_some());
    assert_eq!(store.list(&path("dir")).unwrap(), [&b"inner"[..], b"other"]);
}

#[test]
fn a_directory_deleted_after_an_edit_in_it_is_recorded_whole() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| fs::write(root.join("dir/inner"), "ours"));
    fixture.run(|root| fs::remove_dir_all(root.join("dir")));
    write(fixture.source(), "dir/late", "late");
    let store = store(&fixture);
    assert!(store.get(&path("dir/other")).unwrap().entry.is_some());
    assert_eq!(store.get(&path("dir/late")).unwrap().entry, None);
    assert_eq!(read(&store, "dir/inner"), "inner\n");
}

#[test]
fn a_source_that_moves_during_the_run_makes_the_base_uncertain() {
    let fixture = Fixture::overlay(User, sample);
    next_tick();
    let began = run_began(&fixture.sandbox).unwrap();
    fixture.inside(|root| {
        fs::write(root.join("file"), "ours")?;
        fs::write(root.join("dir/inner"), "ours")
    });
    // Another file of the same directory appears: the directory changed, the other path did not.
    write(fixture.source(), "dir/appeared", "new");
    record(&fixture.sandbox, began).unwrap();
    let store = store(&fixture);
    assert!(store.get(&path("dir/inner")).unwrap().uncertain);
    assert!(!store.get(&path("file")).unwrap().uncertain);
}

#[test]
fn a_time_in_the_future_says_nothing() {
    let fixture = Fixture::overlay(User, |source| {
        sample(source);
        let future = std::time::SystemTime::now() + std::time::Duration::from_secs(1 << 20);
        fs::File::open(source.join("file"))
            .unwrap()
            .set_modified(future)
            .unwrap();
    });
    fixture.run(|root| fs::write(root.join("file"), "ours"));
    assert!(!store(&fixture).get(&path("file")).unwrap().uncertain);
}

#[test]
fn a_run_that_died_is_recorded_by_whoever_looks_next() {
    let fixture = Fixture::overlay(User, sample);
    next_tick();
    // A process that is certainly gone.
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let began = run_began(&fixture.sandbox).unwrap();
    let bases = fixture.sandbox.dir.join("bases");
    let mark = |pid: u32| bases.join(format!("run.{pid}.{}.{}", began.0, began.1));
    fs::rename(mark(std::process::id()), mark(child.id())).unwrap();
    fixture.inside(|root| {
        fs::write(root.join("file"), "ours")?;
        fs::write(root.join("dir/inner"), "ours")
    });
    fs::write(fixture.source().join("file"), "theirs").unwrap();
    let view = fixture.view();
    assert!(view.base.get(&path("file")).unwrap().uncertain);
    assert!(!view.base.get(&path("dir/inner")).unwrap().uncertain);
    assert!(!mark(child.id()).exists());
}

#[test]
fn a_run_still_on_keeps_its_mark() {
    let fixture = Fixture::overlay(User, sample);
    next_tick();
    let began = run_began(&fixture.sandbox).unwrap();
    fixture.inside(|root| fs::write(root.join("file"), "ours"));
    assert!(fixture.view().base.get(&path("file")).is_some());
    let marks = || {
        fs::read_dir(fixture.sandbox.dir.join("bases"))
            .unwrap()
            .filter(|entry| {
                entry
                    .as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with("run.")
            })
            .count()
    };
    assert_eq!(marks(), 1);
    record(&fixture.sandbox, began).unwrap();
    assert_eq!(marks(), 0);
}

#[test]
fn large_files_that_cannot_be_shared_are_kept_as_a_digest() {
    let fixture = Fixture::overlay(User, |source| {
        write(source, "large", vec![b'x'; (1 << 20) + 1]);
        write(source, "small", vec![b'x'; 1 << 20]);
    });
    fixture.run(|root| {
        fs::write(root.join("large"), "short")?;
        fs::write(root.join("small"), "short")
    });
    let store = store(&fixture);
    let shared = |content: &BaseContent| matches!(content, BaseContent::Saved(_));
    let large = store.get(&path("large")).unwrap();
    let small = store.get(&path("small")).unwrap();
    assert!(shared(&small.content));
    if !shared(&large.content) {
        assert!(
            matches!(large.content, BaseContent::Hash(_)),
            "{:?}",
            large.content
        );
        // The source still has it.
        assert!(store.open(&path("large")).is_ok());
        fs::write(fixture.source().join("large"), "gone").unwrap();
        assert_eq!(
            store.open(&path("large")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}

#[test]
fn a_forgotten_base_is_the_sources_own_again() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::write(root.join("file"), "ours\n")?;
        fs::write(root.join("dir/inner"), "ours\n")
    });
    let contents = || {
        fs::read_dir(fixture.sandbox.dir.join("bases/contents"))
            .unwrap()
            .count()
    };
    assert_eq!(contents(), 2);
    fs::write(fixture.source().join("file"), "ours\n").unwrap();
    store(&fixture).forget(&[path("file")], &[]).unwrap();
    assert_eq!(contents(), 1);
    let store = store(&fixture);
    assert_eq!(store.get(&path("file")), None);
    assert_eq!(read(&store, "file"), "ours\n");
    assert!(store.get(&path("dir/inner")).is_some());
    assert_eq!(fixture.listed(), ["M dir/inner"]);
    assert!(store.get(&RelPath::root()).is_some());
}

#[test]
fn what_left_the_layer_is_forgotten() {
    let fixture = Fixture::overlay(User, sample);
    fixture.run(|root| {
        fs::write(root.join("dir/inner"), "ours\n")?;
        fs::write(root.join("file"), "ours\n")
    });
    // As a promote leaves it.
    fs::remove_dir_all(fixture.sandbox.dir.join("upper/dir")).unwrap();
    fixture.run(|_| Ok(()));
    let store = store(&fixture);
    assert_eq!(
        (store.get(&path("dir")), store.get(&path("dir/inner"))),
        (None, None)
    );
    assert!(store.get(&path("file")).is_some());
}

#[test]
fn a_snapshot_is_its_own_base() {
    let fixture = Fixture::frozen(sample);
    fixture.run(|root| fs::write(root.join("file"), "ours\n"));
    fs::write(fixture.source().join("file"), "theirs\n").unwrap();
    fs::write(fixture.source().join("dir/inner"), "theirs\n").unwrap();
    let store = store(&fixture);
    assert_eq!(read(&store, "file"), "first\n");
    assert_eq!(read(&store, "dir/inner"), "inner\n");
    let base = store.get(&path("file")).unwrap();
    assert_eq!((base.content, base.uncertain), (BaseContent::Frozen, false));
    assert_eq!(store.get(&path("missing/deeper")).unwrap().entry, None);
    assert_eq!(fixture.listed(), ["M file"]);
}

#[test]
fn what_was_promoted_from_a_snapshot_leaves_the_change_set() {
    let fixture = Fixture::frozen(sample);
    fixture.run(|root| {
        fs::write(root.join("file"), "ours\n")?;
        fs::remove_dir_all(root.join("dir"))?;
        write(root, "new/file", "new\n");
        Ok(())
    });
    assert_eq!(
        fixture.listed(),
        [
            "D dir",
            "D dir/inner",
            "D dir/other",
            "M file",
            "A new",
            "A new/file"
        ]
    );
    fs::write(fixture.source().join("file"), "ours\n").unwrap();
    fs::remove_dir_all(fixture.source().join("dir")).unwrap();
    let promoted = ["file", "dir", "dir/inner", "dir/other"].map(path);
    store(&fixture).forget(&promoted, &[]).unwrap();
    assert_eq!(fixture.listed(), ["A new", "A new/file"]);
    assert_eq!(read(&store(&fixture), "file"), "ours\n");
    fixture.run(|root| fs::write(root.join("file"), "ours again\n"));
    assert_eq!(fixture.listed(), ["M file", "A new", "A new/file"]);
    fs::write(fixture.source().join("file"), "theirs\n").unwrap();
    assert_eq!(read(&store(&fixture), "file"), "ours\n");
}

#[test]
fn a_copy_knows_what_it_was_copied_from() {
    let fixture = Fixture::copied(sample);
    fixture.run(|root| {
        fs::write(root.join("file"), "ours\n")?;
        fs::remove_file(root.join("dir/inner"))
    });
    fs::write(fixture.source().join("file"), "theirs\n").unwrap();
    fs::write(fixture.source().join("dir/other"), "theirs\n").unwrap();
    assert_eq!(fixture.listed(), ["D dir/inner", "M file"]);
    let store = store(&fixture);
    assert_eq!(
        read(&store, "file"),
        "first\n",
        "saved at the end of the run"
    );
    assert_eq!(
        read(&store, "dir/other"),
        "other\n",
        "the copy still has it"
    );
    assert_eq!(
        read(&store, "dir/inner"),
        "inner\n",
        "the source still has it"
    );
    assert_eq!(store.list(&path("dir")).unwrap(), [&b"inner"[..], b"other"]);
    let base = store.get(&path("file")).unwrap();
    assert_eq!(base.chain, [ino(fixture.source())]);
    assert!(!base.stands(fixture.view().source.stat(&path("file")).unwrap().as_ref()));
}

#[test]
fn a_copy_whose_source_moved_first_says_that_contents_are_lost() {
    let fixture = Fixture::copied(sample);
    fs::write(fixture.source().join("file"), "theirs\n").unwrap();
    fixture.run(|root| fs::write(root.join("file"), "ours\n"));
    assert_eq!(fixture.listed(), ["M file"]);
    let lost = store(&fixture).open(&path("file")).unwrap_err();
    assert_eq!(lost.kind(), io::ErrorKind::NotFound);
}
