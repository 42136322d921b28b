//! `run`: what goes in and comes out untouched.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use stage::{Stage, finish, outcome};

#[test]
fn the_exit_status_is_the_commands_own() {
    let stage = Stage::new();
    stage.boxed();
    for status in [0, 1, 2, 6, 42, 255] {
        stage
            .sandbox(["run", "box", &format!("exit {status}")])
            .code(status);
    }
}

#[test]
fn a_signal_ends_us_as_it_ended_the_command() {
    let stage = Stage::new();
    stage.boxed();
    for signal in [1, 2, 6, 9, 11, 13, 15] {
        let ended = stage.sandbox(["run", "box", &format!("kill -{signal} $$")]);
        assert_eq!(ended.status.signal(), Some(signal), "{ended:?}");
    }
}

#[test]
fn what_cannot_be_run_has_the_status_a_shell_gives() {
    let stage = Stage::new();
    stage.boxed();
    stage
        .sandbox(["run", "box", "no-such-command", "x"])
        .code(127)
        .says("error: cannot run");
    stage
        .sandbox(["run", "box", "./a.txt", "x"])
        .code(126)
        .says("error: cannot run './a.txt'");
}

#[test]
fn one_argument_is_a_line_for_the_shell_and_several_are_not() {
    let stage = Stage::new();
    stage.boxed();
    assert_eq!(stage.ok(["run", "box", "echo a; echo $0"]), "a\nsh\n");
    assert_eq!(
        stage.ok(["run", "box", "echo", "a; echo b", "$HOME"]),
        "a; echo b $HOME\n"
    );
    assert_eq!(
        stage.ok(["exec", "box", "echo", "--json", "-h", "--help"]),
        "--json -h --help\n"
    );
    assert_eq!(stage.ok(["run", "box", "--", "echo", "--"]), "--\n");
}

#[test]
fn all_three_streams_pass_untouched() {
    let stage = Stage::new();
    stage.boxed();
    let mut command = stage.command(["run", "box", "cat; echo aside >&2"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = b"binary \0\xff\n";
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, bytes);
    assert_eq!(output.stderr, b"aside\n");
}

#[test]
fn the_command_starts_where_the_caller_is_inside_the_source() {
    let stage = Stage::new();
    stage.boxed();
    let inside = stage.source().join("dir");
    let seen = finish(stage.command(["run", "box", "pwd"]).current_dir(&inside))
        .code(0)
        .out;
    assert_eq!(seen.trim_end(), inside.to_str().unwrap());
    let seen = finish(stage.command(["run", "box", "pwd"]).current_dir("/"))
        .code(0)
        .out;
    assert_eq!(seen.trim_end(), stage.source().to_str().unwrap());
}

#[test]
fn the_sandbox_is_named_in_the_environment_and_secrets_stay_out() {
    let stage = Stage::new();
    stage.boxed();
    let line = "echo $SANDBOX_NAME $SANDBOX_SOURCE $IN_SANDBOX $PLAIN $API_TOKEN $EXTRA; test -n \"$SANDBOX_CREATED\"";
    let mut command = stage.command(["run", "--env", "EXTRA=more", "box", line]);
    let seen = finish(command.env("PLAIN", "plain").env("API_TOKEN", "secret"))
        .code(0)
        .out;
    assert_eq!(
        seen,
        format!("box {} 1 plain more\n", stage.source().display())
    );
}

#[test]
fn stored_settings_hold_and_flags_go_over_them() {
    let stage = Stage::new();
    stage.ok(["create", "box", "--env", "A=stored", "--env", "B=stored"]);
    assert_eq!(
        stage.ok(["run", "--env", "A=flag", "box", "echo $A $B"]),
        "flag stored\n"
    );
}

#[test]
fn the_source_is_never_touched() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok([
        "run",
        "box",
        "rm -rf . ./* ./.[a-z]* 2>/dev/null; ls -A | wc -l; echo x > a.txt; cat a.txt",
    ]);
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(stage.read("dir/b.txt"), "two\n");
    assert_eq!(stage.ok(["run", "box", "cat", "a.txt"]), "x\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_outside() {
    let stage = Stage::new();
    stage.boxed();
    let mut shell = std::process::Command::new("bash");
    let line = format!(
        "{} run box yes | head -1; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_sandbox")
    );
    let ended = shell
        .args(["-c", &line])
        .current_dir(stage.source())
        .env("SANDBOX_ROOT", stage.root())
        .env("HOME", stage.home())
        .output()
        .unwrap();
    assert_eq!(outcome(ended).out, "y\n141\n");
}

#[test]
fn an_unknown_name_is_told_with_the_nearest() {
    let stage = Stage::new();
    stage.ok(["create", "risky-refactor"]);
    stage
        .sandbox(["run", "risky-refacto", "true"])
        .code(2)
        .says("error: no sandbox named 'risky-refacto'\nhint: did you mean 'risky-refactor'?");
}
