//! Parts of a file, as HTTP asks for them.

use std::io;
use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, future, stream};
use sandbox_store::objects::ByteRange;

use crate::error::ApiError;

/// Which bytes a request asks for. One range is understood; several, and other units, mean all of them, as
/// HTTP allows.
pub(crate) fn read(headers: &HeaderMap) -> Result<ByteRange, ApiError> {
    let text = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok());
    let Some(range) = text.and_then(|text| text.strip_prefix("bytes=")) else {
        return Ok(ByteRange::All);
    };
    if range.contains(',') {
        return Ok(ByteRange::All);
    }
    let invalid = || {
        ApiError::invalid(
            "Range: is not bytes=FIRST-LAST",
            "send bytes=0-1023, for example",
        )
    };
    let (first, last) = range.trim().split_once('-').ok_or_else(invalid)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| invalid());
    Ok(match (first, last) {
        ("", last) => ByteRange::Last(number(last)?),
        (first, "") => ByteRange::From(number(first)?),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(invalid());
            }
            ByteRange::Within(first..last.saturating_add(1))
        }
    })
}

/// The answer with `bytes` of a file of `size`.
pub(crate) fn answer(
    asked: &ByteRange,
    bytes: Range<u64>,
    size: u64,
    disposition: &str,
    body: Body,
) -> Response {
    let length = bytes.end - bytes.start;
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // A browser must not take what code wrote for a page of ours.
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(value) = HeaderValue::from_str(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    if *asked != ByteRange::All {
        let range = format!(
            "bytes {}-{}/{size}",
            bytes.start,
            bytes.end.saturating_sub(1)
        );
        if let Ok(value) = HeaderValue::from_str(&range) {
            headers.insert(header::CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

/// The first `length` bytes of `pieces`; an error where there are fewer.
pub(crate) fn first(
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    length: u64,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let short = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter");
    let end = stream::once(future::ready(Err(short())));
    pieces.chain(end).scan(length, |left, piece| {
        if *left == 0 {
            return future::ready(None);
        }
        let piece = piece.map(|mut piece| {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
            piece
        });
        future::ready(Some(piece))
    })
}
