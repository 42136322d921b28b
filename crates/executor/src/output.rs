//! What a program prints: all of it is read, so that the program never waits, and the first part kept.
//!
//! Whoever wants to hear it as it comes is told out of what is kept, so that a slow hearer costs nothing:
//! neither does the program wait for them, nor is there a second copy that could grow.

use std::cell::RefCell;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

use crate::execution::Stream;

/// How much of each stream is kept.
pub(crate) const KEPT: usize = 1 << 20;

/// How much is told at once.
const PART: usize = 16 << 10;

/// How much of a stream's end is looked at for why a program failed.
const LAST_WORDS: usize = 4 << 10;

/// Both streams of a program, and how far it says to be.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    stdout: RefCell<Output>,
    stderr: RefCell<Output>,
    /// There is more of either.
    pub(crate) more: Notify,
    /// Its last word on its progress, as JSON text.
    pub(crate) progress: RefCell<Option<String>>,
}

/// What was kept of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Output {
    bytes: Vec<u8>,
    truncated: bool,
    /// How many of the bytes were told.
    told: usize,
}

impl Printed {
    /// Reads `from` to its end, as what is printed on `stream`.
    pub(crate) async fn read(
        &self,
        stream: Stream,
        mut from: impl AsyncRead + Unpin,
    ) -> io::Result<()> {
        let mut part = vec![0; PART];
        loop {
            match from.read(&mut part).await? {
                0 => return Ok(()),
                length => self.of(stream).borrow_mut().add(&part[..length]),
            }
            self.more.notify_one();
        }
    }

    /// Adds a line of ours to what was printed on `stream`.
    pub(crate) fn add_line(&self, stream: Stream, line: &str) {
        let mut output = self.of(stream).borrow_mut();
        if output.bytes.last().is_some_and(|last| *last != b'\n') {
            output.add(b"\n");
        }
        output.add(line.as_bytes());
        output.add(b"\n");
        drop(output);
        self.more.notify_one();
    }

    /// The end of what was kept of `stream`, as text.
    pub(crate) fn last_words(&self, stream: Stream) -> String {
        let output = self.of(stream).borrow();
        let start = output.bytes.len().saturating_sub(LAST_WORDS);
        String::from_utf8_lossy(&output.bytes[start..]).into_owned()
    }

    /// What is to be told next, if there is something: to be [told](Printed::told) then.
    pub(crate) fn untold(&self) -> Option<(Stream, Vec<u8>)> {
        [Stream::Stdout, Stream::Stderr]
            .into_iter()
            .find_map(|stream| {
                let output = self.of(stream).borrow();
                let part = output.bytes[output.told..].chunks(PART).next()?;
                Some((stream, part.to_vec()))
            })
    }

    /// As many more bytes of `stream` were told.
    pub(crate) fn told(&self, stream: Stream, length: usize) {
        self.of(stream).borrow_mut().told += length;
    }

    /// Everything kept of `stream`, as text, and whether there was more. What is not UTF-8 is replaced,
    /// and so is a character that the end cuts through.
    pub(crate) fn take_text(&self, stream: Stream) -> (String, bool) {
        let Output {
            bytes, truncated, ..
        } = self.of(stream).take();
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        (text, truncated)
    }

    fn of(&self, stream: Stream) -> &RefCell<Output> {
        match stream {
            Stream::Stdout => &self.stdout,
            Stream::Stderr => &self.stderr,
        }
    }
}

impl Output {
    fn add(&mut self, part: &[u8]) {
        let room = KEPT - self.bytes.len();
        self.truncated |= part.len() > room;
        self.bytes.extend(&part[..part.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stream::{Stderr, Stdout};

    fn printed(parts: &[&[u8]]) -> Printed {
        let printed = Printed::default();
        for part in parts {
            printed.stdout.borrow_mut().add(part);
        }
        printed
    }

    #[test]
    fn the_first_part_is_kept_and_the_rest_is_told_of() {
        let printed = printed(&[&vec![b'a'; KEPT - 1], b"bc", b"d"]);
        let (text, truncated) = printed.take_text(Stdout);
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("ab") && truncated);
    }

    #[test]
    fn exactly_the_limit_is_not_too_much() {
        assert!(!printed(&[&vec![b'a'; KEPT]]).take_text(Stdout).1);
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let text = printed(&[b"a\xff\0b"]).take_text(Stdout);
        assert_eq!(text, ("a\u{fffd}\0b".to_owned(), false));
    }

    #[test]
    fn every_byte_kept_is_told_once() {
        let whole: Vec<u8> = (0..KEPT + 5).map(|number| (number % 251) as u8).collect();
        let printed = Printed::default();
        let mut told = Vec::new();
        for (number, part) in whole.chunks(9_000).enumerate() {
            printed.stdout.borrow_mut().add(part);
            // Not every time.
            if number % 3 == 0 {
                let (stream, part) = printed.untold().unwrap();
                printed.told(stream, part.len());
                told.extend(part);
            }
        }
        printed.stderr.borrow_mut().add(b"other");
        let mut other = Vec::new();
        while let Some((stream, part)) = printed.untold() {
            printed.told(stream, part.len());
            match stream {
                Stdout => told.extend(part),
                Stderr => other.extend(part),
            }
        }
        assert_eq!(told, whole[..KEPT]);
        assert_eq!(other, b"other");
    }
}
