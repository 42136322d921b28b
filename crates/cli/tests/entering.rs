//! `enter`, through a terminal, in three shells.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stage;

use stage::{Stage, Terminal, finish};

/// Enters with `shell`, waits for its prompt, looks around and leaves.
fn look_around(shell: &str, show: &str, status: i32) {
    let stage = Stage::new();
    stage.boxed();
    let mut command = stage.command(["enter", "box"]);
    command.env("SANDBOX_SHELL", shell);
    let (mut terminal, child) = Terminal::start(&command);
    terminal.wait_for("[sandbox:box]");
    terminal.enter("echo changed > a.txt\r");
    terminal.wait_for("[sandbox:box]");
    terminal.enter(show);
    terminal.wait_for(&format!("in {shell} at {}", stage.source().display()));
    terminal.wait_for("[sandbox:box]");
    terminal.enter(&format!("exit {status}\r"));
    let (_, ended) = terminal.finish(child);
    assert_eq!(ended.code(), Some(status));
    assert_eq!(stage.read("a.txt"), "one\n");
    assert_eq!(stage.ok(["run", "box", "cat a.txt"]), "changed\n");
    assert_eq!(
        stage.ok(["run", "box", "ls -A /tmp | grep -c sandbox-enter; true"]),
        "0\n"
    );
}

#[test]
fn bash_tells_where_it_is() {
    look_around("/usr/bin/bash", "printf 'in %s at %s\\n' $SHELL $PWD\r", 3);
}

#[test]
fn zsh_tells_where_it_is() {
    look_around("/usr/bin/zsh", "printf 'in %s at %s\\n' $SHELL $PWD\r", 4);
}

#[test]
fn fish_tells_where_it_is() {
    look_around("/usr/bin/fish", "printf 'in %s at %s\\n' $SHELL $PWD\r", 5);
}

#[test]
fn a_plain_shell_tells_where_it_is() {
    look_around("/bin/sh", "printf 'in %s at %s\\n' $SHELL $PWD\r", 6);
}

#[test]
fn rc_files_in_the_sandboxes_home_are_read_and_cannot_take_the_prompt_away() {
    let stage = Stage::new();
    stage.boxed();
    stage.ok([
        "run",
        "box",
        "echo 'PS1=\"mine> \"; FROM_RC=yes' > ~/.bashrc",
    ]);
    let (mut terminal, child) = Terminal::start(&stage.command(["enter", "box"]));
    terminal.wait_for("[sandbox:box] mine> ");
    terminal.enter("echo rc $FROM_RC\r");
    terminal.wait_for("rc yes");
    terminal.enter("exit\r");
    terminal.finish(child);
}

#[test]
fn the_prompt_is_left_alone_when_asked() {
    let stage = Stage::new();
    stage.boxed();
    let (mut terminal, child) = Terminal::start(&stage.command(["enter", "box", "--no-prompt"]));
    terminal.enter("echo here $((1 + 1)); exit\r");
    let before = terminal.wait_for("here 2");
    assert!(!before.contains("[sandbox:"), "{before}");
    terminal.finish(child);
}

#[test]
fn a_line_is_run_and_its_status_is_ours() {
    let stage = Stage::new();
    stage.boxed();
    let seen = stage
        .sandbox(["enter", "box", "-c", "echo $0 $SANDBOX_NAME; exit 9"])
        .code(9);
    assert_eq!(seen.out, "/bin/bash box\n");
}

#[test]
fn without_a_terminal_the_shell_reads_its_input() {
    let stage = Stage::new();
    stage.boxed();
    let script = stage.path().join("script");
    std::fs::write(&script, "echo from stdin\nexit 4\n").unwrap();
    let input = std::fs::File::open(script).unwrap();
    let seen = finish(stage.command(["enter", "box"]).stdin(input)).code(4);
    assert_eq!(seen.out, "from stdin\n");
}

#[test]
fn a_shell_that_is_not_there_gives_way_to_the_next() {
    let stage = Stage::new();
    stage.boxed();
    let mut command = stage.command(["enter", "box", "-c", "echo $SHELL"]);
    let seen = finish(command.env("SANDBOX_SHELL", "/no/such/shell")).code(0);
    assert_eq!(seen.out, "/bin/bash\n");
    seen.says("there is no /no/such/shell inside");
    stage.config("shell = \"/usr/bin/zsh\"\n");
    assert_eq!(
        stage.ok(["enter", "box", "-c", "echo $SHELL"]),
        "/usr/bin/zsh\n"
    );
}

#[test]
fn the_size_of_the_terminal_is_passed_on() {
    let stage = Stage::new();
    stage.boxed();
    let (mut terminal, child) = Terminal::start(&stage.command(["enter", "box"]));
    terminal.wait_for("[sandbox:box]");
    terminal.enter("stty size\r");
    terminal.wait_for("24 90");
    terminal.resize(33, 77);
    terminal.enter("until stty size | grep -q '33 77'; do :; done; echo resi''zed\r");
    terminal.wait_for("resized");
    terminal.enter("exit\r");
    terminal.finish(child);
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    let stage = Stage::new();
    stage.boxed();
    for line in ["kill -9 $$", "exit 0"] {
        let inner = stage.command(["enter", "box"]);
        let mut command = std::process::Command::new("sh");
        let look = "\"$0\" enter box; stty -a | tr ' ;' '\\n\\n' | grep -E '^-?(icanon|echo|isig|opost)$'; echo done";
        command.args(["-c", look]).arg(inner.get_program());
        command.envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.current_dir(stage.source());
        let (mut terminal, child) = Terminal::start(&command);
        terminal.wait_for("[sandbox:box]");
        let raw = rustix::termios::tcgetattr(terminal.slave()).unwrap();
        assert!(!raw.local_modes.contains(rustix::termios::LocalModes::ECHO));
        terminal.enter(&format!("{line}\r"));
        let seen = terminal.wait_for("done");
        for mode in ["icanon", "echo", "isig", "opost"] {
            assert!(seen.contains(&format!("\n{mode}\r")), "{mode}: {seen:?}");
        }
        terminal.finish(child);
    }
}

#[test]
fn keys_that_signal_reach_the_command_and_not_us() {
    let stage = Stage::new();
    stage.boxed();
    let (mut terminal, child) = Terminal::start(&stage.command(["enter", "box"]));
    terminal.wait_for("[sandbox:box]");
    // The word comes from the command, which by then has the terminal and starts nothing more.
    terminal.enter("sh -c 'sleep 100 & echo slee\"\"ping; wait'; echo inter''rupted\r");
    terminal.wait_for("sleeping");
    terminal.enter("\x03");
    terminal.wait_for("[sandbox:box]");
    terminal.enter("exit 0\r");
    assert_eq!(terminal.finish(child).1.code(), Some(0));
}
