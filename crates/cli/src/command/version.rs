//! `sandbox version`

use serde::Serialize;

use crate::ending::Ending;
use crate::output;
use crate::report::Problem;

/// Print the version
///
/// Examples:
///   sandbox version
///   sandbox version --json
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print JSON: {"version"}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

pub(crate) fn version(args: &Args) -> Result<Ending, Problem> {
    let version = env!("CARGO_PKG_VERSION");
    match args.json {
        true => output::print_json(&Version { version })?,
        false => output::print_line(format!("sandbox {version}"))?,
    }
    Ok(Ending::DONE)
}
