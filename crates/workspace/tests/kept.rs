//! What a promote keeps of what it displaced: copies beside the source when asked, and pre-images to
//! undo it by, for a while.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use project::*;
use sandbox_model::BackendKind;
use sandbox_workspace::garbage::{self, GarbageKind};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::fault::{self, Action};
use sandbox_workspace::promote::{
    self, Backup, PromoteError, Promoted, Recovery, recover, recover_thoroughly,
};
use sandbox_workspace::undo::{self, KEEP_COUNT, KEEP_DAYS, UndoError, Which};

fn promote_with_backup(project: &Project) -> Result<Promoted, PromoteError> {
    let plan = project.plan_all();
    promote::apply(&project.sandbox, plan, Backup::Beside, &mut Silent)
}

/// What lies beside the source but for the sandbox root.
fn beside(project: &Project) -> Vec<PathBuf> {
    fs::read_dir(project.source.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| *path != project.source && path.file_name().unwrap() != "root")
        .collect()
}

#[test]
fn a_backup_holds_what_was_replaced_and_deleted_exactly_and_nothing_else() {
    let project = Project::new(PLANT);
    let before = snapshot(&project.source, Closeness::Times);
    project.run(
        "echo ONE > a.txt; rm -r old; rm swapf; mkdir swapf; echo new > new; chmod 755 run.sh",
    );
    let backup = promote_with_backup(&project).unwrap().backup.unwrap();
    assert_eq!(beside(&project), [backup.as_path()]);
    let name = backup.file_name().unwrap().to_string_lossy();
    assert!(name.starts_with("project.sandbox-backup-"), "{name}");
    let mut held = snapshot(&backup, Closeness::Times);
    held.remove(&b""[..]);
    let displaced =
        |name: &[u8]| name.starts_with(b"old") || [&b"a.txt"[..], &b"swapf"[..]].contains(&name);
    let wanted = before.into_iter().filter(|(name, _)| displaced(name));
    assert_same(&held, &wanted.collect(), "the backup");
}

#[test]
fn a_backup_is_for_its_owner_alone() {
    let project = Project::new("mkdir d; echo secret > d/f; echo secret > g; chmod 700 .");
    project.run("echo x > d/f; echo x > g");
    let backup = promote_with_backup(&project).unwrap().backup.unwrap();
    let mode = fs::metadata(&backup).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn nothing_displaced_leaves_no_backup() {
    let project = Project::new("echo a > a");
    project.run("echo new > new; mkdir d");
    assert_eq!(promote_with_backup(&project).unwrap().backup, None);
    assert_eq!(beside(&project), Vec::<PathBuf>::new());
}

#[test]
fn a_promote_that_fails_leaves_no_backup() {
    for point in ["back up", "journal", "rename"] {
        let project = Project::new("echo a > a; echo b > b");
        project.run("echo A > a; rm b");
        let plan = project.plan_all();
        let once = AtomicUsize::new(0);
        fault::inject(Box::new(move |at| {
            match at.starts_with(point) && once.fetch_add(1, Ordering::SeqCst) == 0 {
                true => Action::Error(rustix::io::Errno::IO.raw_os_error()),
                false => Action::Continue,
            }
        }));
        let result = promote::apply(&project.sandbox, plan, Backup::Beside, &mut Silent);
        fault::clear();
        assert!(result.is_err(), "{point}");
        assert_eq!(project.read("a"), "a\n", "{point}");
        assert_eq!(beside(&project), Vec::<PathBuf>::new(), "{point}");
        assert_eq!(project.leftovers(), Vec::<String>::new(), "{point}");
    }
}

fn promote_times(project: &Project, times: usize) {
    for time in 0..times {
        project.run(&format!("echo {time} > a"));
        project.promote().unwrap();
    }
}

fn undo_latest(project: &Project) -> Result<undo::Undone, UndoError> {
    let (root, source) = (&project.root, &project.source);
    undo::undo(root, source, &Which::Latest, &[], &mut Silent)
}

/// The transactions on disk, oldest first.
fn kept(project: &Project) -> Vec<PathBuf> {
    let area = fs::read_dir(project.root.path().join(".undo"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut kept: Vec<_> = fs::read_dir(area)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    kept.sort();
    kept
}

/// Makes a transaction older than it is.
fn age(transaction: &std::path::Path, days: i64) {
    let path = transaction.join("journal");
    let text = fs::read_to_string(&path).unwrap();
    let mut journal: serde_json::Value =
        serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
    journal["at"] = then.to_string().into();
    let line = journal.to_string();
    let hash = blake3::hash(line.as_bytes()).to_hex();
    fs::write(path, format!("{line}\n{hash}\n")).unwrap();
}

#[test]
fn only_the_last_promotes_are_kept() {
    let project = Project::new("echo start > a");
    promote_times(&project, KEEP_COUNT + 3);
    assert_eq!(kept(&project).len(), KEEP_COUNT);
    let listed = undo::list(&project.root, &project.source).unwrap();
    assert_eq!(listed.len(), KEEP_COUNT);
    for back in 0..KEEP_COUNT {
        undo_latest(&project).unwrap();
        assert_eq!(project.read("a"), format!("{}\n", KEEP_COUNT + 1 - back));
    }
    assert!(matches!(
        undo_latest(&project),
        Err(UndoError::Nothing { .. })
    ));
}

#[test]
fn what_is_too_old_goes_with_the_next_promote() {
    let project = Project::new("echo start > a");
    promote_times(&project, 3);
    let before = kept(&project);
    age(&before[0], KEEP_DAYS + 1);
    age(&before[1], KEEP_DAYS - 1);
    promote_times(&project, 1);
    let after = kept(&project);
    assert!(!after.contains(&before[0]), "{after:?}");
    assert_eq!(&after[..2], &before[1..]);
}

#[test]
fn an_undo_keeps_what_it_took_back_for_as_long_as_itself() {
    let project = Project::new("echo start > a; echo b > b");
    promote_times(&project, 1);
    let promote = kept(&project);
    let undone = undo_latest(&project).unwrap();
    age(&promote[0], KEEP_DAYS + 1);
    project.run("echo other > b");
    project.promote().unwrap();
    undo_latest(&project).unwrap();
    // The young undo needs the pre-images that the old promote's stage holds.
    let again = Which::Id(undone.id);
    undo::undo(&project.root, &project.source, &again, &[], &mut Silent).unwrap();
    assert_eq!(project.read("a"), "0\n");
}

#[test]
fn an_undo_under_way_keeps_what_it_takes_back() {
    // On one filesystem, where an undo moves entries out of the stage of the promote.
    let project = Project::with("echo a > a; echo b > b", BackendKind::Overlay);
    project.run("echo A > a; echo B > b");
    project.promote().unwrap();
    let error = rustix::io::Errno::IO.raw_os_error();
    fault::inject(Box::new(move |point| match point {
        "commit written" | "put back" => Action::Error(error),
        _ => Action::Continue,
    }));
    undo_latest(&project).unwrap_err();
    fault::clear();
    age(&kept(&project)[0], KEEP_DAYS + 1);
    let around = project.source.parent().unwrap();
    shell(around, "mv project elsewhere");
    let expired = || {
        let found = garbage::find(&project.root, Duration::MAX, Duration::MAX).unwrap();
        let kinds = found.into_iter().map(|garbage| garbage.kind);
        kinds.filter(|kind| *kind == GarbageKind::Expired).count()
    };
    assert_eq!(expired(), 0, "its stage is needed");
    shell(around, "mkdir project");
    let aside = recover(&project.root, &project.source).unwrap().unwrap();
    assert_eq!(aside.outcome, Recovery::SetAside);
    assert_eq!(expired(), 0, "it may be taken up again");
    shell(around, "rmdir project; mv elsewhere project");
    recover_thoroughly(&project.root, &project.source).unwrap();
    assert_eq!(
        (project.read("a"), project.read("b")),
        ("A\n".into(), "B\n".into())
    );
    assert_eq!(expired(), 1, "its time is over");
}

#[test]
fn all_of_it_on_btrfs() {
    on_btrfs(&["all_of_it"]);
}
