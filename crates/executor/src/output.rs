//! What a program prints: all of it is read, so that the program never waits, and the first part kept.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of each stream is kept.
pub(crate) const KEPT: usize = 1 << 20;

/// What was kept of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Output {
    /// Reads `stream` to its end.
    pub(crate) async fn read(&mut self, mut stream: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut part = vec![0; 16 << 10];
        loop {
            match stream.read(&mut part).await? {
                0 => return Ok(()),
                length => self.add(&part[..length]),
            }
        }
    }

    fn add(&mut self, part: &[u8]) {
        let room = KEPT - self.bytes.len();
        self.truncated |= part.len() > room;
        self.bytes.extend(&part[..part.len().min(room)]);
    }

    /// As text, and whether there was more. What is not UTF-8 is replaced, and so is a character that
    /// the end cuts through.
    pub(crate) fn into_text(self) -> (String, bool) {
        let text = String::from_utf8_lossy(&self.bytes);
        (text.into_owned(), self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_is_kept_and_the_rest_is_told_of() {
        let mut output = Output::default();
        output.add(&vec![b'a'; KEPT - 1]);
        output.add(b"bc");
        output.add(b"d");
        let (text, truncated) = output.into_text();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("ab") && truncated);
    }

    #[test]
    fn exactly_the_limit_is_not_too_much() {
        let mut output = Output::default();
        output.add(&vec![b'a'; KEPT]);
        assert!(!output.into_text().1);
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let mut output = Output::default();
        output.add(b"a\xff\0b");
        assert_eq!(output.into_text(), ("a\u{fffd}\0b".to_owned(), false));
    }
}
