//! The answer to a head that cannot be read.
//!
//! No handler sees a request whose head is malformed, too large or too slow: the HTTP library refuses it by itself, with a
//! status and nothing else, or with nothing at all. Here such a refusal gets the body that every error of the API has.
//!
//! What looks like a refusal is held back when the library writes it. It is replaced only once the library has reported
//! that it could not read a head; anything else is passed on as it is, before anything that follows it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use sandbox_control::random;
use sandbox_model::RequestId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::error::ApiError;

/// How long somebody may go on sending after they were refused. Closed at once, the connection would be reset, and they might
/// not get to read why.
const LINGER: Duration = Duration::from_secs(2);

/// How much they may send meanwhile.
const MOST_LINGERING: usize = 1 << 20;

/// The longest refusal of the library's own.
const LONGEST: usize = 512;

/// A connection whose refusals are held back. Clones are the same.
pub(super) struct Watched<T> {
    inner: Arc<Mutex<Inner<T>>>,
}

struct Inner<T> {
    stream: T,
    /// What looks like a refusal, and how much of it was passed on since.
    held: Option<(Vec<u8>, usize)>,
    /// Whether anything was ever read.
    was_read: bool,
    /// Whether anything was ever written, or held back.
    was_written: bool,
    /// Nothing is held back any more.
    is_passive: bool,
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Watched<T> {
        Watched {
            inner: Arc::clone(&self.inner),
        }
    }
}

/// Why the library gave up on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// A head that it could not read.
    Head,
    /// A head that did not come in time.
    Late,
    /// Something else, or nothing.
    Other,
}

impl Failure {
    /// What an error of the library says.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Failure {
        match error.downcast_ref::<hyper::Error>() {
            Some(error) if error.is_parse() => Failure::Head,
            Some(error) if error.is_timeout() => Failure::Late,
            _ => Failure::Other,
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Watched<T> {
    pub(super) fn new(stream: T) -> Watched<T> {
        Watched {
            inner: Arc::new(Mutex::new(Inner {
                stream,
                held: None,
                was_read: false,
                was_written: false,
                is_passive: false,
            })),
        }
    }

    /// Ends what the library is done with: tells whoever is there why their head was not read. What has left HTTP goes on
    /// without us.
    pub(super) async fn finish(mut self, failure: Failure) {
        let answer = self.lock().last_answer(failure);
        // Whoever is gone need not know.
        let Some(answer) = answer else {
            self.lock().is_passive = true;
            let _ = poll_fn(|context| self.lock().release(context)).await;
            return;
        };
        let is_told = self.write_all(&answer).await.is_ok() && self.shutdown().await.is_ok();
        // Whoever was too slow has had time enough.
        if is_told && failure == Failure::Head {
            let _ = tokio::time::timeout(LINGER, self.drain()).await;
        }
    }

    async fn drain(&mut self) -> io::Result<()> {
        let (mut scratch, mut total) = (vec![0; 16 << 10], 0);
        while total < MOST_LINGERING {
            match self.read(&mut scratch).await? {
                0 => break,
                length => total += length,
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Nothing that is done under it can panic half-way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The status of a refusal that the library wrote by itself. Every answer of a handler has an identifier of its request.
fn refusal(bytes: &[u8]) -> Option<StatusCode> {
    if bytes.len() > LONGEST || !bytes.starts_with(b"HTTP/1.") {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let status = match text.split(' ').nth(1)? {
        "400" => StatusCode::BAD_REQUEST,
        "414" => StatusCode::URI_TOO_LONG,
        "431" => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        _ => return None,
    };
    let is_whole = text.find("\r\n\r\n") == Some(text.len() - 4);
    let mut lines = text.lines();
    let is_ours = lines.any(|line| line.to_ascii_lowercase().starts_with("x-request-id:"));
    (is_whole && !is_ours).then_some(status)
}

/// The whole answer to a head that could not be read.
fn written(status: StatusCode) -> Vec<u8> {
    let id = RequestId::random(random::numbers());
    let body = ApiError::of_head(status).text(&id);
    let reason = status.canonical_reason().unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\nx-request-id: {id}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

impl<T: AsyncWrite + Unpin> Inner<T> {
    /// What is said instead of what was held back, or of nothing.
    fn last_answer(&mut self, failure: Failure) -> Option<Vec<u8>> {
        let status = match (failure, &self.held) {
            (Failure::Head, Some((held, 0))) => refusal(held)?,
            // One that was answered before is only silent.
            (Failure::Late, None) if self.was_read && !self.was_written => {
                StatusCode::REQUEST_TIMEOUT
            }
            _ => return None,
        };
        self.held = None;
        self.is_passive = true;
        Some(written(status))
    }

    /// Holds a refusal back; not what is none.
    fn hold(&mut self, bytes: &[u8]) -> bool {
        self.was_written = true;
        let is_held = !self.is_passive && refusal(bytes).is_some();
        if is_held {
            self.held = Some((bytes.to_vec(), 0));
        }
        is_held
    }

    /// Passes on what was held back.
    fn release(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some((bytes, passed)) = &mut self.held {
            let rest = bytes.get(*passed..).unwrap_or_default();
            if rest.is_empty() {
                self.held = None;
                break;
            }
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => *passed += length,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        // After a refusal of its own the library reads nothing more.
        ready!(inner.release(context))?;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut inner.stream).poll_read(context, buffer);
        inner.was_read |= buffer.filled().len() > before;
        polled
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.lock();
        ready!(inner.release(context))?;
        if inner.hold(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut inner.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.lock();
        ready!(inner.release(context))?;
        let mut full = pieces.iter().filter(|piece| !piece.is_empty());
        let only = match (full.next(), full.next()) {
            (Some(only), None) => &only[..],
            _ => &[],
        };
        if inner.hold(only) {
            return Poll::Ready(Ok(only.len()));
        }
        Pin::new(&mut inner.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.lock();
        // There is still something to be said.
        if inner.held.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut inner.stream).poll_shutdown(context)
    }
}
