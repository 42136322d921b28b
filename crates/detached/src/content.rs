//! Bodies of messages: what is at hand, and what is read from a file as it is sent.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use tokio::task::JoinHandle;

/// A body of either kind.
pub(crate) type Content = UnsyncBoxBody<Bytes, io::Error>;

/// How much of a file is read at once.
const PIECE: u64 = 64 << 10;

/// These bytes.
pub(crate) fn of_bytes(bytes: impl Into<Bytes>) -> Content {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// `value` as JSON.
pub(crate) fn of_json(value: &impl Serialize) -> Content {
    // What is written here are structures of our own, whose keys are all text.
    of_bytes(serde_json::to_vec(value).unwrap_or_default())
}

/// `length` bytes of `file`, from `at` on.
pub(crate) fn of_file(file: Arc<File>, at: u64, length: u64) -> Content {
    let pieces = Pieces {
        file,
        at,
        left: length,
        reading: None,
    };
    pieces.boxed_unsync()
}

/// A part of a file, of which one piece is in memory at a time.
struct Pieces {
    file: Arc<File>,
    at: u64,
    left: u64,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Pieces {
    /// Reads the next piece, beside.
    fn read(&self) -> JoinHandle<io::Result<Vec<u8>>> {
        let (file, at) = (self.file.clone(), self.at);
        let length = self.left.min(PIECE) as usize;
        tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; length];
            let length = file.read_at(&mut piece, at)?;
            piece.truncate(length);
            Ok(piece)
        })
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => self.read(),
        };
        let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let piece = read.map_err(io::Error::other).flatten();
        Poll::Ready(Some(piece.and_then(|piece| {
            if piece.is_empty() {
                // It is shorter than it was. A message that promised more must not look complete.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.at += piece.len() as u64;
            self.left -= piece.len() as u64;
            Ok(Frame::data(piece.into()))
        })))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
