use std::fs;

use sandbox_model::BackendChoice;

use super::*;
use crate::progress::Silent;

fn setting() -> (tempfile::TempDir, Root, CreateRequest) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("project")).unwrap();
    fs::write(dir.path().join("project/file"), "x").unwrap();
    let root = Root::open(&dir.path().join("state/root")).unwrap();
    let request = CreateRequest {
        name: Some("risky".parse().unwrap()),
        source: dir.path().join("project"),
        backend: BackendChoice::Auto,
        settings: Settings::default(),
    };
    (dir, root, request)
}

#[test]
fn a_sandbox_is_found_again_under_its_name() {
    let (_dir, root, request) = setting();
    let made = root.create(&request, &mut Silent).unwrap();
    let found = root.sandbox("risky").unwrap();
    assert_eq!(found.meta, made.meta);
    assert_eq!(root.names().unwrap(), ["risky".parse().unwrap()]);
    let plain = fs::read_to_string(made.dir.join("source")).unwrap();
    assert_eq!(Path::new(plain.trim_end()), made.source());
    assert_eq!(
        fs::read_to_string(made.dir.join("backend")).unwrap().trim(),
        made.meta.backend.as_str()
    );
}

#[test]
fn the_second_of_one_name_is_refused() {
    let (_dir, root, request) = setting();
    root.create(&request, &mut Silent).unwrap();
    assert!(matches!(
        root.create(&request, &mut Silent),
        Err(RootError::Exists(_))
    ));
}

#[test]
fn of_many_creates_of_one_name_at_once_one_wins() {
    let (_dir, root, request) = setting();
    let won = std::thread::scope(|scope| {
        let attempts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| root.create(&request, &mut Silent).is_ok()))
            .collect();
        attempts
            .into_iter()
            .filter_map(|attempt| attempt.join().ok())
            .filter(|won| *won)
            .count()
    });
    assert_eq!(won, 1);
    let left: Vec<_> = fs::read_dir(root.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".new-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let (_dir, root, request) = setting();
    root.create(&request, &mut Silent).unwrap();
    let error = root.sandbox("riskx").unwrap_err();
    assert_eq!(error.class(), Class::NotFound);
    assert_eq!(error.hint().unwrap(), "did you mean 'risky'?");
}

#[test]
fn names_that_are_none_are_refused_before_any_path_is_made_of_them() {
    let (_dir, root, _) = setting();
    for name in ["", "../x", "a/b", "-x", ".hidden"] {
        assert!(
            matches!(root.sandbox(name), Err(RootError::Name(_))),
            "{name:?}"
        );
    }
}

#[test]
fn a_missing_source_or_a_file_is_no_source() {
    let (dir, root, request) = setting();
    for source in [dir.path().join("absent"), dir.path().join("project/file")] {
        let error = root.create(
            &CreateRequest {
                source,
                ..request.clone()
            },
            &mut Silent,
        );
        assert_eq!(error.unwrap_err().class(), Class::SourceNotFound);
    }
    assert_eq!(root.names().unwrap(), []);
}

#[test]
fn a_create_that_was_killed_is_swept_and_one_under_way_is_not() {
    let (_dir, root, request) = setting();
    for name in [".new-dead", ".new-alive"] {
        fs::create_dir(root.path().join(name)).unwrap();
        fs::write(root.path().join(name).join("lock"), "").unwrap();
    }
    let alive = lock::Lock::take(
        &root.path().join(".new-alive"),
        lock::Sharing::Exclusive,
        lock::Use::Marked,
    );
    root.create(&request, &mut Silent).unwrap();
    assert!(!root.path().join(".new-dead").exists());
    assert!(root.path().join(".new-alive").exists());
    drop(alive);
}

#[test]
fn a_create_that_has_made_its_lock_and_not_yet_taken_it_is_not_swept() {
    let (_dir, root, request) = setting();
    let late = root.path().join(format!(".new-{:x}-1", std::process::id()));
    fs::create_dir(&late).unwrap();
    fs::write(late.join("lock"), "").unwrap();
    root.create(&request, &mut Silent).unwrap();
    assert!(late.exists());
}

#[test]
fn a_record_of_a_newer_format_is_refused() {
    let (_dir, root, request) = setting();
    let made = root.create(&request, &mut Silent).unwrap();
    fs::write(made.dir.join("meta.json"), r#"{"version":99,"else":1}"#).unwrap();
    let error = root.sandbox("risky").unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "it was written by a newer sandbox (format 99)");
}
