//! How slowly a body may come.
//!
//! What is sent steadily may take as long as it takes, however slow its way; what stands still is given up, and
//! so is what comes by the byte so that it never ends. What counts is for how long the sender was waited for: who
//! reads a body slowly has all the time in the world.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::error::ApiError;

/// For how long the sender of a request is waited for.
pub(crate) const REQUEST: Duration = Duration::from_secs(30);

/// For how long the sender of a file is, which something may be writing while it is sent.
pub(crate) const FILE: Duration = Duration::from_secs(300);

/// How many bytes are worth another second, as long as there are no more than at the beginning.
const STEADY: u32 = 1024;

/// A body of which less came than should have.
#[derive(Debug, thiserror::Error)]
#[error("the body came too slowly: less than {STEADY} bytes a second")]
pub(crate) struct TooSlow;

impl TooSlow {
    /// What is answered, if it is why this failed.
    pub(crate) fn refusal(error: &(dyn Error + 'static)) -> Option<ApiError> {
        let mut causes = std::iter::successors(Some(error), |&error| error.source());
        let slow = causes.find_map(|error| error.downcast_ref::<TooSlow>())?;
        let solution = "send it again, faster or in smaller parts";
        Some(ApiError::invalid(slow.to_string(), solution))
    }
}

/// A body that must come steadily.
#[derive(Debug)]
pub(crate) struct Paced {
    body: Body,
    patience: Duration,
    /// How long its sender will be waited for.
    left: Duration,
    wait: Option<Wait>,
}

/// For a sender who has not sent what is next.
#[derive(Debug)]
struct Wait {
    since: Instant,
    end: Pin<Box<Sleep>>,
}

impl Paced {
    /// The same body, whose sender is waited for so long.
    pub(crate) fn new(body: Body, patience: Duration) -> Paced {
        Paced {
            body,
            patience,
            left: patience,
            wait: None,
        }
    }

    /// So many bytes came, perhaps after a wait.
    fn note(&mut self, bytes: usize) {
        if let Some(wait) = self.wait.take() {
            self.left = self.left.saturating_sub(wait.since.elapsed());
        }
        let worth = Duration::from_secs(bytes as u64) / STEADY;
        self.left = self.patience.min(self.left + worth);
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                self.note(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let left = self.left;
        let wait = self.wait.get_or_insert_with(|| Wait {
            since: Instant::now(),
            end: Box::pin(sleep(left)),
        });
        ready!(wait.end.as_mut().poll(context));
        Poll::Ready(Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::{FromRequest, Multipart, Request};
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;
    use crate::forms::unhurried;

    /// A body of pieces of so many bytes, with a wait before each.
    fn pieces(number: usize, bytes: usize, wait: Duration) -> Paced {
        let pieces = stream::unfold(0, move |sent| async move {
            if sent == number {
                return None;
            }
            sleep(wait).await;
            Some((Ok::<_, BoxError>(Bytes::from(vec![0; bytes])), sent + 1))
        });
        Paced::new(Body::from_stream(pieces), REQUEST)
    }

    /// How much of it could be read, and how long that took.
    async fn read(mut body: Paced) -> (Result<usize, BoxError>, Duration) {
        let begin = Instant::now();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => size += frame.data_ref().map_or(0, Bytes::len),
                Err(error) => return (Err(error), begin.elapsed()),
            }
        }
        (Ok(size), begin.elapsed())
    }

    fn is_too_slow(read: Result<usize, BoxError>) -> bool {
        read.is_err_and(|error| TooSlow::refusal(&*error).is_some())
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_steadily_may_take_as_long_as_it_takes() {
        let size = 100 << 20;
        let (piece, wait) = (20 << 10, Duration::from_secs(20));
        let (read, took) = read(pieces(size / piece, piece, wait)).await;
        assert_eq!(read.unwrap(), size);
        assert!(took > Duration::from_secs(24 * 3600), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_stands_still_is_given_up() {
        // However fast it came until then.
        for sent in [0, 1 << 20] {
            let body = Body::from(vec![0; sent]).into_data_stream();
            let stalled = futures_util::StreamExt::chain(body, stream::pending());
            let (read, took) = read(Paced::new(Body::from_stream(stalled), FILE)).await;
            assert!(is_too_slow(read));
            assert_eq!(took, FILE);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_by_the_byte_is_given_up() {
        let (read, took) = read(pieces(1_000_000, 1, Duration::from_secs(1))).await;
        assert!(is_too_slow(read));
        assert!(took < REQUEST * 2, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_form_it_is_told_that_it_came_too_slowly() {
        let begun = Bytes::from("--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n");
        let begun = stream::once(async { Ok::<_, BoxError>(begun) });
        let stalled = Body::from_stream(futures_util::StreamExt::chain(begun, stream::pending()));
        let form = Request::post("/").header("Content-Type", "multipart/form-data; boundary=x");
        let form = form.body(unhurried(Body::new(Paced::new(stalled, FILE))));
        let mut form = Multipart::from_request(form.unwrap(), &()).await.unwrap();
        let mut field = form.next_field().await.unwrap().unwrap();
        let error = field.chunk().await.unwrap_err();
        assert!(TooSlow::refusal(&error).is_some(), "{error:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_is_not_the_senders_fault() {
        let mut body = pieces(100, 1, Duration::ZERO);
        for _ in 0..100 {
            sleep(REQUEST).await;
            body.frame().await.unwrap().unwrap();
        }
        assert!(body.frame().await.is_none());
    }
}
