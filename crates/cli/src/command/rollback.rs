//! `sandbox rollback`

use crate::ending::Ending;
use crate::report::Problem;

/// Take a sandbox back to a checkpoint
///
/// What changed since is lost, so it asks; take another snapshot first if you may want it. The
/// checkpoint itself stays. The source is not touched.
///
/// Examples:
///   sandbox rollback risky before-migration
///   sandbox rollback risky 1 --yes
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// The checkpoint
    #[arg(value_name = "LABEL")]
    label: String,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn rollback(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
