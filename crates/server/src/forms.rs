//! A form's body, one piece at a time.
//!
//! The reader of forms looks twice for where the first part begins, and when all of a body comes between the
//! two looks, it takes that for a body without one. So there is a pause after each piece: never do a piece and
//! the end come in one look.

use std::task::Poll;

use axum::body::Body;
use futures_util::{StreamExt, stream};

/// The same body, with a pause after each piece.
pub(crate) fn unhurried(body: Body) -> Body {
    let mut pieces = body.into_data_stream();
    let mut is_due = false;
    Body::from_stream(stream::poll_fn(move |context| {
        if std::mem::take(&mut is_due) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = pieces.poll_next_unpin(context);
        is_due = matches!(piece, Poll::Ready(Some(_)));
        piece
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::{FromRequest, Multipart, Request};

    const FORM: &str =
        "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\ncontent\r\n--x--\r\n";

    /// A form of which nothing is there at first, and then all of it.
    fn sudden() -> Body {
        let mut looks = 0;
        Body::from_stream(stream::poll_fn(move |context| {
            looks += 1;
            context.waker().wake_by_ref();
            match looks {
                1 => Poll::Pending,
                2 => Poll::Ready(Some(Ok::<_, std::io::Error>(FORM))),
                _ => Poll::Ready(None),
            }
        }))
    }

    async fn form(body: Body) -> Multipart {
        let request = Request::post("/").header("Content-Type", "multipart/form-data; boundary=x");
        let request = request.body(body).unwrap();
        Multipart::from_request(request, &()).await.unwrap()
    }

    #[tokio::test]
    async fn a_form_that_comes_all_at_once_is_read() {
        // Where this is no error any more, nothing of this is needed.
        assert!(form(sudden()).await.next_field().await.is_err());
        let mut form = form(unhurried(sudden())).await;
        let part = form.next_field().await.unwrap().unwrap();
        assert_eq!(part.name(), Some("file"));
        assert_eq!(part.text().await.unwrap(), "content");
        assert!(form.next_field().await.unwrap().is_none());
    }
}
