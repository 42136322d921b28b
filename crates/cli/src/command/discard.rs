//! `sandbox discard`

use sandbox_workspace::Sandbox;

use crate::ending::Ending;
use crate::report::Problem;

/// Delete a sandbox and the changes in it
///
/// The source is not touched, and an earlier promote can still be undone.
///
/// Examples:
///   sandbox discard risky
///   sandbox rm -f calm-otter-42 bold-fox-7
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandboxes
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// Do not ask
    #[arg(long, short, visible_short_alias = 'y', visible_alias = "yes")]
    force: bool,
}

/// Deletes it without a word or a record: it was only made to be thrown away.
pub(crate) fn silently(sandbox: Sandbox) -> Result<(), Problem> {
    todo!("{sandbox:?}")
}

pub(crate) fn discard(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
