//! `sandbox pause`

use crate::ending::Ending;
use crate::report::Problem;

/// Freeze the processes of a sandbox
///
/// They keep their memory, files and connections, and use no processor until `sandbox resume`.
/// With --stop they are ended instead (SIGTERM, then SIGKILL) and only the files are kept.
///
/// Examples:
///   sandbox pause risky
///   sandbox pause risky --stop
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// End the processes, keep the files
    #[arg(long)]
    stop: bool,

    /// Print JSON: {"name", "processes"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn pause(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
