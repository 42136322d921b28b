//! Attempts to put words into the mouth of whoever typed the command. The kernel here still has
//! TIOCSTI (`dev.tty.legacy_tiocsti` is on), so the controls do work.
#![allow(clippy::unwrap_used, reason = "a panic is a test's verdict")]

use std::process::Command;

use sandbox_tests::{BOX, Fixture, Terminal, as_both};

/// Runs `command` on a terminal of its own session, to its end; what the terminal showed, and what
/// waits on it as typed input afterwards.
fn on_terminal(fixture: &Fixture, command: &[&str]) -> (String, String) {
    let mut terminal = Terminal::open();
    let mut wrapped: Command = fixture.outside(fixture.attacker());
    wrapped.args(["on-terminal", "--"]).args(command);
    let mut child = terminal
        .attach(&mut wrapped)
        .spawn()
        .expect("start on a terminal");
    let status = terminal.until_end(&mut child);
    let shown = terminal.shown();
    let pushed = terminal.pending_input();
    (format!("{shown}({status})"), pushed)
}

as_both! {
    /// CVE-2017-5226: TIOCSTI types into the caller's terminal; the shell runs it after we end.
    fn input_cannot_be_pushed_into_the_callers_terminal(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let attacker = fixture.attacker();
        let attacker = attacker.to_str().unwrap();
        let (shown, pushed) = on_terminal(&fixture, &[attacker, "push-input", "0"]);
        assert!(pushed.contains("0wned"), "the attempt does not work outside: {shown} {pushed:?}");
        let binary = fixture.binary();
        let run = [binary.to_str().unwrap(), "run", BOX, "--", attacker, "push-input"];
        // CVE-2019-10063: the kernel looks at the low 32 bits of the request, a filter must too.
        for high in ["0", "1", "3735928559", "2147483648"] {
            let command: Vec<&str> = run.iter().copied().chain([high]).collect();
            let (shown, pushed) = on_terminal(&fixture, &command);
            assert!(shown.contains("refused"), "high bits {high}: {shown}");
            assert!(!pushed.contains('0'), "high bits {high}: {pushed:?}");
        }
    }

    /// CVE-2023-28100 (TIOCLINUX pastes the console's selection), also by its low 32 bits.
    fn a_consoles_selection_cannot_be_pasted(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let attacker = fixture.attacker();
        let attacker = attacker.to_str().unwrap();
        let (shown, _) = on_terminal(&fixture, &[attacker, "paste-selection", "0"]);
        assert!(shown.contains("done"), "the control: the kernel must see it outside: {shown}");
        let binary = fixture.binary();
        let run = [binary.to_str().unwrap(), "run", BOX, "--", attacker, "paste-selection"];
        for high in ["0", "1", "3735928559"] {
            let command: Vec<&str> = run.iter().copied().chain([high]).collect();
            let (shown, _) = on_terminal(&fixture, &command);
            assert!(shown.contains("refused"), "high bits {high}: {shown}");
        }
    }

    fn a_command_on_a_terminal_sees_a_terminal(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let binary = fixture.binary();
        let attacker = fixture.attacker();
        let run = [binary.to_str().unwrap(), "run", BOX, "--", attacker.to_str().unwrap(), "is-terminal"];
        let (shown, _) = on_terminal(&fixture, &run);
        assert!(shown.contains("done true"), "{shown}");
    }

    /// `enter` gives a pseudo-terminal of the sandbox's own: the caller's stays out of reach.
    fn enter_is_on_a_terminal_of_its_own(user) {
        let fixture = Fixture::new(user);
        fixture.create(&[]);
        let binary = fixture.binary();
        let attacker = fixture.attacker();
        let push = format!("{} push-input 0; tty", attacker.display());
        let enter = [binary.to_str().unwrap(), "enter", BOX, "-c", &push];
        let (shown, pushed) = on_terminal(&fixture, &enter);
        assert!(shown.contains("refused"), "{shown}");
        assert!(!pushed.contains('0'), "{pushed:?}");
        assert!(shown.contains("/dev/pts/"), "{shown}");
    }
}
