//! Files of the workspace, in and out.
//!
//! The executor resolves paths and hands descriptors over; what is read or written goes straight between them
//! and the connection, a piece at a time.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use sandbox_executor::protocol::{Answer, Ask};
use sandbox_runtime::{Line, LineError};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::answer::{self, Refused};
use crate::content::{self, Content};

/// The largest file that is taken.
const MOST_BYTES: u64 = 100 << 20;

/// How long a part of a file may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The file at `path`.
pub(crate) async fn read(line: &Line, path: PathBuf) -> Result<Response<Content>, Refused> {
    match line.ask(Ask::Read(path)).await? {
        (Answer::File(size), Some(file)) => {
            let file = Arc::new(File::from(file));
            let mut response = answer::plain(StatusCode::OK, content::of_file(file, 0, size));
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            Ok(response)
        }
        _ => Err(LineError::Nonsense.into()),
    }
}

/// Puts a file at `path`. It is there whole or not at all.
pub(crate) async fn write(
    line: &Line,
    path: PathBuf,
    body: Incoming,
) -> Result<Response<Content>, Refused> {
    let (Answer::Upload(upload), Some(file)) = line.ask(Ask::Write(path)).await? else {
        return Err(LineError::Nonsense.into());
    };
    match receive(body, file).await {
        Ok(size) => {
            line.ask(Ask::Commit(upload)).await?;
            Ok(answer::json(StatusCode::CREATED, &json!({ "size": size })))
        }
        Err(refused) => {
            // What is left of it is thrown away later, where it cannot be now.
            let _ = line.ask(Ask::Abandon(upload)).await;
            Err(refused)
        }
    }
}

async fn receive(mut body: Incoming, file: OwnedFd) -> Result<u64, Refused> {
    let mut file = tokio::fs::File::from_std(File::from(file));
    let full = |error: std::io::Error| Refused::from(LineError::Refused(error.into()));
    let mut size = 0;
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
        let frame = frame.map_err(|_| Refused::invalid("the body: does not come"))?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|_| Refused::invalid("the body: ended early"))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        size += piece.len() as u64;
        if size > MOST_BYTES {
            return Err(Refused::too_large(format!(
                "the file: is larger than {MOST_BYTES} bytes"
            )));
        }
        file.write_all(&piece).await.map_err(full)?;
    }
    // What was written is written beside, and may not have been yet.
    file.flush().await.map_err(full)?;
    Ok(size)
}

/// Removes what is at `path`, with all that is in it.
pub(crate) async fn remove(line: &Line, path: PathBuf) -> Result<Response<Content>, Refused> {
    line.ask(Ask::RemoveAll(path)).await?;
    Ok(answer::plain(StatusCode::NO_CONTENT, content::of_bytes("")))
}

/// What is in the directory at `path`.
pub(crate) async fn list(
    line: &Line,
    path: PathBuf,
    after: Option<String>,
    limit: usize,
) -> Result<Response<Content>, Refused> {
    match line.ask(Ask::List { path, after, limit }).await? {
        (Answer::Entries(page), _) => Ok(answer::json(StatusCode::OK, &page)),
        _ => Err(LineError::Nonsense.into()),
    }
}
