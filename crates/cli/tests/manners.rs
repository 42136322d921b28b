//! How the program behaves among others: pipes, colours, terminals, missing variables.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::fs::File;

use stage::{Stage, Terminal, finish};

#[test]
fn a_closed_pipe_is_success() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok([
        "run",
        "box",
        "for n in $(seq 3000); do echo $n > file-$n; done",
    ]);
    for arguments in [
        &["diff", "box"][..],
        &["diff", "box", "--files"],
        &["diff", "box", "--json"],
    ] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let ended = finish(stage.command(arguments).stdout(File::from(writer))).code(0);
        assert_eq!(ended.err, "");
    }
}

#[test]
fn a_full_disk_behind_the_output_is_an_error() {
    let stage = Stage::new();
    stage.boxed();
    let full = File::options().write(true).open("/dev/full").unwrap();
    finish(stage.command(["list"]).stdout(full))
        .code(6)
        .says("cannot write the output");
}

#[test]
fn piped_output_has_no_colour() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", "echo two > a.txt"]);
    for arguments in [
        &["diff", "box"][..],
        &["list"],
        &["info", "box"],
        &["--help"],
        &["nonsense"],
    ] {
        let ended = stage.sandbox(arguments);
        assert!(
            !ended.out.contains('\x1b') && !ended.err.contains('\x1b'),
            "{ended:?}"
        );
    }
    let mut forced = stage.command(["diff", "box"]);
    let ended = finish(forced.env("CLICOLOR_FORCE", "1")).code(0);
    assert!(!ended.out.contains('\x1b'), "{ended:?}");
}

/// What a command shows on a terminal.
fn shown(stage: &Stage, arguments: &[&str], variable: Option<(&str, &str)>) -> String {
    let mut command = stage.command(arguments);
    command.envs(variable);
    let (terminal, child) = Terminal::start(&command);
    terminal.finish(child).0
}

#[test]
fn a_terminal_gets_colour_unless_it_is_refused() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", "echo two > a.txt"]);
    for arguments in [
        &["diff", "box"][..],
        &["list"],
        &["info", "box"],
        &["nonsense"],
    ] {
        assert!(
            shown(&stage, arguments, None).contains('\x1b'),
            "{arguments:?}"
        );
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let text = shown(&stage, arguments, Some(variable));
            assert!(
                !text.contains('\x1b'),
                "{arguments:?} {variable:?}: {text:?}"
            );
        }
    }
    let text = shown(&stage, &["list"], Some(("NO_COLOR", "")));
    assert!(text.contains('\x1b'), "an empty NO_COLOR says nothing");
}

#[test]
fn what_a_file_holds_cannot_steer_the_terminal_with_or_without_colour() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", r"printf '\033]0;owned\007\n' > a.txt"]);
    for variable in [None, Some(("NO_COLOR", "1"))] {
        let text = shown(&stage, &["diff", "box"], variable);
        assert!(
            !text.contains("\x1b]0;") && text.contains("\\x1b]0;owned"),
            "{text:?}"
        );
    }
}

#[test]
fn nothing_is_done_unasked_without_a_terminal() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok(["run", "box", "echo two > a.txt"]);
    stage
        .sandbox(["promote", "box"])
        .code(1)
        .says("hint: there is no terminal to ask at; give --yes");
    stage.sandbox(["discard", "box"]).code(1).says("hint: ");
    stage
        .sandbox(["promote", "box", "--interactive"])
        .code(1)
        .says("without a terminal");
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(stage.names(), ["box"]);
}

#[test]
fn with_nothing_to_do_it_says_what_could_be_done() {
    let stage = Stage::new();
    let nothing: [&str; 0] = [];
    assert!(stage.ok(nothing).contains("Usage: sandbox <COMMAND>"));
    for noun in ["session", "execution", "file", "template", "key", "node"] {
        let told = stage.ok([noun]);
        assert!(told.contains(&format!("Usage: sandbox {noun}")), "{told}");
    }
}

#[test]
fn a_missing_home_is_told() {
    let stage = Stage::new();
    let mut command = stage.command(["list"]);
    let told = finish(command.env_remove("HOME").env_remove("SANDBOX_ROOT")).code(1);
    assert!(told.err.starts_with("error: HOME is not set"), "{told:?}");
    let mut command = stage.command(["list"]);
    finish(command.env("HOME", "relative").env_remove("SANDBOX_ROOT")).code(1);
    // With a root of its own, everything works without a home.
    for arguments in [
        &["create", "box"][..],
        &["run", "box", "true"],
        &["list"],
        &["diff", "box"],
    ] {
        finish(stage.command(arguments).env_remove("HOME")).code(0);
    }
}

#[test]
fn the_root_of_a_component_test_is_not_ours() {
    let stage = Stage::new();
    finish(stage.command(["create", "box"]).env("SANDBOX_MODE", "true")).code(0);
    assert!(!stage.root().exists());
    assert!(
        stage
            .home()
            .join(".local/share/daedalos/sandbox/box")
            .is_dir()
    );
}

#[test]
fn an_unknown_key_in_the_file_is_named_where_the_file_is_read() {
    let stage = Stage::new();
    stage.boxed();
    stage.config("backend = \"copy\"\nstale_dais = 3\n");
    let told = stage.sandbox(["create", "other"]).code(1);
    assert!(
        told.err.contains("config.toml:2: unknown key `stale_dais`"),
        "{told:?}"
    );
    stage.ok(["run", "box", "true"]);
}
