//! `sandbox file put`

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_model::{ByteSize, SessionId};
use serde::Deserialize;

use crate::client::{Client, Request, Upload, workspace_path};
use crate::ending::Ending;
use crate::narration;
use crate::output;
use crate::report::{Problem, Refusal, plain};

/// Put a file into a session's workspace
///
/// It is there whole or not at all, instead of what was there. A PATH that ends in '/' is the directory
/// it goes into.
///
/// Examples:
///   sandbox file put sess_0123456789abcdef data.csv
///   sandbox file put sess_0123456789abcdef ~/data.csv in/
///   pg_dump shop | sandbox file put sess_0123456789abcdef - shop.sql
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The session
    #[arg(value_name = "SESSION")]
    session: SessionId,

    /// The file here; '-' reads it from stdin
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,

    /// Where it goes in the workspace; to its own name without it
    #[arg(value_name = "PATH")]
    path: Option<String>,

    /// Print JSON: {"session_id", "path", "size"}
    #[arg(long)]
    json: bool,
}

pub(super) fn put(client: &Client, args: &Args) -> Result<Ending, Problem> {
    #[derive(Deserialize)]
    struct Put {
        path: String,
        size: u64,
    }
    let path = workspace_path(&destination(&args.file, args.path.as_deref())?)?;
    let upload = opened(&args.file, path)?;
    let request = Request::post(&["sessions", args.session.as_str(), "files", "upload"]);
    let answer = client.upload(&request, upload)?;
    match args.json {
        true => output::print_line(answer.json()?)?,
        false => {
            let put: Put = answer.read()?;
            narration::say(format_args!(
                "Put {} ({}) into session {}.",
                plain(&put.path),
                ByteSize(put.size),
                args.session
            ));
        }
    }
    Ok(Ending::DONE)
}

/// Where `file` goes.
fn destination(file: &Path, path: Option<&str>) -> Result<String, Refusal> {
    let own_name = || {
        let name = file.file_name().filter(|_| file != "-");
        let name = name.and_then(|name| name.to_str()).ok_or_else(|| {
            Refusal::new(format!(
                "'{}' has no name for the workspace",
                file.display()
            ))
            .hint("say where it goes: sandbox file put SESSION FILE PATH")
        });
        name.map(str::to_owned)
    };
    match path {
        None => own_name(),
        Some(directory) if directory.is_empty() || directory.ends_with('/') => {
            Ok(format!("{directory}{}", own_name()?))
        }
        Some(path) => Ok(path.to_owned()),
    }
}

fn opened(file: &Path, path: String) -> Result<Upload, Refusal> {
    if file == "-" {
        return Ok(Upload {
            name: "stdin".to_owned(),
            content: Box::new(io::stdin()),
            length: None,
            path,
        });
    }
    let cannot = |error| Refusal::io(format!("cannot read {}", file.display()), error);
    let content = File::open(file).map_err(cannot)?;
    let found = content.metadata().map_err(cannot)?;
    if found.is_dir() {
        return Err(
            Refusal::new(format!("{} is a directory", file.display())).hint(
                "send it as an archive: tar -c DIR | sandbox file put SESSION - dir.tar, \
                 then sandbox exec SESSION 'tar -xf dir.tar'",
            ),
        );
    }
    Ok(Upload {
        name: file.display().to_string(),
        // What is no plain file has a length that says nothing; what the kernel makes up says that it is empty.
        length: Some(found.len()).filter(|length| found.is_file() && *length > 0),
        content: Box::new(content),
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_where_it_is_said_or_to_its_own_name() {
        let to = |file: &str, path: Option<&str>| destination(Path::new(file), path).ok();
        assert_eq!(to("a/b.csv", None).as_deref(), Some("b.csv"));
        assert_eq!(to("a/b.csv", Some("in/")).as_deref(), Some("in/b.csv"));
        assert_eq!(to("a/b.csv", Some("")).as_deref(), Some("b.csv"));
        assert_eq!(to("a/b.csv", Some("c")).as_deref(), Some("c"));
        assert_eq!(to("-", Some("c")).as_deref(), Some("c"));
        assert_eq!(to("-", None), None);
        assert_eq!(to("-", Some("in/")), None);
        assert_eq!(to("..", None), None);
    }
}
