//! `sandbox diff`

use std::path::PathBuf;

use crate::ending::Ending;
use crate::report::Problem;

/// Show what changed in a sandbox
///
/// A unified diff in git's format: `git apply` and `patch` accept what is printed to a pipe or file. What
/// they cannot carry (empty directories, FIFOs, extended attributes) is listed on stderr. Paths are
/// relative to the source, or to the current directory when that is inside it.
///
/// Examples:
///   sandbox diff risky
///   sandbox diff risky src/ --stat
///   sandbox diff risky --files --since 10m
///   sandbox diff risky | git apply
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

    /// Lines added and deleted per file
    #[arg(long, conflicts_with_all = ["files", "json"])]
    stat: bool,

    /// Changed paths with a letter: A added, M modified, D deleted, R renamed, P permissions, T type
    #[arg(long, visible_alias = "name-only", conflicts_with = "json")]
    files: bool,

    /// Only what was modified since: 10m, 2h, 3d, 2026-01-31, '2026-01-31 14:00'
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Print JSON: [{"path", "kind", "before", "after", "flags", …}]
    #[arg(long)]
    json: bool,

    /// Exit with status 1 when there are changes
    #[arg(long)]
    exit_code: bool,
}

pub(crate) fn diff(args: &Args) -> Result<Ending, Problem> {
    todo!("{args:?}")
}
