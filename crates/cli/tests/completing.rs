//! Completions, asked of the shells themselves, and manual pages.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use std::process::Command;

use stage::{Stage, finish};

/// A shell with the binary in its path and the script of its kind in a file.
fn shell(stage: &Stage, program: &str, arguments: &[&str]) -> Command {
    let script = stage.ok(["completions", program]);
    std::fs::write(stage.path().join("script"), script).unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_sandbox"));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(stage.path())
        .env_clear()
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", binary.parent().unwrap().display()),
        )
        .env("HOME", stage.home())
        .env("TERM", "dumb")
        .env("SANDBOX_ROOT", stage.root());
    command
}

fn with_two() -> Stage {
    let stage = Stage::new();
    stage.ok(["create", "calm-otter-42"]);
    stage.ok(["create", "bold-fox-7"]);
    stage
}

#[test]
fn bash_completes_commands_flags_and_names() {
    let stage = with_two();
    let ask = |line: &str| {
        let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let script = format!(
            ". ./script; COMP_WORDS=({}); COMP_CWORD={}; \
             $(complete -p sandbox | sed 's/.*-F \\([^ ]*\\).*/\\1/') sandbox \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        finish(&mut shell(&stage, "bash", &["--norc", "-c", &script]))
            .code(0)
            .out
    };
    assert_eq!(ask("sandbox prom"), "promote\n");
    assert_eq!(ask("sandbox enter "), "bold-fox-7\ncalm-otter-42\n");
    assert_eq!(ask("sandbox run ca"), "calm-otter-42\n");
    assert_eq!(ask("sandbox rm bold-fox-7 c"), "calm-otter-42\n");
    assert_eq!(ask("sandbox exec ca"), "calm-otter-42\n");
    assert_eq!(ask("sandbox session cre"), "create\n");
    assert!(ask("sandbox session create --me").contains("--memory"));
    assert!(ask("sandbox diff --na").contains("--name-only"));
    assert!(!ask("sandbox promote --y").contains("otter"));
}

#[test]
fn fish_completes_commands_flags_and_names() {
    let stage = with_two();
    let ask = |line: &str| {
        let script = format!("source ./script; complete -C '{line}'");
        finish(&mut shell(&stage, "fish", &["--no-config", "-c", &script]))
            .code(0)
            .out
    };
    assert!(ask("sandbox prom").starts_with("promote\t"));
    assert_eq!(ask("sandbox enter "), "bold-fox-7\ncalm-otter-42\n");
    assert_eq!(ask("sandbox info ca"), "calm-otter-42\n");
    assert!(ask("sandbox diff --ex").contains("--exit-code"));
}

#[test]
fn zsh_completes_commands_and_names() {
    let stage = with_two();
    // Completion needs a line editor, so a second zsh on a terminal of its own is typed to.
    let ask = |line: &str, expected: &str| {
        let script = format!(
            r#"zmodload zsh/zpty
zpty -b inner 'exec zsh -f -i'
zpty -w inner $'PS1= PS2=; autoload -U compinit; compinit -u -D; . ./script; compdef _sandbox sandbox; print SET-UP'
zpty -r inner shown '*SET-UP*SET-UP*'
zpty -n -w inner {line:?}$'\t'
zpty -r inner shown '*{expected}*'
print -r -- found"#
        );
        let mut zsh = shell(&stage, "zsh", &["-f", "-c", &script]);
        let mut patient = Command::new("timeout");
        patient.arg("60").arg("zsh").args(zsh.get_args());
        patient.current_dir(stage.path()).env_clear();
        patient.envs(
            zsh.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        zsh = patient;
        assert_eq!(
            finish(&mut zsh).out,
            "found\n",
            "{line} is not completed to {expected}"
        );
    };
    ask("sandbox prom", "promote");
    ask("sandbox enter ca", "calm-otter-42");
    ask("sandbox run bo", "bold-fox-7");
    ask("sandbox exec bo", "bold-fox-7");
    ask("sandbox session chan", "changes");
    ask("sandbox rm bold-fox-7 ca", "calm-otter-42");
}

#[test]
fn names_are_completed_in_silence_when_there_are_none() {
    let stage = Stage::new();
    let mut command = stage.command(["__complete-names"]);
    let asked = finish(command.env_remove("HOME").env_remove("SANDBOX_ROOT")).code(0);
    assert_eq!((asked.out.as_str(), asked.err.as_str()), ("", ""));
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let stage = Stage::new();
    let pages = stage.path().join("man");
    stage.ok(["man", pages.to_str().unwrap()]);
    for name in [
        "sandbox.1",
        "sandbox-try.1",
        "sandbox-promote.1",
        "sandbox-session.1",
        "sandbox-session-create.1",
    ] {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        assert!(
            page.contains(".TH ") && page.contains("Examples:"),
            "{name}"
        );
    }
    assert!(!pages.join("sandbox-__complete-names.1").exists());
    let page = stage.ok(["man"]);
    assert!(page.contains(".TH sandbox 1"), "{}", &page[..200]);
    stage
        .sandbox(["man", "/proc/never"])
        .says("error: cannot write manual pages");
}
