//! Files that an execution made, as they are told of.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::entries;
use crate::lookout::{Birth, Found, Lookout, NewFile};

/// How many bytes of one execution's files are read.
const MOST_BYTES: u64 = 1 << 30;

/// How many are read before others have their turn.
const PIECE: usize = 64 << 10;

/// A file that is new since an execution began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactFound {
    /// Where it is in the workspace.
    pub path: String,
    /// How long it is.
    pub size_bytes: u64,
    /// What it holds, by its name.
    pub mime_type: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Describes the files that were found, by what is in them: those that could be, and whether some were left
/// out. One that is gone by now is not there to be told of.
pub(crate) async fn describe(lookout: &Lookout, found: Found) -> (Vec<ArtifactFound>, bool) {
    let mut artifacts = Vec::new();
    let mut truncated = found.truncated;
    let mut left = MOST_BYTES;
    for NewFile { path, birth } in found.files {
        // A name that is not text could not be asked for.
        let Some(text) = path.to_str() else {
            truncated = true;
            continue;
        };
        let (file, size) = match open(lookout, &path, birth) {
            Ok(Some(opened)) => opened,
            Ok(None) => continue,
            Err(_) => {
                truncated = true;
                continue;
            }
        };
        if size > left {
            truncated = true;
            continue;
        }
        match digest(&file, left).await {
            Ok((sha256, size_bytes)) => {
                left -= size_bytes;
                artifacts.push(ArtifactFound {
                    mime_type: mime_type(&path).to_owned(),
                    path: text.to_owned(),
                    size_bytes,
                    sha256,
                    created_at: created_at(birth),
                });
            }
            Err(_) => truncated = true,
        }
    }
    (artifacts, truncated)
}

/// Opens the file that was found at `path`; nothing where there is another, or none, by now.
fn open(lookout: &Lookout, path: &Path, birth: Birth) -> io::Result<Option<(OwnedFd, u64)>> {
    let file = match entries::open_file(lookout.workspace(), path) {
        Ok(file) => file,
        Err(error) if entries::is_gone(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = entries::look(&file, "")?;
    let is_it = entries::kind(&found) == FileType::RegularFile && Birth::of(&found) == birth;
    Ok(is_it.then_some((file, found.stx_size)))
}

/// The SHA-256 of `file` and how long it is, if that is no more than `most`.
async fn digest(file: &OwnedFd, most: u64) -> io::Result<(String, u64)> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        let length = match rustix::io::read(file, &mut piece) {
            Err(rustix::io::Errno::INTR) => continue,
            outcome => outcome?,
        };
        if length == 0 {
            break;
        }
        size += length as u64;
        if size > most {
            // It grows while it is read.
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        digest.update(&piece[..length]);
        tokio::task::yield_now().await;
    }
    let bytes = digest.finalize();
    let sha256 = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((sha256, size))
}

fn created_at(birth: Birth) -> Timestamp {
    let nanoseconds = i32::try_from(birth.born.nanoseconds).unwrap_or(0);
    Timestamp::new(birth.born.seconds, nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What a file holds, by the end of its name. A table of our own: a complete one would be a part of every
/// process that the binary is.
fn mime_type(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.unwrap_or("").to_ascii_lowercase().as_str() {
        "txt" | "text" | "log" | "out" | "err" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" | "mjs" | "cjs" => "text/javascript",
        "py" => "text/x-python",
        "sh" | "bash" => "application/x-sh",
        "ics" => "text/calendar",
        "json" | "map" => "application/json",
        "jsonl" | "ndjson" => "application/x-ndjson",
        "ipynb" => "application/x-ipynb+json",
        "geojson" => "application/geo+json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "sql" => "application/sql",
        "wasm" => "application/wasm",
        "pdf" => "application/pdf",
        "rtf" => "application/rtf",
        "tex" => "application/x-tex",
        "epub" => "application/epub+zip",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "ppt" => "application/vnd.ms-powerpoint",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "odp" => "application/vnd.oasis.opendocument.presentation",
        "parquet" => "application/vnd.apache.parquet",
        "arrow" | "feather" => "application/vnd.apache.arrow.file",
        "sqlite" | "sqlite3" | "db" => "application/vnd.sqlite3",
        "zip" | "whl" => "application/zip",
        "tar" => "application/x-tar",
        "gz" | "tgz" => "application/gzip",
        "bz2" => "application/x-bzip2",
        "xz" => "application/x-xz",
        "zst" => "application/zstd",
        "7z" => "application/x-7z-compressed",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "svg" => "image/svg+xml",
        "bmp" => "image/bmp",
        "ico" => "image/vnd.microsoft.icon",
        "tif" | "tiff" => "image/tiff",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "oga" => "audio/ogg",
        "flac" => "audio/flac",
        "m4a" => "audio/mp4",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "mov" => "video/quicktime",
        "avi" => "video/x-msvideo",
        "mkv" => "video/matroska",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_is_in_it() {
        for (name, expected) in [
            ("plot.PNG", "image/png"),
            ("deep/data.tar.gz", "application/gzip"),
            ("notes", "application/octet-stream"),
            ("a.b/notes", "application/octet-stream"),
            ("page.html", "text/html"),
        ] {
            assert_eq!(mime_type(Path::new(name)), expected, "{name}");
        }
    }
}
