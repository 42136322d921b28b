//! A file on its way to a server, in a form.
//!
//! It is read by a thread of its own, a few pieces ahead: memory stays the same however large it is, and
//! an answer that comes before its end is heard. What breaks off on our side breaks the request off, so
//! that the server never takes a part for the whole.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::mpsc as channel;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::error::ClientError;
use super::random;

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// How many pieces are read ahead.
const AHEAD: usize = 4;

/// A file to be sent.
pub(crate) struct Upload {
    /// What it is, for people.
    pub(crate) name: String,
    /// Its content.
    pub(crate) content: Box<dyn Read + Send>,
    /// How long it is, where that is known: so much is sent.
    pub(crate) length: Option<u64>,
    /// Where it goes in the workspace.
    pub(crate) path: String,
}

impl Upload {
    /// The form's type, the form, and where to hear whether the file could not be read.
    pub(super) fn into_body(self) -> (String, reqwest::Body, channel::Receiver<ClientError>) {
        let boundary = random::name();
        let part =
            |name: &str| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        let head = format!(
            "{}\r\n\r\n{}\r\n{}; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            part("path"),
            self.path,
            part("file"),
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        let length = self
            .length
            .map(|length| length + (head.len() + tail.len()) as u64);
        let (pieces, receiver) = mpsc::channel(AHEAD);
        let (failed, failure) = channel::channel();
        std::thread::spawn(move || {
            let read = send(self.content, self.length, head.into(), tail.into(), &pieces);
            if let Err(source) = read {
                let what = self.name;
                let _ = failed.send(ClientError::Source { what, source });
                let _ = pieces.blocking_send(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        });
        let form = Form {
            pieces: receiver,
            left: length,
        };
        let kind = format!("multipart/form-data; boundary={boundary}");
        (kind, reqwest::Body::wrap(form), failure)
    }
}

/// Hands the form over, piece by piece, until it is whole or nobody wants more.
fn send(
    mut content: Box<dyn Read + Send>,
    length: Option<u64>,
    head: Bytes,
    tail: Bytes,
    pieces: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    if pieces.blocking_send(Ok(head)).is_err() {
        return Ok(());
    }
    let mut left = length;
    loop {
        let most = left.map_or(PIECE, |left| {
            usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))
        });
        if most == 0 {
            break;
        }
        let mut piece = vec![0; most];
        let read = match content.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            match left {
                Some(_) => return Err(io::Error::other("it became shorter while it was sent")),
                None => break,
            }
        }
        left = left.map(|left| left - read as u64);
        piece.truncate(read);
        if pieces.blocking_send(Ok(piece.into())).is_err() {
            return Ok(());
        }
    }
    let _ = pieces.blocking_send(Ok(tail));
    Ok(())
}

/// The form, as it is sent.
struct Form {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    left: Option<u64>,
}

impl Body for Form {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = std::task::ready!(self.pieces.poll_recv(context));
        Poll::Ready(piece.map(|piece| {
            let piece = piece?;
            self.left = self
                .left
                .map(|left| left.saturating_sub(piece.len() as u64));
            Ok(Frame::data(piece))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(content: &'static [u8], length: Option<u64>) -> (io::Result<()>, Vec<u8>) {
        let (pieces, mut receiver) = mpsc::channel(1000);
        let done = send(
            Box::new(content),
            length,
            Bytes::from_static(b"<"),
            Bytes::from_static(b">"),
            &pieces,
        );
        drop(pieces);
        let mut all = Vec::new();
        while let Some(piece) = receiver.blocking_recv() {
            all.extend(piece.unwrap());
        }
        (done, all)
    }

    #[test]
    fn a_file_is_sent_whole_and_never_longer_than_was_said() {
        assert_eq!(sent(b"abc", Some(3)).1, b"<abc>");
        assert_eq!(sent(b"abc", None).1, b"<abc>");
        assert_eq!(sent(b"", Some(0)).1, b"<>");
        assert_eq!(sent(b"abcdef", Some(3)).1, b"<abc>");
        let content: &[u8] = &[7; 3 * PIECE + 5];
        let (done, all) = sent(content, Some(content.len() as u64));
        assert!(done.is_ok());
        assert_eq!(all.len(), content.len() + 2);
    }

    #[test]
    fn a_file_that_became_shorter_is_never_sent_as_if_it_were_whole() {
        let (done, all) = sent(b"abc", Some(4));
        assert!(done.is_err());
        assert!(!all.ends_with(b">"));
    }
}
