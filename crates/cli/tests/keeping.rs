//! `discard`, `fork`, `snapshot`, `rollback`, `pause`, `resume`, `gc`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use stage::{Stage, Terminal};

fn changed(line: &str) -> Stage {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", line]);
    stage
}

#[test]
fn a_discard_asks_and_a_no_keeps_it() {
    let stage = changed("echo uno > a.txt");
    for (answer, left) in [("n\r", 1), ("\r", 1), ("y\r", 0)] {
        let (mut terminal, child) = Terminal::start(&stage.command(["discard", "box"]));
        terminal.wait_for("with 1 unpromoted change? It can be restored for 7 days. [y/N] ");
        terminal.enter(answer);
        let (rest, ended) = terminal.finish(child);
        assert_eq!(ended.code(), Some(0));
        assert_eq!(rest.contains("Aborted."), left == 1, "{rest}");
        assert_eq!(stage.names().len(), left);
    }
    assert_eq!(stage.read("a.txt"), "one\n");
}

#[test]
fn a_discarded_sandbox_is_listed_and_restored() {
    let stage = changed("echo uno > a.txt");
    let said = stage.sandbox(["discard", "-f", "box"]).code(0);
    assert!(said.err.contains("sandbox discard --undo box"), "{said:?}");
    assert_eq!(stage.names(), [""; 0]);
    stage
        .sandbox(["diff", "box"])
        .code(2)
        .says("`sandbox discard --undo box` restores it");
    let listed = stage.json(["list", "--all", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["status"], "discarded");
    assert!(listed[0]["restorable_until"].is_string(), "{listed}");
    assert!(
        stage
            .ok(["list", "--all"])
            .contains("discarded, restorable")
    );
    assert!(stage.ok(["discard", "--undo"]).contains("box"));
    assert!(stage.ok(["history"]).contains("can be restored until"));
    // The name is taken again meanwhile.
    stage.boxed();
    stage
        .sandbox(["discard", "--undo", "box"])
        .code(1)
        .says("--as OTHER");
    stage.ok(["discard", "--undo", "box", "--as", "older"]);
    assert_eq!(stage.ok(["diff", "older", "--files"]), "M\ta.txt\n");
    assert_eq!(stage.ok(["diff", "box", "--files"]), "");
    stage.ok(["run", "older", "echo due > a.txt"]);
    stage.sandbox(["discard", "--undo", "box"]).code(2);
}

#[test]
fn gc_ends_what_was_discarded() {
    let stage = changed("head -c 100000 /dev/zero > big");
    stage.ok(["discard", "-f", "box"]);
    let found = |arguments: &[&str]| {
        let all = stage.json(arguments.iter().copied());
        let found = all.as_array().unwrap().iter().cloned();
        found
            .filter(|row| row["what"].as_str().unwrap().contains("'box', discarded"))
            .collect::<Vec<_>>()
    };
    let kept = found(&["gc", "--json"]);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["deleted"], false);
    assert!(kept[0]["size"].as_u64().unwrap() >= 100_000, "{kept:?}");
    assert_eq!(
        found(&["gc", "--discarded", "--dry-run", "--json"])[0]["deleted"],
        true
    );
    assert_eq!(found(&["gc", "--discarded", "--json"])[0]["deleted"], true);
    assert_eq!(found(&["gc", "--json"]), [""; 0]);
    stage.sandbox(["discard", "--undo", "box"]).code(2);
}

#[test]
fn discards_are_final_when_asked_or_without_changes() {
    let stage = changed("echo uno > a.txt");
    stage.ok(["discard", "-f", "--purge", "box"]);
    stage.boxed();
    stage.ok(["discard", "-f", "box"]);
    assert_eq!(
        stage.json(["discard", "--undo", "--json"]),
        serde_json::json!([])
    );
    stage.config("discarded_days = 0\n");
    stage.boxed();
    stage.ok(["run", "box", "echo uno > a.txt"]);
    let (mut terminal, child) = Terminal::start(&stage.command(["discard", "box"]));
    terminal.wait_for("with 1 unpromoted change? This cannot be undone. [y/N] ");
    terminal.enter("y\r");
    terminal.finish(child);
    assert_eq!(
        stage.json(["discard", "--undo", "--json"]),
        serde_json::json!([])
    );
}

#[test]
fn several_are_discarded_or_none() {
    let stage = Stage::new();
    for name in ["one", "two", "three"] {
        stage.ok(["create", name]);
    }
    stage.sandbox(["rm", "-f", "one", "nobody", "two"]).code(2);
    assert_eq!(stage.names().len(), 3);
    stage.ok(["rm", "-f", "one", "two"]);
    assert_eq!(stage.names(), ["three"]);
    let listed = stage.json(["list", "--all", "--json"]);
    let of = |name: &str| {
        let rows = listed.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(
        (of("three"), of("one")),
        ("idle".into(), "discarded".into())
    );
    assert_eq!(stage.json(["list", "--json"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_fork_has_its_own_copy_of_the_changes() {
    let stage = changed("echo uno > a.txt");
    assert_eq!(stage.ok(["fork", "box", "other"]), "other\n");
    stage.ok(["run", "other", "echo due > a.txt"]);
    assert_eq!(stage.ok(["run", "box", "cat a.txt"]), "uno\n");
    assert_eq!(
        stage.json(["info", "other", "--json"])["forked_from"],
        "box"
    );
    assert_eq!(
        stage.ok(["fork", "box", "many", "-n", "2"]),
        "many-1\nmany-2\n"
    );
    let forked = stage.json(["fork", "box", "last", "--json"]);
    assert_eq!(forked[0]["name"], "last");
    stage
        .sandbox(["fork", "box", "other"])
        .code(1)
        .says("exists already");
}

#[test]
fn a_rollback_is_where_the_snapshot_was() {
    let stage = changed("echo uno > a.txt");
    assert_eq!(stage.ok(["snapshot", "box"]), "1\n");
    assert_eq!(stage.ok(["snapshot", "box", "good"]), "good\n");
    stage.ok(["run", "box", "echo due > a.txt"]);
    stage
        .sandbox(["rollback", "box", "good"])
        .code(1)
        .says("give --yes");
    let (mut terminal, child) = Terminal::start(&stage.command(["rollback", "box", "good"]));
    terminal.wait_for("[y/N] ");
    terminal.enter("n\r");
    assert_eq!(terminal.finish(child).1.code(), Some(0));
    assert_eq!(stage.ok(["run", "box", "cat a.txt"]), "due\n");
    stage.ok(["rollback", "box", "good", "--yes"]);
    assert_eq!(stage.ok(["run", "box", "cat a.txt"]), "uno\n");
    stage
        .sandbox(["rollback", "box", "goood", "--yes"])
        .code(1)
        .says("did you mean 'good'?");
    let listed = stage.json(["snapshot", "box", "--list", "--json"]);
    assert_eq!(
        (listed[0]["label"].clone(), listed[1]["label"].clone()),
        ("1".into(), "good".into())
    );
    stage.ok(["snapshot", "box", "good", "--delete"]);
    assert_eq!(stage.ok(["snapshot", "box", "--list"]).lines().count(), 2);
}

#[test]
fn what_runs_is_paused_resumed_and_stopped() {
    let stage = Stage::new();
    stage.boxed();
    stage
        .sandbox(["pause", "box"])
        .code(0)
        .says("Nothing runs in sandbox 'box'.");
    let mut command = stage.command(["run", "box", "echo up; exec sleep 1000"]);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    running
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 3])
        .unwrap();
    assert_eq!(stage.json(["list", "--json"])[0]["status"], "active");
    stage
        .sandbox(["discard", "box", "--force"])
        .code(1)
        .says("is busy");
    assert_eq!(stage.json(["pause", "box", "--json"])["processes"], 1);
    assert_eq!(stage.json(["list", "--json"])[0]["status"], "paused");
    assert_eq!(stage.json(["resume", "box", "--json"])["processes"], 1);
    let processes = &stage.json(["info", "box", "--json"])["processes"];
    assert_eq!(processes[0]["command"], "sleep 1000");
    stage.ok(["pause", "box", "--stop"]);
    assert!(!running.wait().unwrap().success());
    assert_eq!(stage.json(["list", "--json"])[0]["status"], "idle");
}

#[test]
fn garbage_is_shown_before_it_is_cleaned_and_work_is_kept() {
    let stage = changed("echo uno > a.txt");
    stage.ok(["create", "unused"]);
    stage.sandbox(["gc"]).code(0).says("Nothing to clean.");
    let long_ago = SystemTime::now() - Duration::from_secs(30 * 86_400);
    for name in ["box", "unused"] {
        let meta = stage.root().join(name).join("meta.json");
        let text = std::fs::read_to_string(&meta).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        record["created"] = "2020-01-01T00:00:00Z".into();
        std::fs::write(&meta, record.to_string()).unwrap();
        let lock = std::fs::File::open(stage.root().join(name).join("lock")).unwrap();
        lock.set_modified(long_ago).unwrap();
    }
    let shown = stage.ok(["gc", "--dry-run", "--stale"]);
    let line = |name: &str| {
        shown
            .lines()
            .find(|line| line.ends_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("box").contains("1 unpromoted change") && line("box").contains("kept"),
        "{shown}"
    );
    assert!(line("unused").contains("would delete"), "{shown}");
    stage.ok(["gc"]);
    assert_eq!(stage.names(), ["box", "unused"]);
    let cleaned = stage.json(["gc", "--stale", "--json"]);
    assert_eq!(cleaned.as_array().unwrap().len(), 2);
    assert_eq!(stage.names(), ["box"]);
}
