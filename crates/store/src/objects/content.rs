//! A file's content, piece by piece, read where reading may block.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream;

/// How much is read at once.
const PIECE: usize = 1 << 20;

/// The content of `file`, from where it stands to its end. A thread waits for each piece: nothing for a pipe, whose
/// other end may stand still.
pub fn content_of(file: OwnedFd) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::try_unfold(File::from(file), |file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            let mut file = file;
            (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
            Ok::<_, io::Error>((piece, file))
        });
        let (piece, file) = read.await.map_err(io::Error::other)??;
        Ok(match piece.is_empty() {
            true => None,
            false => Some((Bytes::from(piece), file)),
        })
    })
}
