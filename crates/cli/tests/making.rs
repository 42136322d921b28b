//! `create`, `list`, `path`, `history`, `version`: making sandboxes and looking at them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::fs;

use stage::{Stage, finish};

#[test]
fn the_name_is_data_and_the_rest_narration() {
    let stage = Stage::new();
    let made = stage.sandbox(["create", "risky"]).code(0);
    assert_eq!(made.out, "risky\n");
    assert!(made.err.contains("Created sandbox 'risky' of"), "{made:?}");
    assert!(made.err.contains("sandbox enter risky"), "{made:?}");
}

#[test]
fn without_a_name_a_memorable_one_is_made() {
    let stage = Stage::new();
    let name = stage.ok(["create"]);
    assert_eq!(name.trim_end().split('-').count(), 3, "{name}");
    assert_eq!(stage.names(), [name.trim_end()]);
}

#[test]
fn another_directory_can_be_sandboxed() {
    let stage = Stage::new();
    let made = stage.json(["create", "box", "--from", "dir", "--json"]);
    assert_eq!(made["name"], "box");
    assert_eq!(made["source"], stage.source().join("dir").to_str().unwrap());
    assert_eq!(stage.ok(["run", "box", "ls"]), "b.txt\n");
}

#[test]
fn the_older_spellings_of_backends_are_understood() {
    let stage = Stage::new();
    assert_eq!(
        stage.json(["create", "one", "--copy", "rsync", "--json"])["backend"],
        "copy"
    );
    assert_eq!(
        stage.json(["create", "two", "--backend=copy", "--json"])["backend"],
        "copy"
    );
}

#[test]
fn flags_go_over_the_environment_and_that_over_the_file() {
    let stage = Stage::new();
    let backend = |arguments: &[&str], variable: &str| {
        let mut command = stage.command(["create", "--json"]);
        let made = finish(command.args(arguments).env("SANDBOX_BACKEND", variable))
            .code(0)
            .out;
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        made["backend"].as_str().unwrap().to_owned()
    };
    assert_eq!(backend(&[], ""), "overlay");
    stage.config("backend = \"copy\"\n");
    assert_eq!(backend(&[], ""), "copy");
    assert_eq!(backend(&[], "overlay"), "overlay");
    assert_eq!(backend(&["--backend", "copy"], "overlay"), "copy");
}

#[test]
fn the_files_isolation_is_stored_and_flags_go_over_it() {
    let stage = Stage::new();
    stage.config("[isolation]\nenv = [\"A=file\", \"B=file\"]\n");
    stage.ok(["create", "box", "--env", "A=flag"]);
    stage.config("");
    assert_eq!(stage.ok(["run", "box", "echo $A $B"]), "flag file\n");
}

#[test]
fn a_taken_name_is_refused_and_nothing_changes() {
    let stage = Stage::new();
    stage.boxed();
    stage
        .sandbox(["create", "box"])
        .code(1)
        .says("error: a sandbox named 'box' exists already");
    assert_eq!(stage.names(), ["box"]);
}

#[test]
fn of_two_creates_of_one_name_exactly_one_wins() {
    let stage = Stage::new();
    for round in 0..5 {
        let name = format!("box-{round}");
        let start = || stage.command(["create", &name]).spawn().unwrap();
        let mut both = [start(), start()];
        let mut codes: Vec<_> = both
            .iter_mut()
            .map(|one| one.wait().unwrap().code())
            .collect();
        codes.sort();
        assert_eq!(codes, [Some(0), Some(1)]);
        stage.ok(["run", &name, "cat a.txt"]);
    }
}

#[test]
fn names_from_hell_are_refused_and_make_nothing() {
    let stage = Stage::new();
    let long = "a".repeat(65);
    for name in [
        "../x", "a/b", "-rf", "", ".", "..", ".hidden", "a b", "a\nb", "é", &long,
    ] {
        let refused = stage.sandbox(["create", "--", name]).code(1);
        assert!(refused.err.starts_with("error: "), "{name:?}: {refused:?}");
    }
    assert_eq!(stage.names(), [""; 0]);
    assert!(!stage.path().join("x").exists());
}

#[test]
fn sources_too_wide_need_a_yes() {
    let stage = Stage::new();
    let wide = [
        ("/".to_owned(), "the whole system"),
        (
            stage.home().display().to_string(),
            "the whole home directory",
        ),
        (
            stage.path().display().to_string(),
            "holds the whole home directory",
        ),
        (
            stage.root().display().to_string(),
            "where sandboxes keep their own files",
        ),
    ];
    stage.boxed();
    for (source, why) in wide {
        let refused = stage
            .sandbox(["create", "never", "--from", &source])
            .code(1);
        assert!(
            refused.err.contains(why) && refused.err.contains("--yes"),
            "{refused:?}"
        );
    }
    assert_eq!(stage.names(), ["box"]);
    let home = stage.home().display().to_string();
    stage
        .sandbox(["create", "home", "--yes", "--from", &home])
        .code(0)
        .says("warning: ");
}

#[test]
fn a_source_that_is_none_is_exit_4() {
    let stage = Stage::new();
    stage
        .sandbox(["create", "never", "--from", "/no/such/place"])
        .code(4)
        .says("error: ");
    stage
        .sandbox(["create", "never", "--from", "a.txt"])
        .code(4);
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn the_list_is_newest_first_and_json_says_the_same() {
    let stage = Stage::new();
    stage.ok(["create", "older"]);
    stage.ok(["create", "newer"]);
    stage.ok(["run", "newer", "echo x > new; rm a.txt"]);
    let listed = stage.ok(["list"]);
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let headings = [
        "NAME", "SOURCE", "BACKEND", "CREATED", "SIZE", "CHANGES", "STATUS",
    ];
    assert_eq!(lines[0], headings);
    assert_eq!((lines[1][0], lines[2][0]), ("newer", "older"));
    assert_eq!(lines[1].last(), Some(&"idle"));
    let json = stage.json(["ls", "--json"]);
    assert_eq!(json[0]["name"], "newer");
    assert_eq!(json[0]["changes"], 2);
    assert_eq!(json[0]["status"], "idle");
    assert_eq!(json[1]["changes"], 0);
    assert!(json[0]["size"].as_u64().unwrap() > 0);
}

#[test]
fn an_empty_list_prints_no_data() {
    let stage = Stage::new();
    let listed = stage.sandbox(["list"]).code(0).says("No sandboxes yet");
    assert_eq!(listed.out, "");
    assert_eq!(stage.json(["list", "--json"]), serde_json::json!([]));
}

#[test]
fn a_sandbox_unused_for_long_is_stale() {
    let stage = Stage::new();
    stage.boxed();
    let week_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(8 * 86_400);
    let meta = stage.root().join("box/meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    record["created"] = "2020-01-01T00:00:00Z".into();
    fs::write(&meta, record.to_string()).unwrap();
    fs::File::open(stage.root().join("box/lock"))
        .unwrap()
        .set_modified(week_ago)
        .unwrap();
    assert_eq!(stage.json(["list", "--json"])[0]["status"], "stale");
    stage.config("stale_days = 30\n");
    assert_eq!(stage.json(["list", "--json"])[0]["status"], "idle");
}

#[test]
fn every_operation_is_in_the_history() {
    let stage = Stage::new();
    stage.boxed();
    stage.sandbox(["run", "box", "exit 3"]).code(3);
    stage.ok(["create", "other"]);
    let lines = stage.ok(["history", "--json", "box"]);
    let records: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["operation"], "run");
    assert_eq!(
        records[0]["outcome"],
        serde_json::json!({"result": "exited", "status": 3})
    );
    assert_eq!(records[1]["operation"], "create");
    assert_eq!(stage.ok(["history", "-n", "1"]).lines().count(), 2);
    assert!(stage.ok(["history"]).contains("exit 3"));
}

#[test]
fn a_path_is_printed_where_there_is_one() {
    let stage = Stage::new();
    stage.boxed();
    stage
        .sandbox(["path", "box"])
        .code(1)
        .says("has no path on the host");
    let layer = stage.ok(["path", "box", "--layer"]);
    assert!(fs::metadata(layer.trim_end()).unwrap().is_dir());
    stage.ok(["create", "whole", "--backend", "copy"]);
    let path = stage.ok(["path", "whole"]);
    assert_eq!(
        fs::read_to_string(format!("{}/a.txt", path.trim_end())).unwrap(),
        "one\n"
    );
    assert_eq!(
        stage.json(["path", "whole", "--json"])["layer"],
        serde_json::Value::Null
    );
}

#[test]
fn info_tells_everything_also_as_json() {
    let stage = Stage::new();
    stage.ok([
        "create",
        "box",
        "--allow-host",
        "api.example.com:443",
        "--env",
        "A=1",
    ]);
    stage.write("later.txt", "the source moves on\n");
    let text = stage.ok(["info", "box"]);
    for told in [
        "box",
        "overlay",
        "api.example.com:443",
        "A=1",
        "later.txt",
        "Processes",
        "Limits",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let json = stage.json(["info", "box", "--json"]);
    assert_eq!(json["name"], "box");
    assert_eq!(json["source_exists"], true);
    assert_eq!(json["drift"]["first"], serde_json::json!(["later.txt"]));
    assert_eq!(json["processes"], serde_json::json!([]));
    assert!(json["settings"]["network"]["isolated"].is_object());
}

#[test]
fn the_version_is_told_three_ways() {
    let stage = Stage::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stage.ok(["version"]), format!("sandbox {version}\n"));
    assert_eq!(stage.ok(["--version"]), format!("sandbox {version}\n"));
    assert_eq!(stage.json(["version", "--json"])["version"], version);
}

#[test]
fn help_is_success_with_or_without_asking() {
    let stage = Stage::new();
    let nothing: [&str; 0] = [];
    assert!(
        stage
            .ok(nothing)
            .contains("sandbox try -- make risky-thing")
    );
    assert!(stage.ok(["help"]).contains("Commands:"));
    assert!(stage.ok(["run", "--help"]).contains("Examples:"));
    assert!(!stage.root().exists(), "help made a sandbox root");
}
