//! Content on its way in, cut into pieces that fit in memory.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{Stream, StreamExt as _};

use super::{ObjectKey, ObjectsError};

/// What a piece has room for at first. A small object takes no more, a large piece all it can at once.
const SMALL: usize = 64 << 10;

/// A stream read in pieces of a size of our choice, and never beyond its limit.
pub(super) struct Intake<'a, S> {
    key: &'a ObjectKey,
    content: S,
    /// What came with the last piece and belongs to the next.
    rest: Bytes,
    taken: u64,
    most_bytes: u64,
}

impl<'a, S: Stream<Item = io::Result<Bytes>> + Unpin> Intake<'a, S> {
    pub(super) fn new(key: &'a ObjectKey, content: S, most_bytes: u64) -> Self {
        Intake {
            key,
            content,
            rest: Bytes::new(),
            taken: 0,
            most_bytes,
        }
    }

    /// The next piece: of `size`, or shorter at the end, where it may be empty.
    ///
    /// It is copied into memory of its own: what arrives may be slices of larger buffers, which
    /// would all stay for as long as the piece does.
    pub(super) async fn piece(&mut self, size: usize) -> Result<Bytes, ObjectsError> {
        let mut piece = BytesMut::new();
        loop {
            let wanted = self.rest.len().min(size - piece.len());
            if piece.len() + wanted > piece.capacity() {
                let room = if piece.len() + wanted <= SMALL {
                    SMALL.min(size)
                } else {
                    size
                };
                piece.reserve(room - piece.len());
            }
            piece.extend_from_slice(&self.rest.split_to(wanted));
            if piece.len() == size {
                return Ok(piece.freeze());
            }
            match self.content.next().await {
                Some(Ok(bytes)) => self.count(bytes)?,
                None => return Ok(piece.freeze()),
                Some(Err(source)) => {
                    let key = self.key.clone();
                    return Err(ObjectsError::Content { key, source });
                }
            }
        }
    }

    /// How much came until now.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    fn count(&mut self, bytes: Bytes) -> Result<(), ObjectsError> {
        self.taken += bytes.len() as u64;
        if self.taken > self.most_bytes {
            return Err(ObjectsError::TooLarge {
                key: self.key.clone(),
                most_bytes: self.most_bytes,
            });
        }
        self.rest = bytes;
        Ok(())
    }
}
