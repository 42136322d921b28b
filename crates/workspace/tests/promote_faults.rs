//! Promote and undo killed, starved and raced at every step of their journal.
//!
//! A killed step is a killed process: this binary runs itself again as the one that dies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod project;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use project::*;
use sandbox_model::{BackendChoice, BackendKind, Class, Failure, Settings};
use sandbox_workspace::discard::discard;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::fault::{self, Action};
use sandbox_workspace::promote::{self, Plan, PromoteError, Promoted, Recovery, recover};
use sandbox_workspace::root::CreateRequest;
use sandbox_workspace::undo::{self, Which};

/// What the child does, and where it dies.
struct Child<'c> {
    dir: &'c Path,
    root: &'c Path,
    deed: &'c str,
    /// Dies at the fault point of this number, counted from 1; 0 lives on.
    dies_at: usize,
    /// The filesystem cannot exchange.
    two_steps: bool,
}

impl Child<'_> {
    fn run(&self) -> ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--quiet"])
            .env("FAULT_DIR", self.dir)
            .env("FAULT_ROOT", self.root)
            .env("FAULT_DEED", self.deed)
            .env("FAULT_AT", self.dies_at.to_string())
            .env("FAULT_TWO_STEPS", self.two_steps.to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
    }

    /// Runs the deed to its end and tells how many fault points it passed.
    fn points(&self) -> usize {
        let status = self.run();
        assert!(status.success(), "{} failed: {status}", self.deed);
        fs::read_to_string(self.dir.join("points"))
            .unwrap()
            .parse()
            .unwrap()
    }
}

/// Not a test by itself: what [`Child`] runs.
#[test]
fn child() {
    let Ok(dir) = std::env::var("FAULT_DIR") else {
        return;
    };
    let variable = |name: &str| std::env::var(name).unwrap();
    let dir = PathBuf::from(dir);
    let dies_at: usize = variable("FAULT_AT").parse().unwrap();
    let two_steps = variable("FAULT_TWO_STEPS") == "true";
    let project = Project::reopen(&dir, Path::new(&variable("FAULT_ROOT")));
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    fault::inject(Box::new(move |point| {
        let number = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
        match point {
            _ if number == dies_at => Action::Crash,
            "exchange" if two_steps => Action::Error(rustix::io::Errno::INVAL.raw_os_error()),
            _ => Action::Continue,
        }
    }));
    match variable("FAULT_DEED").as_str() {
        "promote" => drop(project.promote().unwrap()),
        "undo" => drop(project.undo(&[])),
        "redo" => drop(project.redo()),
        "recover" => drop(recover(&project.root, &project.source).unwrap()),
        deed => panic!("{deed}"),
    }
    fs::write(
        dir.join("points"),
        PASSED.load(Ordering::SeqCst).to_string(),
    )
    .unwrap();
}

/// Where a scenario plays.
struct Scene {
    dir: PathBuf,
    root: PathBuf,
    two_steps: bool,
    _temporary: Vec<Temporary>,
    _alone: Alone,
}

/// A directory that goes with all that is in it, also where that is nobody's to enter: an overlay's scratch directory
/// has no mode at all.
struct Temporary(tempfile::TempDir);

impl Drop for Temporary {
    fn drop(&mut self) {
        shell(self.0.path(), "chmod -R u+rwX .");
    }
}

impl Scene {
    /// Everything on one filesystem.
    fn together() -> Scene {
        let alone = Alone::wait();
        let dir = tempfile::tempdir().unwrap();
        let (path, root) = (dir.path().to_owned(), dir.path().join("root"));
        Scene {
            dir: path,
            root,
            two_steps: false,
            _temporary: vec![Temporary(dir)],
            _alone: alone,
        }
    }

    /// The source on a tmpfs, the sandbox root elsewhere.
    fn apart() -> Scene {
        let alone = Alone::wait();
        let (dir, root) = (
            tempfile::tempdir_in("/dev/shm").unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let (path, inside) = (dir.path().to_owned(), root.path().join("root"));
        Scene {
            dir: path,
            root: inside,
            two_steps: false,
            _temporary: vec![Temporary(dir), Temporary(root)],
            _alone: alone,
        }
    }

    fn without_exchange(self) -> Scene {
        Scene {
            two_steps: true,
            ..self
        }
    }

    fn is_apart(&self) -> bool {
        self.dir.starts_with("/dev/shm")
    }

    fn child<'c>(&'c self, deed: &'c str, dies_at: usize) -> Child<'c> {
        Child {
            dir: &self.dir,
            root: &self.root,
            deed,
            dies_at,
            two_steps: self.two_steps,
        }
    }

    fn project(&self) -> PathBuf {
        self.dir.join("project")
    }

    /// A new project with work done in its sandbox.
    fn plant(&self) {
        self.plant_with(PLANT, WORK);
    }

    fn plant_with(&self, plant: &str, work: &str) {
        // An overlay's scratch directory has no mode at all.
        shell(&self.dir, "chmod -R u+rwX . ; rm -rf project");
        shell(
            self.root.parent().unwrap(),
            "chmod -R u+rwX . ; rm -rf root",
        );
        let project = Project::at(&self.dir, &self.root, plant, BackendKind::Overlay);
        project.run(work);
    }

    /// Discards the sandbox for good. Another one takes its name.
    fn replace_sandbox(&self) {
        let project = Project::reopen(&self.dir, &self.root);
        discard(project.root.sandbox("risky").unwrap(), &mut Silent).unwrap();
        let request = CreateRequest {
            name: Some("risky".parse().unwrap()),
            source: project.source.clone(),
            backend: BackendChoice::Only(BackendKind::Overlay),
            settings: Settings::default(),
        };
        project.root.create(&request, &mut Silent).unwrap();
    }

    /// Dies in the recovery too, twice, before one is let through. Tells which way it went.
    fn recover(&self, seed: usize) -> Option<Recovery> {
        for attempt in 0..2 {
            let status = self
                .child("recover", 1 + (seed * 7 + attempt * 5) % 23)
                .run();
            assert!(
                status.success() || status.signal().is_some(),
                "recovery fails: {status}"
            );
        }
        let project = Project::reopen(&self.dir, &self.root);
        let recovered = recover(&project.root, &project.source).unwrap();
        assert_eq!(
            recover(&project.root, &project.source).unwrap(),
            None,
            "it is done"
        );
        if let Some(recovered) = &recovered {
            assert_eq!((&recovered.left, &recovered.kept), (&vec![], &None));
        }
        assert_eq!(project.leftovers(), Vec::<String>::new());
        recovered.map(|recovered| recovered.outcome)
    }
}

/// Kills a promote at every step; afterwards the source is wholly old or wholly new.
fn promote_killed_everywhere(scene: &Scene) {
    scene.plant();
    let points = scene.child("promote", 0).points();
    let new = snapshot(&scene.project(), Closeness::Contents);
    scene.plant();
    let mut old = snapshot(&scene.project(), Closeness::Inodes);
    assert!(points > 60, "only {points} fault points");
    let mut committed = false;
    for dies_at in 1..=points {
        let status = scene.child("promote", dies_at).run();
        assert_eq!(
            status.signal(),
            Some(6),
            "point {dies_at} of {points}: {status}"
        );
        let marked = find(&scene.root.join(".undo"), "committed").is_some();
        scene.recover(dies_at);
        let what = format!("killed at point {dies_at} of {points}");
        if marked {
            committed = true;
            assert_same(
                &snapshot(&scene.project(), Closeness::Contents),
                &new,
                &what,
            );
            assert_eq!(
                Project::reopen(&scene.dir, &scene.root).changes(),
                Vec::<String>::new(),
                "{what}"
            );
            scene.plant();
            old = snapshot(&scene.project(), Closeness::Inodes);
        } else {
            assert_same(&snapshot(&scene.project(), Closeness::Inodes), &old, &what);
        }
    }
    assert!(committed, "no point after the commit mark");
    // What was put back so often can still be promoted: no false conflict.
    assert!(scene.child("promote", 0).run().success());
    assert_same(
        &snapshot(&scene.project(), Closeness::Contents),
        &new,
        "promoted in the end",
    );
}

#[test]
fn a_promote_killed_at_any_step_is_all_or_nothing() {
    promote_killed_everywhere(&Scene::together());
}

#[test]
fn a_promote_killed_at_any_step_is_all_or_nothing_without_exchange() {
    promote_killed_everywhere(&Scene::together().without_exchange());
}

#[test]
fn a_promote_killed_at_any_step_is_all_or_nothing_across_filesystems() {
    promote_killed_everywhere(&Scene::apart());
}

impl Scene {
    fn changes(&self) -> Vec<String> {
        Project::reopen(&self.dir, &self.root).changes()
    }
}

/// Kills an undo at every step; afterwards the changes are either in the source or in the sandbox.
fn undo_killed_everywhere(scene: &Scene) {
    let closeness = if scene.is_apart() {
        Closeness::Times
    } else {
        Closeness::Inodes
    };
    scene.plant();
    let old = snapshot(&scene.project(), closeness);
    let changes = scene.changes();
    assert!(scene.child("promote", 0).run().success());
    let points = scene.child("undo", 0).points();
    assert_same(&snapshot(&scene.project(), closeness), &old, "undone");
    assert_eq!(scene.changes(), changes, "given back");
    scene.plant();
    let mut old = snapshot(&scene.project(), closeness);
    assert!(scene.child("promote", 0).run().success());
    let mut new = snapshot(&scene.project(), Closeness::Inodes);
    for dies_at in 1..=points {
        let status = scene.child("undo", dies_at).run();
        assert_eq!(
            status.signal(),
            Some(6),
            "point {dies_at} of {points}: {status}"
        );
        scene.recover(dies_at);
        let what = format!("undo killed at point {dies_at} of {points}");
        if snapshot(&scene.project(), Closeness::Contents) == contents(&old) {
            assert_same(&snapshot(&scene.project(), closeness), &old, &what);
            assert_eq!(scene.changes(), changes, "{what}");
            scene.plant();
            old = snapshot(&scene.project(), closeness);
            assert!(scene.child("promote", 0).run().success());
            new = snapshot(&scene.project(), Closeness::Inodes);
        } else {
            assert_same(&snapshot(&scene.project(), Closeness::Inodes), &new, &what);
            assert_eq!(scene.changes(), [""; 0], "{what}");
        }
    }
}

/// The same of a redo.
fn redo_killed_everywhere(scene: &Scene) {
    scene.plant();
    let changes = scene.changes();
    assert!(scene.child("promote", 0).run().success());
    let new = snapshot(&scene.project(), Closeness::Contents);
    assert!(scene.child("undo", 0).run().success());
    let points = scene.child("redo", 0).points();
    assert_same(
        &snapshot(&scene.project(), Closeness::Contents),
        &new,
        "redone",
    );
    assert!(scene.child("undo", 0).run().success());
    let old = snapshot(&scene.project(), Closeness::Contents);
    let mut applied = 0;
    for dies_at in 1..=points {
        let status = scene.child("redo", dies_at).run();
        assert_eq!(
            status.signal(),
            Some(6),
            "point {dies_at} of {points}: {status}"
        );
        scene.recover(dies_at);
        let what = format!("redo killed at point {dies_at} of {points}");
        let now = snapshot(&scene.project(), Closeness::Contents);
        if now == new {
            assert_eq!(scene.changes(), [""; 0], "{what}");
            applied += 1;
            assert!(scene.child("undo", 0).run().success(), "{what}");
        } else {
            assert_same(&now, &old, &what);
            assert_eq!(scene.changes(), changes, "{what}");
        }
    }
    assert!(applied > 0, "no point after the commit mark");
}

#[test]
fn a_redo_killed_at_any_step_is_all_or_nothing() {
    redo_killed_everywhere(&Scene::together());
}

#[test]
fn a_redo_killed_at_any_step_is_all_or_nothing_across_filesystems() {
    redo_killed_everywhere(&Scene::apart());
}

#[test]
fn an_undo_killed_at_any_step_is_all_or_nothing() {
    undo_killed_everywhere(&Scene::together());
}

#[test]
fn an_undo_killed_at_any_step_is_all_or_nothing_across_filesystems() {
    undo_killed_everywhere(&Scene::apart());
}

/// Moves directories in every way: one is deleted, one replaced by a file, one new.
const DIRECTORIES: &str = "
    mkdir -p old/sub swap; echo old-a > old/a; echo old-b > old/sub/b
    echo swap-c > swap/c; echo swap-d > swap/d";
const DIRECTORIES_CHANGED: &str = "
    rm -r old swap; echo swap-file > swap
    mkdir -p new/sub; echo new-a > new/a; echo new-b > new/sub/b";
/// Edits one file in each that stands, and adds one.
const EDIT_DIRECTORIES: &str = "
    for file in old/a swap/c swap new/a; do
        if test -f $file; then echo mine >> $file; fi
    done
    for directory in old/sub new/sub; do
        if test -d $directory; then echo mine > $directory/added; fi
    done";

/// Kills `deed` at every step. The user edits what stands in the source then; after the recovery
/// that is still there, and everything else is there or kept.
fn edits_after_a_kill_lose_nothing(scene: &Scene, deed: &str) {
    let prepare = || {
        scene.plant_with(DIRECTORIES, DIRECTORIES_CHANGED);
        assert!(scene.child("promote", 0).run().success());
        if deed == "redo" {
            assert!(scene.child("undo", 0).run().success());
            scene.replace_sandbox();
        }
    };
    prepare();
    let points = scene.child(deed, 0).points();
    let undo = scene.root.join(".undo");
    let mut left = 0;
    for dies_at in 1..=points {
        prepare();
        let status = scene.child(deed, dies_at).run();
        assert_eq!(status.signal(), Some(6), "point {dies_at} of {points}");
        shell(&scene.project(), EDIT_DIRECTORIES);
        let edits = count(&lines(&scene.project()), "mine");
        scene.child("recover", 1 + dies_at % 13).run();
        let project = Project::reopen(&scene.dir, &scene.root);
        let recovered = recover(&project.root, &project.source).unwrap();
        left += recovered.map_or(0, |recovered| recovered.left.len());
        let what = format!("{deed} killed at point {dies_at} of {points}");
        let in_source = lines(&scene.project());
        assert_eq!(count(&in_source, "mine"), edits, "{what}");
        let everywhere = [in_source, lines(&undo)].concat();
        for line in ["old-a", "old-b", "swap-c", "swap-d", "swap-file"] {
            assert!(count(&everywhere, line) > 0, "{what}: no {line}");
        }
        for line in ["new-a", "new-b"] {
            assert!(count(&everywhere, line) > 0, "{what}: no {line}");
        }
    }
    assert!(left > 10, "only {left} edited paths were met");
}

/// The lines of all files below `dir`.
fn lines(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(lines(&entry.path())),
            false => {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                found.extend(text.lines().map(str::to_owned));
            }
        }
    }
    found
}

fn count(lines: &[String], line: &str) -> usize {
    lines.iter().filter(|found| *found == line).count()
}

#[test]
fn edits_after_an_undo_killed_at_any_step_lose_nothing() {
    edits_after_a_kill_lose_nothing(&Scene::together(), "undo");
}

#[test]
fn edits_after_an_undo_killed_at_any_step_lose_nothing_across_filesystems() {
    edits_after_a_kill_lose_nothing(&Scene::apart(), "undo");
}

#[test]
fn edits_after_a_redo_killed_at_any_step_lose_nothing() {
    edits_after_a_kill_lose_nothing(&Scene::together(), "redo");
}

/// Applies `plan` while `hook` decides at every fault point.
fn apply_with_hook(
    project: &Project,
    plan: Plan,
    hook: impl Fn(&str) -> Action + Send + Sync + 'static,
) -> Result<Promoted, PromoteError> {
    fault::inject(Box::new(hook));
    let result = promote::apply(&project.sandbox, plan, Default::default(), &mut Silent);
    fault::clear();
    result
}

/// Fails the promote with `errno` at every step in turn.
fn promote_failing_everywhere(scene: &Scene, errno: i32) {
    scene.plant();
    let mut old = snapshot(&scene.project(), Closeness::Inodes);
    let mut at = 0;
    loop {
        at += 1;
        let project = Project::reopen(&scene.dir, &scene.root);
        let plan = project.plan_all();
        let passed = AtomicUsize::new(0);
        let result = apply_with_hook(&project, plan, move |_| {
            match passed.fetch_add(1, Ordering::SeqCst) + 1 == at {
                true => Action::Error(errno),
                false => Action::Continue,
            }
        });
        let Err(error) = result else { break };
        // In the middle of cleaning up, or of updating the sandbox: the next one finishes it.
        recover(&project.root, &project.source).unwrap();
        assert_eq!(project.leftovers(), Vec::<String>::new(), "{error} at {at}");
        let settled = project.changes().is_empty();
        drop(project);
        if settled {
            scene.plant();
            old = snapshot(&scene.project(), Closeness::Inodes);
        } else {
            assert_eq!(error.class(), Class::DiskFull, "{error:?} at {at}");
            assert_same(
                &snapshot(&scene.project(), Closeness::Inodes),
                &old,
                "as before",
            );
        }
    }
    assert!(at > 60, "only {at} fault points");
}

#[test]
fn no_space_at_any_step_leaves_the_source_as_it_was() {
    let no_space = rustix::io::Errno::NOSPC.raw_os_error();
    promote_failing_everywhere(&Scene::together(), no_space);
    promote_failing_everywhere(&Scene::apart(), no_space);
}

#[test]
fn a_late_change_is_a_conflict_and_everything_goes_back() {
    let outside: [(&str, &str); 4] = [
        ("rename", "echo late > z.txt"),
        ("rename", "rm z.txt"),
        ("rename", "mv zdir zmoved"),
        ("rename", "echo late > zdir/new"),
    ];
    for (point, script) in outside {
        let project = Project::new("echo a > a.txt; echo z > z.txt; mkdir zdir; echo f > zdir/f");
        project.run("echo A > a.txt; echo Z > z.txt; rm -r zdir");
        let plan = project.plan_all();
        let (source, once) = (project.source.clone(), AtomicUsize::new(0));
        let result = apply_with_hook(&project, plan, move |at| {
            if at == point && once.fetch_add(1, Ordering::SeqCst) == 0 {
                shell(&source, script);
            }
            Action::Continue
        });
        assert!(
            matches!(result, Err(PromoteError::LateChange { .. })),
            "{script}: {result:?}"
        );
        assert_eq!(project.read("a.txt"), "a\n", "{script}");
        let wanted = tempfile::tempdir().unwrap();
        shell(
            wanted.path(),
            "echo a > a.txt; echo z > z.txt; mkdir zdir; echo f > zdir/f",
        );
        shell(wanted.path(), script);
        let (found, wanted) = (
            snapshot(&project.source, Closeness::Contents),
            snapshot(wanted.path(), Closeness::Contents),
        );
        let bare = |mut lines: std::collections::BTreeMap<Vec<u8>, Line>| {
            lines.remove(&b""[..]);
            lines
        };
        assert_same(&bare(found), &bare(wanted), script);
        assert_eq!(project.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn a_stranger_met_while_putting_back_is_left_and_the_pre_image_kept() {
    let scene = Scene::together();
    {
        let project = Project::at(
            &scene.dir,
            &scene.root,
            "echo a > a; echo b > b",
            BackendKind::Overlay,
        );
        project.run("echo A > a; echo B > b");
    }
    // Dies after both renames, before the commit mark.
    let points = scene.child("promote", 0).points();
    shell(&scene.dir, "rm -rf project root");
    {
        let project = Project::at(
            &scene.dir,
            &scene.root,
            "echo a > a; echo b > b",
            BackendKind::Overlay,
        );
        project.run("echo A > a; echo B > b");
    }
    let mut dies_at = points;
    loop {
        let status = scene.child("promote", dies_at).run();
        assert_eq!(status.signal(), Some(6));
        let project = Project::reopen(&scene.dir, &scene.root);
        let uncommitted = find(&scene.root.join(".undo"), "committed").is_none();
        if uncommitted && project.read("b") == "B\n" {
            shell(&project.source, "echo mine > new; mv new a");
            let recovered = recover(&project.root, &project.source).unwrap().unwrap();
            assert_eq!(recovered.outcome, Recovery::RolledBack);
            assert_eq!(recovered.left, [path("a")]);
            assert_eq!(
                (project.read("a"), project.read("b")),
                ("mine\n".into(), "b\n".into())
            );
            let kept = recovered.kept.unwrap();
            let saved: Vec<_> = fs::read_dir(kept)
                .unwrap()
                .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
                .collect();
            assert!(saved.contains(&"a\n".to_owned()), "{saved:?}");
            return;
        }
        recover(&project.root, &project.source).unwrap();
        undo::undo(
            &project.root,
            &project.source,
            &Which::Latest,
            &[],
            &mut Silent,
        )
        .ok();
        drop(project);
        shell(&scene.dir, "rm -rf project root");
        let project = Project::at(
            &scene.dir,
            &scene.root,
            "echo a > a; echo b > b",
            BackendKind::Overlay,
        );
        project.run("echo A > a; echo B > b");
        dies_at -= 1;
    }
}

fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(dir).ok()?.flatten() {
        if entry.file_name() == name {
            return Some(entry.path());
        }
        if let Some(found) = find(&entry.path(), name) {
            return Some(found);
        }
    }
    None
}

#[test]
fn a_directory_swapped_for_a_symlink_at_any_step_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "outside").unwrap();
    let before = snapshot(outside.path(), Closeness::Inodes);
    let (mut applied, mut refused) = (0, 0);
    for swapped_at in 1.. {
        let project = Project::new("mkdir d; echo f > d/f; echo old > d/old");
        project.run("echo 1 > d/f; echo 1 > d/new; rm d/old; mkdir d/sub; echo 1 > d/sub/f");
        let plan = project.plan_all();
        let passed = Arc::new(AtomicUsize::new(0));
        let (source, target) = (project.source.clone(), outside.path().to_owned());
        let hook_passed = Arc::clone(&passed);
        let result = apply_with_hook(&project, plan, move |_| {
            if hook_passed.fetch_add(1, Ordering::SeqCst) + 1 == swapped_at {
                fs::rename(source.join("d"), source.join("d.real")).unwrap();
                std::os::unix::fs::symlink(&target, source.join("d")).unwrap();
            }
            Action::Continue
        });
        match result {
            Ok(_) => applied += 1,
            Err(_) => refused += 1,
        }
        let what = format!("swapped at step {swapped_at}");
        assert_same(&snapshot(outside.path(), Closeness::Inodes), &before, &what);
        assert_nothing_is_lost(&project, &result, &what);
        if passed.load(Ordering::SeqCst) < swapped_at {
            break;
        }
    }
    assert!(refused > 20, "{applied} applied, {refused} refused");
    assert!(applied > 1, "{applied} applied, {refused} refused");
}

/// `d`, which may be called `d.real` by now, has `f` and `old` as before a promote that was refused, but
/// for what is kept; everything that was promoted, if it was not; and what was replaced is kept then.
fn assert_nothing_is_lost(project: &Project, result: &Result<Promoted, PromoteError>, what: &str) {
    let undo = project.root.path().join(".undo");
    let moved = project.source.join("d.real");
    let dir = match moved.exists() {
        true => moved,
        false => project.source.join("d"),
    };
    let holds = |dir: &Path, name: &str, text: &str| {
        fs::read_to_string(dir.join(name)).is_ok_and(|found| found == text)
    };
    let originals = [("f", "f\n"), ("old", "old\n")];
    if find(&undo, "committed").is_some() {
        assert!(
            holds(&dir, "f", "1\n") && holds(&dir, "sub/f", "1\n"),
            "{what}"
        );
        let kept = lines(&undo);
        for (name, _) in originals {
            assert_eq!(count(&kept, name), 1, "{what}: {name}");
        }
        return;
    }
    let kept = match result {
        Err(PromoteError::NotWhollyPutBack { kept, .. }) => {
            kept.as_ref().map(|kept| kept.join("d"))
        }
        Err(_) => None,
        Ok(_) => panic!("{what}: not committed"),
    };
    for (name, text) in originals {
        let is_kept = kept.as_ref().is_some_and(|kept| holds(kept, name, text));
        assert!(
            holds(&dir, name, text) || is_kept,
            "{what}: {name} in {result:?}"
        );
    }
}

#[test]
fn a_full_disk_leaves_the_source_as_it_was_wherever_it_strikes() {
    let Some(dir) = std::env::var_os("SMALL_DISK").map(PathBuf::from) else {
        // Removed out here, where nothing is mounted on it.
        let dir = tempfile::tempdir().unwrap();
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "a_full_disk_leaves_the_source_as_it_was_wherever_it_strikes",
                "--nocapture",
            ])
            .env("SMALL_DISK", dir.path())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    };
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m,nr_inodes=2000", "tmpfs"])
        .arg(&dir)
        .status()
        .unwrap();
    assert!(mounted.success());
    let scene = Scene {
        root: dir.join("root"),
        dir,
        two_steps: false,
        _temporary: Vec::new(),
        _alone: Alone::wait(),
    };
    scene.plant();
    shell(&scene.dir, "head -c 200000 /dev/zero > big");
    let project = Project::reopen(&scene.dir, &scene.root);
    project.run("head -c 300000 /dev/urandom > big-new");
    let old = snapshot(&project.source, Closeness::Inodes);
    let filler = scene.dir.join("filler");
    let mut refused = 0;
    for spare in 0.. {
        fill(&filler, spare * 8192);
        let result = project.promote();
        fs::remove_file(&filler).unwrap();
        match result {
            Ok(_) => break,
            Err(error) => {
                assert_eq!(error.class(), Class::DiskFull, "{error:?} with {spare}");
                refused += 1;
                assert_same(
                    &snapshot(&project.source, Closeness::Inodes),
                    &old,
                    "as before",
                );
                assert_eq!(project.leftovers(), Vec::<String>::new());
            }
        }
    }
    assert!(refused > 10, "the disk was full only {refused} times");
    assert_eq!(project.changes(), Vec::<String>::new());
}

/// Fills the disk but for about `spare` bytes.
fn fill(path: &Path, spare: u64) {
    let free = rustix::fs::statvfs(path.parent().unwrap()).unwrap();
    let bytes = (free.f_bavail * free.f_frsize).saturating_sub(spare);
    let file = fs::File::create(path).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes.max(1)).unwrap();
}

#[test]
fn two_promotes_to_one_source_at_once_do_not_mix() {
    let project = Project::new("echo a > a");
    project.run("echo A > a");
    let lock = project.sandbox.lock_exclusive().unwrap();
    assert_eq!(project.promote().unwrap_err().class(), Class::Busy);
    drop(lock);
    // Another root's promote holds the source itself.
    let held = fs::File::open(&project.source).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = project.promote().unwrap_err();
    assert!(matches!(error, PromoteError::SourceBusy { .. }), "{error}");
    drop(held);
    project.promote().unwrap();
}

#[test]
fn a_source_that_is_gone_or_another_is_told() {
    let project = Project::new("echo a > a");
    project.run("echo A > a");
    let plan = project.plan_all();
    shell(
        project.source.parent().unwrap(),
        "mv project elsewhere; mkdir project; echo a > project/a",
    );
    let apply = |plan| promote::apply(&project.sandbox, plan, Default::default(), &mut Silent);
    assert_eq!(
        apply(plan.clone()).unwrap_err().class(),
        Class::SourceNotFound
    );
    shell(project.source.parent().unwrap(), "rm -r project");
    assert_eq!(apply(plan).unwrap_err().class(), Class::SourceNotFound);
}

#[test]
fn a_promote_killed_by_an_ordinary_user() {
    some_as_ordinary_user("a_promote_killed_at_any_step");
}

#[test]
fn an_undo_killed_by_an_ordinary_user() {
    some_as_ordinary_user("do_killed_at_any_step");
}

#[test]
fn the_rest_as_an_ordinary_user() {
    // The small disk needs a mount of its own, which only root may make.
    let elsewhere = ["killed", "the_rest_as_an_ordinary_user"];
    as_ordinary_user(&[&elsewhere[..], &["a_full_disk_leaves"]].concat());
}
