//! `sandbox resume`

use crate::ending::Ending;
use crate::report::Problem;

/// Let the processes of a paused sandbox go on
///
/// Examples:
///   sandbox resume risky
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Print JSON: {"name", "processes"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn resume(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
