//! The files of a session.

use std::io::{Seek, SeekFrom};
use std::os::fd::OwnedFd;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use sandbox_control::{Caller, ControlError, Opened, Upload, unwritable};
use sandbox_executor::listing::{Entry, Kind};
use sandbox_model::SessionId;
use sandbox_store::objects::{LinkError, content_of};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use utoipa::{IntoParams, ToSchema};

use crate::api::words::{FileKindView, FilePath, SessionPath};
use crate::authentication::{Operator, Reader};
use crate::error::{ApiError, ErrorView};
use crate::forms::unhurried;
use crate::pace::{FILE, Paced, TooSlow};
use crate::pipe;
use crate::query::{Id, Query};
use crate::ranges;
use crate::state::App;

/// The largest file that is taken.
const MOST_BYTES: u64 = sandbox_control::MOST_BYTES;

/// From this size on a file comes from the object store, unless it is larger than any that is taken.
const LARGE: u64 = 10 << 20;

/// The longest path in a form.
const LONGEST_PATH: usize = 4096;

/// A file to be put into a session's workspace. Its parts come in any order.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UploadForm)]
#[allow(dead_code, reason = "describes a form that is read piece by piece")]
pub(crate) struct UploadForm {
    /// Where it goes in the workspace; the file's own name where it is not given.
    #[schema(value_type = String, required = false, min_length = 1, max_length = 4096, example = "data/sales.csv")]
    path: Option<String>,
    /// Its content: 100 MB at most.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// A file that was put into a session's workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadResponse {
    /// Whose workspace.
    session_id: String,
    /// Where it is in the workspace.
    #[schema(example = "data/sales.csv")]
    path: String,
    /// How long it is, in bytes.
    size: u64,
}

/// Which part of a directory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The directory; the workspace itself where it is not given.
    #[serde(default)]
    path: String,
    /// How many entries, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 200)]
    limit: Option<usize>,
    /// What the page before this one gave as `next_cursor`.
    cursor: Option<String>,
}

/// Which directory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArchiveQuery {
    /// The directory; the workspace itself where it is not given.
    #[serde(default)]
    path: String,
}

/// What is in a directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileList {
    /// The directory.
    path: String,
    /// By name.
    files: Vec<FileView>,
    /// What the next page is asked for with, as `cursor`; null on the last one.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Something in a directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = File)]
pub(crate) struct FileView {
    /// Its name.
    #[schema(example = "sales.csv")]
    name: String,
    /// What it is.
    #[schema(value_type = FileKindView)]
    kind: &'static str,
    /// How long it is, in bytes.
    size: u64,
    /// When its contents last changed.
    #[schema(format = DateTime, required)]
    modified_at: Option<String>,
}

/// Which bytes.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes a header that is read by hand")]
pub(crate) struct RangeHeader {
    /// Which bytes: `bytes=0-1023`, `bytes=1024-` or `bytes=-1024`. One range; all of the file for several.
    #[param(rename = "Range", required = false, example = "bytes=0-1023")]
    range: String,
}

/// Puts a file into a session's workspace.
///
/// Code finds it at `/workspace/PATH`. It is there whole or not at all, and replaces what was there.
#[utoipa::path(post, path = "/sessions/{session_id}/files/upload", tag = "files", operation_id = "upload_file",
    security(("api_key" = ["operate"])), params(SessionPath),
    request_body(content = UploadForm, content_type = "multipart/form-data"),
    responses((status = 200, body = UploadResponse, description = "It is there"),
        (status = 400, body = ErrorView,
            description = "The form or the path is not valid, or the file is larger than 100 MB"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is not running"),
        (status = 503, body = ErrorView, description = "The session's disk is full, or a part does not answer")))]
pub(crate) async fn upload(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    request: Request,
) -> Result<Json<UploadResponse>, ApiError> {
    app.control.session(&id).await?;
    let paced = |body| unhurried(HttpBody::new(Paced::new(body, FILE)));
    let form = Multipart::from_request(without_limit(request.map(paced)), &()).await;
    let form = form.map_err(|error| {
        ApiError::invalid(
            error.body_text(),
            "send multipart/form-data with the parts path and file",
        )
    })?;
    let (path, size) = receive(&app, &caller, &id, form).await?;
    let answer = UploadResponse {
        session_id: id.to_string(),
        path,
        size,
    };
    Ok(Json(answer))
}

/// Downloads a file from a session's workspace.
///
/// From 10 to 100 MB it comes from the object store, by a link that is good for an hour: follow the redirect. What is
/// larger comes directly, and so does what finds its place there taken by something that had its name before. While
/// the session runs, and after its end for as long as the workspace is kept.
#[utoipa::path(get, path = "/sessions/{session_id}/files/{*path}", tag = "files", operation_id = "download_file",
    security(("api_key" = ["read"])), params(FilePath, RangeHeader),
    responses(
        (status = 200, content_type = "application/octet-stream", body = [u8], description = "All of it",
            headers(("Content-Disposition" = String, description = "An attachment of its own name"),
                ("Accept-Ranges" = String, description = "`bytes`"))),
        (status = 206, content_type = "application/octet-stream", body = [u8], description = "The range asked for",
            headers(("Content-Range" = String, description = "Which bytes, of how many"))),
        (status = 307, description = "It is large, and in the object store",
            headers(("Location" = String, description = "Where it is, for an hour, without a key"))),
        (status = 400, body = ErrorView, description = "The path does not stay in the workspace, or is no file"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is paused, or its workspace was removed"),
        (status = 416, body = ErrorView, description = "The file does not have that range",
            headers(("Content-Range" = String, description = "How long the file is")))))]
pub(crate) async fn download(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
    params: RawPathParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let path = path_of(&params);
    let disposition = disposition(path);
    if let Some(link) = app.control.link_kept(&id, path, &disposition).await? {
        return redirect(&link);
    }
    let opened = match app.control.open_file(&id, path).await {
        Err(ControlError::Invalid { .. }) if is_directory(&app, &id, path).await => {
            let detail = format!("path: '{}' is a directory", path.escape_debug());
            let solution = "list it, or download it from /archive as a tar archive";
            return Err(ApiError::invalid(detail, solution));
        }
        opened => opened?,
    };
    if (LARGE..=MOST_BYTES).contains(&opened.size)
        && let Some(link) = app
            .control
            .link_file(&id, path, &opened, &disposition)
            .await?
    {
        return redirect(&link);
    }
    part(opened, &headers, &disposition)
}

/// What can be listed is one.
async fn is_directory(app: &App, id: &SessionId, path: &str) -> bool {
    app.control.list_files(id, path, None, 1).await.is_ok()
}

fn redirect(link: &str) -> Result<Response, ApiError> {
    let location = HeaderValue::from_str(link).map_err(|_| ApiError::internal())?;
    let location = [(header::LOCATION, location)];
    Ok((StatusCode::TEMPORARY_REDIRECT, location).into_response())
}

/// Removes a file from a session's workspace.
///
/// A directory goes with all that is in it.
#[utoipa::path(delete, path = "/sessions/{session_id}/files/{*path}", tag = "files", operation_id = "delete_file",
    security(("api_key" = ["operate"])), params(FilePath),
    responses((status = 204, description = "It is gone"),
        (status = 400, body = ErrorView, description = "The path does not stay in the workspace"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is paused, or its workspace was removed")))]
pub(crate) async fn remove(
    State(app): State<App>,
    Operator(caller): Operator,
    Id(id): Id<SessionId>,
    params: RawPathParams,
) -> Result<StatusCode, ApiError> {
    app.control
        .remove_file(&caller, &id, path_of(&params))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists a directory of a session's workspace.
///
/// By name, a page at a time.
#[utoipa::path(get, path = "/sessions/{session_id}/files", tag = "files", operation_id = "list_files",
    security(("api_key" = ["read"])), params(SessionPath, ListQuery),
    responses((status = 200, body = FileList, description = "A page of what is in it"),
        (status = 400, body = ErrorView), (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is paused, or its workspace was removed")))]
pub(crate) async fn list(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
    Query(query): Query<ListQuery>,
) -> Result<Json<FileList>, ApiError> {
    const USUAL: usize = 200;
    const MOST: usize = 1000;
    let limit = query.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        let detail = format!("limit: {limit} is not between 1 and {MOST}");
        return Err(ApiError::invalid(detail, "choose one in between"));
    }
    // A cursor is a name of which each character is a byte.
    let cursor = query.cursor.as_deref().unwrap_or_default();
    if cursor
        .chars()
        .any(|character| u8::try_from(character).is_err())
    {
        let detail = "cursor: there is no such page";
        let solution = "use the cursor that the last page gave";
        return Err(ApiError::invalid(detail, solution));
    }
    let page = app
        .control
        .list_files(&id, &query.path, query.cursor, limit)
        .await?;
    Ok(Json(FileList {
        path: query.path,
        files: page.entries.into_iter().map(view).collect(),
        next_cursor: page.next,
    }))
}

/// Downloads a directory of a session's workspace as a tar archive.
///
/// Links, modes and times are kept; owners are not.
#[utoipa::path(get, path = "/sessions/{session_id}/archive", tag = "files", operation_id = "download_archive",
    security(("api_key" = ["read"])), params(SessionPath, ArchiveQuery),
    responses((status = 200, content_type = "application/x-tar", body = [u8], description = "The archive",
            headers(("Content-Disposition" = String, description = "An attachment named after the directory"))),
        (status = 400, body = ErrorView, description = "The path does not stay in the workspace"),
        (status = 404, body = ErrorView),
        (status = 409, body = ErrorView, description = "The session is paused, or its workspace was removed")))]
pub(crate) async fn archive(
    State(app): State<App>,
    _: Reader,
    Id(id): Id<SessionId>,
    Query(query): Query<ArchiveQuery>,
) -> Result<Response, ApiError> {
    let (pipe, archived) = app.control.archive(&id, &query.path).await?;
    // The session stays raised for as long as it is read.
    let pieces = pipe::content_of(pipe).map_err(|_| ApiError::internal())?;
    let pieces = pieces.map(move |piece| {
        let _archived = &archived;
        piece
    });
    let name = query
        .path
        .rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or("workspace");
    let headers = [
        (header::CONTENT_TYPE, "application/x-tar".to_owned()),
        (
            header::CONTENT_DISPOSITION,
            disposition(&format!("{name}.tar")),
        ),
    ];
    Ok((headers, HttpBody::from_stream(pieces)).into_response())
}

/// An object, by a link that was signed here.
pub(crate) async fn object(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let query = request.uri().query().unwrap_or_default();
    let now = std::time::SystemTime::now();
    let grant = app
        .links
        .verify(request.uri().path(), query, now)
        .map_err(|error| unusable_link(&error))?;
    let range = ranges::read(request.headers())?;
    let download = app.control.objects().get(&grant.key, range.clone()).await;
    let download = download.map_err(|error| match error {
        sandbox_store::ObjectsError::NotFound { key } => {
            let path = String::from_utf8_lossy(key.path()).into_owned();
            ControlError::not_found(sandbox_control::Kind::File, path).into()
        }
        sandbox_store::ObjectsError::Range { size, .. } => ApiError::unsatisfiable(size),
        error => ApiError::from(ControlError::from(error)),
    })?;
    let size = download.info.size;
    let disposition = grant
        .content_disposition
        .unwrap_or_else(|| "attachment".to_owned());
    let content = download.content.map_err(std::io::Error::other);
    Ok(ranges::answer(
        &range,
        download.range,
        size,
        &disposition,
        HttpBody::from_stream(content),
    ))
}

/// A link has no key, so that no other key helps.
fn unusable_link(error: &LinkError) -> ApiError {
    let description = match error {
        LinkError::Expired => "the download link has expired",
        LinkError::Forged => "the download link is not valid",
    };
    let detail = match error {
        LinkError::Expired => "a link is valid for one hour after it was made",
        LinkError::Forged => "its path or one of its parameters is missing or was changed",
    };
    let (status, code) = (StatusCode::FORBIDDEN, "Sandbox.Forbidden");
    let solution = "request the file from /api/v1/sessions/{session_id}/files/{path} again: it redirects to a new link";
    ApiError::new(status, code, description, detail, solution)
}

/// A file that has come, and waits for the rest of its form.
struct Received {
    upload: Upload,
    /// Its own.
    name: Option<String>,
    size: u64,
}

/// Only our own limit counts, and it is the file's.
fn without_limit(mut request: Request) -> Request {
    DefaultBodyLimit::disable().apply(&mut request);
    request
}

/// Reads the form: the file, and its path, if there is one, before it or after it.
async fn receive(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    mut form: Multipart,
) -> Result<(String, u64), ApiError> {
    let mut path: Option<String> = None;
    let mut received: Option<Received> = None;
    while let Some(field) = form.next_field().await.map_err(unreadable)? {
        match field.name() {
            Some("path") if path.is_some() => {
                return Err(ApiError::invalid("path: is there twice", "send one path"));
            }
            Some("file") if received.is_some() => {
                return Err(ApiError::invalid("file: is there twice", "send one file"));
            }
            Some("path") => path = Some(short_text(field).await?),
            Some("file") => {
                let name = field.file_name().map(str::to_owned);
                let mut upload = app.control.upload(caller, id, path.as_deref()).await?;
                let size = write(&mut upload, field).await?;
                received = Some(Received { upload, name, size });
            }
            _ => {
                return Err(ApiError::invalid(
                    "the form has another part",
                    "send path and file",
                ));
            }
        }
    }
    let missing = || ApiError::invalid("file: is missing", "send the part file");
    let Received { upload, name, size } = received.ok_or_else(missing)?;
    let path = path.or(name.filter(|name| !name.is_empty()));
    let missing = || ApiError::invalid("path: is missing", "send the part path");
    let path = path.ok_or_else(missing)?;
    upload.commit(&path, size).await?;
    Ok((path, size))
}

async fn short_text(mut field: Field<'_>) -> Result<String, ApiError> {
    let mut text = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(unreadable)? {
        text.extend_from_slice(&piece);
        if text.len() > LONGEST_PATH {
            let detail = format!("path: is longer than {LONGEST_PATH} bytes");
            return Err(ApiError::invalid(detail, "use a shorter one"));
        }
    }
    String::from_utf8(text).map_err(|_| ApiError::invalid("path: is not UTF-8", "use another name"))
}

/// Writes the file as it comes.
async fn write(upload: &mut Upload, mut field: Field<'_>) -> Result<u64, ApiError> {
    let file = upload.file.take().ok_or_else(ApiError::internal)?;
    let mut file = tokio::fs::File::from_std(std::fs::File::from(file));
    let mut size = 0;
    while let Some(piece) = field.chunk().await.map_err(unreadable)? {
        size += piece.len() as u64;
        if size > MOST_BYTES {
            let what = "the file".to_owned();
            return Err(ControlError::TooLarge {
                what,
                most: MOST_BYTES,
            }
            .into());
        }
        write_piece(&mut file, &piece).await?;
    }
    file.flush().await.map_err(unwritable)?;
    Ok(size)
}

async fn write_piece(file: &mut tokio::fs::File, piece: &Bytes) -> Result<(), ApiError> {
    Ok(file.write_all(piece).await.map_err(unwritable)?)
}

fn unreadable(error: MultipartError) -> ApiError {
    TooSlow::refusal(&error)
        .unwrap_or_else(|| ApiError::invalid(error.body_text(), "send the form again"))
}

/// The path's second parameter.
fn path_of(params: &RawPathParams) -> &str {
    params
        .iter()
        .find(|(name, _)| *name == "path")
        .map_or("upload", |(_, path)| path)
}

/// The part of a file that was asked for.
fn part(opened: Opened, headers: &HeaderMap, disposition: &str) -> Result<Response, ApiError> {
    let range = ranges::read(headers)?;
    let size = opened.size;
    let bytes = range
        .of(size)
        .ok_or_else(|| ApiError::unsatisfiable(size))?;
    let mut file = std::fs::File::from(opened.file);
    file.seek(SeekFrom::Start(bytes.start))
        .map_err(|_| ApiError::internal())?;
    let length = bytes.end - bytes.start;
    let pieces = content_of(OwnedFd::from(file));
    // The code inside may write to it meanwhile: what was promised is what is sent.
    let pieces = ranges::first(pieces, length);
    Ok(ranges::answer(
        &range,
        bytes,
        size,
        disposition,
        HttpBody::from_stream(pieces),
    ))
}

/// What a browser is to do with it: keep it under its own name.
fn disposition(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            ' '..='~' if letter != '"' && letter != '\\' => letter,
            _ => '_',
        })
        .collect();
    let encoded: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let encoded = encoded.replace('+', "%20").replace('*', "%2A");
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

fn view(entry: Entry) -> FileView {
    let modified = jiff::Timestamp::from_second(entry.modified).ok();
    FileView {
        name: entry.name,
        kind: match entry.kind {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Link => "link",
            Kind::Other => "other",
        },
        size: entry.size,
        modified_at: modified.map(|time| time.to_string()),
    }
}
