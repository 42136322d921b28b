//! `sandbox promote`

use std::path::PathBuf;

use crate::ending::Ending;
use crate::report::Problem;

/// Apply a sandbox's changes to its source
///
/// Shows the plan, asks, and applies all of it or nothing: a crash halfway is rolled back by the next
/// command. Files that run on your machine (git hooks and configuration, .envrc, editor tasks, new
/// executables) are marked; git's control files need --allow-git-control besides --yes.
///
/// A path that also changed in the source is a conflict: nothing is applied and the exit status is 5,
/// unless each is resolved, at the prompt or by flags. `ours` is the sandbox's version, `theirs` the
/// source's, `merge` both where they fit together, `skip` leaves the path out.
///
/// Examples:
///   sandbox promote risky
///   sandbox promote risky src/ --dry-run
///   sandbox promote risky --interactive
///   sandbox promote risky --yes --resolve Cargo.lock=theirs --merge
///   sandbox promote risky --undo
#[derive(Debug, clap::Args)]
#[cfg_attr(test, derive(PartialEq))]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The sandbox
    #[arg(value_name = "NAME")]
    name: String,

    /// Only what is at or below these
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Show the plan and stop
    #[arg(long, short = 'n')]
    dry_run: bool,

    /// Decide per file and per hunk
    #[arg(long, short, conflicts_with_all = ["yes", "dry_run"])]
    interactive: bool,

    /// Also keep what is replaced or deleted beside it, as NAME.orig
    #[arg(long)]
    backup: bool,

    /// Do not ask
    #[arg(long, short)]
    yes: bool,

    /// Take the last promote of this source back
    #[arg(long, conflicts_with_all = ["interactive", "backup", "resolve", "ours", "theirs", "merge"])]
    undo: bool,

    /// Apply git's control files (.git/config, .git/hooks) too
    #[arg(long)]
    allow_git_control: bool,

    /// Resolve one conflict: PATH=ours, theirs, merge or skip
    #[arg(long, value_name = "PATH=HOW", help_heading = "Conflicts")]
    resolve: Vec<String>,

    /// Resolve all other conflicts with the sandbox's version
    #[arg(long, conflicts_with_all = ["theirs", "merge"], help_heading = "Conflicts")]
    ours: bool,

    /// Resolve all other conflicts with the source's version
    #[arg(long, conflicts_with = "merge", help_heading = "Conflicts")]
    theirs: bool,

    /// Resolve all other conflicts by merging; what overlaps stays a conflict
    #[arg(long, help_heading = "Conflicts")]
    merge: bool,

    /// Print JSON: the plan, and whether it was applied
    #[arg(long, conflicts_with = "interactive")]
    json: bool,
}

pub(crate) fn promote(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
