//! `sandbox file get` and `archive`

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use sandbox_model::{ByteSize, SessionId};
use serde::Serialize;

use super::landing::Landing;
use crate::client::{Client, ClientError, Next, Request, Stream, workspace_path};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal, plain};

/// Get a file from a session's workspace
///
/// It is written under another name and renamed when it is whole. Large files come from the server's
/// object store.
///
/// Examples:
///   sandbox file get sess_0123456789abcdef out/plot.png
///   sandbox file get sess_0123456789abcdef out/plot.png /tmp/
///   sandbox file get sess_0123456789abcdef out.json - | jq .
///   sandbox file get sess_0123456789abcdef log.txt - --range 0-1023
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// The file in the workspace
    #[arg(value_name = "PATH")]
    path: String,

    /// The file or directory here that it goes to [its own name here]; '-' writes it to stdout
    #[arg(value_name = "TO", value_hint = clap::ValueHint::AnyPath)]
    to: Option<PathBuf>,

    /// Only these bytes: 0-1023, 1024- (from there on) or -100 (the last hundred)
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    range: Option<String>,

    /// Print JSON: {"session_id", "path", "size", "file"}
    #[arg(long)]
    json: bool,
}

/// Get a directory of a session's workspace as a tar archive
///
/// Examples:
///   sandbox file archive sess_0123456789abcdef work.tar
///   sandbox file archive sess_0123456789abcdef --path out | tar -x
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct ArchiveArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// The file here that it goes to; '-' writes it to stdout
    #[arg(value_name = "TO", default_value = "-", value_hint = clap::ValueHint::AnyPath)]
    to: PathBuf,

    /// The directory in the workspace [all of it]
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// Print JSON: {"session_id", "path", "size", "file"}
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Got<'a> {
    session_id: &'a str,
    path: &'a str,
    size: u64,
    file: String,
}

pub(super) fn get(client: &Client, args: &Args) -> Result<Ending, Problem> {
    let path = workspace_path(&args.path)?;
    let to = match &args.to {
        Some(to) if to == "-" => to.clone(),
        Some(to) if to.is_dir() => to.join(name(&path)?),
        Some(to) => to.clone(),
        None => PathBuf::from(name(&path)?),
    };
    let range = args.range.as_ref().map(|bytes| format!("bytes={bytes}"));
    let request = Request::get(&["sessions", args.session.as_str()])
        .file(&path)
        .header("range", range);
    let landing = open(&to, args.json)?;
    let stream = client.download(&request)?;
    land(client, stream, landing, |size| {
        told(&args.session, &path, size, &to, args.json)
    })
}

pub(super) fn archive(client: &Client, args: &ArchiveArgs) -> Result<Ending, Problem> {
    let path = workspace_path(args.path.as_deref().unwrap_or_default())?;
    if args.to == Path::new("-") && io::stdout().is_terminal() {
        return Err(Refusal::new("not writing an archive to a terminal")
            .hint("name a file, or pipe it to tar")
            .into());
    }
    let request = Request::get(&["sessions", args.session.as_str(), "archive"])
        .query("path", Some(&path).filter(|path| !path.is_empty()));
    let landing = open(&args.to, args.json)?;
    let stream = client.open(&request)?;
    land(client, stream, landing, |size| {
        told(&args.session, &path, size, &args.to, args.json)
    })
}

/// The last part of a path in the workspace.
fn name(path: &str) -> Result<&str, Refusal> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    name.ok_or_else(|| {
        Refusal::new(format!("'{path}' is not a file's path"))
            .hint("`sandbox file archive` gets a directory")
    })
}

fn open(to: &Path, json: bool) -> Result<Landing, Problem> {
    match (to == Path::new("-"), json) {
        (true, true) => Err(Refusal::new("stdout cannot have both the file and JSON")
            .hint("name a file to write to")
            .into()),
        (true, false) => Ok(Landing::stdout()),
        (false, _) => Landing::file(to),
    }
}

/// Writes all of it. One that breaks off, or is broken off, leaves nothing behind.
fn land(
    client: &Client,
    mut stream: Stream<'_>,
    mut landing: Landing,
    done: impl FnOnce(u64) -> Result<(), Problem>,
) -> Result<Ending, Problem> {
    let mut interruptions = client
        .interruptions()
        .map_err(|error| Refusal::io("cannot watch for signals", error))?;
    let mut size = 0;
    loop {
        match stream.next_or(&mut interruptions)? {
            Next::Piece(piece) => {
                size += piece.len() as u64;
                landing.write(&piece)?;
            }
            Next::Signal(signal) => return Ok(Ending::Signal(signal)),
            Next::Silence => return Err(ClientError::ended(client.server()).into()),
            Next::End => break,
        }
    }
    landing.finish()?;
    done(size)?;
    Ok(Ending::DONE)
}

fn told(session: &SessionId, path: &str, size: u64, to: &Path, json: bool) -> Result<(), Problem> {
    let file = crate::command::create::shown(to);
    match json {
        true => output::print_json(&Got {
            session_id: session.as_str(),
            path,
            size,
            file,
        }),
        false => {
            let what = if path.is_empty() { "/workspace" } else { path };
            narration::say(format_args!("Got {} ({}).", plain(what), ByteSize(size)));
            Ok(())
        }
    }
}
