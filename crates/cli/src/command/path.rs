//! `sandbox path`

use std::path::PathBuf;

use sandbox_model::WorkspaceMount;
use serde::Serialize;

use crate::command::create::shown;
use crate::ending::Ending;
use crate::output;
use crate::report::{Problem, Refusal};
use crate::surroundings;

/// Print a host path to a sandbox's files, where there is one
///
/// A sandbox of the copy backend is a plain directory. The others exist as a whole only inside,
/// mounted at the source's own path; `--layer` prints the directory that holds their changes.
///
/// Examples:
///   cd "$(sandbox path frozen)"
///   sandbox path risky --layer
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Where its changes are kept, as the overlay file system writes them
    #[arg(long)]
    layer: bool,

    /// Print JSON: {"path", "layer"}, either may be null
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Paths {
    path: Option<String>,
    layer: Option<String>,
}

pub(crate) fn path(args: &Args) -> Result<Ending, Problem> {
    let sandbox = surroundings::sandbox(&args.name)?;
    let (path, layer): (Option<PathBuf>, Option<PathBuf>) = match sandbox.mount() {
        WorkspaceMount::Bind { dir } => (Some(dir), None),
        WorkspaceMount::Overlay { upper, .. } => (None, Some(upper)),
    };
    if args.json {
        let text = |path: Option<PathBuf>| path.as_deref().map(shown);
        output::print_json(&Paths {
            path: text(path),
            layer: text(layer),
        })?;
        return Ok(Ending::DONE);
    }
    let wanted = if args.layer { layer.or(path) } else { path };
    let Some(path) = wanted else {
        let (name, backend) = (sandbox.name(), sandbox.meta.backend);
        return Err(Refusal::new(format!(
            "sandbox '{name}' has no path on the host: the {backend} backend mounts it only inside"
        ))
        .hint(format!(
            "`sandbox enter {name}` shows it whole, `sandbox path --layer {name}` its changes"
        ))
        .into());
    };
    use std::os::unix::ffi::OsStrExt;
    output::print_line(path.as_os_str().as_bytes())?;
    Ok(Ending::DONE)
}
