use std::fs;

use sandbox_model::{BackendChoice, BackendKind, Settings};

use super::*;
use crate::progress::Silent;
use crate::root::{CreateRequest, Root};

fn sandbox(kind: BackendKind) -> (tempfile::TempDir, Sandbox) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("project")).unwrap();
    fs::write(dir.path().join("project/file"), "source").unwrap();
    let root = Root::open(&dir.path().join("root")).unwrap();
    let request = CreateRequest {
        name: Some("first".parse().unwrap()),
        source: dir.path().join("project"),
        backend: BackendChoice::Only(kind),
        settings: Settings::default(),
    };
    let sandbox = root.create(&request, &mut Silent).unwrap();
    (dir, sandbox)
}

fn write(sandbox: &Sandbox, text: &str) {
    fs::write(sandbox.layer_dir().join("changed"), text).unwrap();
}

fn read(sandbox: &Sandbox) -> String {
    fs::read_to_string(sandbox.layer_dir().join("changed")).unwrap()
}

fn label(text: &str) -> Label {
    text.parse().unwrap()
}

const KINDS: [BackendKind; 2] = [BackendKind::Overlay, BackendKind::Copy];

#[test]
fn a_fork_has_its_own_copy_of_the_changes() {
    for kind in KINDS {
        let (_dir, first) = sandbox(kind);
        write(&first, "one");
        fs::create_dir_all(first.home_dir().join("root")).unwrap();
        fs::write(first.home_dir().join("root/.profile"), "home").unwrap();
        let second = fork(&first, &"second".parse().unwrap(), &mut Silent).unwrap();
        write(&first, "two");
        assert_eq!(read(&second), "one");
        assert_eq!(second.meta.forked_from.as_ref(), Some(first.name()));
        assert_eq!(second.source(), first.source());
        let home = fs::read_to_string(second.home_dir().join("root/.profile")).unwrap();
        assert_eq!(home, "home");
        assert_eq!(first.root.names().unwrap().len(), 2);
    }
}

#[test]
fn a_fork_to_a_name_that_is_taken_is_refused() {
    let (_dir, first) = sandbox(BackendKind::Overlay);
    let error = fork(&first, &"first".parse().unwrap(), &mut Silent).unwrap_err();
    assert!(
        matches!(error, CheckpointError::Root(RootError::Exists(_))),
        "{error}"
    );
}

#[test]
fn a_rollback_brings_the_checkpoint_back_and_keeps_it() {
    for kind in KINDS {
        let (_dir, sandbox) = sandbox(kind);
        write(&sandbox, "one");
        fs::create_dir_all(sandbox.bases_dir()).unwrap();
        fs::write(sandbox.bases_dir().join("index"), "bases").unwrap();
        assert_eq!(snapshot(&sandbox, None, &mut Silent).unwrap(), label("1"));
        write(&sandbox, "two");
        fs::write(sandbox.layer_dir().join("later"), "x").unwrap();
        fs::write(sandbox.bases_dir().join("index"), "changed").unwrap();
        for _ in 0..2 {
            rollback(&sandbox, &label("1"), &mut Silent).unwrap();
            assert_eq!(read(&sandbox), "one");
            assert!(!sandbox.layer_dir().join("later").exists());
            let bases = fs::read_to_string(sandbox.bases_dir().join("index")).unwrap();
            assert_eq!(bases, "bases");
            write(&sandbox, "three");
        }
        let kept = snapshots(&sandbox).unwrap();
        assert_eq!(
            kept.iter()
                .map(|found| found.label.as_str())
                .collect::<Vec<_>>(),
            ["1"]
        );
    }
}

#[test]
fn a_rollback_that_was_killed_is_finished_by_whoever_comes_next() {
    let (_dir, sandbox) = sandbox(BackendKind::Overlay);
    write(&sandbox, "one");
    snapshot(&sandbox, Some(&label("kept")), &mut Silent).unwrap();
    write(&sandbox, "two");
    // As a crash between the two renames of a part leaves it.
    let beside = sandbox.dir.join(".rollback");
    fs::create_dir_all(beside.join("new")).unwrap();
    fs::create_dir_all(beside.join("old")).unwrap();
    for part in ["upper", "workdir"] {
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(sandbox.dir.join("snapshots/kept").join(part))
            .arg(beside.join("new"))
            .status();
        assert!(copied.unwrap().success());
    }
    fs::rename(sandbox.dir.join("upper"), beside.join("old/upper")).unwrap();
    drop(sandbox.lock_shared().unwrap());
    assert_eq!(read(&sandbox), "one");
    assert!(!beside.exists());
}

#[test]
fn labels_are_checked_and_unique() {
    let (_dir, sandbox) = sandbox(BackendKind::Overlay);
    for text in ["", "../x", "a/b", "-x", ".new"] {
        assert_eq!(text.parse::<Label>(), Err(LabelError), "{text:?}");
    }
    snapshot(&sandbox, Some(&label("before")), &mut Silent).unwrap();
    let error = snapshot(&sandbox, Some(&label("before")), &mut Silent).unwrap_err();
    assert!(matches!(error, CheckpointError::Exists { .. }), "{error}");
    let error = rollback(&sandbox, &label("befor"), &mut Silent).unwrap_err();
    assert_eq!(error.hint().unwrap(), "did you mean 'before'?");
    delete_snapshot(&sandbox, &label("before")).unwrap();
    assert_eq!(snapshots(&sandbox).unwrap(), []);
}

#[test]
fn nothing_is_copied_while_something_runs() {
    let (_dir, sandbox) = sandbox(BackendKind::Overlay);
    let _run = sandbox
        .root
        .sandbox("first")
        .unwrap()
        .lock_shared()
        .unwrap();
    let errors = [
        fork(&sandbox, &"second".parse().unwrap(), &mut Silent).unwrap_err(),
        snapshot(&sandbox, None, &mut Silent).unwrap_err(),
        rollback(&sandbox, &label("1"), &mut Silent).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.class(), Class::Busy, "{error}");
    }
}

fn write_home(sandbox: &Sandbox, text: &str) {
    let layer = sandbox.home_dir();
    for part in ["root", "upper/.cache", "work/work"] {
        fs::create_dir_all(layer.join(part)).unwrap();
    }
    fs::write(layer.join("root/.profile"), text).unwrap();
    fs::write(layer.join("upper/.cache/kept"), text).unwrap();
}

fn read_home(sandbox: &Sandbox) -> Option<String> {
    let read = |name: &str| fs::read_to_string(sandbox.home_dir().join(name)).ok();
    let (root, upper) = (read("root/.profile"), read("upper/.cache/kept"));
    assert_eq!(root, upper);
    root
}

#[test]
fn a_rollback_brings_the_home_back() {
    for kind in KINDS {
        let (_dir, sandbox) = sandbox(kind);
        snapshot(&sandbox, Some(&label("empty")), &mut Silent).unwrap();
        write(&sandbox, "one");
        write_home(&sandbox, "one");
        snapshot(&sandbox, Some(&label("one")), &mut Silent).unwrap();
        assert!(!sandbox.dir.join("snapshots/one/home/work").exists());
        write(&sandbox, "two");
        write_home(&sandbox, "two");
        let rolled = rollback(&sandbox, &label("one"), &mut Silent).unwrap();
        assert_eq!(rolled, RolledBack::Everything);
        assert_eq!(read_home(&sandbox).unwrap(), "one");
        write(&sandbox, "three");
        rollback_home(&sandbox, &label("empty"), &mut Silent).unwrap();
        assert_eq!(
            (read_home(&sandbox), read(&sandbox)),
            (None, "three".to_owned())
        );
        rollback_home(&sandbox, &label("one"), &mut Silent).unwrap();
        reset_home(&sandbox).unwrap();
        assert_eq!(
            (read_home(&sandbox), read(&sandbox)),
            (None, "three".to_owned())
        );
    }
}

#[test]
fn a_snapshot_without_a_home_leaves_the_home() {
    let (_dir, sandbox) = sandbox(BackendKind::Overlay);
    write(&sandbox, "one");
    snapshot(&sandbox, Some(&label("old")), &mut Silent).unwrap();
    fs::remove_dir_all(sandbox.dir.join("snapshots/old/home")).unwrap();
    assert!(!snapshots(&sandbox).unwrap()[0].home);
    write(&sandbox, "two");
    write_home(&sandbox, "two");
    let rolled = rollback(&sandbox, &label("old"), &mut Silent).unwrap();
    assert_eq!(rolled, RolledBack::WorkspaceOnly);
    assert_eq!(
        (read_home(&sandbox).unwrap(), read(&sandbox)),
        ("two".into(), "one".into())
    );
    let error = rollback_home(&sandbox, &label("old"), &mut Silent).unwrap_err();
    assert!(matches!(error, CheckpointError::NoHome { .. }), "{error}");
}
