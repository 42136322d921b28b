//! What comes through a pipe, piece by piece.
//!
//! Whoever writes to it may stand still for as long as their session is paused, and many may at once: no thread waits
//! for them, as one does for a file. Who writes learns that nobody reads any more by the pipe's end.

use std::io;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::net::unix::pipe::Receiver;

/// How much is read at once: as much as a pipe holds.
const PIECE: usize = 64 << 10;

/// What comes through `pipe`, up to its end.
pub(crate) fn content_of(
    pipe: OwnedFd,
) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
    let pipe = Receiver::from_owned_fd(pipe)?;
    Ok(stream::try_unfold(pipe, |pipe| async move {
        let piece = next(&pipe).await?;
        Ok((!piece.is_empty()).then_some((piece, pipe)))
    }))
}

/// The next bytes; none at its end.
async fn next(pipe: &Receiver) -> io::Result<Bytes> {
    loop {
        pipe.readable().await?;
        // Only now: those who wait hold no memory.
        let mut piece = Vec::with_capacity(PIECE);
        match pipe.try_read_buf(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read.map(|_| Bytes::from(piece)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use futures_util::{FutureExt, StreamExt, TryStreamExt};

    use super::*;

    #[test]
    fn no_thread_waits_for_those_who_stand_still() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut paused = Vec::new();
            for _ in 0..8 {
                let (reader, writer) = io::pipe().unwrap();
                let mut content = Box::pin(content_of(reader.into()).unwrap());
                assert!(content.next().now_or_never().is_none());
                paused.push((content, writer));
            }
            let file = tokio::task::spawn_blocking(|| "read");
            let file = tokio::time::timeout(Duration::from_secs(10), file).await;
            assert_eq!(file.expect("a thread is free").unwrap(), "read");
            // They go on where they stood.
            for (content, mut writer) in paused {
                writer.write_all(b"and on").unwrap();
                drop(writer);
                let pieces: Vec<_> = content.try_collect().await.unwrap();
                assert_eq!(pieces.concat(), b"and on");
            }
        });
        runtime.shutdown_background();
    }

    #[tokio::test]
    async fn all_of_it_comes_however_much_it_is() {
        let (reader, mut writer) = io::pipe().unwrap();
        let sent: Vec<u8> = (0..1_000_003_u32).map(|number| number as u8).collect();
        let written = sent.clone();
        let writing = tokio::task::spawn_blocking(move || writer.write_all(&written));
        let pieces: Vec<_> = content_of(reader.into())
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        writing.await.unwrap().unwrap();
        assert!(pieces.concat() == sent);
    }

    #[tokio::test]
    async fn who_writes_learns_that_nobody_reads_any_more() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut content = Box::pin(content_of(reader.into()).unwrap());
        assert!(content.next().now_or_never().is_none());
        drop(content);
        let refusal = writer.write_all(b"x").unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::BrokenPipe);
    }
}
