//! `sandbox info`

use crate::ending::Ending;
use crate::report::Problem;

/// Show everything about a sandbox
///
/// Source, backend, age, disk use, changes, what changed in the source since it was created, processes,
/// network and refused connections, limits and whether each is enforced here, environment.
///
/// Examples:
///   sandbox info risky
///   sandbox info risky --json | jq .processes
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Print JSON, with the same fields as the text
    #[arg(long)]
    json: bool,
}

pub(crate) fn info(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
