//! `sandbox history`

use crate::ending::Ending;
use crate::report::Problem;

/// Show every operation on every sandbox
///
/// When, what, on which sandbox, who, how it ended and how long it took, newest first.
///
/// Examples:
///   sandbox history
///   sandbox history risky -n 5
///   sandbox history --json | jq 'select(.operation == "promote")'
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Only this sandbox
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// At most so many
    #[arg(long, short = 'n', value_name = "NUMBER")]
    limit: Option<usize>,

    /// Print JSON, one record per line, as they are stored
    #[arg(long)]
    json: bool,
}

pub(crate) fn history(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
