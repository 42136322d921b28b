//! `sandbox gc`

use crate::ending::Ending;
use crate::report::Problem;

/// Clean up what nobody needs any more
///
/// Remains of interrupted creates and discards, pre-images of promotes older than the retention limit,
/// and, when asked with --stale, sandboxes that are stale and hold no changes. Unpromoted work is
/// never deleted.
///
/// Examples:
///   sandbox gc --dry-run
///   sandbox gc
///   sandbox gc --stale
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Show what would be deleted and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Also stale sandboxes without changes
    #[arg(long)]
    stale: bool,

    /// Print JSON: [{"what", "path", "size", "deleted"}]
    #[arg(long)]
    json: bool,
}

pub(crate) fn gc(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
