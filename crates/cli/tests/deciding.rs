//! `promote`, its undo, conflicts and choices; `try`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::process::Child;

use stage::{Stage, Terminal, finish};

/// A sandbox called `box` in which `line` was run.
fn changed(line: &str) -> Stage {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", line]);
    stage
}

fn at_terminal(stage: &Stage, arguments: &[&str]) -> (Terminal, Child) {
    Terminal::start(&stage.command(arguments))
}

#[test]
fn a_promote_applies_what_the_dry_run_showed_and_undo_takes_it_back() {
    let stage = changed("echo new > new.txt; echo uno > a.txt; rm dir/b.txt; rmdir dir");
    let plan = stage.ok(["promote", "box", "--dry-run"]);
    for line in [
        "create    new.txt",
        "replace   a.txt",
        "delete    dir/b.txt",
        "rmdir     dir",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    assert_eq!(stage.read("a.txt"), "one\n");
    let done = stage.sandbox(["promote", "box", "--yes"]).code(0);
    assert_eq!(done.out, "");
    assert_eq!(
        done.err
            .lines()
            .take(plan.lines().count())
            .collect::<Vec<_>>(),
        plan.lines().collect::<Vec<_>>()
    );
    assert_eq!(stage.read("a.txt"), "uno\n");
    assert!(!stage.source().join("dir").exists());
    stage
        .sandbox(["promote", "box", "--undo", "--yes"])
        .code(0)
        .says("Restored");
    assert_eq!(
        (stage.read("a.txt"), stage.read("dir/b.txt")),
        ("one\n".into(), "two\n".into())
    );
    assert!(!stage.source().join("new.txt").exists());
    stage
        .sandbox(["promote", "box", "--undo", "--yes"])
        .code(1)
        .says("nothing to undo");
}

#[test]
fn promote_and_undo_count_the_same_paths() {
    let stage = changed("mkdir -p new/sub; echo x > new/sub/x; echo uno > a.txt; rm -r dir");
    let plan = stage.ok(["promote", "box", "--dry-run"]);
    let paths = ["a.txt", "dir", "dir/b.txt", "new", "new/sub", "new/sub/x"];
    assert!(paths.iter().all(|path| plan.contains(path)), "{plan}");
    stage
        .sandbox(["promote", "box", "--yes"])
        .code(0)
        .says("Promoted 6 ");
    let undo = ["promote", "box", "--undo"];
    let shown = stage.ok([&undo[..], &["--dry-run"]].concat());
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        paths.map(|path| format!("  restore   {path}"))
    );
    stage
        .sandbox(undo)
        .code(1)
        .says("Take back 6 paths promoted");
    stage
        .sandbox([&undo[..], &["--yes"]].concat())
        .code(0)
        .says("Restored 6 paths in")
        .says("6 changes are in sandbox 'box' again.");
    stage
        .sandbox(["promote", "box", "--redo", "--yes"])
        .code(0)
        .says("Applied 6 paths");
    stage.ok(["discard", "box", "--force"]);
    stage
        .sandbox([&undo[..], &["--yes"]].concat())
        .code(0)
        .says("Restored 6 paths in")
        .says("6 changes are not in sandbox 'box'");
}

#[test]
fn only_the_paths_named_are_promoted_from_where_one_stands() {
    let stage = changed("echo uno > a.txt; echo due > dir/b.txt; echo tre > dir/c.txt");
    let mut command = stage.command(["promote", "box", "b.txt", "--yes"]);
    finish(command.current_dir(stage.source().join("dir"))).code(0);
    assert_eq!(stage.read("dir/b.txt"), "due\n");
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(
        stage.ok(["diff", "box", "--files"]),
        "M\ta.txt\nA\tdir/c.txt\n"
    );
    stage
        .sandbox(["promote", "box", "../elsewhere", "--yes"])
        .code(1)
        .says("is not inside");
}

#[test]
fn nothing_to_promote_is_no_failure() {
    let stage = Stage::new();
    stage.boxed();
    stage
        .sandbox(["promote", "box", "--yes"])
        .code(0)
        .says("Nothing to promote.");
    stage
        .sandbox(["promote", "box"])
        .code(0)
        .says("Nothing to promote.");
}

#[test]
fn the_person_is_asked_and_a_no_is_no_failure() {
    let stage = changed("echo uno > a.txt");
    for (answer, after) in [("\r", "one\n"), ("n\r", "one\n"), ("y\r", "uno\n")] {
        let (mut terminal, child) = at_terminal(&stage, &["promote", "box"]);
        terminal.wait_for(&format!(
            "Apply 1 change to {}? [y/N] ",
            stage.source().display()
        ));
        terminal.enter(answer);
        let (rest, ended) = terminal.finish(child);
        assert_eq!(ended.code(), Some(0));
        assert_eq!(rest.contains("Aborted."), after == "one\n", "{rest}");
        assert_eq!(stage.read("a.txt"), after);
    }
    let history = stage.ok(["history", "box"]);
    assert!(history.contains("declined"), "{history}");
}

#[test]
fn what_steers_git_needs_more_than_a_yes() {
    let stage = changed("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo uno > a.txt");
    stage
        .sandbox(["promote", "box", "--yes"])
        .code(0)
        .says("left out  .git/hooks/pre-commit");
    assert_eq!(stage.read("a.txt"), "uno\n");
    assert!(!stage.source().join(".git").exists());
    let (mut terminal, child) = at_terminal(&stage, &["promote", "box"]);
    terminal.wait_for("Apply them too? [y/N] ");
    terminal.enter("y\r");
    terminal.wait_for("? [y/N] ");
    terminal.enter("n\r");
    terminal.finish(child);
    assert!(!stage.source().join(".git").exists());
    stage.ok(["promote", "box", "--yes", "--allow-git-control"]);
    assert_eq!(stage.read(".git/hooks/pre-commit"), "evil\n");
}

#[test]
fn files_are_chosen_one_by_one() {
    let stage = changed("echo uno > a.txt; echo due > dir/b.txt; mkdir fresh; echo x > fresh/x");
    let (mut terminal, child) = at_terminal(&stage, &["promote", "box", "--interactive"]);
    terminal.wait_for("replace   a.txt");
    terminal.wait_for("[q]uit? ");
    terminal.enter("d\r");
    terminal.wait_for("+uno");
    terminal.wait_for("[q]uit? ");
    terminal.enter("?\r");
    terminal.wait_for("Please answer one of yes, no, diff, hunks, all, quit.");
    terminal.wait_for("[q]uit? ");
    terminal.enter("n\r");
    terminal.wait_for("dir/b.txt");
    terminal.wait_for("[q]uit? ");
    terminal.enter("y\r");
    terminal.wait_for("fresh/x");
    terminal.wait_for("[q]uit? ");
    terminal.enter("n\r");
    terminal.wait_for("Apply 1 change to");
    terminal.enter("y\r");
    terminal.finish(child);
    assert_eq!(
        (stage.read("a.txt"), stage.read("dir/b.txt")),
        ("one\n".into(), "due\n".into())
    );
    assert!(!stage.source().join("fresh").exists());
    assert_eq!(
        stage.ok(["diff", "box", "--files"]),
        "M\ta.txt\nA\tfresh\nA\tfresh/x\n"
    );
}

#[test]
fn hunks_are_chosen_one_by_one() {
    let stage = Stage::new();
    let lines = |edit: &dyn Fn(u32) -> String| (0..40).map(edit).collect::<String>();
    stage.write("long.txt", &lines(&|n| format!("line {n}\n")));
    stage.boxed();
    stage.ok([
        "run",
        "box",
        "sed -i -e 's/line 3$/three/' -e 's/line 35$/thirty-five/' long.txt",
    ]);
    let (mut terminal, child) = at_terminal(&stage, &["promote", "box", "--interactive"]);
    terminal.wait_for("[q]uit? ");
    terminal.enter("h\r");
    terminal.wait_for("+three");
    terminal.wait_for("(1/2) Take this hunk?");
    terminal.enter("n\r");
    terminal.wait_for("+thirty-five");
    terminal.wait_for("(2/2) Take this hunk?");
    terminal.enter("y\r");
    terminal.wait_for("Apply 1 change to");
    terminal.enter("y\r");
    terminal.finish(child);
    let expected = lines(&|n| {
        if n == 35 {
            "thirty-five\n".into()
        } else {
            format!("line {n}\n")
        }
    });
    assert_eq!(stage.read("long.txt"), expected);
    let rest = stage.ok(["diff", "box"]);
    assert!(
        rest.contains("+three") && !rest.contains("thirty-five\n-"),
        "{rest}"
    );
}

/// Both sides edited `a.txt`; the sandbox also made `new.txt`.
fn conflicted() -> Stage {
    let stage = changed("echo sandbox > a.txt; echo new > new.txt");
    stage.write("a.txt", "source\n");
    stage
}

#[test]
fn a_conflict_applies_nothing_and_is_exit_5() {
    let stage = conflicted();
    let refused = stage.sandbox(["promote", "box", "--yes"]).code(5);
    assert!(
        refused
            .err
            .contains("conflict  a.txt: changed in the source"),
        "{refused:?}"
    );
    assert_eq!(stage.read("a.txt"), "source\n");
    assert!(!stage.source().join("new.txt").exists());
    stage.sandbox(["promote", "box", "--dry-run"]).code(5);
    let json = stage.sandbox(["promote", "box", "--yes", "--json"]).code(5);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["plan"]["conflicts"][0]["path"], "a.txt");
    assert_eq!(json["applied"], false);
}

#[test]
fn conflicts_are_settled_by_flags() {
    for (flags, a, left) in [
        (&["--ours"][..], "sandbox\n", ""),
        (&["--theirs"], "source\n", ""),
        (&["--resolve", "a.txt=ours"], "sandbox\n", ""),
        (&["--resolve", "a.txt=theirs"], "source\n", ""),
        (&["--resolve", "a.txt=skip"], "source\n", "M\ta.txt\n"),
        (&["--theirs", "--resolve", "a.txt=ours"], "sandbox\n", ""),
    ] {
        let stage = conflicted();
        let mut command = stage.command(["promote", "box", "--yes"]);
        finish(command.args(flags)).code(0);
        assert_eq!(stage.read("a.txt"), a, "{flags:?}");
        assert_eq!(stage.read("new.txt"), "new\n", "{flags:?}");
        assert_eq!(stage.ok(["diff", "box", "--files"]), left, "{flags:?}");
    }
    let stage = conflicted();
    stage
        .sandbox(["promote", "box", "--yes", "--merge"])
        .code(5)
        .says("the edits overlap");
    stage
        .sandbox(["promote", "box", "--yes", "--resolve", "a.txt=mine"])
        .code(1)
        .says("hint: write PATH=ours");
}

#[test]
fn conflicts_are_settled_at_the_terminal() {
    let stage = conflicted();
    let (mut terminal, child) = at_terminal(&stage, &["promote", "box"]);
    terminal.wait_for("a.txt: changed in the source");
    terminal.wait_for("[q]uit? ");
    terminal.enter("d\r");
    terminal.wait_for("+sandbox");
    terminal.wait_for("[q]uit? ");
    terminal.enter("o\r");
    terminal.wait_for("Apply 2 changes to");
    terminal.enter("y\r");
    assert_eq!(terminal.finish(child).1.code(), Some(0));
    assert_eq!(stage.read("a.txt"), "sandbox\n");
    let stage = conflicted();
    let (mut terminal, child) = at_terminal(&stage, &["promote", "box"]);
    terminal.wait_for("[q]uit? ");
    terminal.enter("q\r");
    assert_eq!(terminal.finish(child).1.code(), Some(5));
    assert_eq!(stage.read("a.txt"), "source\n");
}

#[test]
fn a_backup_is_left_where_it_is_seen() {
    let stage = changed("echo uno > a.txt");
    let told = stage
        .sandbox(["promote", "box", "--yes", "--backup"])
        .code(0);
    let beside = std::fs::read_dir(stage.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let backup = beside
        .into_iter()
        .find(|path| path.to_string_lossy().contains("sandbox-backup"));
    let backup = backup.unwrap();
    assert!(told.err.contains(backup.to_str().unwrap()), "{told:?}");
    assert_eq!(
        std::fs::read_to_string(backup.join("a.txt")).unwrap(),
        "one\n"
    );
}

#[test]
fn an_undo_outlives_its_sandbox() {
    let stage = changed("echo uno > a.txt");
    stage.ok(["promote", "box", "--yes"]);
    stage.ok(["discard", "box", "--force"]);
    stage.ok(["promote", "box", "--undo", "--yes"]);
    assert_eq!(stage.read("a.txt"), "one\n");
    let stage = changed("echo uno > a.txt");
    stage.ok(["promote", "box", "--yes"]);
    stage.ok(["promote", "--undo", "--yes"]);
    assert_eq!(stage.read("a.txt"), "one\n");
    stage
        .sandbox(["promote", "never-was", "--undo", "--yes"])
        .code(2);
}

#[test]
fn the_plan_and_its_end_are_data_with_json() {
    let stage = changed("echo uno > a.txt");
    let json = stage.json(["promote", "box", "--dry-run", "--json"]);
    assert_eq!(
        (json["applied"].clone(), json["promoted"].clone()),
        (false.into(), serde_json::Value::Null)
    );
    assert_eq!(json["plan"]["steps"][0]["path"], "a.txt");
    let json = stage.json(["promote", "box", "--yes", "--json"]);
    assert_eq!(json["applied"], true);
    assert_eq!(json["promoted"]["paths"], serde_json::json!(["a.txt"]));
}

#[test]
fn sync_brings_the_sources_changes_in() {
    let stage = Stage::new();
    stage.write("both.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    stage.boxed();
    stage.ok(["run", "box", "sed -i s/1/one/ both.txt"]);
    stage.write("both.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert!(
        stage
            .ok(["sync", "box", "--dry-run"])
            .contains("merge     both.txt")
    );
    stage.ok(["sync", "box"]);
    assert_eq!(
        stage.ok(["run", "box", "cat both.txt"]),
        "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    );
    stage
        .sandbox(["sync", "box"])
        .code(0)
        .says("Already in step");
    stage.ok(["sync", "box", "--direction", "sandbox-to-source", "--yes"]);
    assert_eq!(stage.read("both.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn trying_without_changes_leaves_nothing() {
    let stage = Stage::new();
    let tried = stage.sandbox(["try", "--", "cat", "a.txt"]).code(0);
    assert_eq!((tried.out.as_str(), tried.err.as_str()), ("one\n", ""));
    stage.sandbox(["try", "exit 3"]).code(3);
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn trying_shows_what_changed_and_flags_decide() {
    let stage = Stage::new();
    let line = "echo uno > a.txt; echo '#!/bin/sh' > run.sh; chmod +x run.sh; exit 3";
    let tried = stage.sandbox(["try", "--discard", line]).code(3);
    assert!(
        tried.err.contains("a.txt  |") && tried.err.contains("2 files changed"),
        "{tried:?}"
    );
    assert!(
        tried.err.contains("look twice: run.sh: new executable"),
        "{tried:?}"
    );
    assert_eq!(stage.names(), [""; 0]);
    assert_eq!(stage.read("a.txt"), "one\n");
    stage
        .sandbox(["try", "--keep", "echo uno > a.txt"])
        .code(0)
        .says("Kept as sandbox");
    assert_eq!(stage.names().len(), 1);
    let tried = stage
        .sandbox(["try", "--promote", "echo uno > a.txt"])
        .code(0);
    assert!(tried.err.contains("Promoted 1 change"), "{tried:?}");
    assert_eq!(stage.read("a.txt"), "uno\n");
    assert_eq!(stage.names().len(), 1);
}

#[test]
fn a_failed_try_is_never_promoted() {
    let stage = Stage::new();
    let line = "echo uno > a.txt; exit 7";
    stage
        .sandbox(["try", "--promote", line])
        .code(7)
        .says("nothing is promoted");
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(stage.names().len(), 1);
}

#[test]
fn a_try_without_a_terminal_keeps_and_says_how_to_go_on() {
    let stage = Stage::new();
    let tried = stage.sandbox(["try", "echo uno > a.txt"]).code(0);
    let names = stage.names();
    assert!(
        tried.err.contains(&format!("sandbox promote {}", names[0])),
        "{tried:?}"
    );
    stage.ok(["promote", &names[0], "--yes"]);
    assert_eq!(stage.read("a.txt"), "uno\n");
}

#[test]
fn one_key_decides_a_try() {
    for (key, said, a, left) in [
        ("p", "Promoted 1 change", "uno\n", 0),
        ("k", "Kept as sandbox", "one\n", 1),
        ("x", "Discarded.", "one\n", 0),
        ("\r", "Kept as sandbox", "one\n", 1),
        ("\x04", "Kept as sandbox", "one\n", 1),
        ("dx", "+uno", "one\n", 0),
    ] {
        let stage = Stage::new();
        let (mut terminal, child) = at_terminal(&stage, &["try", "echo uno > a.txt; exit 2"]);
        let mut shown = String::new();
        for key in key.chars() {
            shown += &terminal.wait_for("[x] discard? ");
            terminal.enter(&key.to_string());
        }
        let (rest, ended) = terminal.finish(child);
        shown += &rest;
        assert!(shown.contains(said), "{key:?}: {shown}");
        assert_eq!(ended.code(), Some(2), "{key:?}");
        assert_eq!(stage.read("a.txt"), a, "{key:?}");
        assert_eq!(stage.names().len(), left, "{key:?}");
    }
}

#[test]
fn keys_typed_while_a_try_runs_decide_nothing() {
    for typed in ["exit", "pwd", "x\r", "p"] {
        let stage = Stage::new();
        // It runs until the keys are typed, and reads none of them.
        let door = stage.path().join("door");
        std::fs::create_dir(&door).unwrap();
        let go = door.join("go");
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(&go).status().unwrap().success());
        let line = format!(
            "echo uno > a.txt; echo rea''dy; read line < {}",
            go.display()
        );
        let exposed = format!("{}:rw", door.display());
        let (mut terminal, child) = at_terminal(&stage, &["try", "--expose", &exposed, &line]);
        terminal.wait_for("ready");
        terminal.enter(typed);
        std::fs::write(&go, "go\n").unwrap();
        terminal.wait_for("[x] discard? ");
        terminal.enter("k");
        let (rest, _) = terminal.finish(child);
        assert!(rest.contains("Kept as sandbox"), "{typed:?}: {rest}");
        assert_eq!(stage.read("a.txt"), "one\n", "{typed:?}");
        assert_eq!(stage.names().len(), 1, "{typed:?}");
    }
}

#[test]
fn a_discarded_try_can_be_restored() {
    let stage = Stage::new();
    let tried = stage
        .sandbox(["try", "--discard", "echo uno > a.txt"])
        .code(0);
    let name = stage.json(["discard", "--undo", "--json"])[0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        tried
            .err
            .contains(&format!("sandbox discard --undo {name}")),
        "{tried:?}"
    );
    stage.ok(["discard", "--undo", &name]);
    stage.ok(["promote", &name, "--yes"]);
    assert_eq!(stage.read("a.txt"), "uno\n");
    // Without changes nothing is kept.
    stage.ok(["try", "--discard", "--", "true"]);
    assert_eq!(
        stage.json(["discard", "--undo", "--json"]),
        serde_json::json!([])
    );
}

#[test]
fn an_interrupted_try_still_asks() {
    let stage = Stage::new();
    // Once it is ready the shell starts nothing more: one that is about to start a command may lose
    // the key.
    let line = "echo uno > a.txt; sleep 100 & echo rea''dy; wait";
    let (mut terminal, child) = at_terminal(&stage, &["try", line]);
    terminal.wait_for("ready");
    terminal.enter("\x03");
    terminal.wait_for("[x] discard? ");
    terminal.enter("x");
    let (_, ended) = terminal.finish(child);
    assert!(!ended.success());
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn a_try_that_cannot_run_leaves_nothing() {
    let stage = Stage::new();
    stage
        .sandbox(["try", "--", "no-such-command", "x"])
        .code(127);
    stage
        .sandbox(["try", "--expose", "/no/such/path", "true"])
        .code(1);
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn a_conflict_of_a_try_is_exit_5_and_kept() {
    let stage = Stage::new();
    let source = stage.source().join("a.txt");
    // The sandbox sees the source change under it: what it started from is not certain.
    let line = format!(
        "echo uno > a.txt; touch dir/b.txt; echo rea''dy; read line; : {}",
        source.display()
    );
    let mut command = stage.command(["try", "--promote", &line]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    stage.write("a.txt", "source\n");
    drop(child.stdin.take());
    let ended = stage::outcome(child.wait_with_output().unwrap());
    // `read` at the end of input fails, but `:` after it succeeds.
    let ended = ended.code(5);
    assert!(
        ended.err.contains("conflict  a.txt") && ended.err.contains("Kept as sandbox"),
        "{ended:?}"
    );
    assert_eq!(stage.read("a.txt"), "source\n");
}
