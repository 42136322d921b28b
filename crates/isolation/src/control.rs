//! What the launcher and the init say to each other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sandbox_linux::message;
use sandbox_linux::terminal::Size;
use sandbox_linux::usage::{self, Usage};

use crate::launch::Status;
use crate::step::{ENCODED, Failed};

/// A message from the init.
#[derive(Debug)]
pub enum Report {
    /// The init of a joined run has this pid; its pidfd comes along.
    Joined(i32, OwnedFd),
    /// The command runs. Its pidfd, then what else was asked for: terminal, listeners.
    Ready(Vec<OwnedFd>),
    /// A step failed; nothing runs.
    Failed(Failed),
    /// The command ended, and everything inside with it has used this much.
    Ended(Status, Usage),
    /// The init is gone.
    Gone,
}

/// The longest of them.
const LONGEST: usize = {
    let (failed, ended) = (1 + ENCODED, 5 + usage::ENCODED);
    if failed > ended { failed } else { ended }
};

const JOINED: u8 = b'J';
const READY: u8 = b'R';
const FAILED: u8 = b'F';
const EXITED: u8 = b'E';
const SIGNALLED: u8 = b'S';

/// The launcher's word that the init may go on: its limits are in place.
pub const GO: &[u8] = b"G";

/// The same, where the command is to have a terminal of its own: its size follows.
const GO_ON_TERMINAL: u8 = b'T';

/// How much longer a word is that asks for a terminal.
pub const SIZE: usize = 4;

/// The launcher's word, read.
#[derive(Debug, PartialEq, Eq)]
pub struct Word<'w> {
    /// How large a terminal of its own the command is to have, if it is to have one.
    pub terminal: Option<Size>,
    /// What it is to run, where that was not known before.
    pub order: &'w [u8],
}

/// The word to go on with a terminal of this size, and to run this.
pub fn go_on_terminal(size: Size, order: &[u8]) -> Vec<u8> {
    let mut word = vec![GO_ON_TERMINAL];
    word.extend(size.columns.to_le_bytes());
    word.extend(size.rows.to_le_bytes());
    word.extend(order);
    word
}

impl Word<'_> {
    /// What `bytes` say; nothing where they are no word to go on.
    pub fn read(bytes: &[u8]) -> Option<Word<'_>> {
        if let Some(order) = bytes.strip_prefix(GO) {
            let terminal = None;
            return Some(Word { terminal, order });
        }
        let rest = bytes.strip_prefix(&[GO_ON_TERMINAL])?;
        let (&[a, b, c, d], order) = rest.split_first_chunk::<SIZE>()?;
        let size = Size {
            columns: u16::from_le_bytes([a, b]),
            rows: u16::from_le_bytes([c, d]),
        };
        let terminal = Some(size);
        Some(Word { terminal, order })
    }
}

/// Says that the command runs.
pub fn send_ready(control: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    message::send(control, &[READY], descriptors)
}

/// Says which process the init of a joined run is.
pub fn send_joined(control: impl AsFd, pid: i32, pidfd: BorrowedFd<'_>) -> io::Result<()> {
    message::send(control, &with_number(JOINED, pid), &[pidfd])
}

/// Says what failed.
pub fn send_failed(control: impl AsFd, failed: &Failed) -> io::Result<()> {
    let mut bytes = vec![FAILED];
    bytes.extend(failed.encode());
    message::send(control, &bytes, &[])
}

/// Says how the command ended, and what was used.
pub fn send_ended(control: impl AsFd, status: Status, usage: Usage) -> io::Result<()> {
    let bytes = match status {
        Status::Exited(code) => with_number(EXITED, code),
        Status::Signalled(signal) => with_number(SIGNALLED, signal),
    };
    message::send(control, &[&bytes[..], &usage.encode()].concat(), &[])
}

fn with_number(kind: u8, number: i32) -> [u8; 5] {
    let mut bytes = [kind, 0, 0, 0, 0];
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The next report.
pub fn receive(control: impl AsFd) -> io::Result<Report> {
    let mut bytes = [0; LONGEST];
    let (length, mut descriptors) = message::receive(control, &mut bytes)?;
    let number = || i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    let usage = || Usage::decode(&bytes[5..length.max(5)]);
    match bytes[0] {
        _ if length == 0 => Ok(Report::Gone),
        READY => Ok(Report::Ready(descriptors)),
        EXITED => Ok(Report::Ended(Status::Exited(number()), usage())),
        SIGNALLED => Ok(Report::Ended(Status::Signalled(number()), usage())),
        JOINED if !descriptors.is_empty() => {
            Ok(Report::Joined(number(), descriptors.swap_remove(0)))
        }
        FAILED => match Failed::decode(&bytes[1..length]) {
            Some(failed) => Ok(Report::Failed(failed)),
            None => Err(io::ErrorKind::InvalidData.into()),
        },
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_to_run_and_on_what() {
        let size = Size {
            columns: 300,
            rows: 40,
        };
        let word = go_on_terminal(size, b"order");
        let read = Word::read(&word).unwrap();
        assert_eq!((read.terminal, read.order), (Some(size), &b"order"[..]));
        let read = Word::read(b"Gorder").unwrap();
        assert_eq!((read.terminal, read.order), (None, &b"order"[..]));
        for nonsense in [&b""[..], b"x", b"T", b"T123"] {
            assert_eq!(Word::read(nonsense), None);
        }
    }
}
