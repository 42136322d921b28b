//! `sandbox sync`

use clap::ValueEnum;

use crate::ending::Ending;
use crate::report::Problem;

/// Bring the source's changes into a sandbox
///
/// Three-way: what only the source changed is taken over, what only the sandbox changed stays, what
/// both changed is merged where it is text and the edits fit together, else left and named. On the
/// overlay backend unchanged files show the source live; sync reconciles the changed ones.
///
/// Examples:
///   sandbox sync risky
///   sandbox sync risky --dry-run
///   sandbox sync risky --direction sandbox-to-source
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Which way; sandbox-to-source is `sandbox promote`
    #[arg(long, value_enum, default_value_t = Direction::SourceToSandbox)]
    direction: Direction,

    /// Show what would be done and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Do not ask (for sandbox-to-source)
    #[arg(long, short)]
    yes: bool,

    /// Print JSON: {"updated", "merged", "conflicts"}
    #[arg(long)]
    json: bool,
}

/// Which side changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    /// The sandbox takes over the source's changes
    SourceToSandbox,
    /// The source takes over the sandbox's changes
    SandboxToSource,
}

pub(crate) fn sync(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
