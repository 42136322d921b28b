//! Where a request's body ends.
//!
//! Exactly one request may follow each decision: what comes behind it could name another host to a
//! server that shares the address. So the body is followed byte by byte, by its length or its
//! chunks, and nothing behind its end is passed on. Chunked framing is taken at its strictest (no
//! extensions, no trailers, whole line ends), since two readers that differ about it are how
//! requests are smuggled.

use thiserror::Error;

/// A body under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes are left.
    Length(u64),
    /// A series of chunks.
    Chunked(Chunk),
}

/// Where in the chunks we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Among the digits of a size.
    Size { size: u64, digits: u8 },
    /// Before the line feed that ends a size.
    SizeEnd(u64),
    /// So many bytes are left of the data.
    Data(u64),
    /// Before the carriage return behind the data.
    DataReturn,
    /// Before the line feed behind the data.
    DataEnd,
    /// Before the carriage return of the empty line behind the last chunk.
    LastReturn,
    /// Before its line feed.
    LastEnd,
    /// Behind the body.
    Over,
}

/// The chunks are not chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed chunks")]
pub(super) struct BadChunk;

impl Body {
    /// A chunked body at its beginning.
    pub(super) fn chunked() -> Body {
        Body::Chunked(Chunk::Size { size: 0, digits: 0 })
    }

    /// How many of `bytes` belong to the body.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        match self {
            Body::Length(left) => {
                let count = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                Ok(count)
            }
            Body::Chunked(chunk) => {
                let mut taken = 0;
                while taken < bytes.len() && *chunk != Chunk::Over {
                    taken += chunk.advance(&bytes[taken..])?;
                }
                Ok(taken)
            }
        }
    }
}

impl Chunk {
    /// One step over at least one byte of `bytes`, which has some.
    fn advance(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        let byte = bytes[0];
        let (next, taken) = match *self {
            Chunk::Size { size, digits } => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) if digits < 15 => {
                    let size = size << 4 | u64::from(digit);
                    (
                        Chunk::Size {
                            size,
                            digits: digits + 1,
                        },
                        1,
                    )
                }
                (None, b'\r') if digits > 0 => (Chunk::SizeEnd(size), 1),
                _ => return Err(BadChunk),
            },
            Chunk::SizeEnd(0) => (Chunk::LastReturn.after(byte, b'\n')?, 1),
            Chunk::SizeEnd(size) => (Chunk::Data(size).after(byte, b'\n')?, 1),
            Chunk::Data(left) => {
                let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - count as u64;
                (
                    if left == 0 {
                        Chunk::DataReturn
                    } else {
                        Chunk::Data(left)
                    },
                    count,
                )
            }
            Chunk::DataReturn => (Chunk::DataEnd.after(byte, b'\r')?, 1),
            Chunk::DataEnd => (Chunk::Size { size: 0, digits: 0 }.after(byte, b'\n')?, 1),
            Chunk::LastReturn => (Chunk::LastEnd.after(byte, b'\r')?, 1),
            Chunk::LastEnd => (Chunk::Over.after(byte, b'\n')?, 1),
            Chunk::Over => (Chunk::Over, bytes.len()),
        };
        *self = next;
        Ok(taken)
    }

    fn after(self, byte: u8, wanted: u8) -> Result<Chunk, BadChunk> {
        if byte == wanted {
            Ok(self)
        } else {
            Err(BadChunk)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(mut body: Body, bytes: &[u8]) -> Result<usize, BadChunk> {
        body.take(bytes)
    }

    #[test]
    fn nothing_behind_the_body_passes() {
        let next = b"GET http://other/ HTTP/1.1\r\n\r\n";
        assert_eq!(taken(Body::Length(0), next), Ok(0));
        assert_eq!(taken(Body::Length(3), b"abcGET"), Ok(3));
        let chunks = b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n".to_vec();
        let mut all = chunks.clone();
        all.extend(next);
        assert_eq!(taken(Body::chunked(), &all), Ok(chunks.len()));
    }

    #[test]
    fn chunks_that_two_readers_could_read_differently_are_refused() {
        let wrong: &[&[u8]] = &[
            b"5;ext=1\r\nhello\r\n0\r\n\r\n",
            b"5\nhello\r\n",
            b"5\r\nhelloX",
            b"\r\n",
            b" 5\r\nhello",
            b"0x5\r\nhello",
            b"+5\r\nhello",
            b"-1\r\n",
            b"5 \r\nhello",
            b"0\r\nTrailer: x\r\n\r\n",
            b"0\r\n\n",
            b"ffffffffffffffff\r\n",
            b"0000000000000005\r\nhello",
            b"5\r\nhello\n",
        ];
        for bytes in wrong {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(taken(Body::chunked(), bytes), Err(BadChunk), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_end_does_not_depend_on_how_the_bytes_arrive(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..6),
            step in 1usize..20,
        ) {
            let mut whole = Vec::new();
            for part in &parts {
                whole.extend(format!("{:X}\r\n", part.len()).bytes());
                whole.extend(part);
                whole.extend(b"\r\n");
            }
            whole.extend(b"0\r\n\r\n");
            let length = whole.len();
            whole.extend(b"GET / HTTP/1.1\r\n\r\n");
            let mut body = Body::chunked();
            let mut taken = 0;
            for piece in whole.chunks(step) {
                taken += body.take(piece).unwrap();
            }
            prop_assert_eq!(taken, length);
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..300), length: u64) {
            for mut body in [Body::chunked(), Body::Length(length)] {
                if let Ok(count) = body.take(&bytes) {
                    prop_assert!(count <= bytes.len());
                }
            }
        }
    }
}
