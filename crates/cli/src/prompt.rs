//! Questions to the person at the terminal.
//!
//! A question is only asked where stdin and stderr both are terminals; a script must say in flags
//! what it wants. The end of input is always the careful answer. What was typed before a question
//! stands is dropped: it was meant for the command that ran until then, and answers nothing.

use std::io::{self, BufRead, IsTerminal};
use std::os::fd::BorrowedFd;

use rustix::termios::{self, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex};

use crate::narration;

/// Is there a person to ask?
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// `QUESTION [y/N] `: true for `y` and `yes` alone.
pub(crate) fn confirm(question: &str) -> bool {
    let answer = line(&format!("{question} [y/N] "));
    matches!(
        answer.as_deref().map(str::to_ascii_lowercase).as_deref(),
        Some("y" | "yes")
    )
}

/// Asks and reads a line; `None` at the end of input.
pub(crate) fn line(question: &str) -> Option<String> {
    forget_typed_ahead(rustix::stdio::stdin());
    narration::raw(question);
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(read) if read > 0 => Some(answer.trim().to_owned()),
        _ => {
            narration::raw("\n");
            None
        }
    }
}

/// Drops what was typed and not read yet. Of what is no terminal nothing is dropped.
fn forget_typed_ahead(terminal: BorrowedFd<'_>) {
    let _ = termios::tcflush(terminal, QueueSelector::IFlush);
}

/// Asks until one of `words` is answered, whole or by its first letter; gives that letter, `None` at
/// the end of input.
pub(crate) fn choose(question: &str, words: &[&str]) -> Option<char> {
    loop {
        let answer = line(question)?.to_lowercase();
        let means = |word: &&&str| **word == answer || word.get(..1) == Some(&answer);
        if let Some(word) = words.iter().find(means) {
            return word.chars().next();
        }
        narration::say(format_args!("Please answer one of {}.", words.join(", ")));
    }
}

/// Asks for one key, without waiting for Enter; `None` for Enter, Ctrl-C, Ctrl-D and the end of input.
pub(crate) fn key(question: &str, keys: &[char]) -> Option<char> {
    key_from(rustix::stdio::stdin(), question, keys)
}

fn key_from(terminal: BorrowedFd<'_>, question: &str, keys: &[char]) -> Option<char> {
    let unbuffered = Unbuffered::new(terminal);
    narration::raw(question);
    let _unbuffered = unbuffered?;
    loop {
        let mut byte = [0];
        // Straight from the descriptor: std's buffer would swallow keys typed ahead for the next
        // program.
        match rustix::io::read(terminal, &mut byte) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(1) if !ENDS.contains(&byte[0]) => {}
            _ => {
                narration::raw("\n");
                return None;
            }
        }
        let typed = char::from(byte[0]);
        if keys.contains(&typed) {
            narration::raw(&format!("{typed}\n"));
            return Some(typed);
        }
    }
}

/// Ctrl-C, Ctrl-D and Enter.
const ENDS: [u8; 4] = [0x03, 0x04, b'\r', b'\n'];

/// The terminal without line buffering and echo, for as long as this lives.
struct Unbuffered<'a> {
    terminal: BorrowedFd<'a>,
    before: termios::Termios,
}

impl Unbuffered<'_> {
    fn new(terminal: BorrowedFd<'_>) -> Option<Unbuffered<'_>> {
        let before = termios::tcgetattr(terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(terminal, OptionalActions::Drain, &quiet).ok()?;
        // After the change: a line that was being typed until then becomes readable by it.
        forget_typed_ahead(terminal);
        Some(Unbuffered { terminal, before })
    }
}

impl Drop for Unbuffered<'_> {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.terminal, OptionalActions::Drain, &self.before);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::os::fd::AsFd;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{self, LocalModes, OptionalActions};

    use super::key_from;

    #[test]
    fn keys_typed_before_the_question_answer_nothing() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut asking = termios::tcgetattr(&slave).unwrap();
        asking.local_modes -= LocalModes::ECHO;
        termios::tcsetattr(&slave, OptionalActions::Now, &asking).unwrap();
        for (early, typed, answer) in [
            ("exit", "p", Some('p')),
            ("pwd\nx\n", "x", Some('x')),
            ("p", "?x", Some('x')),
            ("p", "\x04", None),
            ("x", "\r", None),
            ("", "\x03", None),
        ] {
            rustix::io::write(&master, early.as_bytes()).unwrap();
            let asked = std::thread::scope(|scope| {
                let asked = scope.spawn(|| key_from(slave.as_fd(), "", &['p', 'x']));
                // Unbuffered means that it has dropped what was there, or is about to: only an
                // answer that is repeated is certain to arrive.
                let is_buffered = || {
                    let now = termios::tcgetattr(&slave).unwrap();
                    now.local_modes.contains(LocalModes::ICANON)
                };
                while is_buffered() && !asked.is_finished() {
                    std::thread::yield_now();
                }
                while !asked.is_finished() {
                    rustix::io::write(&master, typed.as_bytes()).unwrap();
                    std::thread::yield_now();
                }
                asked.join().unwrap()
            });
            assert_eq!(asked, answer, "{early:?} then {typed:?}");
        }
    }
}
