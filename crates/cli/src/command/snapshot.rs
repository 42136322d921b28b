//! `sandbox snapshot`

use crate::ending::Ending;
use crate::report::Problem;

/// Save a checkpoint inside a sandbox, or list them
///
/// The label is printed on stdout; without one a number is taken. Nothing may run in the sandbox
/// meanwhile.
///
/// Examples:
///   sandbox snapshot risky
///   sandbox snapshot risky before-migration
///   sandbox snapshot risky --list
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// What to call it
    #[arg(value_name = "LABEL")]
    label: Option<String>,

    /// List the checkpoints
    #[arg(long, short, conflicts_with_all = ["label", "delete"])]
    list: bool,

    /// Delete the checkpoint LABEL
    #[arg(long, requires = "label")]
    delete: bool,

    /// Print JSON: {"label"}, or with --list [{"label", "created", "size"}]
    #[arg(long)]
    json: bool,
}

pub(crate) fn snapshot(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
